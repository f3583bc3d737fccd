# tap.sh - what the shell programs of the tests share: TAP, a folder of their own, and whether something they started is
# still there. To be read in by `. "$AQ_SRC/build-aux/tap.sh"`, or by a path from $0.
# SPDX-License-Identifier: BSD-3-Clause
#
# Owns   $work, a folder that goes when the program ends, with $work/tmp for TMPDIR; $n and $failed; AQ_TAP_MARK in the
#        environment of all that is started
# Ends   the program's last line is tap_end, which prints the plan

n=0
failed=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
mkdir "$work/tmp" || exit 1
AQ_TAP_MARK=$$-${work##*/}
export AQ_TAP_MARK

# result STATUS NAME [FILE...] - one test; of what failed, the ends of the files ($work/out and $work/err unless named) tell why
result()
{
    tap_status=$1
    tap_name=$2
    shift 2
    n=$((n + 1))
    if [ "$tap_status" = 0 ]; then
        echo "ok $n - $tap_name"
        return
    fi
    echo "not ok $n - $tap_name"
    failed=1
    [ $# -gt 0 ] || set -- "$work/out" "$work/err"
    for tap_file; do
        if [ -f "$tap_file" ]; then tail -n "${AQ_TAP_LINES:-25}" "$tap_file" | sed 's/^/# /'; fi
    done
}

# skip NAME WHY
skip()
{
    n=$((n + 1))
    echo "ok $n - $1 # SKIP $2"
}

# check NAME COMMAND... - a test: the command ends with 0; what it says is in $work/out
check()
{
    tap_check=$1
    shift
    "$@" >"$work/out" 2>&1
    result $? "$tap_check" "$work/out"
}

# tap_left - the processes that this program has started and that still run, one a line. They are known by their
# environment, which mpirun, launchers on other hosts' names and ranks inherit, whatever they are called.
tap_left()
{
    env -u AQ_TAP_MARK grep -l -z -x -F "AQ_TAP_MARK=$AQ_TAP_MARK" /proc/[0-9]*/environ 2>/dev/null |
        while IFS=/ read -r _ _ pid _; do
            [ ! -r "/proc/$pid/cmdline" ] || echo "$pid $(tr '\0' ' ' <"/proc/$pid/cmdline")"
        done
}

# tap_gone - none of them is left, or within 10 s none
tap_gone()
{
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        [ -n "$(tap_left)" ] || return 0
        sleep 0.5
    done
    tap_left
    return 1
}

# tap_end - the plan, and the exit status
tap_end()
{
    echo "1..$n"
    exit "$failed"
}
