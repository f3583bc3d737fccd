#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_aq_bench.sh - aq-bench from outside: options, a short run, its JSON, and that nothing is left behind.
# What the figures are is not judged here: a test machine is too busy for that.
# Prints TAP. Runs in a build folder, or with the path of an aq-bench as its argument.

bench=${1:-./aq-bench}
. "$(dirname "$0")/../../build-aux/tap.sh"
dir=$work
failing=
TMPDIR=$work/tmp
export TMPDIR

# fails CODE WORD ARGS... - aq-bench ARGS exits with CODE and says WORD
fails()
{
    code=$1
    word=$2
    shift 2
    "$bench" "$@" >"$dir/out" 2>&1
    [ $? -eq "$code" ] && grep -q -- "$word" "$dir/out"
}

"$bench" --list >"$dir/list" && grep -q '^am_short .*1\.15$' "$dir/list" && grep -q startup_init "$dir/list"
result $? "--list names the rows and their budgets"

fails 2 'at least 2' -n 1
result $? "one rank is refused"
fails 2 'one of latency' --table nonsense
result $? "an unknown table is refused"
fails 2 'usage' --nonsense
result $? "an unknown option is refused"

timeout 100 "$bench" --quick --only am_short/0,am_medium/4096,put8,put/65536,barrier/0 --json "$dir/json" \
    --markdown "$dir/page.md" --plot "$dir" >"$dir/out" 2>"$dir/err"
result $? "a short run ends well"
grep -q '^am_short .* [0-9.]* *1\.15 \(ok\|over\|noise\)$' "$dir/out"
result $? "a row with a budget ends with ratio, budget and verdict"
grep -q '^put8_rate .* 8 B .* store through a table ' "$dir/out"
result $? "a row names its limit"

# has PAGE WORD...: each is in the page, and each table has as many columns in each line
has()
{
    page=$1
    shift
    for word; do grep -q -- "$word" "$page" || return 1; done
    awk -F'|' '/^\|/ { if (!columns) columns = NF; if (NF != columns) exit 1; next } { columns = 0 }' "$page"
}
has "$dir/page.md" '^# What communication costs on one host' '^Rows within their budgets: [0-9]' \
    '^## Active messages' '^| am_medium | 4 KiB | [0-9.]* [num]*s | [0-9.]* | ping-pong + 2 memcpy[a-z, ]* | .*1\.30 \(ok\|over\|noise\) |$' \
    '^## Put and get of 8 bytes' '^| put8_rate | 8 B ' '^## Put and get$' '^| put | 64 KiB ' '^## Barriers'
result $? "the page has the same rows, in groups"
if command -v gnuplot >/dev/null; then
    has "$dir/page.md" '^!\[.*\](latency.svg)$' && [ -s "$dir/latency.svg" ]
    result $? "and the plots"
else
    skip "and the plots" "no gnuplot"
fi
fails 2 'cannot write /nowhere/page' --quick --only put8_rate --markdown /nowhere/page
result $? "a page that cannot be written is an error"

if command -v python3 >/dev/null; then
    python3 - "$dir/json" <<'END'
import json, sys
rows = {(r["name"], r.get("size")): r for r in json.load(open(sys.argv[1]))["rows"]}
r = rows[("am_medium", 4096)]
assert r["budget"] == 1.3 and r["verdict"] in ("ok", "over", "noise")
assert r["subject"]["median"] > 0 and r["limit"]["q1"] <= r["limit"]["median"] <= r["limit"]["q3"]
assert rows[("barrier", 0)]["budget"] == 1.15
END
    result $? "the JSON file holds the same rows"
else
    grep -q '"name": "am_medium", "size": 4096' "$dir/json"
    result $? "the JSON file holds the same rows # without python3 only looked at"
fi

"$bench" --list -c udp >"$dir/list" && grep -q '^am_short_flood .* 0\.35$' "$dir/list" \
    && grep -q put_loss_1pct "$dir/list" && ! grep -q put8_latency "$dir/list"
result $? "--list names the rows of a network and their budgets"

if AQ_UDP_FAULTS= timeout 100 "$bench" -c udp --quick --no-peers --json "$dir/far" \
    --markdown "$dir/far.md" \
    --only am_short/0,am_short_flood,put/65536,put_stream/1048576,barrier/0,put_loss >"$dir/out" 2>"$dir/err"; then
    result 0 "a short run over udp ends well"
elif grep -q 'this library does not hold' "$dir/err"; then
    result 0 "a short run over udp ends well # SKIP this library has no udp"
else
    sed 's/^/# /' "$dir/err"
    result 1 "a short run over udp ends well"
