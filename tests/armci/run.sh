#!/bin/sh
# run.sh - libarmci: programs built from an installed tree, over each conduit. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
# AQ_SRC is the source folder, AQ_INSTALL the installed tree, AQ_BUILD the build folder, which knows
# the MPI that libarmci was made for.

set -u
. "${AQ_SRC:?AQ_SRC is the source folder}/tests/armci/installed.sh"
. "$AQ_SRC/tests/armci/rules.sh"
cp "$AQ_SRC"/tests/armci/*.c "$AQ_SRC"/tests/armci/*.h "$work" || exit 1
cd "$work" || exit 1
libs_of_archive() { sed -n "s/^Libs.private: //p" "$tree/lib/pkgconfig/armci.pc"; }

is_debug()
{
    grep -q 'define GASNET_DEBUG 1' "$tree"/include/gasnet_config.h 2>/dev/null || [ "${AQ_DEBUG_NAME:-}" = GASNET_DEBUG ]
}

# status WAY STATUS [WORDS]: what codes ends with, and says. One rank without mpirun, which returns
# 1 for many a 0
status()
{
    GASNET_CONDUIT=smp timeout -k 5 20 ./codes "$1" >"$work/run" 2>&1
    status=$?
    cat "$work/run"
    echo "exit status $status"
    [ $status = "$2" ] && { [ $# -lt 3 ] || grep -q "$3" "$work/run"; } && ! grep -q 'MPI_ABORT was called after\|MPI_Abort() .* after' "$work/run"
}

# builds NAME: with the shared library
# shellcheck disable=SC2046
programs=
builds()
{
    programs="$programs $1"
    check "$1 builds" "$MPICC" -O1 -g -Wall -Wextra -Werror "$1.c" -o "$1" \
        $(pkg --cflags --libs armci) \
        -Wl,-rpath,"$tree/lib" -lpthread
}

# ends WAY STATUS WORDS: the job ends with STATUS (any but 0 for -) within seconds, and says WORDS.
ends()
{
    # shellcheck disable=SC2046
    env $(settings "${ends_on:-smp}") timeout -k 5 20 "$MPIRUN" -n 3 ./ends "$1" >"$work/run" 2>&1
    status=$?
    cat "$work/run"
    echo "exit status $status"
    case $2 in
    -) [ $status != 0 ] && [ $status != 124 ] ;;
    *) [ $status = "$2" ] ;;
    esac && grep -q "$3" "$work/run"
}

case $MPICC in
*mpich*) over_tcp='MPIR_CVAR_NOLOCAL=1' ;;
*) over_tcp='OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self' ;;
esac
check "heap builds" cc -O1 -g -Wall -Wextra -Werror -D_GNU_SOURCE -I"$AQ_SRC/runtimes/armci" \
    heap.c "$AQ_SRC/runtimes/armci/armci_heap.c" -o heap
check "heap" ./heap
mkdir pipeline
cp "$AQ_SRC"/tests/armci/pipeline/*.h "$AQ_SRC"/runtimes/armci/armci_protocol.[ch] pipeline
mv pipeline.c pipeline
check "pipeline builds" cc -O1 -g -Wall -Wextra -Werror -D_GNU_SOURCE pipeline/pipeline.c \
    pipeline/armci_protocol.c -o pipeline/run
check "pipelines in virtual time" pipeline/run
for program in transfers handles memory sync messages programs; do
    builds $program
    case $program in sync | messages | programs) check "$program, 1 rank" right smp 1 "./$program" ;; esac
    for conduit in smp udp mpi; do
        check "$program, 3 ranks, $conduit" right $conduit 3 "./$program"
    done
done
for program in transfers handles memory sync messages programs; do
    check "$program, 4 ranks on 2 hosts in name, udp" right udp 4 env GASNET_SUPERNODE_MAXSIZE=2 ./$program short
done
check "sync, 3 ranks, mpi, with threads" right mpi 3 ./sync threads
builds locks
check "locks, 2 ranks" right smp 2 ./locks short
check "locks, 8 ranks" right smp 8 ./locks short
check "locks, 3 ranks, udp" right udp 3 ./locks short
builds accumulate
check "accumulate, 4 ranks" right smp 4 ./accumulate
check "accumulate, 4 ranks on 2 hosts in name, udp" \
    right udp 4 env GASNET_SUPERNODE_MAXSIZE=2 ./accumulate
check "accumulate, 3 ranks, mpi" right mpi 3 ./accumulate 30000
builds protocols
for conduit in udp mpi; do
    check "protocols, $conduit" right $conduit 3 ./protocols put_direct put_buffered
    check "buffered puts, $conduit" right $conduit 3 \
        env AQ_ARMCI_PUT=buffered ./protocols put_buffered put_direct
    check "buffered gets, one buffer, $conduit" right $conduit 3 \
        env AQ_ARMCI_GET=buffered AQ_ARMCI_BUFFERS=1 ./protocols get_buffered get_direct
    check "assisted gets, $conduit" right $conduit 3 \
        env AQ_ARMCI_GET=assisted AQ_ARMCI_CHUNK=10000 ./protocols get_assisted get_direct
    check "runs by themselves, $conduit" right $conduit 3 \
        env AQ_ARMCI_STRIDED=segments ./protocols strided_segments strided_calls
    check "runs packed, $conduit" right $conduit 3 \
        env AQ_ARMCI_STRIDED=packed ./protocols strided_calls strided_segments
    check "aggregates one by one, $conduit" right $conduit 3 \
        env AQ_ARMCI_AGGREGATE=single ./protocols
done
builds order
check "order, 3 ranks, smp" right smp 3 ./order quiet
for conduit in udp mpi; do
    check "order, 3 ranks, $conduit" right $conduit 3 env $over_tcp ./order used put_eager put_direct
    check "order, long messages, $conduit" right $conduit 3 \
        env AQ_ARMCI_PUT=eager ./order used put_messages acc_messages
    check "order, no messages, $conduit" right $conduit 2 ./order AQ_ARMCI_EAGER=0 used put_direct
done
check "order, 3 ranks, mpi, with threads" right mpi 3 env $over_tcp ./order threads used put_eager
# MPI's window within a host may be one-sided: then nothing depends on the target's calls
if is_debug; then
    skip "order, a target in MPI" "the check of a range waits for an answer"
else
    check "order, a target in MPI" right mpi 2 ./order quiet
fi
check "order, 3 ranks, udp that loses and reorders" \
    right udp 3 env AQ_UDP_FAULTS=drop=2%,reorder=5%,seed=5 ./order used put_eager
builds offsets
# Each of two ranks allocates 4.5 GiB, of which hardly a page is used. What a lone rank may have, two share.
largest=$("$tree/bin/aq-info" | sed -n 's/^ *segment of a lone rank *\([0-9]*\) bytes.*/\1/p' | head -n 1)
# offsets CONDUIT NAME ENV...
offsets()
{
    conduit=$1 name=$2
    shift 2
    if [ "${largest:-0}" -lt 10000000000 ]; then
        skip "$name" "needs 12 GB of memory"
    else
        check "$name" offsets_right "$conduit" "$@"
    fi
}
offsets_right() { right "$1" 2 env "${2:-AQ_ARMCI_STRIDED=auto}" ./offsets && ! grep '^no memory' "$work/run"; }
for conduit in smp udp mpi; do
    offsets $conduit "displacements of more than 2^31 bytes, $conduit"
