# installed.sh - sourced by the tests of an installed libarmci: the tree in $tree, the MPI that the
# library was made for in $MPICC and $MPIRUN (build-aux/armci-mpi.sh), and build-aux/tap.sh. A tree
# without libarmci ends the test as skipped. settings and right run a program of ranks.
# SPDX-License-Identifier: BSD-3-Clause
#
# AQ_SRC is the source folder, AQ_INSTALL the installed tree, AQ_BUILD the build folder.

: "${AQ_SRC:?AQ_SRC is the source folder}" "${AQ_INSTALL:?AQ_INSTALL is the installed tree}"
tree=$AQ_INSTALL
. "$AQ_SRC/build-aux/armci-mpi.sh"
command -v "$MPICC" >/dev/null && [ -f "$tree/include/armci.h" ] ||
    { echo '1..0 # SKIP the tree has no libarmci'; exit 0; }
. "$AQ_SRC/build-aux/tap.sh"
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
