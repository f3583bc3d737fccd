#!/bin/sh
# run.sh - jobs over groups: started and ended a hundred times (thirty under a sanitizer), in halves, one after the other, with other members,
# misused, killed. Prints TAP. SPDX-License-Identifier: BSD-3-Clause
#
#   run.sh [--long | --short]   AQ_BUILD is the build folder, AQ_SRC the source folder. Where an mpicc is, groups of MPI
#                       too; with --long these alone, a hundred times; with --short some of all, for ThreadSanitizer

set -u
build=${AQ_BUILD:-$PWD}
src=${AQ_SRC:-$(cd "$(dirname "$0")/../.." && pwd)}
. "$src/build-aux/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset GASNET_CONDUIT GASNET_SUPERNODE_MAXSIZE
# sanitizers keep what was freed for a while
many=100
# with groups of MPI: of them over smp and udp, over the mpi conduit
mpi_many=30
mpi_own=14
modes='seq par'
[ "${1:-}" != --long ] || modes='' mpi_many=100 mpi_own=100
case ${AQ_CONFIG:-} in *asan* | *tsan*) many=30; export TEST_RSS_KB=65536 TEST_SANITIZER=1 ;; esac
# what malloc() counts as allocated is what the library has not freed
export GLIBC_TUNABLES=glibc.malloc.tcache_count=0
# What the udp conduit adds: in par, if messages wait, a second thread, whose stack the C library
# keeps. One heap for both threads.
udp="env GASNET_CONDUIT=udp MALLOC_ARENA_MAX=1 TEST_MAPPINGS=2"
count=0
bad=0

# is NAME COMMAND...: exit status 0
is() {
    name=$1
    shift
    count=$((count + 1))
    if timeout -s KILL 120 "$@" >"$work/out" 2>&1 </dev/null && ! grep -q 'WARNING: ThreadSanitizer' "$work/out"; then
        echo "ok $count - $name"
        grep '^# after all' "$work/out"
    else
        echo "not ok $count - $name (status $?)"
        sed 's/^/# /' "$work/out" | head -40
        bad=1
    fi
}

# says STATUS TEXT NAME COMMAND...: the status, and a line with the text
says() {
    want=$1 text=$2 name=$3
    shift 3
    count=$((count + 1))
    timeout -s KILL 60 "$@" >"$work/out" 2>&1 </dev/null
    got=$?
    if [ $got = "$want" ] && { [ -z "$text" ] || grep -q "$text" "$work/out"; } &&
        ! grep -q 'WARNING: ThreadSanitizer' "$work/out"; then
        echo "ok $count - $name"
    else
        echo "not ok $count - $name (status $got, not $want, or no '$text')"
        sed 's/^/# /' "$work/out" | head -20
        bad=1
    fi
}

# loses NAME COMMAND...: a rank is killed under an mpirun, which notices it too: the whole ends within seconds, as failed
loses() {
    name=$1
    shift
    count=$((count + 1))
    began=$(date +%s)
    timeout -s KILL 60 "$@" >"$work/out" 2>&1 </dev/null
    got=$?
    took=$(($(date +%s) - began))
    if [ $got != 0 ] && [ $took -lt 20 ] && ! grep -q 'has ended without' "$work/out"; then
        echo "ok $count - $name"
    else
        echo "not ok $count - $name (status $got after $took s)"
        sed 's/^/# /' "$work/out" | head -20
        bad=1
    fi
}

# the first rank of its host, and another one, are lost at the end of the second job
lost_at_the_end() {
    where=$1
    shift
    for rank in 0 2; do
        says 137 'was lost' "$where: rank $rank killed before the end" "$@" before $rank
        says 137 'was lost' "$where: rank $rank killed in the end" "$@" first $rank
        says 137 'was lost' "$where: rank $rank killed in the last barrier" "$@" second $rank
    done
}