done
offsets udp "displacements of more than 2^31 bytes, packed, udp" AQ_ARMCI_STRIDED=packed
builds outside
# long messages over TCP need calls of their sender
for conduit in smp udp mpi; do
    check "messages of the program while ranks wait, $conduit" right $conduit 2 env $over_tcp ./outside
done
builds turns
for conduit in smp udp mpi; do
    check "threads in turns, $conduit" right $conduit 3 ./turns threads
done
builds remains
check "what outlives ARMCI, 1 rank" right smp 1 ./remains
for conduit in smp udp mpi; do
    check "what outlives ARMCI, $conduit" right $conduit 3 ./remains
done
# UCX, which MPICH has always, puts functions of its own in the place of libc's for memory
check "what outlives ARMCI, beside UCX" right smp 2 \
    env OMPI_MCA_pml=ucx OMPI_MCA_pml_ucx_tls=any OMPI_MCA_pml_ucx_devices=any \
    OMPI_MCA_opal_common_ucx_opal_mem_hooks=0 ./remains
builds edges
for conduit in smp udp mpi MPI; do
    check "edges, 3 ranks, $conduit" right $conduit 3 ./edges
done
builds polls
check "ranks without a service thread, 3 ranks, mpi" right mpi 3 ./polls
check "ranks without a service thread, 2 ranks, mpi" right mpi 2 env $over_tcp ./polls
check "ranks without a service thread, 4 ranks on 2 hosts in name, mpi" \
    right mpi 4 env GASNET_SUPERNODE_MAXSIZE=2 ./polls
