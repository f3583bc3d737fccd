#!/bin/sh
# run.sh - programs that use MPI and Aqueduct side by side, built from an installed tree with the MPI it was made for.
# Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
#   run.sh [--more]   AQ_SRC is the source folder, AQ_INSTALL the installed tree, AQ_BUILD the build folder, which knows
#                     the MPI; or MPICC names its compiler wrapper
#
# Every program is linked with the archive and with the shared library, which loads the module of the mpi conduit. It
# runs under gasnetrun and under mpirun, with and without shared memory between the ranks. AQ_MODULE_DIR names the
# module for another MPI than the tree's, that of MPICC: then all programs are linked with the shared library.

set -u
: "${AQ_SRC:?AQ_SRC is the source folder}" "${AQ_INSTALL:?AQ_INSTALL is the installed tree}"
tree=$AQ_INSTALL
more=${1:-}
if [ -z "${MPICC:-}" ]; then
    MPICC=$(make -s -C "${AQ_BUILD:-.}" echovar VARNAME=MPI_MODULE_CC 2>/dev/null)
    MPICC=${MPICC#*=}
fi
command -v "$MPICC" >/dev/null && [ -f "$tree/include/mpi-conduit/gasnet_core.h" ] ||
    { echo '1..0 # SKIP the tree has no mpi conduit'; exit 0; }
mpi_word() { echo "${MPICC%mpicc*}$1${MPICC##*mpicc}"; } # /usr/bin/mpicc.openmpi -> /usr/bin/mpirun.openmpi
MPIRUN=$(mpi_word mpirun)
MPIF90=$(mpi_word mpif90)

. "$AQ_SRC/build-aux/tap.sh"
cp "$AQ_SRC"/tests/interop/*.c "$AQ_SRC"/tests/interop/*.h "$AQ_SRC"/tests/interop/*.f90 "$work" || exit 1
cp "$AQ_SRC/apps/tour/hello.c" "$work" || exit 1
cd "$work" || exit 1
# Open MPI runs as root, and with more ranks than cores, only if options allow it. MPICH checks neither.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
unset GASNET_CONDUIT GASNET_SUPERNODE_MAXSIZE
if [ -n "${AQ_MODULE_DIR:-}" ]; then export GASNET_CONDUIT=mpi; fi
pkg() { PKG_CONFIG_PATH="$tree/lib/pkgconfig" pkg-config "$@"; }

# start LAUNCHER RANKS SETTINGS COMMAND...: a job under gasnetrun or mpirun; SETTINGS are words NAME=VALUE, or none.
start()
{
    launcher=$1 ranks=$2 settings=$3
    shift 3
    case $launcher in
    gasnetrun) set -- "$tree/bin/gasnetrun" -c mpi -n "$ranks" "$@" ;;
    mpirun) set -- "$MPIRUN" -n "$ranks" "$@" ;;
    esac
    # shellcheck disable=SC2086
    env $settings timeout -k 5 110 "$@"
}

# right LAUNCHER RANKS SETTINGS COMMAND...: it ends with 0, and every rank says that all was right.
right()
{
    start "$@" >"$work/run" 2>&1
    status=$?
    cat "$work/run"
    echo "exit status $status"
    [ $status = 0 ] && [ "$(grep -c "of $2 right" "$work/run")" = "$2" ]
}

# spoilt LAUNCHER RANKS SETTINGS COMMAND...: it ends with an error, and rank 0 has reported every comparison that is in the
# sources, each of which finds a mistake once.
spoilt()
{
    start "$@" >"$work/run" 2>&1
    status=$?
    grep -ho -e 'compare("[^"]*"' -e 'equal("[^"]*"' -e 'check_sums("[^"]*"' mix*.c | sed 's/^[^"]*"//; s/"$//' | sort -u >names
    grep -o '^mix: rank 0: [^:]*: ' "$work/run" | sed 's/^mix: rank 0: //; s/: $//' | sort -u >reported
    comm -23 names reported | sed 's/^/not reported: /' >missed
    cat "$work/run" missed
    echo "exit status $status"
    [ "$status" = 1 ] && [ "$(wc -l <names)" -ge 25 ] && [ ! -s missed ]
}

# fails LAUNCHER RANKS SETTINGS COMMAND...: a job that is to fail; its output, status and when it began. Open MPI's mpirun
# crashes now and then in PMIx as mpirun itself ends, and what the job said is lost: the job runs again.
fails()
{
    for try in 1 2 3; do
        began=$(date +%s)
        start "$@" >"$work/run" 2>&1
        status=$?
        grep -q 'libpmix.*PMIx_server_finalize' "$work/run" || return
        echo "try $try: mpirun has crashed"
    done
}

# refused WORDS LAUNCHER RANKS SETTINGS COMMAND...: it ends with an error that says WORDS; 134: a fatal one.
refused()
{
    words=$1
    shift
    fails "$@"
    cat "$work/run"
    echo "exit status $status"
    [ $status != 0 ] && { [ $status -lt 124 ] || [ $status = 134 ]; } && grep -q -e "$words" "$work/run"
}

# leaves LAUNCHER RANKS SETTINGS COMMAND...: a thread ends it with 3, soon.
leaves()
{
    fails "$@"
    took=$(($(date +%s) - began))
    cat "$work/run"
    echo "exit status $status after $took s"
    [ $status = 3 ] && [ $took -le 15 ]
}

# --- build ---

mix="mix.c mix_traffic.c mix_mpi.c mix_threads.c mix_memory.c mix_after.c"
modes=
for m in seq par; do
    [ -e "$tree/lib/pkgconfig/gasnet-mpi-$m.pc" ] || continue
    modes="$modes $m"
    [ -n "${AQ_MODULE_DIR:-}" ] || check "build: archive, $m" sh -c "$MPICC -std=gnu11 -Wall -Wextra \
        -Wno-stringop-overflow $(pkg --cflags gasnet-mpi-$m) $mix -o mix-archive-$m $(pkg --libs gasnet-mpi-$m)"
    check "build: shared library, $m" sh -c "$MPICC -std=gnu11 -Wall -Wextra -Wno-stringop-overflow \
        $(pkg --cflags aqueduct-$m) $mix -o mix-shared-$m $(pkg --libs aqueduct-$m) -Wl,-rpath,$tree/lib"
done
check "build: a program that does not call MPI" sh -c "cc \
    $(pkg --cflags aqueduct-par) hello.c -o hello $(pkg --libs aqueduct-par) -Wl,-rpath,$tree/lib"
if [ -n "${AQ_MODULE_DIR:-}" ]; then seq=aqueduct-seq rpath=-Wl,-rpath,$tree/lib; else seq=gasnet-mpi-seq rpath=; fi
check "build: Fortran and C" sh -c "$MPICC $(pkg --cflags $seq) -c hybrid.c -o hybrid.o &&
    $MPIF90 -w hybrid.f90 hybrid.o -o hybrid $(pkg --libs $seq) $rpath"

# --- run ---

off=GASNET_SUPERNODE_MAXSIZE=1
mpi=GASNET_CONDUIT=mpi
all="messages collectives windows communicators wildcards flood"
mixed()
{
    link=$1
    shift
    if [ -n "${AQ_MODULE_DIR:-}" ]; then link=shared-${link#*-}; fi
    echo "$work/mix-$link" "$@"
}

# Each: who starts MPI and who ends it, in every pair that the documents allow.
# shellcheck disable=SC2046
{
check "client starts MPI and ends it before Aqueduct; archive, par, no shared memory, 2 ranks" \
    right mpirun 2 "$off" $(mixed archive-par --start client --end finalize $all threads)
check "client starts MPI, nobody ends it; archive, par, 3 ranks" \
    right gasnetrun 3 "A=" $(mixed archive-par --start client --end exit --rounds 3 $all threads)
check "client starts MPI and ends it before Aqueduct; archive, seq, no shared memory, 3 ranks" \
    right gasnetrun 3 "$off" $(mixed archive-seq --start client --level single --end finalize --rounds 3 $all)
check "client starts MPI and ends it after Aqueduct; shared library, seq, 2 ranks" \
    right mpirun 2 "$mpi" $(mixed shared-seq --start client --level funneled --end late $all)
check "Aqueduct starts MPI; archive, seq, 2 ranks" \
    right mpirun 2 "A=" $(mixed archive-seq --start library --end return $all)
check "Aqueduct starts MPI, for threads; shared library, par, no shared memory, 2 ranks" \
    right gasnetrun 2 "$mpi $off GASNET_MPI_THREAD=multiple" $(mixed shared-par --start library --end exit $all threads)
check "threads in turns, MPI_THREAD_SERIALIZED; archive, par, no shared memory, 2 ranks" \
    right mpirun 2 "$off" $(mixed archive-par --start client --level serialized --end finalize turns messages)
check "threads in turns, Aqueduct starts MPI; shared library, par, 3 ranks" \
    right gasnetrun 3 "$mpi" $(mixed shared-par --start library --end return --rounds 3 turns messages)
check "one rank; archive, par" \
    right mpirun 1 "A=" $(mixed archive-par --start client --end finalize $all threads)
check "started by nobody: one rank" \
    right none 1 "A=" $(mixed archive-par --start client --end finalize $all)

for level in single funneled; do
    check "par and MPI_THREAD_$level: an error that says what is needed" \
        refused MPI_THREAD_SERIALIZED mpirun 2 "A=" \
        $(mixed archive-par --start client --level $level --end exit messages)
done
check "par and MPI_THREAD_FUNNELED: allowed by GASNET_MPI_THREAD" \
    right mpirun 2 "GASNET_MPI_THREAD=funneled $off" \
    $(mixed archive-par --start client --level funneled --end finalize messages)

check "MPI_Abort by one rank ends the job" \
    refused 'of 3 right' gasnetrun 3 "$off" $(mixed archive-par --start client --end abort messages)
check "and nothing is left of it" tap_gone
check "MPI_Abort by one rank ends the job; shared library, Aqueduct has started MPI" \
    refused 'of 3 right' mpirun 3 "$mpi" $(mixed shared-seq --start library --end abort messages)
check "and nothing is left of it" tap_gone
check "a wrong byte is noticed, wherever one is looked for" \
    spoilt mpirun 2 "$off" $(mixed archive-par --start client --end finalize --spoil --rounds 3 $all threads turns memory asleep)

check "a flood to a rank that looks away takes bounded memory; archive, seq, 3 ranks" \
    right mpirun 3 "$off" $(mixed archive-seq --start client --end finalize memory)

check "a rank that waits in Aqueduct moves the program's messages; archive, seq, 3 ranks" \
    right mpirun 3 "$off AQ_SLEEP=2s" $(mixed archive-seq --start client --end finalize asleep)
check "so does one with a progress thread; archive, par" \
    right mpirun 2 "$off AQ_SLEEP=2s GASNET_PROGRESS_THREAD=1" \
    $(mixed archive-par --start client --end finalize asleep)

for after in barrier put immediate; do
    check "$after after MPI_Finalize: an error that says so; archive, seq" \
        refused 'after its MPI_Finalize' mpirun 2 "$off" $(mixed archive-seq --start client --end after-$after messages)
done
for after in put thread; do
    check "$after after MPI_Finalize: an error that says so; archive, par" \
        refused 'after its MPI_Finalize' mpirun 2 "$off" $(mixed archive-par --start client --end after-$after messages)
done
for after in wait spin; do
    check "after MPI_Finalize a $after for what was begun before: an error that says so; archive, seq" \
        refused 'after its MPI_Finalize' mpirun 2 "$off GASNET_MPI_RMA=messages" \
        $(mixed archive-seq --start client --end after-$after messages)
done
check "a thread ends the job while others come to MPI_Finalize; archive, par" \
    leaves mpirun 2 "$off" $(mixed archive-par --start client --end after-leave messages)
check "a thread ends the job while others do not come to MPI_Finalize; archive, par" \
    leaves mpirun 2 "$off" $(mixed archive-par --start client --end after-leave-alone messages)
check "what was begun before MPI_Finalize and nobody waits for; archive, par, with a progress thread" \
    right mpirun 2 "$off GASNET_MPI_RMA=messages GASNET_PROGRESS_THREAD=1" \
    $(mixed archive-par --start client --end after-work messages)
check "and nothing is left of them" tap_gone

check "Fortran and MPI, halos in turns; no shared memory, 3 ranks" right mpirun 3 "$off" "$work/hybrid"
check "Fortran and MPI, halos in turns; 2 ranks" right gasnetrun 2 "A=" "$work/hybrid"
check "Fortran and MPI: a wrong halo is noticed" refused 'rank 1: [0-9]* cells are wrong' mpirun 2 "$off" "$work/hybrid" spoil
}
check "a program that does not call MPI, 3 ranks" \
    sh -c "timeout -k 5 100 $tree/bin/gasnetrun -c mpi -n 3 ./hello >run 2>&1; s=\$?; cat run
        [ \$s = 0 ] && [ \$(grep -c finds run) = 3 ]"

if [ "$more" = --more ]; then
    for m in $modes; do
        for link in ${AQ_MODULE_DIR:-archive} shared; do
            case $link in */*) continue ;; esac
            for ranks in 2 4; do
                for near in 1 2 4; do
                    [ $near -le $ranks ] || continue
                    threads=
                    if [ $m = par ]; then threads=threads; fi
                    # shellcheck disable=SC2046
                    check "all of it; $link, $m, $ranks ranks, shared memory between $near" \
                        right mpirun $ranks "$mpi GASNET_SUPERNODE_MAXSIZE=$near" \
                        $(mixed $link-$m --start client --end finalize --rounds 3 $all $threads)
                done
            done
        done
    done
fi
check "nothing is left behind" tap_gone
tap_end
