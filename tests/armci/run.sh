#!/bin/sh
# run.sh - libarmci: programs built from an installed tree, over each conduit. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
# AQ_SRC is the source folder, AQ_INSTALL the installed tree, AQ_BUILD the build folder, which knows
# the MPI that libarmci was made for.

set -u
: "${AQ_SRC:?AQ_SRC is the source folder}" "${AQ_INSTALL:?AQ_INSTALL is the installed tree}"
tree=$AQ_INSTALL
MPICC=$(make -s -C "${AQ_BUILD:-.}" echovar VARNAME=MPI_MODULE_CC 2>/dev/null)
MPICC=${MPICC#*=}
command -v "$MPICC" >/dev/null && [ -f "$tree/include/armci.h" ] ||
    { echo '1..0 # SKIP the tree has no libarmci'; exit 0; }
MPIRUN=${MPICC%mpicc*}mpirun${MPICC##*mpicc}

. "$AQ_SRC/build-aux/tap.sh"
cp "$AQ_SRC"/tests/armci/*.c "$AQ_SRC"/tests/armci/*.h "$work" || exit 1
cd "$work" || exit 1
# Open MPI: as root, and with more ranks than cores, only when told so.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
unset GASNET_CONDUIT GASNET_SUPERNODE_MAXSIZE
pkg() { PKG_CONFIG_PATH="$tree/lib/pkgconfig" pkg-config "$@"; }

# settings CONDUIT: ranks share memory over smp, and none over the others
settings()
{
    case $1 in
    smp) echo GASNET_CONDUIT=smp ;;
    *) echo "GASNET_CONDUIT=$1 GASNET_SUPERNODE_MAXSIZE=1" ;;
    esac
}

# right CONDUIT RANKS COMMAND...: it ends with 0, and every rank says that all was right.
right()
{
    conduit=$1 ranks=$2
    shift 2
    # shellcheck disable=SC2046
    env $(settings "$conduit") timeout -k 5 100 "$MPIRUN" -n "$ranks" "$@" >"$work/run" 2>&1
    status=$?
    cat "$work/run"
    echo "exit status $status"
    [ $status = 0 ] && [ "$(grep -c "of $ranks right" "$work/run")" = "$ranks" ]
}

# builds NAME: with the shared library
# shellcheck disable=SC2046
builds()
{
    check "$1 builds" "$MPICC" -O1 -g -Wall -Wextra -Werror "$1.c" -o "$1" \
        $(pkg --cflags --libs armci) \
        -Wl,-rpath,"$tree/lib" -lpthread
}

for program in transfers; do
    builds $program
    check "$program, 1 rank" right smp 1 "./$program"
    for conduit in smp udp mpi; do
        check "$program, 3 ranks, $conduit" right $conduit 3 "./$program"
    done
done
tap_end
