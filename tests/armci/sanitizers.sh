#!/bin/sh
# sanitizers.sh - the programs of libarmci where the library, Aqueduct and they are built with
# AddressSanitizer and UndefinedBehaviorSanitizer, or with ThreadSanitizer. Runs in a build folder
# that is configured with --enable-sanitizers. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
# Leaks are not looked for: the MPI library unloads its modules before the end, so that no name of a
# suppression would fit what they leave.

set -u
: "${AQ_SRC:?AQ_SRC is the source folder}"
build=${AQ_BUILD:-$PWD}
variable() { make -s -C "$build" echovar VARNAME="$1" 2>/dev/null | sed -n "s/^$1=//p"; }
CC=$(variable AQ_ARMCI_CC)
LIBS=$(variable AQ_ARMCI_LIBS)
. "$AQ_SRC/build-aux/armci-mpi.sh"
case $CC in
*-fsanitize=thread*) kind=thread ;;
*-fsanitize=*) kind=address ;;
*) kind='' ;;
esac
[ -n "$kind" ] && command -v "$MPICC" >/dev/null && [ -n "$(variable HAVE_ARMCI_TRUE)$LIBS" ] ||
    { echo '1..0 # SKIP no sanitizer, or no libarmci'; exit 0; }

. "$AQ_SRC/build-aux/tap.sh"
. "$AQ_SRC/tests/armci/rules.sh"
export ASAN_OPTIONS=detect_leaks=0:exitcode=86 UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS="exitcode=86:suppressions=$AQ_SRC/tests/armci/tsan.supp"
export AQ_MODULE_DIR="$build/modules" # Aqueduct over MPI
export TMPDIR="$work/tmp"
# More ranks than cores read the names of PCI devices by themselves, for seconds under a sanitizer.
export HWLOC_COMPONENTS=-pci

check "libarmci is built" make -s -C "$build" runtimes/armci/libarmci.a

# builds NAME
builds() { (cd "$build" && eval "$CC -I$AQ_SRC/tests/armci -o $work/$1 $AQ_SRC/tests/armci/$1.c $LIBS -lpthread"); }

shared=1 # ranks that share memory, except over smp

# clean CONDUIT RANKS PROGRAM ARGUMENT...: every rank says that all was right, and no sanitizer anything
clean()
{
    sharing=''
    [ "$1" = smp ] || sharing=GASNET_SUPERNODE_MAXSIZE=$shared
    conduit=$1 ranks=$2 program=$3
    shift 3
    # shellcheck disable=SC2086
    env GASNET_CONDUIT="$conduit" $sharing timeout -k 5 100 "$MPIRUN" -n "$ranks" "$work/$program" "$@" \
        >"$work/run" 2>&1
    status=$?
    grep -A 40 -m 1 -E 'Sanitizer|runtime error' "$work/run" || tail -n 30 "$work/run"
    echo "exit status $status"
    [ $status = 0 ] && ! grep -q -E 'Sanitizer|runtime error' "$work/run" &&
        [ "$(grep -c "of $ranks right" "$work/run")" = "$ranks" ]
}

# ends WAY STATUS WORDS: the job ends with STATUS and says WORDS, and no sanitizer says anything
ends()
{
    sharing=''
    [ "$ends_on" = smp ] || sharing=GASNET_SUPERNODE_MAXSIZE=$shared
    # shellcheck disable=SC2086
    env GASNET_CONDUIT="$ends_on" $sharing timeout -k 5 60 "$MPIRUN" -n 3 "$work/ends" "$1" >"$work/run" 2>&1
    status=$?
    cat "$work/run"
    echo "exit status $status"
    [ $status = "$2" ] && grep -q "$3" "$work/run" && ! grep -q -E 'Sanitizer|runtime error' "$work/run"
}

for program in transfers handles memory sync messages programs accumulate protocols order procedures locks parts edges twins remains turns ends; do
    check "$program builds" builds $program
done
heap_builds()
{
    (cd "$build" && eval "$CC -D_GNU_SOURCE -I$AQ_SRC/runtimes/armci -o $work/heap $AQ_SRC/tests/armci/heap.c \
        $AQ_SRC/runtimes/armci/armci_heap.c")
}
check "heap builds" heap_builds
check "heap" "$work/heap"
for conduit in smp udp mpi; do
    check "transfers, $conduit" clean $conduit 2 transfers short
    for program in handles memory sync messages programs edges twins remains; do
        check "$program, $conduit" clean $conduit 2 $program
    done
    check "accumulate, $conduit" clean $conduit 2 accumulate 20000
    check "procedures, $conduit" clean $conduit 2 procedures threads
    check "threads in turns, $conduit" clean $conduit 2 turns threads
done
for program in sync handles; do
    check "$program with threads, mpi" clean mpi 2 $program threads
done
export AQ_UDP_FAULTS=drop=2%,reorder=5%,seed=5
check "order, udp that loses and reorders" clean udp 2 order used put_eager
unset AQ_UDP_FAULTS
check "order, mpi" clean mpi 3 order threads AQ_ARMCI_PUT=eager used put_messages
check "locks" clean smp 3 locks short
shared=2
check "messages, 4 ranks on 2 hosts in name, udp" clean udp 4 messages
shared=1
check "a part of the ranks: halves, udp" clean udp 4 parts halves
for way in put_buffered get_buffered get_assisted; do
    name=$(echo "${way%_*}" | tr a-z A-Z)
    export "AQ_ARMCI_$name=${way#*_}"
    check "protocols, $way" clean udp 2 protocols $way "${way%_*}_direct"
    unset "AQ_ARMCI_$name"
done
# asan has the checks of a debug build
if [ $kind = address ]; then
    ends_on=udp
    broken_rules
    ends_on=smp # there operations are complete at return, and mutexes are taken without a message
    broken_rules
    wrong_ranks
fi
check "no process is left" tap_gone
tap_end
