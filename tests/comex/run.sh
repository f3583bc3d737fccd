#!/bin/sh
# run.sh - libcomex: programs built from an installed tree by gcc, clang and C++, over each conduit.
# Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
# AQ_SRC is the source folder, AQ_INSTALL the installed tree, AQ_BUILD the build folder, which knows
# the MPI that libcomex was made for.

set -u
. "${AQ_SRC:?AQ_SRC is the source folder}/tests/armci/installed.sh"
cp "$AQ_SRC"/tests/comex/*.[ch] "$AQ_SRC/tests/armci/check.h" "$work" || exit 1
cd "$work" || exit 1
strict="-O1 -g -Wall -Wextra -Werror"

# compiled COMPILER ARGUMENT...: by the wrapper of MPI around the compiler
compiled()
{
    real=$1
    shift
    # shellcheck disable=SC2086
    env OMPI_CC="$real" MPICH_CC="$real" "$MPICC" $strict "$@"
}

# shared COMPILER NAME [ARGUMENT...]: with the shared library, by what comex.pc says
shared()
{
    compiler=$1 name=$2
    shift 2
    # shellcheck disable=SC2046
    compiled "$compiler" "$@" "$name.c" -o "$name" $(pkg --cflags --libs comex) -Wl,-rpath,"$tree/lib"
}

# static NAME: with the archives
static()
{
    # shellcheck disable=SC2046
    compiled gcc "$1.c" -o "$1-static" -I"$tree/include" "$tree/lib/libcomex.a" "$tree/lib/libarmci.a" \
        $(sed -n "s/^Libs.private: //p" "$tree/lib/pkgconfig/armci.pc")
}

# --- the header and the library ---

# alone COMPILER STANDARD: the header, by itself and twice
printf '#include <comex.h>\n#include <comex.h>\nint n = COMEX_GROUP_WORLD;\n' >alone.txt
alone()
{
    case $2 in
    c++*) set -- "$@" -x c++ -DOMPI_SKIP_MPICXX ;;
    *) set -- "$@" -Wstrict-prototypes -x c ;;
    esac
    compiler=$1 standard=$2
    shift 2
    compiled "$compiler" -std="$standard" -Wshadow "$@" -I"$tree/include" -c alone.txt -o alone.o
}
for one in gcc:c99 gcc:c11 g++:c++11 g++:c++20 clang:c99 clang:c11 clang++:c++11 clang++:c++20; do
    if command -v "${one%:*}" >/dev/null; then
        check "comex.h, ${one%:*}, ${one#*:}" alone "${one%:*}" "${one#*:}"
    else
        skip "comex.h, ${one%:*}, ${one#*:}" "no ${one%:*}"
    fi
done

# Every function that the header declares is in both libraries, and nothing else is shown. The
# programs of this folder call each of them.
declared()
{
    "$MPICC" -E -I"$tree/include" "$tree/include/comex.h" | grep -oE '\bcomex_[a-z_]* *\(' |
        sed 's/ *($//' | sort -u >declared
    nm -D --defined-only "$tree/lib/libcomex.so" | sed 's/.* //' | sort -u >shown
    nm --defined-only "$tree/lib/libcomex.a" | sed -n 's/.* T //p' | sort -u >archived
    wc -l declared
    [ "$(wc -l <declared)" = 49 ] && diff declared shown && ! comm -23 declared archived | grep .
}
called()
{
    grep -ohE '\bcomex_[a-z_]*\(' ./*.c ./*.h | sed 's/($//' | sort -u >called
    ! comm -23 declared called | grep .
}
check "what is declared is in the libraries" declared
check "the programs call all of it" called

# --- the programs ---

for program in test calls shift perf_amo; do
    check "$program builds" shared gcc $program
done
if command -v g++ >/dev/null; then
    check "calls builds as C++" shared g++ calls -x c++ -DOMPI_SKIP_MPICXX -o calls-c++
    shared gcc calls
fi
times=1000
for conduit in smp udp mpi; do
    [ $conduit != mpi ] || times=200
    for ranks in 1 3; do
        check "test, $ranks ranks, $conduit" right $conduit $ranks ./test
    done
    check "shift, 2 ranks, $conduit" right $conduit 2 ./shift
    check "calls over halves of the ranks, $conduit" right $conduit 3 ./calls parts
    check "perf_amo, 4 ranks, $conduit" right $conduit 4 ./perf_amo $times
done
check "calls, 1 rank, smp" right smp 1 ./calls
check "calls, 4 ranks, smp" right smp 4 ./calls
check "calls, 3 ranks, udp" right udp 3 ./calls
check "calls, 2 ranks, mpi" right mpi 2 ./calls
check "test, 4 ranks on 2 hosts in name, udp" right udp 4 env GASNET_SUPERNODE_MAXSIZE=2 ./test
check "test builds with the archives" static test
check "test, with the archives" right smp 2 ./test-static
if command -v clang >/dev/null; then
    check "test builds with clang" shared clang test
    check "test, built by clang" right smp 2 ./test
else
    skip "test builds with clang" "no clang"
fi

# error: one rank ends the job with its code
error()
{
    # shellcheck disable=SC2046
    env $(settings smp) timeout -k 5 20 "$MPIRUN" -n 2 ./calls error >run 2>&1
    status=$?
    cat run
    echo "exit status $status"
    [ $status = 7 ] && grep -q 'rank 0: enough of this (7)' run
}
check "comex_error" error
check "no process is left" tap_gone
tap_end
