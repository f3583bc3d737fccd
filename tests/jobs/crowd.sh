#!/bin/sh
# crowd.sh - many ranks on few cores: how they keep pace, start, and how much memory they use. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
# Measures time, so nothing else may run. Runs in a build folder; AQ_SRC is the source folder.

set -u
. "${AQ_SRC:?AQ_SRC is the source folder}/build-aux/tap.sh"
bin=tests/jobs
run=./gasnetrun

for ranks in 16 64; do
    name="$ranks ranks on $(nproc) cores keep pace, and waiting ranks leave the cores alone"
    timeout 150 $run -n $ranks $bin/user_crowd >"$work/out" 2>&1
    status=$?
    if [ $status = 77 ]; then
        skip "$name" "$(sed -n 's/.*# SKIP //p' "$work/out" | head -n 1)"
    else
        result $status "$name"
        grep -a '^# ' "$work/out" | head -n 8
    fi
done
for ranks in 64 200; do
    timeout 100 $bin/user_startup --run $run -n $ranks $bin/user_startup >"$work/out" 2>&1
    result $? "$ranks ranks: first barrier after $(sed -n 's/^first //p' "$work/out") s"
done
small=$(timeout 60 $run -n 8 $bin/user_startup 2>/dev/null | sed -n 's/^memory //p')
large=$(timeout 60 $run -n 200 $bin/user_startup 2>/dev/null | sed -n 's/^memory //p')
each=$(((${large:-999999} - ${small:-0}) / 192))
echo "memory of a rank: $small bytes with 8 ranks, $large with 200" >"$work/out"
[ $each -le 128 ]
result $? "a peer that is never spoken to costs $each bytes, at most 128"
tap_end
