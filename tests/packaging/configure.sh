#!/bin/sh
# configure.sh - options of configure: those that build systems of clients pass, and wrong ones. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
#   configure.sh      AQ_SRC is the source folder

set -u
: "${AQ_SRC:?AQ_SRC is the source folder}"
. "$AQ_SRC/build-aux/tap.sh"
. "$AQ_SRC/tests/packaging/clients.sh"

# configure ARGUMENTS: in a fresh folder, what it learns about the compiler kept from one run to the next.
configure()
{
    rm -rf "$work/build"
    mkdir "$work/build"
    (cd "$work/build" && "$AQ_SRC/configure" --cache-file="$work/${cache:-default}.cache" "$@") >"$work/out" 2>&1
}
accepts() { name=$1; shift; configure "$@" && ! grep 'unrecognized option' "$work/out"; result $? "$name"; }
refuses() # WORD NAME ARGUMENTS
{
    word=$1 name=$2
    shift 2
    ! configure "$@" && grep -q -- "$word" "$work/out"
    result $? "$name"
}
config() { grep -q "^#define $1\$" "$work/build/include/gasnet_config.h"; }

accepts "no option at all"
config "GASNET_NDEBUG 1" && config "GASNET_SEGMENT_FAST 1" && ! config "GASNET_DEBUG 1"
result $? "the default is fast segments without checks"
sed -n '/^Aqueduct /,$p' "$work/out" | grep -q '^  conduit smp  *yes'
result $? "the summary names the conduit"
# without automake's own way, which would make what this one leaves out
dependency_files()
(
    cd "$work/build" && find . -name .deps -prune -exec rm -rf {} + && ./config.status dependency-files || return 1
    sed -n 's/^include \(.*\)\$(DEPDIR)\(.*\) # am--include-marker/\1.deps\2/p' Makefile >included
    [ "$(wc -l <included)" -gt 400 ] && ! while read -r file; do [ -f "$file" ] || echo "$file"; done <included | grep .
)
check "config.status makes the files of dependencies" dependency_files

cache=with-cc
accepts "what UPC++ passes" --disable-parsync --enable-seq --enable-par --enable-pthreads \
    --disable-segment-everything --enable-smp --disable-debug --with-cc=gcc --with-cxx=g++ --with-cflags= --with-cxxflags=
make -C "$work/build" -s --no-print-directory echovar VARNAME=aq_conduit_modes | grep -q 'smp-seq.*smp-par' &&
    ! make -C "$work/build" -s --no-print-directory echovar VARNAME=aq_conduit_modes | grep -q parsync
result $? "parsync is left out when asked"

# --- and what it does then, from nothing ---
check "make and make install make no test programs" sh -c "cd '$work/build' && make -n all install >'$work/making' 2>&1 &&
    grep -q 'tests/bench/aq_bench-' '$work/making' && ! grep 'echo \"  CC' '$work/making' | grep -v tests/bench/aq_bench | grep ' tests/'"
start=$PWD
place=$work/build
clients_folder
# unoptimised, because this is about what is made, not about the code
at_once='smp-seq smp-par udp-seq udp-par' at_once_flags=AQ_OPT_CFLAGS=-O0
. "$AQ_SRC/tests/packaging/in_place.sh"
check "made no tests, no programs but the launcher, no shared library and no other conduit" sh -c "cd '$place' &&
    ! find tests apps runtimes conduits/mpi conduits/ibv -name '*.o' ! -name 'gasnetrun-*' | grep . && ! ls aq-* libaqueduct-*.la libaq-any-*.a 2>/dev/null"
for row in $rows; do
    [ $row != amudprun ] || continue
    check "$row: the archive has what the main makefile puts there" sh -c "cp '$place/libgasnet-$row.a' before.a &&
        rm '$place/libgasnet-$row.a' && make -s -C '$place' libgasnet-$row.a AQ_OPT_CFLAGS=-O0 && cmp before.a '$place/libgasnet-$row.a'"
done
check "a mode that is not configured is refused" refused 'without the thread mode parsync' make -C "$place/smp-conduit" parsync
check "make distclean leaves nothing" sh -c "cd '$place' && make -s distclean && ! find . ! -type d | grep ."
cd "$start" || exit 1

