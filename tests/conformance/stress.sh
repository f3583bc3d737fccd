#!/bin/sh
# stress.sh - random traffic with checksums, as the axes of a test set say. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
#   stress.sh SECONDS
#
# TEST_RANKS and TEST_MODE (seq, par) are what build-aux/testaxes makes of an axis's value; without
# them there are 4 ranks, in par.

exec gasnetrun -n "${TEST_RANKS:-4}" "tests/conformance/bin/stress-${TEST_MODE:-par}" \
    --seconds "${1:?seconds}"
