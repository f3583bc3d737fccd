#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# with-slurm.sh - run a command beside a Slurm of its own: one node, this host, in a temporary folder.
#
#   with-slurm.sh COMMAND...       COMMAND sees SLURM_CONF and can use `srun -n 4 --mpi=pmix ./prog`
#   with-slurm.sh --check          exit 0 if what is needed is installed; else say what is not, exit 77
#
# Needs root (slurmd insists), munge, slurm-wlm (Debian). Leaves nothing: daemons are stopped by the
# process numbers they wrote, the folder is removed. Exit status: COMMAND's; 77 if Slurm cannot run here.
set -u
PATH=$PATH:/usr/sbin:/sbin

missing() { echo "with-slurm: $*"; exit 77; }
for tool in munged slurmctld slurmd srun scontrol; do
    command -v $tool >/dev/null || missing "$tool is not installed (Debian: slurm-wlm munge)"
done
ls /usr/lib/*/slurm*/mpi_pmix.so >/dev/null 2>&1 || missing "Slurm has no mpi/pmix (Debian: slurm-wlm-basic-plugins)"
[ "$(id -u)" = 0 ] || missing "must be run by root"
[ "${1:-}" = --check ] && exit 0

dir=$(mktemp -d /tmp/aq-slurm.XXXXXX)
chmod 755 "$dir"
mkdir "$dir/munge" "$dir/state" "$dir/spool"
chmod 700 "$dir/munge"

stop() {
    # of the folder's own daemons only; slurmd first, so that it kills its steps
    for name in slurmd slurmctld munged; do
        file=$dir/$name.pid
        [ $name = munged ] && file=$dir/munge/munged.pid
        [ -s "$file" ] || continue
        pid=$(cat "$file")
        kill "$pid" 2>/dev/null
        i=0
        while kill -0 "$pid" 2>/dev/null && [ $i -lt 50 ]; do sleep 0.1; i=$((i + 1)); done
        kill -9 "$pid" 2>/dev/null
    done
    if [ -n "${AQ_SLURM_KEEP:-}" ]; then echo "with-slurm: kept $dir" >&2; else rm -rf "$dir"; fi
}
trap stop EXIT
trap 'exit 129' HUP INT TERM

# two free ports, derived from the process number, so that two runs do not collide
port=$((20000 + $$ % 20000))
cpus=$(nproc)
host=$(hostname -s)
cat >"$dir/slurm.conf" <<CONF
ClusterName=aqtest
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/munge.sock
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
TmpFS=$dir
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
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
NodeName=$host NodeAddr=127.0.0.1 CPUs=$cpus State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE OverSubscribe=FORCE:64 State=UP
CONF
export SLURM_CONF="$dir/slurm.conf"

dd if=/dev/urandom of="$dir/munge/key" bs=1024 count=1 2>/dev/null
chmod 400 "$dir/munge/key"
munged --force --socket="$dir/munge/munge.sock" --key-file="$dir/munge/key" \
    --pid-file="$dir/munge/munged.pid" --log-file="$dir/munge/log" --seed-file="$dir/munge/seed" \
    >"$dir/munged.out" 2>&1 || { cat "$dir/munged.out" >&2; missing "munged does not start"; }
# munge's folder must be closed to others, its socket open to them
chmod 711 "$dir/munge"
slurmctld -i >"$dir/slurmctld.out" 2>&1 || { cat "$dir/slurmctld.out" "$dir/slurmctld.log" >&2; missing "slurmctld does not start"; }
slurmd >"$dir/slurmd.out" 2>&1 || { cat "$dir/slurmd.out" "$dir/slurmd.log" >&2; missing "slurmd does not start"; }
i=0
until srun -n 1 --immediate=5 --mpi=none true 2>/dev/null; do
    i=$((i + 1))
    if [ $i -gt 20 ]; then
        tail -n 20 "$dir/slurmctld.log" "$dir/slurmd.log" >&2
        missing "the node does not come up"
    fi
    sleep 0.5
done

"$@"
