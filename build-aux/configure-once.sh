#!/bin/sh
# configure-once.sh ARGUMENTS - configures the current folder unless it is configured with these arguments already.
# SPDX-License-Identifier: BSD-3-Clause
#
# AQ_SRC is the source folder. What configure found out about a compiler is kept in AQ_CACHE, one file a
# compiler, if that is set: several configurations are then made in a fraction of the time.

set -eu
compiler=gcc
for arg; do
    case $arg in CC=*) compiler=${arg#CC=} ;; esac
done
if [ -n "${AQ_CACHE:-}" ]; then
    mkdir -p "$AQ_CACHE"
    set -- "$@" --cache-file="$AQ_CACHE/$(basename "$compiler").cache"
fi
stamp=$(printf '%s\n' "$AQ_SRC" "$@")
if [ -f Makefile ] && [ -f configured-with ] && [ "$(cat configured-with)" = "$stamp" ] &&
   [ Makefile -nt "$AQ_SRC/configure" ]; then
    exit 0
fi
rm -f configured-with
"${CONFIG_SHELL:-/bin/sh}" "$AQ_SRC/configure" "$@"
printf '%s\n' "$stamp" >configured-with
