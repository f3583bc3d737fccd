#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# with-nodes.sh - run a command beside a Slurm of its own with several nodes, each in namespaces of its own.
#
#   with-nodes.sh N COMMAND...   COMMAND runs at the desk, sees SLURM_CONF and can use
#                                `srun -N 2 --mpi=pmix ./prog`; AQ_HOSTS_DIR is set too, so that
#                                `ssh h1 ...` and hosts.sh work as tests/jobs/hosts.sh says
#   AQ_NODES_AT=room with-nodes.sh N COMMAND...
#                                COMMAND runs in the room, from where it sees all processes and
#                                starts what it likes by `hosts.sh run desk srun ...`
#   with-nodes.sh --check        exit 0 if what is needed is installed; else say what is not, exit 77
#
# Nodes are h1..hN, the hosts of tests/jobs/hosts.sh; controller and munge are at the desk. Needs root
# (slurmd insists), munge, slurm-wlm (Debian). Leaves nothing: the hosts end with all that runs there, the
# folder is removed. Exit status: COMMAND's; 77 if Slurm cannot run here.
set -u
PATH=$PATH:/usr/sbin:/sbin
self=$(cd "$(dirname "$0")" && pwd)/${0##*/}
hosts=${self%/*}/hosts.sh

missing() { echo "with-nodes: $*"; exit 77; }

check()
{
    for tool in munged slurmctld slurmd srun scontrol; do
        command -v $tool >/dev/null || missing "$tool is not installed (Debian: slurm-wlm munge)"
    done
    ls /usr/lib/*/slurm*/mpi_pmix.so >/dev/null 2>&1 ||
        missing "Slurm has no mpi/pmix (Debian: slurm-wlm-basic-plugins)"
    [ "$(id -u)" = 0 ] || missing "must be run by root"
}

write_conf() # number of nodes $1
{
    cat >"$dir/slurm.conf" <<CONF
ClusterName=aqnodes
SlurmctldHost=desk
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/munge.sock
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool.%n
TmpFS=$dir/tmp.%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=pmix
ReturnToService=2
KillWait=5
InactiveLimit=0
NodeName=h[1-$1] CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE OverSubscribe=FORCE:64 State=UP
CONF
}

# in the room, from where every host can be reached
inside() # number of nodes $1, command
{
    count=$1
    shift
    "$hosts" run desk munged --force --socket="$dir/munge/munge.sock" --key-file="$dir/munge/key" \
        --pid-file="$dir/munge/munged.pid" --log-file="$dir/munge/log" --seed-file="$dir/munge/seed" \
        >"$dir/munged.out" 2>&1 || { cat "$dir/munged.out" >&2; missing "munged does not start"; }
    # munge's folder must be closed to others, its socket open to them
    chmod 711 "$dir/munge"
    "$hosts" run desk slurmctld -i >"$dir/slurmctld.out" 2>&1 ||
        { cat "$dir/slurmctld.out" "$dir/slurmctld.log" >&2; missing "slurmctld does not start"; }
    for n in $(seq "$count"); do
        mkdir "$dir/tmp.h$n"
        "$hosts" run "h$n" slurmd >"$dir/slurmd.out" 2>&1 ||
            { cat "$dir/slurmd.out" "$dir/slurmd.h$n.log" >&2; missing "slurmd does not start on h$n"; }
    done
    i=0
    until "$hosts" run desk srun -N "$count" --immediate=2 --mpi=none true 2>/dev/null; do
        if [ $((i += 1)) -gt 40 ]; then
            tail -n 20 "$dir"/slurmctld.log "$dir"/slurmd.*.log >&2
            missing "the nodes do not come up"
        fi
        sleep 0.2
    done
    "$hosts" run "${AQ_NODES_AT:-desk}" "$@"
}

case ${1:-} in
--check) check; exit 0 ;;
-inside) shift; dir=${SLURM_CONF%/*}; inside "$@"; exit ;;
esac
[ $# -ge 2 ] || { sed -n '3,17s/^# \{0,1\}//p' "$self" >&2; exit 1; }
check
dir=$(mktemp -d /tmp/aq-slurm.XXXXXX)
trap 'if [ -n "${AQ_SLURM_KEEP:-}" ]; then echo "with-nodes: kept $dir" >&2; else rm -rf "$dir"; fi' EXIT
trap 'exit 129' HUP INT TERM
chmod 755 "$dir"
mkdir "$dir/munge" "$dir/state"
chmod 700 "$dir/munge"
dd if=/dev/urandom of="$dir/munge/key" bs=1024 count=1 2>/dev/null
chmod 400 "$dir/munge/key"
write_conf "$1"
SLURM_CONF=$dir/slurm.conf
export SLURM_CONF
AQ_HOSTS_AT=room "$hosts" with "$1" "$self" -inside "$@" &
wait $!
