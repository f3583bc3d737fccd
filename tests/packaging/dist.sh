#!/bin/sh
# dist.sh - a release is complete: make distcheck, and a conduit of it where there is no repository. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
#   dist.sh [--whole]  in a build folder; AQ_SRC is the source folder
#
# make distcheck packs the release and, from its read-only folder, configures, builds, tests, installs, uninstalls, cleans and
# packs again. This is about files, not about code, so one conduit and one mode are made, unoptimised, and no test programs
# (run.sh knows that each file of the repository is in the release); --whole makes all.

set -u
: "${AQ_SRC:?AQ_SRC is the source folder}"
. build-aux/config.env
. "$AQ_SRC/build-aux/tap.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL

release=$(make -s echovar VARNAME=distdir)
release=${release#*=}
if [ "${1:-}" = --whole ]; then
    check "make distcheck" make -j"$(nproc)" distcheck TESTSETS=info
else
    check "make distcheck, of smp in seq" make -j"$(nproc)" distcheck TESTSETS=info AQ_OPT_CFLAGS=-O0 \
        check_PROGRAMS= aq_check_programs= \
        DISTCHECK_CONFIGURE_FLAGS='--disable-par --disable-udp --disable-ibv --disable-mpi'
fi
[ ! -d "$release" ] || { chmod -R u+w "$release" && rm -rf "$release"; } # what a failure leaves

check "$release.tar.gz can be unpacked" tar xzf "$release.tar.gz" -C "$work"
rm -f "$release.tar.gz"
chmod -R a-w "$work/$release" || exit 1 # as in a folder of others
mkdir "$work/build" && cd "$work/build" || exit 1
check "configure" "${CONFIG_SHELL:-/bin/sh}" "$work/$release/configure" CC="$CC" --prefix="$work/install"
check "make -C smp-conduit seq" make -s -j"$(nproc)" -C smp-conduit seq AQ_OPT_CFLAGS=-O0
check "the archive is there" test -f libgasnet-smp-seq.a
chmod -R u+w "$work"
tap_end