fi
if [ -s "$dir/far" ]; then
    grep -q '^am_short .* UDP ping-pong .* 1\.10 ' "$dir/out" && grep -q '^am_short_flood .* one send() each ' "$dir/out" \
        && grep -q '^put_stream .* 1 MiB .* 1\.25 ' "$dir/out" && grep -q '^put_loss_1pct .* 2\.00 ' "$dir/out"
    result $? "its rows stand beside sockets"
    has "$dir/far.md" '^# What communication costs over udp' '2 ranks that share no memory' '^| put_loss_1pct | 1 MiB ' &&
        ! grep -q 'CONDUIT=' "$dir/far.md"
    result $? "their page"
    ! grep -q -i -w -e nan -e inf "$dir/far" "$dir/out" && ! grep -q '"median": 0[,}]' "$dir/far"
    result $? "every row has a figure"
else
    result 0 "its rows stand beside sockets # SKIP no run"
    result 0 "their page # SKIP no run"
    result 0 "every row has a figure # SKIP no run"
fi

# rows with other work on the machine: that each is there, and that the busy processes end
"$bench" --list >"$dir/list" && grep -q '^loadB_short ' "$dir/list"
result $? "--list names the rows of a loaded machine"
timeout 150 "$bench" --quick --only load0,load1_barrier,load1_runs --json "$dir/load" --markdown "$dir/load.md" >"$dir/out" 2>"$dir/err"
result $? "a short run with busy processes ends well"
missing=
for row in load0_short load0_short_p99 load0_polled load0_polled_p99 load0_barrier load0_barrier_p99 load1_barrier \
    load1_barrier_p99; do
    for ranks in 2 4; do
        for peer in spins yields; do
            grep -q "^$row  *$ranks ranks  *[0-9.]* [num]*s  *a program that $peer .* 1\.00 " "$dir/out" \
                || missing="$missing $row/$ranks/$peer"
        done
    done
done
for row in load0_barrier load0_barrier_named load1_barrier load1_barrier_named; do
    grep -q "^$row  *16 ranks .* all-reduce of 8 B .* 1\.00 " "$dir/out" || missing="$missing $row/16"
done
for row in load0_rate load1_runs_short load1_runs_polled load1_runs_barrier; do
    grep -q "^$row .* ranks .* [23]\.00 " "$dir/out" || missing="$missing $row"
done
has "$dir/load.md" '^# What waiting costs on a shared machine, over smp' '^## Waiting on a loaded machine' \
    '^| load1_barrier | 2 ranks | .* | a program that yields | '
result $? "their page"
[ -z "$missing" ]
result $? "it prints every row${missing:+; missing:$missing}"
! grep -q -i -w -e nan -e inf "$dir/load" "$dir/out" && ! grep -q '"median": 0[,}]' "$dir/load"
result $? "every row of a loaded machine has a figure"

# jobs that fail: the launcher is a program that does
for only in startup_init load0_barrier load0_rate load1_runs; do
    AQ_BENCH_GASNETRUN=false "$bench" --quick --only $only >"$dir/out" 2>&1
    [ $? -eq 2 ] && grep -q 'rows are missing' "$dir/out" || failing="$failing $only"
done
[ -z "$failing" ]
result $? "a failed job is an error, whatever its rows${failing:+; not so:$failing}"

# runs PID: does the process run? One that has ended stays until its parent asks, which may take its time.
runs()
{
    [ -r "/proc/$1/stat" ] && ! grep -q ') [ZX] ' "/proc/$1/stat" 2>/dev/null
}

# ends_busy SIGNAL STATUS: a run that gets the signal while processes are busy ends with the status,
# and they end soon
ends_busy()
{
    "$bench" --only load2_short >"$dir/out" 2>"$dir/err" &
    pid=$!
    busy=
    for try in $(seq 100); do
        busy=$(ps -o pid= --ppid $pid)
        [ "$(echo "$busy" | wc -w)" -lt 2 ] || break
        sleep 0.1
    done
    kill -"$1" $pid
    wait $pid
    [ $? -eq "$2" ] && [ "$(echo "$busy" | wc -w)" -ge 2 ] || return 1
    for try in $(seq 100); do
        for each in $busy; do
            if runs "$each"; then sleep 0.1 && continue 2; fi
        done
        return 0
    done
    return 1
}
ends_busy TERM 143
result $? "a signal ends a run and its busy processes"
ends_busy KILL 137
result $? "so does one that cannot be caught"

"$bench" --quick >"$dir/out" 2>"$dir/err" &
pid=$!
sleep 2
kill -TERM $pid
wait $pid
[ $? -eq 143 ]
result $? "a signal ends it and its job"

check "no process is left" tap_gone
[ -z "$(ls "$work/tmp")" ]
result $? "no file is left"

tap_end