# in_short WHERE COMMAND...: each case a few times
in_short() {
    where=$1
    shift
    is "$where: again" "$@" 3 again 14
    is "$where: both halves at a time" "$@" 4 halves 3
    is "$where: one half while the other waits" "$@" 4 turns 2
    is "$where: other members, other orders" "$@" 4 members 1
    is "$where: who has ended the job leaves at once" "$@" 4 leave
    says 3 '' "$where: gasnet_exit in the second job" "$@" 2 failed
    says 137 'was lost' "$where: a rank killed in the second job" "$@" 3 killed
}
if [ "${1:-}" = --short ]; then
    prog=$build/tests/restart/restart-par
    service="MALLOC_ARENA_MAX=1 GASNET_PROGRESS_THREAD=1"
    in_short smp "$prog"
    is "smp: with a service thread" env $service "$prog" 3 again 14
    for each in 1 2; do
        in_short "udp, $each sharing memory" $udp GASNET_SUPERNODE_MAXSIZE=$each "$prog"
    done
    is "udp: with a service thread" $udp $service GASNET_SUPERNODE_MAXSIZE=1 "$prog" 3 again 14
    is "udp: over a network that loses" \
        $udp GASNET_SUPERNODE_MAXSIZE=1 AQ_UDP_FAULTS=drop=5%,dup=2%,reorder=5% "$prog" 3 again 14
    echo "1..$count"
    exit $bad
fi

for mode in $modes; do
    prog=$build/tests/restart/restart-$mode
    [ -x "$prog" ] || continue
    is "smp $mode: $many jobs, nothing is left" "$prog" 3 again $many
    is "smp $mode: both halves at a time" "$prog" 4 halves 10
    is "smp $mode: one half while the other waits" "$prog" 4 turns 5
    is "smp $mode: other members, other orders" "$prog" 4 members 4
    is "smp $mode: so many ranks that there may be marks" "$prog" 12 again 30
    is "smp $mode: now with marks, now without" "$prog" 12 members 1
    is "smp $mode: one process" "$prog" 1 again 50
    is "smp $mode: what is refused goes on" "$prog" 2 misuse
    says 134 'already started' "$mode: a second start" "$prog" 2 twice
    says 134 'a barrier of the client is still under way' "$mode: an end with a barrier open" "$prog" 2 open
    says 3 '' "$mode: gasnet_exit in the second job" "$prog" 2 failed
    says 137 'was lost' "$mode: a rank killed in the second job" "$prog" 3 killed
    lost_at_the_end "smp $mode" "$prog" 3
    is "smp $mode: who has ended the job leaves at once" "$prog" 12 leave
    for each in 1 2; do
        run="$udp GASNET_SUPERNODE_MAXSIZE=$each $prog"
        is "udp $mode, $each sharing memory: $many jobs" $run 3 again $many
        is "udp $mode, $each sharing memory: both halves at a time" $run 4 halves 10
        is "udp $mode, $each sharing memory: one half while the other waits" $run 4 turns 5
        is "udp $mode, $each sharing memory: other members, other orders" $run 5 members 3
    done
    run="$udp GASNET_SUPERNODE_MAXSIZE=1"
    is "udp $mode: what is refused goes on" $run "$prog" 2 misuse
    is "udp $mode: over a network that loses" $run AQ_UDP_FAULTS=drop=5%,dup=2%,reorder=5% "$prog" 3 again 50
    says 3 '' "udp $mode: gasnet_exit in the second job" $run "$prog" 2 failed
    says 137 'was lost' "udp $mode: a rank killed in the second job" $run "$prog" 3 killed
    lost_at_the_end "udp $mode" $run "$prog" 3
done
prog=$build/tests/restart/restart-par
[ -n "$modes" ] || prog=
[ -x "$prog" ] && [ -e "$build/modules/aq-mpi.so" ] &&
    is "the mpi conduit without a communicator is refused" \
        sh -c "GASNET_CONDUIT=mpi '$prog' 2 again 1 2>&1 | grep 'needs a group that is made of an MPI'"
# a second thread may make libc add a heap, whenever both allocate at a time: one heap only
[ -x "$prog" ] && is "smp par: with a service thread" \
    env MALLOC_ARENA_MAX=1 GASNET_PROGRESS_THREAD=1 "$prog" 3 again 50
[ -x "$prog" ] && is "udp par: with a service thread" \
    $udp GASNET_SUPERNODE_MAXSIZE=1 GASNET_PROGRESS_THREAD=1 "$prog" 3 again 50
sh "$src/tests/restart/hosts.sh" 1 true 2>/dev/null && for mode in $modes; do
    prog=$build/tests/restart/restart-$mode
    [ -x "$prog" ] || continue
    run="sh $src/tests/restart/hosts.sh 2 $udp $prog"
    is "udp $mode, two hosts: again" $run 4 again 30
    is "udp $mode, two hosts: both halves at a time" $run 4 halves 5
    is "udp $mode, two hosts: one half while the other waits" $run 4 turns 5
    is "udp $mode, two hosts: other members, other orders" $run 4 members 2
    says 137 'was lost' "udp $mode, two hosts: a rank killed in the second job" $run 3 killed
    for rank in 0 1 2; do
        says 137 ' lost; ending the job' "udp $mode, two hosts: rank $rank killed in the end" $run 3 first $rank
    done
    is "udp $mode, two hosts: who has ended the job leaves at once" $run 8 leave
