#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_env_job.sh - ranks started with different environments all see the largest one; ranks
# started with the same see theirs. TAP. AQ_BUILD: the build folder.
prog=${AQ_BUILD:-.}/tests/unit/bin/test_env_job
open="mpirun.openmpi --oversubscribe"
test "$(id -u)" = 0 && open="$open --allow-run-as-root"

n=0
failed=0
# expect TEXT COUNT COMMAND...: COUNT ranks print that they see TEXT, and no rank prints another text
expect() {
    text=$1
    count=$2
    shift 2
    n=$((n + 1))
    if ! command -v "$1" > /dev/null; then
        echo "ok $n - $1 # SKIP not installed"
        return
    fi
    out=$(timeout 60 "$@" 2>&1 < /dev/null)
    if test "$(echo "$out" | grep -c "^rank [0-9]* sees $text\$")" = "$count" &&
       test "$(echo "$out" | grep -c "^rank")" = "$count"; then
        echo "ok $n - $1: $count ranks see $text"
    else
        echo "not ok $n - $1: $count ranks see $text"
        echo "$out" | sed 's/^/# /'
        failed=1
    fi
}

long=the-longest-of-these-values
expect mine 3 env GASNET_PSHM_NODES=3 AQ_TEST_SHARED=mine "$prog" print
expect nothing 2 env GASNET_PSHM_NODES=2 "$prog" print
expect same 3 $open -n 3 env AQ_TEST_SHARED=same "$prog" print
expect $long 3 $open -n 1 env AQ_TEST_SHARED=a "$prog" print : \
    -n 1 env AQ_TEST_SHARED=$long "$prog" print : -n 1 "$prog" print
expect $long 2 mpiexec.mpich -n 1 env AQ_TEST_SHARED=a "$prog" print : \
    -n 1 env AQ_TEST_SHARED=$long "$prog" print

echo "1..$n"
exit $failed
