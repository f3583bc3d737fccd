#!/bin/sh
# users.sh - what users of such runtimes suffer from, row by row, and our answer on one host.
# Runs in a build folder; AQ_SRC is the source folder. TAP. SPDX-License-Identifier: BSD-3-Clause

bin=tests/users
run=./gasnetrun
count=0
log=users.log.$$
trap 'rm -f "$log"' EXIT

# row STATUS TEXT: 0 passed, 77 skipped (the reason is in $why), else failed with the log
row()
{
    count=$((count + 1))
    case $1 in
    0) echo "ok $count - $2" ;;
    77) echo "ok $count - $2 # SKIP $why" ;;
    *) echo "not ok $count - $2"
       sed 's/^/# /' "$log" | tail -n 30 ;;
    esac
}

# says PATTERN STATUS COMMAND...: the command ends with STATUS and prints PATTERN once or more
says()
{
    pattern=$1 want=$2
    shift 2
    timeout 60 "$@" >"$log" 2>&1
    got=$?
    [ "$got" -eq "$want" ] && grep -q "$pattern" "$log"
}

# private COMMAND: a shell command in a mount name space of its own
private()
{
    if [ "$(id -u)" -eq 0 ]; then unshare -m sh -c "$1"; else unshare -rm sh -c "$1"; fi
}

job="$run -n 4 $bin/user_limits"

# --- refused single copy: matters where the whole address space is the segment ---

$bin/user_refuse $run -n 3 tests/conformance/bin/stress-par --seconds 2 >"$log" 2>&1
got=$?
why="the kernel takes no filter"
row $got "process_vm_readv refused: stress is right"
! grep -q '\*\*\*' "$log"
row $? "and nothing is said about it"
if [ "${AQ_CONFIG:-}" = everything ]; then
    for rma in sizes large source; do
        $bin/user_refuse $run -n 2 tests/conformance/bin/test_rma_$rma-par >"$log" 2>&1
        row $? "process_vm_readv refused: test_rma_$rma is right"
        AQ_SHM_CMA=off $bin/user_refuse --kill $run -n 2 tests/conformance/bin/test_rma_$rma-par >"$log" 2>&1
        row $? "AQ_SHM_CMA=off: test_rma_$rma is right and makes no such call"
    done
    echo "1..$count"
    exit 0
fi

# --- start-up limits ---

if private true 2>/dev/null; then
    for shm in 'size=64m' 'size=4k' 'ro'; do
        says '^done 96 MB' 0 sh -c "$(command -v unshare) $([ "$(id -u)" -eq 0 ] || echo -r) -m sh -c '
            mount -t tmpfs -o $shm none /dev/shm && exec $job 96'"
        row $? "/dev/shm mounted with $shm: segments of 96 MB a rank"
    done
    fake=$(mktemp -d)
    echo 268435456 >"$fake/memory.max"
    private "mount --bind $fake /sys/fs/cgroup && exec $run -n 2 $bin/user_limits 0" >"$log" 2>&1
    limit=$(sed -n 's/^limit //p' "$log")
    [ "${limit:-0}" -gt 4096 ] && [ "$limit" -lt 134217728 ]
    row $? "a cgroup limit of 256 MB bounds the segments of two ranks: $limit bytes"
    rm -rf "$fake"
else
    why="mount name spaces are not allowed here"
    row 77 "/dev/shm too small, a cgroup's limit"
fi
( ulimit -f 200000; exec $job 0 ) >"$log" 2>&1
limit=$(sed -n 's/^limit //p' "$log")
[ "${limit:-0}" -gt 4096 ] && [ "$limit" -le 51200000 ]
row $? "ulimit -f bounds the limit that clients are told: ${limit:-none} bytes"
( ulimit -v 2000000; exec $job 0 ) >"$log" 2>&1
limit=$(sed -n 's/^limit //p' "$log")
[ "${limit:-0}" -gt 4096 ] && [ "$limit" -le 512000000 ]
row $? "ulimit -v bounds the limit that clients are told: ${limit:-none} bytes"
says 'GASNET_MAX_SEGSIZE' 4 env GASNET_MAX_SEGSIZE=1MB/P $run -n 2 $bin/user_limits 2
row $? "a segment above the limit is refused with figures"
( ulimit -n 5; exec $job 1 ) >"$log" 2>&1
[ $? -ne 0 ] && grep -q 'raise ulimit -n' "$log" && ! grep -q '^done' "$log"
row $? "too few descriptors: a message, no job"

# --- page placement, children, threads, manners ---

for ranks in 1 3; do
    for program in placement children threads; do
        timeout 120 $run -n $ranks $bin/user_$program >"$log" 2>&1
        got=$?
        why=$(sed -n 's/.*# SKIP //p' "$log" | head -n 1)
        row $got "$program on $ranks ranks"
    done
done
timeout 60 $run -n 2 $bin/user_manners >"$log" 2>&1
row $? "starting a job changes nothing of the client's"

# --- oversubscription ---

for ranks in 16 64; do
    timeout 150 $run -n $ranks $bin/user_crowd >"$log" 2>&1
    row $? "$ranks ranks on $(nproc) cores keep pace, and waiting ranks leave the cores alone"
    grep -a '^# ' "$log" | head -n 8
done

# --- stall report ---

for case in barrier named until; do
    says 'rank 0 waits [0-9]* s in .*' 0 env AQ_STALL_REPORT=1 $run -n 2 $bin/user_stall $case 2.5
    row $? "stall report of a rank that waits: $case"
done
says 'rank 0 waits .* for rank 1; [0-9]* messages sent, [0-9]* handled' 0 \
    env AQ_STALL_REPORT=1 $run -n 2 $bin/user_stall barrier 2.5
row $? "it names whom the rank waits for, and counts"
says 'rank 0 waits' 0 env AQ_STALL_REPORT=0 AQ_STALL_SIGNAL=USR2 USER_STALL_SIGNAL=12 \
    $run -n 2 $bin/user_stall barrier 0.5
row $? "a signal asks for the report"
timeout 60 $run -n 2 $bin/user_stall barrier 0.3 >"$log" 2>&1 && ! grep -q waits "$log"
row $? "no report where nobody waits long"

# --- start-up of many ranks ---

for ranks in 64 200; do
    timeout 100 $bin/user_startup --run $run -n $ranks $bin/user_startup >"$log" 2>&1
    got=$?
    row $got "$ranks ranks: first barrier after $(sed -n 's/^first //p' "$log") s"
done
small=$(timeout 60 $run -n 8 $bin/user_startup 2>/dev/null | sed -n 's/^memory //p')
large=$(timeout 60 $run -n 200 $bin/user_startup 2>/dev/null | sed -n 's/^memory //p')
each=$(((${large:-999999} - ${small:-0}) / 192))
echo "memory of a rank: $small bytes with 8 ranks, $large with 200" >"$log"
[ $each -le 128 ]
row $? "a peer that is never spoken to costs $each bytes, at most 128"
echo "1..$count"
