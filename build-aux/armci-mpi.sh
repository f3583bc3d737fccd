# armci-mpi.sh - the MPI that libarmci was made for, for scripts that build or run programs over it.
# To be read in with AQ_BUILD, the build folder (default: the current one), which knows it.
# SPDX-License-Identifier: BSD-3-Clause
#
# Owns   MPICC, its compiler wrapper, or nothing; MPIRUN, its launcher

MPICC=$(make -s -C "${AQ_BUILD:-.}" echovar VARNAME=MPI_MODULE_CC 2>/dev/null |
    sed -n 's/^MPI_MODULE_CC=//p')
MPIRUN=${MPICC%mpicc*}mpirun${MPICC##*mpicc}
# Open MPI runs as root, and with more ranks than cores, only when told so.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
unset GASNET_CONDUIT GASNET_SUPERNODE_MAXSIZE
