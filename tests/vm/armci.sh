#!/bin/sh
# armci.sh - builds, for the guests of run.pl, the programs of libarmci, and a program of Global
# Arrays with what it prints over ARMCI-MPI.
# SPDX-License-Identifier: BSD-3-Clause
#
#   armci.sh FOLDER     AQ_SRC is the source folder, AQ_BUILD the build folder
#
# FOLDER/mpirun has the name of the launcher. Where Global Arrays or ARMCI-MPI is missing, FOLDER has
# no arrays-c.

set -eu
: "${AQ_SRC:?AQ_SRC is the source folder}" "${AQ_BUILD:?AQ_BUILD is the build folder}"
folder=$1
cd "$AQ_BUILD"
variable() { make -s echovar VARNAME="$1" | sed -n "s/^$1=//p"; }
. "$AQ_SRC/build-aux/armci-mpi.sh"
CC=$(variable AQ_ARMCI_CC)
LIBS="$(variable AQ_ARMCI_LIBS) -lpthread"
echo "$MPIRUN" >"$folder/mpirun"
make -s runtimes/armci/libarmci.a
for program in transfers handles memory sync messages programs accumulate protocols parts remains; do
    eval "$CC -w -I$AQ_SRC/tests/armci -o $folder/$program $AQ_SRC/tests/armci/$program.c $LIBS"
done
for program in net pipe service; do
    bench=$AQ_SRC/tests/bench/armci
    eval "$CC -w -O2 -DBENCH_OURS -I$bench -o $folder/bench-$program $bench/armci_$program.c $bench/bench_armci.c $LIBS"
done
case $("$MPICC" --showme:version 2>/dev/null) in *'Open MPI'*) ;; *) exit 0 ;; esac
ls /usr/lib/*/libga-openmpi.a /usr/lib/*/libarmci-openmpi.a >/dev/null 2>&1 || exit 0
rest="-lscalapack-openmpi -llapack -lblas -lgfortran -lm"
program=$AQ_SRC/tests/armci/ga/arrays-c.c
eval "$MPICC -w -o $folder/others $program -lga-openmpi -larmci-openmpi $rest"
eval "$CC -w -o $folder/arrays-c $program -lga-openmpi $LIBS $rest"
for try in 1 2 3 4; do # Open MPI's windows cannot be made now and then
    timeout -k 5 100 "$MPIRUN" -n 2 "$folder/others" >"$folder/arrays-c-expected" && exit
done
exit 1