cache=default
accepts "what Caffeine passes" --enable-smp --enable-seq --enable-par --disable-parsync \
    --disable-segment-everything --disable-mpi-compat --disable-udp --disable-mpi
accepts "what other build systems pass" --disable-auto-conduit-detect --enable-smp --enable-udp=no --enable-debug \
    --with-max-pthreads-per-node=512 --with-segment-mmap-max=2GB --enable-pshm --disable-aligned-segments \
    --enable-rpath --disable-hwloc --disable-ibv-odp --disable-hugetlbfs --enable-force-posix-realtime \
    --with-mpi-cflags=-O --enable-kind-cuda-uva=no --enable-trace --enable-stats --enable-valgrind
config "GASNET_DEBUG 1"
result $? "--enable-debug is in gasnet_config.h"
if command -v mpicc.mpich >/dev/null && command -v mpicc.openmpi >/dev/null; then
    cache=mpi
    for mpi in mpich openmpi; do
        accepts "--with-mpicc=mpicc.$mpi" --enable-mpi --with-mpicc=mpicc.$mpi
        grep -q "^CONDUIT_LD=.*mpi:/.*mpicc.$mpi;" "$work/build/build-aux/client.values" &&
            grep -q "AQ_MPIRUN_CMD \"/.*/mpi[a-z]*.$mpi -np %N %C\"" "$work/build/aq_config.h"
        result $? "and its wrapper links clients, its launcher starts them"
    done
    cache=mpi-variable
    accepts "MPI_CC=mpicc.mpich --with-mpirun-cmd" MPI_CC=mpicc.mpich '--with-mpirun-cmd=/opt/start -n %N %C'
    grep -q 'AQ_MPIRUN_CMD "/opt/start -n %N %C"' "$work/build/aq_config.h"
    result $? "and that is the command"
    cache=default
fi
accepts "--disable-mpi, --enable-segment-everything" --disable-mpi --enable-segment-everything
config "GASNET_SEGMENT_EVERYTHING 1"
result $? "and in gasnet_config.h"
! grep -q '^  conduit mpi  *yes' "$work/out" && ! grep 'mpi:' "$work/build/build-aux/config.env"
result $? "leaves the mpi conduit out"
accepts "memory of devices switched off, or used if it is there" --disable-kind-cuda-uva \
    --enable-kind-hip=no --enable-kind-ze=probe
for kind in cuda-uva hip ze; do
    refuses "--enable-kind-$kind: this library has no memory of devices" "memory of devices: $kind" \
        --enable-kind-$kind
done
refuses 'the mpi conduit was asked for but cannot be built' "--enable-mpi without MPI fails" --enable-mpi --with-mpicc=/nowhere/mpicc
refuses 'cannot compile and link an MPI-3 program' "--enable-mpi with a wrapper that is none fails" --enable-mpi --with-mpicc=true
accepts "without MPI the rest is built; --with-max-segsize=2GB/P" --with-mpicc=/nowhere/mpicc --with-max-segsize=2GB/P \
    --enable-segment-large
grep -q 'AQ_DEFAULT_MAX_SEGSIZE "2GB/P"' "$work/build/aq_config.h"
result $? "and it is the default"
cache=quotes
accepts 'nothing optional installed; arguments with quotes in them' --without-hwloc --without-pmix --without-fftw \
    --without-cmocka PKG_CONFIG=false 'CPPFLAGS=-DX="a\b"'
echo '#include "gasnet_config.h"
const char *text = GASNETI_CONFIGURE_ARGS;' | gcc -x c -Wall -Werror -fsyntax-only -I"$work/build/include" - >>"$work/out" 2>&1
result $? "leave a gasnet_config.h that compiles"
cache=default
refuses "no ofi conduit" "a conduit that this release lacks, asked for by name" --enable-ofi
refuses "no conduit left" "no conduit at all" --disable-smp --disable-udp --disable-mpi --disable-ibv
refuses "no thread mode left" "no thread mode at all" --disable-seq --disable-par --disable-parsync
refuses "want a size such as" "a segment size that is none" --with-max-segsize=lots
refuses "choose one segment" "two segment configurations" --enable-segment-large --enable-segment-everything
refuses "cannot link a program" "a sanitizer that there is not" --enable-sanitizers=nonsense
tap_end
