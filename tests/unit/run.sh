#!/bin/sh
# run.sh - the unit tests of a build folder, one after the other. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
# test_firehose_threads is a set of its own, which other configurations have too.

set --
for program in tests/unit/bin/test_* ./bench-stat-test ./bench-wire-test; do
    case $program in *.d|*test_firehose_threads) continue ;; esac
    set -- "$@" "$program"
done
exec sh "$(dirname "$0")/../../build-aux/tap-each.sh" "$@"