check "ranks without a service thread, udp" right udp 3 env GASNET_PROGRESS_THREAD=0 ./polls
builds vectors
if is_debug; then
    skip "descriptors of a vector call at once, udp" "the check of a range waits for an answer"
else
    check "descriptors of a vector call at once, udp" right udp 2 env AQ_UDP_FAULTS=delay=3ms ./vectors
fi
builds progress
for conduit in smp udp; do
    check "progress, 2 ranks, $conduit" right $conduit 2 ./progress idle
done
# Of six words two or three are lost, and no datagram wakes their sender. One may be lost again and
# again.
words_arrive()
{
    for seed in 1 2 3 4 5 6; do
        # shellcheck disable=SC2046
        env $(settings udp) AQ_UDP_FAULTS=drop=40%,seed=$seed timeout -k 5 60 "$MPIRUN" -n 2 ./progress lost \
            >"lost$seed" 2>&1 &
    done
    wait
    cat lost?
    [ "$(cat lost? | grep -c 'of 2 right')" -ge 10 ]
}
check "words that are lost as their sender leaves the library, udp" words_arrive
check "progress, 2 ranks, mpi, with threads" right mpi 2 ./progress threads idle
check "progress, 2 ranks, mpi, without wake-ups" \
    right mpi 2 env AQ_MPI_WAKEUP=0 ./progress threads
builds procedures
for conduit in smp udp mpi; do
    check "procedures, 3 ranks, $conduit" right $conduit 3 ./procedures threads
done
builds late
check "procedures that nobody has waited for, udp" right udp 4 env AQ_UDP_FAULTS=drop=30%,seed=3 ./late
builds calls
check "calls of no other program" right smp 2 ./calls
# Every function that the headers declare is in both libraries, and nothing of the library is shown
# that they do not declare.
declared()
{
    for header in armci armcix gpc iterator message; do
        "$MPICC" -E -I"$tree/include" "$tree/include/$header.h"
    done | grep -oE '\b(P?ARMCIX?_|p?armci_|dassertp_fail|derr_printf)[A-Za-z0-9_]* *\(' |
        sed 's/ *($//' | sort -u >declared
    nm -D --defined-only "$tree/lib/libarmci.so" | sed 's/.* //' | sort -u >shown
    nm --defined-only "$tree/lib/libarmci.a" 2>/dev/null | sed 's/.* //' | sort -u >archived
    [ "$(wc -l <declared)" -gt 240 ] && ! comm -23 declared shown | grep . &&
        ! comm -23 declared archived | grep . && ! grep -E '^(aq_|gex_|gasnet)' shown
}
check "what is declared is there" declared
# used: the programs call every function that libarmci.so shows, by one of its names
used()
{
    for program in $programs; do nm -D --undefined-only "$program"; done | sed 's/.* //; s/@.*//' | sort -u >called
    nm -D --defined-only "$tree/lib/libarmci.so" | sed -n 's/ [TW] / /p' | sort |
        awk 'NR == FNR { called[$1]; next } { names[$1] = names[$1] " " $2 } $2 in called { good[$1] }
            END { for (at in names) if (!(at in good)) print "not called:" names[at] }' called - >missing
    wc -l called
    cat missing
    [ "$(wc -l <called)" -gt 200 ] && [ ! -s missing ]
}
for header in armci armcix gpc iterator message mp3 parmci; do
    echo "#include <$header.h>"
done >all.cc
echo 'int main() { return sizeof(ARMCI_Group) == 0 || sizeof(armci_hdl_t) != 8; }' >>all.cc
# shellcheck disable=SC2046
check "the headers are C++ too" "$MPICC" -x c++ -DOMPI_SKIP_MPICXX -Wall -Wextra -Werror \
    $(pkg --cflags armci) -c all.cc

