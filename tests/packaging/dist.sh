#!/bin/sh
# dist.sh - a release, as make dist packs it, is enough to build a conduit where there is no repository. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
#   dist.sh            in a build folder; AQ_SRC is the source folder

set -u
: "${AQ_SRC:?AQ_SRC is the source folder}"
. build-aux/config.env
. "$AQ_SRC/build-aux/tap.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL

check "make dist" make -s dist
release=$(make -s echovar VARNAME=distdir)
release=${release#*=}
check "$release.tar.gz can be unpacked" tar xzf "$release.tar.gz" -C "$work"
rm -f "$release.tar.gz"
chmod -R a-w "$work/$release" || exit 1 # as in a folder of others
mkdir "$work/build" && cd "$work/build" || exit 1
check "configure" "${CONFIG_SHELL:-/bin/sh}" "$work/$release/configure" CC="$CC" --prefix="$work/install"
check "make -C smp-conduit seq" make -s -j"$(nproc)" -C smp-conduit seq
check "the archive is there" test -f libgasnet-smp-seq.a
chmod -R u+w "$work"
tap_end
