#!/bin/sh
# run.sh - a selection of the conformance programs under valgrind's memcheck: no invalid access. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
#   run.sh            in a build folder without sanitizers

set -u
command -v valgrind >/dev/null 2>&1 || { echo '1..0 # SKIP valgrind is not installed'; exit 0; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
n=0
failed=0
for program in test_am_medium_sizes-seq test_am_long_args-seq test_am_replies-par test_rma_sizes-seq test_rma_value-seq \
    test_event_sync-par test_nbi_region-seq test_barrier_named-seq test_seg_attach-par test_exit_handler-seq; do
    n=$((n + 1))
    if gasnetrun -n 2 valgrind -q --error-exitcode=99 --trace-children=no "tests/conformance/bin/$program" >"$log" 2>&1 &&
       ! grep -q '^==[0-9]*== ' "$log"; then
        echo "ok $n - $program"
    else
        echo "not ok $n - $program"
        failed=1
        sed 's/^/# /' "$log" | head -n 25
    fi
done
echo "1..$n"
exit $failed
