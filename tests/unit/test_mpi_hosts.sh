#!/bin/sh
# test_mpi_hosts.sh - a job of the mpi conduit with ranks on one host and on another: both classes of pairs are looked
# at, and programs are right whatever follows for each. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
# Ranks with an odd number run in a process name space of their own each, which makes "hosts" of them: no memory is
# shared with them. The first process of a space outlives the rank, as a host does: what the rank leaves to end by
# itself would be killed with it. MPI goes over TCP on the loopback device, which knows nothing of that.

. "${AQ_SRC:?AQ_SRC is the source folder}/build-aux/tap.sh"
build=${AQ_BUILD:-$(pwd)}
bin=$build/tests/conformance/bin
if ! unshare --pid --fork true 2>/dev/null; then
    echo '1..0 # SKIP no right to make name spaces (as root they can be made)'
    exit 0
fi
cat >"$work/rank" <<'END'
#!/bin/sh
if [ $((${OMPI_COMM_WORLD_RANK:-$PMI_RANK} % 2)) = 1 ]; then
    exec unshare --pid --fork --kill-child --mount-proc "$0.first" "$@"
fi
exec "$@"
END
cat >"$work/rank.first" <<'END'
#!/bin/sh
"$@" &
wait $!
code=$?
while [ "$(cat /proc/[0-9]*/comm 2>/dev/null | grep -cvx -e rank.first -e cat -e grep)" != 0 ]; do sleep 0.05; done
exit $code
END
chmod +x "$work/rank" "$work/rank.first"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self
export UCX_TLS=tcp,self UCX_LOG_LEVEL=error
export GASNET_CONDUIT=mpi GASNET_SUPERNODE_MAXSIZE=1 AQ_LOG_LEVEL=info AQ_TEST_QUICK=1

# job MPI RANKS PROGRAM - it checked all that it had announced, all was right, and it ended well.
job()
{
    case $1 in
    openmpi) set -- "$1" "$3" mpirun.openmpi --oversubscribe -n "$2" ;;
    mpich) set -- "$1" "$3" mpiexec.mpich -n "$2" ;;
    esac
    module=$1 program=$2
    shift 2
    AQ_MODULE_DIR=$build/modules/$module timeout -k 5 60 "$@" "$work/rank" "$bin/$program" >"$work/job" 2>&1
    status=$?
    echo "# exit status $status" >>"$work/job"
    cat "$work/job"
    [ $status = 0 ] && [ "$(sed -n 's/^1\.\.//p' "$work/job")" = "$(grep -c '^ok ' "$work/job")" ] &&
        ! grep -q '^not ok' "$work/job"
}

for mpi in openmpi mpich; do
    if [ ! -e "$build/modules/$mpi/aq-mpi.so" ]; then
        skip "$mpi" "no module for it was built"
        continue
    fi
    for program in test_rma_sizes-par test_ad_order-seq test_nbi_crossing-seq; do
        check "$program, 4 ranks on 3 hosts, $mpi" job $mpi 4 $program
    done
    cp "$work/job" "$work/out"
    grep -q 'transfers on one host: ' "$work/job" && grep -q 'transfers between hosts: ' "$work/job"
    result $? "both classes of pairs have their own choice, $mpi"
    if [ $mpi = mpich ]; then # which has windows over TCP
        grep -q 'on one host, 8 bytes: get ' "$work/job" && grep -q 'between hosts, 8 bytes: get ' "$work/job"
        result $? "and their own measurement, $mpi"
    fi
done
check "no process is left" tap_gone
tap_end