builds twins
check "twins" right smp 2 ./twins
# shellcheck disable=SC2046
check "twins builds with the archive" "$MPICC" twins.c -o twins-static -I"$tree/include" \
    "$tree/lib/libarmci.a" $(libs_of_archive)
check "twins, with the archive" right smp 2 ./twins-static
# No object of the archive refers to a name that a program may define: the relocations tell, also those within an object
no_twin_is_used()
{
    nm "$tree/lib/libarmci.a" 2>/dev/null | sed -n 's/.* W \(ARMCI_.*\|armci_.*\)/\1/p' | sort -u >weak
    readelf -rW "$tree/lib/libarmci.a" 2>/dev/null | grep -v '^File:' |
        grep -oE '\b(ARMCI_|armci_)[A-Za-z0-9_]+' | sort -u >referred
    wc -l weak referred
    [ "$(wc -l <weak)" -gt 60 ] && grep -q '^armci_msg_abort$' referred && ! comm -12 weak referred | grep .
}
check "the library uses no name that a program may define" no_twin_is_used
builds layer
check "a message layer of the program's, shared" right smp 2 ./layer
# shellcheck disable=SC2046
check "layer builds with the archive" "$MPICC" layer.c -o layer-static -I"$tree/include" \
    "$tree/lib/libarmci.a" $(libs_of_archive)
check "a message layer of the program's, with the archive" right smp 2 ./layer-static

builds parts
for conduit in smp udp mpi; do
    for way in halves turns again; do
        check "a part of the ranks: $way, $conduit" right $conduit 5 ./parts $way
    done
done

builds ends
check "a rank that stays longer than the others" right smp 3 ./ends late
for conduit in smp udp mpi; do
    check "an end of the message layer alone, $conduit" right $conduit 3 ./ends messages
done
check "an end of the message layer alone, 1 rank" right smp 1 ./ends messages
one_rank()
{
    GASNET_CONDUIT=smp "$tree/bin/gasnetrun" -n 2 ./ends messages >"$work/run" 2>&1
    cat "$work/run"
    [ "$(grep -c 'starts no ranks of MPI.*gasnetrun_mpi' "$work/run")" = 2 ]
}
check "gasnetrun starts no ranks of MPI" one_rank
# other_mpi: a program of MPICH and a libarmci of Open MPI, or the other way round
case $MPICC in *mpich*) other=openmpi ;; *) other=mpich ;; esac
other_mpi()
{
    # shellcheck disable=SC2046
    mpicc.$other ends.c -o ends-other $(pkg --cflags --libs armci) -Wl,-rpath,"$tree/lib" -lpthread &&
        ! ./ends-other messages >"$work/run" 2>&1
    cat "$work/run"
    grep -q 'this libarmci was built for .*but the program is linked with .*--with-mpicc=' "$work/run"
}
check "a program of another MPI" other_mpi
check "ARMCI_Error" ends error 7 'rank 2: enough of this (7)'
check "a rank that does not exist" ends rank 1 'ARMCI_Fence: there is no rank 3; there are 0 to 2'
check "mutexes that do not exist" ends mutex 1 'ARMCI_Lock: there are no mutexes'
check "an operation that does not exist" ends operation 1 'ARMCI_Rmw: 5 is no operation'
check "the value of a rank that does not exist" ends value 1 \
    'ARMCI_GetValueInt: there is no rank 3; there are 0 to 2'
check "a function of GPC that waits with a lock" ends gpc 1 'has answered GPC_PENDING while it holds a lock'
check "a failed assertion" ends assertion - 'assertion failed: me < 0'
ends_on=smp
wrong_ranks
unset ends_on
builds codes
check "every function is called" used
check "a failed assertion whose code is 256" status assertion 1 '^code 256'
check "dassertp" status printed 255 '^of 0'
check "dassert1" status value 8 '^value 8'
check "armci_die" status die 5 '^enough'
check "armci_die2" status die2 6 '^enough (6, 7)'
check "armci_msg_abort(0) before ARMCI_Init" status before 1
check "ARMCI_Error after MPI_Finalize" status after 9
check "ARMCI_Init_thread starts MPI for threads" status threads 0
check "ARMCI_Init_thread where MPI has no threads" status no-threads 0
if is_debug; then
    for ends_on in smp udp; do
        broken_rules
    done
    unset ends_on
fi

