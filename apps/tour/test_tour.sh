#!/bin/sh
# test_tour.sh - the tour and the README's program give the right answers, and the README shows the program.
# Runs in a build folder. TAP. SPDX-License-Identifier: BSD-3-Clause

count=0
result()
{
    count=$((count + 1))
    if [ "$1" -eq 0 ]; then echo "ok $count - $2"; else echo "not ok $count - $2"; fi
}

for ranks in 1 2 4 7; do
    ./gasnetrun -n $ranks ./tour >tour.log 2>&1 && grep -q 'gave the right answers' tour.log
    result $? "tour on $ranks ranks"
    AQ_NO_OVERRIDES=1 ./gasnetrun -n $ranks ./tour >tour.log 2>&1
    result $? "tour on $ranks ranks, reference paths"
done
for ranks in 1 3; do
    ./gasnetrun -n $ranks ./hello >tour.log 2>&1 && [ "$(grep -c 'in its memory' tour.log)" -eq $ranks ]
    result $? "hello on $ranks ranks"
done
sed -n '/^```c$/,/^```$/p' "$AQ_SRC/README.md" | sed '1d;$d' >readme.c
sed -n '/^#include/,$p' "$AQ_SRC/apps/tour/hello.c" | cmp -s - readme.c
result $? "README.md shows apps/tour/hello.c"
rm -f tour.log readme.c
echo "1..$count"
