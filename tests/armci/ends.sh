#!/bin/sh
# ends.sh - how jobs over libarmci end that fail, over each conduit: by ARMCI_Error, a broken rule, a lost rank, while
# the other ranks are in a barrier, in MPI, compute, sleep, are stopped or take no signal. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
# AQ_SRC is the source folder, AQ_INSTALL the installed tree, AQ_BUILD the build folder, which knows
# the MPI that libarmci was made for.

set -u
. "${AQ_SRC:?AQ_SRC is the source folder}/tests/armci/installed.sh"
unset GASNET_EXITTIMEOUT AQ_EXITTIMEOUT_ORDERLY

program=$work/ends
# ends CONDUIT STATUS WORDS WAY [WHERE]: the job ends with STATUS (any but 0 for -) within seconds, and says WORDS
ends()
{
    conduit=$1 want=$2 words=$3
    shift 3
    sharing=''
    [ "$conduit" = smp ] || sharing=GASNET_SUPERNODE_MAXSIZE=1
    began=$(date +%s)
    env GASNET_CONDUIT="$conduit" $sharing timeout -k 5 60 "$MPIRUN" -n 3 "$program" "$@" >"$work/run" 2>&1
    status=$?
    took=$(($(date +%s) - began))
    cat "$work/run"
    echo "exit status $status after $took s"
    case $want in
    -) [ $status != 0 ] ;;
    *) [ $status = "$want" ] ;;
    esac && [ $took -le 12 ] && grep -q "$words" "$work/run"
}

# lost CONDUIT WHERE: Aqueduct names the rank. Of a busy machine's attempts one does: mpirun ends the others, too, and may
# be first
lost()
{
    for _ in 1 2 3; do
        ends "$1" - . killed "$2" || return
        ! grep -q 'rank 2 .*was lost' "$work/run" || return 0
    done
    return 1
}

# shellcheck disable=SC2046
check "ends builds" "$MPICC" -O1 -g -Wall -Wextra -Werror -I"$AQ_SRC/tests/armci" "$AQ_SRC/tests/armci/ends.c" \
    -o "$work/ends" $(pkg --cflags --libs armci) \
    -Wl,-rpath,"$tree/lib" -lpthread
for conduit in smp udp mpi; do
    for where in barrier mpi compute sleep; do
        check "ARMCI_Error, the others: $where, $conduit" ends $conduit 7 'rank 2: enough of this (7)' error $where
        check "a lost rank, the others: $where, $conduit" lost $conduit $where
    done
    # who ends last gives the status, which may be that of a stopped rank's end
    for where in 'stopped 0' 'stopped 1' blocked; do
        check "ARMCI_Error, the others: $where, $conduit" ends $conduit - 'rank 2: enough of this (7)' error "$where"
    done
    check "a lost rank, the others: blocked, $conduit" lost $conduit blocked
    check "a lost rank, the others: stopped 1, $conduit" lost $conduit 'stopped 1'
    check "ARMCI_Error in a part of the ranks, $conduit" ends $conduit 8 'rank 1: enough of this part (8)' part
    check "a rank that does not exist, $conduit" \
        ends $conduit 1 'ARMCI_Fence: there is no rank 3; there are 0 to 2' rank
    check "mutexes that do not exist, $conduit" ends $conduit 1 'ARMCI_Lock: there are no mutexes' mutex
    check "a failed assertion, $conduit" ends $conduit - 'assertion failed: me < 0' assertion
    check "ARMCI_Error after ARMCI_Finalize, $conduit" ends $conduit 9 'too late (9)' after-error
done
check "ARMCI_Error before ARMCI_Init" ends smp 9 'too early (9)' before-error
check "a call before ARMCI_Init" ends smp 1 'rank 2: ARMCI_Fence before ARMCI_Init' before-call
# gfortran gives each program a handler of SIGQUIT, by which the other ranks are asked to end
fortran_ends()
{
    ends "$@" && ! grep -q SIGQUIT "$work/run"
}
# shellcheck disable=SC2046
check "a program in Fortran builds" "${MPICC%mpicc*}mpif90${MPICC##*mpicc}" -Wall "$AQ_SRC/tests/armci/ends.f90" \
    -o "$work/ends-f" $(pkg --libs armci) -Wl,-rpath,"$tree/lib"
program=$work/ends-f
for conduit in smp udp mpi; do
    check "ARMCI_Error in Fortran, $conduit" fortran_ends $conduit 7 'rank 2: enough of Fortran (7)'
done
check "no process is left" tap_gone
tap_end