# --- Global Arrays as Debian has it: linked with ARMCI-MPI, and with ours, it says the same ---

# links NAME WHICH COMPILER LIBRARY...
links()
{
    source=$(ls "$AQ_SRC/tests/armci/ga/$1".*)
    to=$1-$2
    compiler=$3
    shift 3
    # numbers of 8 bytes in Fortran, as in Debian's library
    case $source in
    *.f90) set -- -cpp -fdefault-integer-8 -I/usr/include "$source" "$@" ;;
    *) set -- "$source" "$@" ;;
    esac
    "$compiler" -g "$@" -o "$to"
}

# same NAME CONDUIT RANKS: our run ends with 0 and prints what the other one has printed.
same()
{
    # shellcheck disable=SC2046
    env $(settings "$2") timeout -k 5 100 "$MPIRUN" -n "$3" "./$1-ours" >ours 2>errors
    status=$?
    cat errors
    echo "exit status $status"
    [ $status = 0 ] && diff "$1-expected" ours
}

ga=$(ls /usr/lib/*/libga-openmpi.a 2>/dev/null)
mpi=$("$MPICC" --showme:version 2>/dev/null | grep -o 'Open MPI')
if [ -z "$ga" ] || [ -z "$mpi" ] || ! ls /usr/lib/*/libarmci-openmpi.a >/dev/null 2>&1; then
    skip "Global Arrays" "needs Open MPI, libglobalarrays-dev and libarmci-mpi-dev"
else
    rest="-lscalapack-openmpi -llapack -lblas -lgfortran -lm"
    for program in arrays-c:"$MPICC" arrays-f:"${MPICC%mpicc*}mpif90${MPICC##*mpicc}"; do
        compiler=${program#*:} program=${program%%:*}
        # shellcheck disable=SC2086
        check "$program links with ARMCI-MPI" \
            links $program others "$compiler" -lga-openmpi -larmci-openmpi $rest
        # shellcheck disable=SC2086
        check "$program links with libarmci" links $program ours "$compiler" -lga-openmpi \
            -L"$tree/lib" -larmci -Wl,-rpath,"$tree/lib" $rest
        for ranks in 1 3 8; do
            # Open MPI's windows cannot be made now and then; those of pt2pt, which share no file, can
            # shellcheck disable=SC2016
            check "$program, $ranks ranks, ARMCI-MPI" env OMPI_MCA_osc=pt2pt sh -c 'for try in 1 2 3 4; do
                timeout -k 5 100 "$0" -n $2 "./$1-others" >"$1-expected" && exit; done; exit 1' \
                "$MPIRUN" $program $ranks
            for conduit in smp udp mpi; do
                check "$program, $ranks ranks, $conduit" same $program $conduit $ranks
            done
        done
    done
    # shellcheck disable=SC2086
    check "parts-c links with libarmci" links parts-c ours "$MPICC" -lga-openmpi \
        -L"$tree/lib" -larmci -Wl,-rpath,"$tree/lib" $rest
    for conduit in smp udp mpi; do
        for way in halves turns; do
            check "Global Arrays on a part of the ranks: $way, $conduit" right $conduit 5 ./parts-c-ours $way
        done
    done
    # two hosts, which share no memory and reach each other by a switch; MPI's own connections are older.
    # Mirrored arrays want the same number of ranks on each
    # on_hosts RANKS DOMAINS PROGRAM...
    on_hosts()
    {
        count=$1 domains=$2
        shift 2
        # shellcheck disable=SC2016
        GASNET_CONDUIT=udp sh "$AQ_SRC/tests/restart/hosts.sh" 2 sh -c 'ip link set lo up; exec "$@"' sh \
            timeout -k 5 100 "$MPIRUN" -n "$count" "$@" >ours 2>errors
        status=$?
        cat errors
        echo "exit status $status"
        [ $status = 0 ] && grep -q "in $domains domains" errors
    }
    same_on_hosts() { on_hosts 8 2 "./$1-hosts" && diff "$1-expected" ours; }
    # of 5 ranks one half is on both hosts
    right_on_hosts() { on_hosts 5 2 ./parts-c-hosts "$1" && [ "$(grep -c 'of 5 right' ours)" = 5 ]; }
    # ranks of a host are not consecutive: each is a domain
    right_in_turn()
    {
        "$MPICC" -g -I"$AQ_SRC/tests/armci" -I"$tree/include" "$AQ_SRC/tests/armci/$1.c" hosts.o -o "$1-hosts" \
            -L"$tree/lib" -larmci -Wl,-rpath,"$tree/lib" || return
        TEST_HOSTS_IN_TURN=1 on_hosts 4 4 "./$1-hosts" short && [ "$(grep -c 'of 4 right' ours)" = 4 ]
    }
    if sh "$AQ_SRC/tests/restart/hosts.sh" 2 true 2>/dev/null; then
        check "hosts compiles" "$MPICC" -g -I"$tree/include" -c "$AQ_SRC/tests/armci/ga/hosts.c" -o hosts.o
        for program in arrays-c:"$MPICC" arrays-f:"${MPICC%mpicc*}mpif90${MPICC##*mpicc}" parts-c:"$MPICC"; do
            compiler=${program#*:} program=${program%%:*}
            # shellcheck disable=SC2086
            check "$program links, for hosts" links $program hosts "$compiler" hosts.o -lga-openmpi \
                -L"$tree/lib" -larmci -Wl,-rpath,"$tree/lib" $rest
        done
        check "arrays-c, 8 ranks on two hosts, udp" same_on_hosts arrays-c
        check "arrays-f, 8 ranks on two hosts, udp" same_on_hosts arrays-f
        for way in halves turns; do
            check "Global Arrays on a part of the ranks of two hosts: $way, udp" right_on_hosts $way
        done
        for program in memory transfers sync; do
            check "$program, 4 ranks, by turns on two hosts, udp" right_in_turn $program
        done
    else
        skip "Global Arrays on two hosts" "network namespaces cannot be had"
    fi
fi

# --- the other MPI: its programs and the sources of libarmci, over the archive of all conduits ---

# other_links NAME SOURCE LIBRARY...: all in one go
# shellcheck disable=SC2046
other_links()
{
    name=$1 source=$2
    shift 2
    mpicc.mpich -O1 -g -w -DHAVE_CONFIG_H -DGASNET_PAR=1 -D_GNU_SOURCE=1 -D_REENTRANT -I"$AQ_SRC/include" \
        -I"$AQ_SRC/include/smp-conduit" -I"$AQ_BUILD/include" -I"$AQ_SRC/runtimes/armci/include" \
        -I"$AQ_SRC/tests/armci" "$source" "$@" "$AQ_SRC"/runtimes/armci/*.c \
        $(sh "$AQ_SRC/tests/restart/libs.sh" "$AQ_BUILD") -o "$name"
}

if [ -z "$mpi" ] || ! command -v mpicc.mpich >/dev/null || [ ! -e "${AQ_BUILD:-.}/libaq-any-par.a" ]; then
    skip "MPICH" "needs a libarmci for Open MPI, MPICH, and the build folder"
else
    MPIRUN=mpirun.mpich
    check "parts builds with MPICH" other_links parts-mpich parts.c
    for conduit in smp udp; do
        for way in halves turns again; do
            check "a part of the ranks: $way, $conduit, MPICH" right $conduit 5 ./parts-mpich $way
        done
    done
    if ls /usr/lib/*/libga-mpich.a >/dev/null 2>&1; then
        # the program calls nothing of ScaLAPACK, which is not installed for MPICH everywhere
        scalapack=-lscalapack-mpich
        if ! ls /usr/lib/*/libscalapack-mpich.so >/dev/null 2>&1; then
            for name in blacs_gridexit blacs_gridinfo blacs_gridinit descinit iceil indxg2p numroc \
                pdgetrf pdgetrs pdlamch pdpotrf pdpotri pdpotrs pdsyev pdsyevd pdsyevr pdsyevx \
                pdsygvx pzheevd pzheevr; do
                echo "void ${name}_(void) { __builtin_trap(); }"
            done >scalapack.c
            scalapack=$work/scalapack.c
        fi
        check "Global Arrays links with MPICH" other_links ga-mpich "$AQ_SRC/tests/armci/ga/parts-c.c" \
            -lga-mpich $scalapack -llapack -lblas -lgfortran
        for way in halves turns; do
            check "Global Arrays on a part of the ranks: $way, MPICH" right smp 5 ./ga-mpich $way
        done
    fi
fi
check "no process is left" tap_gone
tap_end
