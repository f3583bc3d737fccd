#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_aq_bench_mpi.sh - aq-bench over the mpi conduit: a short run beside bare MPI, and that nothing is left behind. What
# the figures are is not judged here: a test machine is too busy for that.
# Prints TAP. Runs in a build folder; AQ_MODULE_DIR chooses the MPI.

bench=${1:-./aq-bench}
[ -e "${AQ_MODULE_DIR:-modules}/aq-bench-mpi.so" ] || { echo '1..0 # SKIP built without this MPI'; exit 0; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/tmp"
TMPDIR=$dir/tmp
export TMPDIR
number=0
failed=0

# report NAME STATUS - one TAP line
report()
{
    number=$((number + 1))
    if [ "$2" -eq 0 ]; then
        echo "ok $number - $1"
    else
        echo "not ok $number - $1"
        sed 's/^/# /' "$dir/out" "$dir/err"
        failed=1
    fi
}

# row NAME SIZE LIMIT - the table has it: figures, that limit, a ratio
row()
{
    grep -q "^$1  *$2 .* $3  *[0-9.]* [num]s .* [0-9]*\.[0-9]" "$dir/out"
}

echo "1..5"
: >"$dir/err"

"$bench" --list -c mpi >"$dir/out" && grep -q '^am_short .* MPI_Send, MPI_Recv *1\.15$' "$dir/out" &&
    grep -q '^am_short_flood .* 1\.20$' "$dir/out" && grep -q '^put .* 8 B .* 1\.30$' "$dir/out" &&
    grep -q '^get_stream .* 1 MiB .* 1\.05$' "$dir/out" && ! grep -q put_loss_1pct "$dir/out"
report "--list names the rows over MPI and their budgets" $?

timeout 100 "$bench" -c mpi --quick --no-peers --json "$dir/json" >"$dir/out" 2>"$dir/err" \
    --only am_short/0,am_short_flood,put/8,get/8,put_stream/1048576,get_stream/1048576,fadd/8,barrier/0,allreduce/8
report "a short run ends well" $?
row am_short - 'MPI_Send, MPI_Recv' && row am_short_flood - 'MPI_Isend, MPI_Wait[al]*' &&
    row put '8 B' 'MPI_Put, MPI_Win_flush' && row get '8 B' 'MPI_Get, MPI_Win_flush' &&
    row put_stream '1 MiB' 'MPI_[^ ]*, [^ ].*' && row fadd '8 B' 'MPI_Fetch_and_op, flush' && row barrier - MPI_Barrier &&
    row allreduce '8 B' MPI_Allreduce
report "its rows stand beside bare MPI" $?
[ "$(grep -c '"who": "aqueduct"' "$dir/json")" -ge 9 ] && ! grep -q -i -w -e nan -e inf "$dir/json" "$dir/out" &&
    ! grep -q '"median": 0[,}]' "$dir/json"
report "every row has a figure" $?

sleep 1
! pgrep -f -- "--report $dir/" >/dev/null && [ -z "$(ls "$dir/tmp")" ]
report "no process and no file is left" $?

exit $failed
