#!/bin/sh
# conduit_time.sh - how long a client's build system waits for one conduit in one mode: make -j2 -C smp-conduit seq in a
# fresh, configured folder, without ccache. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
#   conduit_time.sh            in a build folder; AQ_SRC is the source folder
#
# Fails only above both bounds: seconds, for a usual machine, and as many plain compiles (slowness.sh), for one whose
# processes start slowly. 185 files are compiled, two at a time, each longer than the one of slowness.sh: that took as long
# as 370 plain compiles on a machine with slow page faults and much else to do.

set -u
: "${AQ_SRC:?AQ_SRC is the source folder}"
. build-aux/config.env
. "$AQ_SRC/build-aux/tap.sh"
seconds_bound=25
compiles_bound=600
unset MAKEFLAGS MFLAGS MAKELEVEL
export CCACHE_DISABLE=1

mkdir "$work/build" && cd "$work/build" || exit 1
"${CONFIG_SHELL:-/bin/sh}" "$AQ_SRC/configure" CC="$CC" --prefix="$work/install" >"$work/out" 2>&1
result $? "a fresh folder is configured"
before=$("$AQ_SRC/tests/packaging/slowness.sh" "$CC")
began=$(date +%s.%N)
make -s -j2 -C smp-conduit seq >"$work/out" 2>&1
status=$?
ended=$(date +%s.%N)
[ -f libgasnet-smp-seq.a ] || status=1
result $status "make -j2 -C smp-conduit seq"
after=$("$AQ_SRC/tests/packaging/slowness.sh" "$CC")
if [ "$(nproc)" -lt 2 ]; then
    skip "its time" "the bounds are for two cores or more"
else
    echo "$began $ended $before $after $seconds_bound $compiles_bound" | awk '{
        took = $2 - $1
        each = $3 > $5 ? $3 : $5 # of the two measurements the slower one
        printf "in %.1f s, at most %d, or the time of %d plain compiles of %.3f s, at most %d\n", took, $7, took / each, each, $8
        exit took > $7 && took / each > $8
    }' >"$work/name"
    result $? "$(cat "$work/name")"
fi
tap_end
