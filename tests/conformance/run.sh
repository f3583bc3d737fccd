#!/bin/sh
# run.sh - aq-conformance over the programs of a build folder, as the axes of a test set say.
# Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
#   run.sh [OPTION of aq-conformance]...
#
# TEST_RANKS, TEST_MODE (seq, par), TEST_LOOPS (quick) and TEST_FILTER are what build-aux/testaxes
# makes of an axis's value; the conduit and all else is in the library's own settings. An option
# given counts more than what an axis says. Launchers that are not in PATH are those of the build
# folder, in which the script runs.

PATH=$PATH:$PWD exec sh "$(dirname "$0")/aq-conformance" --dir tests/conformance/bin --brief \
    ${TEST_RANKS:+-n "$TEST_RANKS"} ${TEST_MODE:+"--$TEST_MODE"} ${TEST_LOOPS:+"--$TEST_LOOPS"} \
    ${TEST_FILTER:+--filter "$TEST_FILTER"} "$@"
