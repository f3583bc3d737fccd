#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_info.sh - aq-info answers, in text and JSON, and docs/environment.md is what it writes. TAP.
# AQ_SRC: the source folder; AQ_BUILD: the build folder; AQ_INFO: the program.
src=${AQ_SRC:-$(dirname "$0")/../..}
info=${AQ_INFO:-${AQ_BUILD:-.}/aq-info}
. "$src/build-aux/tap.sh"
# what this test's caller set must not show
for name in $(env | sed -n 's/^\(GASNET_[A-Z_]*\|AQ_[A-Z_]*\)=.*/\1/p'); do
    unset "$name"
done

run() { # run EXPECTED-STATUS ARGUMENTS...
    want=$1
    shift
    "$info" "$@" > "$work/out" 2> "$work/err"
    test $? = "$want"
}
has() { grep -q -- "$1" "$work/out"; }

run 0
result $? "runs without options"
for part in Build Conduits Machine GASNET_CONFIG_STRING smp "can be used here" "cores for ranks" \
            "AM request medium" "segment of a lone rank" process_vm_readv; do
    has "$part"
    result $? "the report has: $part"
done
! has "does not start"
result $? "the conduit starts"

run 0 --env segsize && has '^  GASNET_MAX_SEGSIZE: ' && ! has GASNET_QUIET
result $? "--env takes a part of a name"
run 0 -e 'AQ_*' && has '^  AQ_LOG_LEVEL: ' && ! has '^  GASNET_'
result $? "-e takes a shell pattern"
GASNET_QUIET=yes run 0 --env=quiet && has 'now: yes'
result $? "--env shows the present value"
run 1 --env no_such_name && test -s "$work/err"
result $? "--env with a pattern that matches nothing says so"
run 2 --no-such-option
result $? "a wrong option is refused"
run 2 word
result $? "a stray word is refused"
run 0 --help && has usage:
result $? "--help"
run 0 --version && has Aqueduct
result $? "--version"

GASNET_MAX_SEGSIZE=64MB/P run 0 --limits && has '67108864 bytes, 64 MB'
result $? "--limits honours GASNET_MAX_SEGSIZE"
GASNET_MAX_SEGSIZE=nonsense run 134 --limits && grep -q 'FATAL ERROR.*GASNET_MAX_SEGSIZE' "$work/err"
result $? "an unparsable variable is named"

run 0 --json
result $? "--json runs"
if python3 -c '' 2> /dev/null; then
    python3 - "$work/out" 2> "$work/err" << 'END'
import json, sys
info = json.load(open(sys.argv[1]))
assert info["build"]["config"].startswith("RELEASE=")
smp = [c for c in info["conduits"] if c["name"] == "smp"][0]
assert smp["usable"] and smp["am_max_args"] == 16 and smp["am_max_request_medium"] >= 512
assert smp["max_segment"] > 0
for c in info["conduits"]: # those of a lone rank are not those between hosts
    if "am_max_args" in c and c["name"] != "smp":
        assert 512 <= c["am_max_remote_medium"] <= c["am_max_request_medium"] and c["am_max_remote_long"] >= 512
assert info["machine"]["cores_available"] >= 1
names = [v["name"] for v in info["environment"]]
assert "GASNET_MAX_SEGSIZE" in names and len(names) == len(set(names))
END
    result $? "--json is JSON with what scripts need"
else
    skip "--json is JSON" "no python3 here"
fi

run 0 --markdown && cmp -s "$work/out" "$src/docs/environment.md" ||
    { diff "$src/docs/environment.md" "$work/out" > "$work/err"; : > "$work/out"; false; }
result $? "docs/environment.md is current (else: aq-info --markdown > docs/environment.md)"

tap_end
