#!/bin/sh
# conduit_time.sh - how long a client's build system waits for one conduit in one mode: configure and make -j2 -C
# smp-conduit seq in an empty folder, without ccache. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
#   conduit_time.sh            in a build folder; AQ_SRC is the source folder
#
# The bound is 25 s, times how much slower than usual this machine compiles (slowness.sh), the mean of before and after:
# 185 files are compiled, two at a time, which takes as long as 300 plain compiles.

set -u
: "${AQ_SRC:?AQ_SRC is the source folder}"
. build-aux/config.env
. "$AQ_SRC/build-aux/tap.sh"
seconds_bound=25
unset MAKEFLAGS MFLAGS MAKELEVEL
export CCACHE_DISABLE=1

mkdir "$work/build" && cd "$work/build" || exit 1
before=$("$AQ_SRC/tests/packaging/slowness.sh" "$CC")
began=$(date +%s.%N)
"${CONFIG_SHELL:-/bin/sh}" "$AQ_SRC/configure" CC="$CC" --prefix="$work/install" >"$work/out" 2>&1
result $? "an empty folder is configured"
make -s -j2 -C smp-conduit seq >"$work/out" 2>&1
status=$?
ended=$(date +%s.%N)
[ -f libgasnet-smp-seq.a ] || status=1
result $status "make -j2 -C smp-conduit seq"
after=$("$AQ_SRC/tests/packaging/slowness.sh" "$CC")
if [ "$(nproc)" -lt 2 ]; then
    skip "its time" "the bounds are for two cores or more"
else
    echo "$began $ended $before $after $seconds_bound" | awk '{
        took = $2 - $1
        slow = ($4 + $6) / 2
        printf "both in %.1f s, at most %.1f: %d on a usual machine, this one takes %.2f times as long\n", took, $7 * slow, $7, slow
        exit took > $7 * slow
    }' >"$work/name"
    result $? "$(cat "$work/name")"
fi
tap_end