done
for mpi in openmpi mpich; do
    command -v mpicc.$mpi >/dev/null && command -v mpirun.$mpi >/dev/null || continue
    [ -e "$build/libaq-any-par.a" ] && [ "${AQ_CONFIG:-opt}" = opt ] || continue
    mpicc.$mpi -DTEST_MPI=1 -DGASNET_PAR=1 -D_GNU_SOURCE=1 -D_REENTRANT -I"$src/include" \
        -I"$src/include/smp-conduit" -I"$build/include" "$src/tests/restart/restart.c" \
        "$src/tests/restart/holdings.c" "$src/tests/restart/inquire.c" "$src/tests/restart/world.c" $(sh "$src/tests/restart/libs.sh" "$build") -o "$work/restart-$mpi" || {
        bad=1
        continue
    }
    run="mpirun.$mpi -n 4"
    export TEST_RSS_KB=1024 TEST_HEAP_KB=1024 # MPI's own; forked groups show what the library keeps
    [ $mpi = openmpi ] && run="$run --oversubscribe"
    is "smp, groups of $mpi: again" $run "$work/restart-$mpi" again $mpi_many
    is "smp, groups of $mpi: halves" $run "$work/restart-$mpi" halves 5
    is "smp, groups of $mpi: turns" $run "$work/restart-$mpi" turns 3
    is "smp, groups of $mpi: members" $run "$work/restart-$mpi" members 2
    loses "smp, groups of $mpi: a rank killed in the second job" $run "$work/restart-$mpi" killed
    loses "smp, groups of $mpi: a rank killed before the end" $run "$work/restart-$mpi" before 1
    export GASNET_CONDUIT=udp GASNET_SUPERNODE_MAXSIZE=1
    is "udp, groups of $mpi: again" $run "$work/restart-$mpi" again $mpi_many
    is "udp, groups of $mpi: halves" $run "$work/restart-$mpi" halves 5
    is "udp, groups of $mpi: turns" $run "$work/restart-$mpi" turns 3
    loses "udp, groups of $mpi: a rank killed in the second job" $run "$work/restart-$mpi" killed
    loses "udp, groups of $mpi: a rank killed in the end" $run "$work/restart-$mpi" first
    loses "udp, groups of $mpi: a rank killed in the last barrier" $run "$work/restart-$mpi" second 1
    unset GASNET_CONDUIT GASNET_SUPERNODE_MAXSIZE
    [ -e "$build/modules/$mpi/aq-mpi.so" ] || continue
    # MPI maps more now and then; the program has started it by plain MPI_Init. Open MPI keeps memory of
    # each window for which an atomic operation was started (docs/aqueduct-h.md)
    kept=2048
    [ $mpi = mpich ] || kept=$((kept + 40 * mpi_own))
    export TEST_RSS_KB=$kept TEST_HEAP_KB=$kept TEST_MAPPINGS=8 GASNET_CONDUIT=mpi GASNET_MPI_THREAD=single
    export AQ_MODULE_DIR="$build/modules/$mpi"
    for each in 1 2; do
        export GASNET_SUPERNODE_MAXSIZE=$each
        is "mpi, $each sharing memory, groups of $mpi: again" $run "$work/restart-$mpi" again $mpi_own
        is "mpi, $each sharing memory, groups of $mpi: halves" $run "$work/restart-$mpi" halves 4
    done
    export GASNET_SUPERNODE_MAXSIZE=1
    is "mpi, groups of $mpi: turns" $run "$work/restart-$mpi" turns 2
    is "mpi, groups of $mpi: members" $run "$work/restart-$mpi" members 1
    says 3 '' "mpi, groups of $mpi: gasnet_exit in the second job" $run "$work/restart-$mpi" failed
    loses "mpi, groups of $mpi: a rank killed in the second job" $run "$work/restart-$mpi" killed
    loses "mpi, groups of $mpi: a rank killed before the end" $run "$work/restart-$mpi" before 1
    unset GASNET_CONDUIT GASNET_SUPERNODE_MAXSIZE GASNET_MPI_THREAD AQ_MODULE_DIR TEST_MAPPINGS
done
echo "1..$count"
exit $bad
