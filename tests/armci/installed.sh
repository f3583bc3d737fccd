# installed.sh - sourced by the tests of an installed libarmci: the tree in $tree, the MPI that the
# library was made for in $MPICC and $MPIRUN (build-aux/armci-mpi.sh), and build-aux/tap.sh. A tree
# without libarmci ends the test as skipped. SPDX-License-Identifier: BSD-3-Clause
#
# AQ_SRC is the source folder, AQ_INSTALL the installed tree, AQ_BUILD the build folder.

: "${AQ_SRC:?AQ_SRC is the source folder}" "${AQ_INSTALL:?AQ_INSTALL is the installed tree}"
tree=$AQ_INSTALL
. "$AQ_SRC/build-aux/armci-mpi.sh"
command -v "$MPICC" >/dev/null && [ -f "$tree/include/armci.h" ] ||
    { echo '1..0 # SKIP the tree has no libarmci'; exit 0; }
. "$AQ_SRC/build-aux/tap.sh"
pkg() { PKG_CONFIG_PATH="$tree/lib/pkgconfig" pkg-config "$@"; }
