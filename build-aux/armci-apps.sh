# armci-apps.sh - what the test programs of apps over libarmci share: ranks under the mpirun of the
# MPI that libarmci was made for, and what a run must say. To be read in after tap.sh, in a build
# folder.
# SPDX-License-Identifier: BSD-3-Clause
#
# Owns   $work/run, what the last run has said

. "$AQ_SRC/build-aux/armci-mpi.sh"
# Launchers that start at the same moment race for one folder, named after the user.
export TMPDIR="$work/tmp"

# on_ranks RANKS CONDUIT RANKS_A_HOST COMMAND...: hosts are so in name only; 0: all ranks are on one
on_ranks()
{
    ranks=$1 conduit=$2 per_host=$3
    shift 3
    env GASNET_CONDUIT="$conduit" GASNET_SUPERNODE_MAXSIZE="$per_host" \
        timeout -k 5 200 "$MPIRUN" -n "$ranks" "$@"
}

# verified WORDS COMMAND...: it ends with 0, its last line says so, and some line has the words
verified()
{
    words=$1
    shift
    "$@" >"$work/run" 2>&1
    status=$?
    cat "$work/run"
    echo "exit status $status"
    [ $status = 0 ] && tail -n 1 "$work/run" | grep -q ': verified$' && grep -q "$words" "$work/run"
}

# refused WORDS COMMAND...: it ends with another status, and says the words
refused()
{
    words=$1
    shift
    "$@" >"$work/run" 2>&1
    status=$?
    cat "$work/run"
    [ $status != 0 ] && [ $status != 124 ] && grep -q "$words" "$work/run"
}
