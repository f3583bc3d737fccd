#!/bin/sh
# run.sh - ARMCI over Aqueduct beside ARMCI-MPI and MPI: rows of figures, as bench_armci.h describes
# them. In one process where libraries can share it, else in turn.
# SPDX-License-Identifier: BSD-3-Clause
#
# Usage: AQ_INSTALL=PREFIX sh run.sh [quick]     with the wrapper of the MPI that libarmci was built with

set -u
: "${AQ_INSTALL:?AQ_INSTALL is the installed tree}"
here=$(cd "$(dirname "$0")" && pwd)
MPICC=${MPICC:-mpicc.openmpi}
MPIRUN=${MPIRUN:-mpirun.openmpi}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
how=${1:-full}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for program in local net; do
    "$MPICC" -O3 -DBENCH_OURS "$here/armci_$program.c" "$here/bench_armci.c" -o "$work/$program-ours" \
        -I"$AQ_INSTALL/include" -L"$AQ_INSTALL/lib" -larmci -Wl,-rpath,"$AQ_INSTALL/lib" -lpthread || exit 1
    "$MPICC" -O3 "$here/armci_$program.c" "$here/bench_armci.c" -o "$work/$program-others" \
        -larmci-openmpi -lpthread 2>/dev/null
done

# run TITLE SETTINGS PROGRAM [MPIRUN'S OPTIONS]
run()
{
    echo "# $1"
    settings=$2 program=$work/$3
    shift 3
    # shellcheck disable=SC2086
    [ -x "$program" ] && env $settings timeout 600 "$MPIRUN" --oversubscribe "$@" -n 2 "$program" "$how"
}
two_copies="--mca btl_vader_single_copy_mechanism none"
# shellcheck disable=SC2086
run "one host, MPI copies twice" GASNET_CONDUIT=smp local-ours --bind-to core $two_copies
run "one host, MPI copies once" GASNET_CONDUIT=smp local-ours --bind-to core
run "one host, no memory shared" "GASNET_CONDUIT=udp GASNET_SUPERNODE_MAXSIZE=1" local-ours --bind-to none
run "one host, ARMCI-MPI" A= local-others --bind-to core
run "udp" "GASNET_CONDUIT=udp GASNET_SUPERNODE_MAXSIZE=1" net-ours --bind-to none
run "mpi" "GASNET_CONDUIT=mpi GASNET_SUPERNODE_MAXSIZE=1" net-ours --bind-to none
run "ARMCI-MPI" A= net-others --bind-to none
