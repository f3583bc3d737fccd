#!/bin/sh
# test_tour.sh - the tour and the README's program give the right answers, and the README shows the program.
# Runs in a build folder. TAP. SPDX-License-Identifier: BSD-3-Clause

. "${AQ_SRC:-..}/build-aux/tap.sh"

for ranks in 1 2 4 7; do
    ./gasnetrun -n $ranks ./tour >"$work/out" 2>&1 && grep -q 'gave the right answers' "$work/out"
    result $? "tour on $ranks ranks"
    AQ_NO_OVERRIDES=1 ./gasnetrun -n $ranks ./tour >"$work/out" 2>&1
    result $? "tour on $ranks ranks, reference paths"
done
for ranks in 1 3; do
    ./gasnetrun -n $ranks ./hello >"$work/out" 2>&1 && [ "$(grep -c 'in its memory' "$work/out")" -eq $ranks ]
    result $? "hello on $ranks ranks"
done
sed -n '/^```c$/,/^```$/p' "$AQ_SRC/README.md" | sed '1d;$d' >"$work/readme.c"
sed -n '/^#include/,$p' "$AQ_SRC/apps/tour/hello.c" | cmp -s - "$work/readme.c"
result $? "README.md shows apps/tour/hello.c"
tap_end
