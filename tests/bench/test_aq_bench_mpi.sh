#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_aq_bench_mpi.sh - aq-bench over the mpi conduit: a short run beside bare MPI, and that nothing is left behind. What
# the figures are is not judged here: a test machine is too busy for that.
# Prints TAP. Runs in a build folder; AQ_MODULE_DIR chooses the MPI.

bench=${1:-./aq-bench}
[ -e "${AQ_MODULE_DIR:-modules}/aq-bench-mpi.so" ] || { echo '1..0 # SKIP built without this MPI'; exit 0; }
. "$(dirname "$0")/../../build-aux/tap.sh"
dir=$work
TMPDIR=$work/tmp
export TMPDIR

# row NAME SIZE LIMIT - the table has it: figures, that limit, a ratio
row()
{
    grep -q "^$1  *$2 .* $3  *[0-9.]* [num]s .* [0-9]*\.[0-9]" "$dir/out"
}

"$bench" --list -c mpi >"$dir/out" && grep -q '^am_short .* MPI_Send, MPI_Recv *1\.15$' "$dir/out" &&
    grep -q '^am_short_flood .* 1\.20$' "$dir/out" && grep -q '^put .* 8 B .* 1\.30$' "$dir/out" &&
    grep -q '^get_stream .* 1 MiB .* 1\.05$' "$dir/out" && ! grep -q put_loss_1pct "$dir/out"
result $? "--list names the rows over MPI and their budgets" "$dir/out" "$dir/err"

timeout 100 "$bench" -c mpi --quick --no-peers --json "$dir/json" >"$dir/out" 2>"$dir/err" \
    --only am_short/0,am_short_flood,put/8,get/8,put_stream/1048576,get_stream/1048576,fadd/8,barrier/0,allreduce/8
result $? "a short run ends well" "$dir/out" "$dir/err"
row am_short - 'MPI_Send, MPI_Recv' && row am_short_flood - 'MPI_Isend, MPI_Wait[al]*' &&
    row put '8 B' 'MPI_Put, MPI_Win_flush' && row get '8 B' 'MPI_Get, MPI_Win_flush' &&
    row put_stream '1 MiB' 'MPI_[^ ]*, [^ ].*' && row fadd '8 B' 'MPI_Fetch_and_op, flush' && row barrier - MPI_Barrier &&
    row allreduce '8 B' MPI_Allreduce
result $? "its rows stand beside bare MPI" "$dir/out" "$dir/err"
[ "$(grep -c '"who": "aqueduct"' "$dir/json")" -ge 9 ] && ! grep -q -i -w -e nan -e inf "$dir/json" "$dir/out" &&
    ! grep -q '"median": 0[,}]' "$dir/json"
result $? "every row has a figure" "$dir/out" "$dir/err"

# Open MPI makes no window over TCP for threads; what MPICH does is not changed by this
OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self timeout 100 "$bench" -c mpi --quick --no-peers --only put/8,fadd/8 >"$dir/out" 2>"$dir/err" &&
    { row put '8 B' 'MPI_Send, answer' && grep -q 'makes no window' "$dir/err" || row put '8 B' 'MPI_Put, MPI_Win_flush'; } &&
    grep -q '^fadd .* [num]s ' "$dir/out"
result $? "rows of an MPI that makes no window" "$dir/out" "$dir/err"

check "no process is left" tap_gone
[ -z "$(ls "$work/tmp")" ]
result $? "no file is left"

tap_end
