#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_aq_bench_armci.sh - aq-bench armci from outside: options, sections, rows in all forms. What the
# figures are is not judged here, but counts and sums are.
# Prints TAP. Runs with AQ_INSTALL, the installed tree.

set -u
bench=${AQ_INSTALL:?AQ_INSTALL is the installed tree}/bin/aq-bench
[ -f "$AQ_INSTALL/include/armci.h" ] || { echo '1..0 # SKIP the tree has no libarmci'; exit 0; }
. "$(dirname "$0")/../../build-aux/tap.sh"
mkdir -p "$work/tmp"
export TMPDIR="$work/tmp"

# lists WORD... NOT WORD...: --list with the options in $options names some sections, and not others
lists()
{
    # shellcheck disable=SC2086
    "$bench" armci --list $options >"$work/list" || return 1
    cat "$work/list"
    has=yes
    for word; do
        [ "$word" != NOT ] || { has=no; continue; }
        if grep -q "$word" "$work/list"; then found=yes; else found=no; fi
        [ $found = $has ] || return 1
    done
}

# fails WORD ARGUMENT...
fails()
{
    word=$1
    shift
    "$bench" armci "$@" >"$work/said" 2>&1
    [ $? = 2 ] && grep -q -- "$word" "$work/said"
}

options=''
check "--list names the sections" lists 'one host: MPI copies twice' 'udp: progress' 'mpi: transfers' ARMCI-MPI
options='-c udp --no-peers'
check "a network, no other libraries" lists 'udp: pipelines' NOT 'mpi: ' ARMCI-MPI
options='--only locks'
check "--only" lists 'one host: locks' NOT copies
options='--ga'
check "--ga" lists 'Global Arrays: 2 ranks, smp' 'Global Arrays: 4 ranks, mpi' NOT locks
check "an unknown option" fails usage --nonsense
check "an option without its value" fails usage --json
export MPICC=no-such-mpicc
check "a compiler that is not there" fails 'no-such-mpicc is not in PATH' --only locks
unset MPICC

# right SECTION WORDS: a short run of a section ends well; its counts and sums are ok
right()
{
    timeout 150 "$bench" armci --quick --no-peers --only "$1" --json "$work/json" --markdown "$work/tables" \
        --plot "$work/plots" >"$work/said" 2>"$work/errors"
    status=$?
    cat "$work/said" "$work/errors"
    [ $status = 0 ] && ! grep -q 'left out' "$work/said" && grep -q "$2" "$work/said"
}

check "locks" right 'one host: locks' 'sections of 8 ranks.*>= 0.9'
check "accumulates, one host" right 'one host: service' 'share of exact sums.*ok'
check "accumulates, udp" right 'two hosts in name' 'share of exact sums.*ok'
check "transfers and plots, udp" right 'udp: transfers' '1000 aggregated doubles'
check "the plot is there" grep -q '</svg>' "$work/plots/armci-udp-strided.svg"
check "the tables are there" grep -q '^| 1000 aggregated doubles | 8000 B |' "$work/tables"
if command -v python3 >/dev/null; then
    check "the JSON file can be read" python3 - "$work/json" <<'END'
import json, sys
rows = json.load(open(sys.argv[1]))
assert any(r["name"] == "1000 aggregated doubles" and r["goal"] == "<= 1.1" and r["ratio"] > 0 for r in rows)
assert all(r["section"] == "udp: transfers" for r in rows)
END
fi

# global_arrays RANKS: a short run on libarmci and on ARMCI-MPI; each result is verified
global_arrays()
{
    timeout 150 "$bench" armci --quick --ga --only "$1 ranks" --json "$work/json" >"$work/said" 2>"$work/errors"
    status=$?
    cat "$work/said" "$work/errors"
    # over smp and mpi, and without shared memory over udp and mpi
    [ $status = 0 ] && [ "$(grep -c '^dgemm 256 .* ARMCI-MPI ' "$work/said")" = 4 ]
}
if ls /usr/lib/*/libga-openmpi.a /usr/lib/*/libarmci-openmpi.a >/dev/null 2>&1 &&
    readelf -d "$AQ_INSTALL/lib/libarmci.so" | grep -q 'NEEDED.*libmpi\.so'; then
    check "Global Arrays, 2 ranks" global_arrays 2
else
    skip "Global Arrays" "needs a libarmci for Open MPI, libglobalarrays-dev and libarmci-mpi-dev"
fi

"$bench" armci >"$work/said" 2>&1 &
pid=$!
sleep 3
kill -TERM $pid
wait $pid
[ $? = 143 ]
result $? "a signal ends it"
check "no process is left" tap_gone
check "no file is left" sh -c '[ -z "$(ls "$0")" ]' "$work/tmp"
tap_end
