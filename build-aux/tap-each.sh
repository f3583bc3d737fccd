#!/bin/sh
# tap-each.sh PROGRAM... - runs programs that print TAP, one after the other, and prints one TAP stream.
# SPDX-License-Identifier: BSD-3-Clause
#
# Each test's name is led by its program's. A program that ends with another status than its tests
# explain, or without as many tests as it planned, adds a failed test of its own.

set -u
list=$(mktemp)
trap 'rm -f "$list"' EXIT
for program; do
    name=$(basename "$program")
    CMOCKA_MESSAGE_OUTPUT=TAP "$program" >"$list" 2>&1
    status=$?
    awk -v name="$name" -v status="$status" '
        /^1\.\.[0-9]+/ { planned = substr($1, 4); has_plan = 1; if (planned == 0) print "ok - " name ": " $0; next }
        /^TAP version/ { next }
        /^(not )?ok/ {
            seen++
            fails = /^not/ && !/# *(TODO|SKIP)/ # cmocka says "not ok ... # SKIP"
            bad += fails
            verdict = fails ? "not ok" : "ok"
            sub(/^(not )?ok *[0-9]* *-? */, "")
            print verdict " - " name ": " $0
            next
        }
        { print "# " $0 }
        END {
            if (!has_plan || seen != planned && planned != 0) {
                print "not ok - " name ": planned " (has_plan ? planned : "nothing") ", ran " seen + 0
                bad++
            }
            if (status != 0 && status != 77 && !bad)
                print "not ok - " name ": exit status " status
        }' "$list"
done | awk '/^(not )?ok/ { n++; bad += /^not/; sub(/ok/, "ok " n) } { print; fflush() } END { print "1.." n + 0; exit bad > 0 }'
