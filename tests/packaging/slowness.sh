#!/bin/sh
# slowness.sh - prints how many seconds a plain compile takes here, the mean of 20, and how many times that is what it
# takes on the machine for which the bounds of the tests were chosen, at least 1.
# SPDX-License-Identifier: BSD-3-Clause
#
#   slowness.sh [COMPILER]       gcc unless named
#
# Starting a process and its page faults are most of it, as they are of a build: where these are slow, both are.

usual=0.060 # seconds: the file is changed in no way, so that this figure stays right
times=20
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
export CCACHE_DISABLE=1
began=$(date +%s.%N)
for _ in $(seq $times); do
    ${1:-gcc} -O2 -c "$(dirname "$0")/reference.c" -o "$out" || exit 1
done
echo "$began $(date +%s.%N) $times $usual" |
    awk '{ each = ($2 - $1) / $3; printf "%.3f %.2f\n", each, (each > $4 ? each / $4 : 1) }'
