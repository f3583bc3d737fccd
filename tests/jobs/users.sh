#!/bin/sh
# users.sh - known problems of users of such runtimes, row by row, and this library's behaviour on one host.
# Runs in a build folder; AQ_SRC is the source folder. TAP. SPDX-License-Identifier: BSD-3-Clause

bin=tests/jobs
run=./gasnetrun
count=0
failed=0
log=users.log.$$
work=$(mktemp -d) || exit 1
chmod 755 "$work"
trap 'rm -rf "$log" "$work"' EXIT

# row STATUS TEXT: 0 passed, 77 skipped (the reason is in $why), else failed with the log
row()
{
    count=$((count + 1))
    case $1 in
    0) echo "ok $count - $2" ;;
    77) echo "ok $count - $2 # SKIP $why" ;;
    *) failed=$((failed + 1))
       echo "not ok $count - $2"
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

# --- refused single copy: for large collectives, and where the whole address space is the segment ---

# without_calls TEST: it is right where process_vm_readv is refused, and off makes no such call
without_calls()
{
    $bin/user_refuse $run -n 2 "tests/conformance/bin/$1-par" >"$log" 2>&1
    row $? "process_vm_readv refused: $1 is right"
    AQ_SHM_CMA=off $bin/user_refuse --kill $run -n 2 "tests/conformance/bin/$1-par" >"$log" 2>&1
    row $? "AQ_SHM_CMA=off: $1 is right and makes no such call"
}

$bin/user_refuse $run -n 3 tests/conformance/bin/stress-par --seconds 2 >"$log" 2>&1
got=$?
why="the kernel takes no filter"
row $got "process_vm_readv refused: stress is right"
! grep -q '\*\*\*' "$log"
row $? "and nothing is said about it"
without_calls test_coll_large
if [ "${AQ_CONFIG:-}" = everything ]; then
    for rma in sizes large source; do
        without_calls test_rma_$rma
    done
    echo "1..$count"
    exit $((failed > 0))
fi

# --- start-up limits ---

if private true 2>/dev/null; then
    for shm in 'size=64m' 'size=4k' 'ro'; do
        says '^done 96 MB' 0 sh -c "$(command -v unshare) $([ "$(id -u)" -eq 0 ] || echo -r) -m sh -c '
            mount -t tmpfs -o $shm none /dev/shm && exec $job 96'"
        row $? "/dev/shm mounted with $shm: segments of 96 MB a rank"
    done
    mkdir "$work/dev"
    private "mount --bind /dev $work/dev && mount -t tmpfs none /dev &&
        touch /dev/null /dev/urandom && mount --bind $work/dev/null /dev/null &&
        mount --bind $work/dev/urandom /dev/urandom && exec $job 96" >"$log" 2>&1
    row $? "no /dev/shm at all: segments of 96 MB a rank"
    for file in memory.max memory/memory.limit_in_bytes; do
        fake=$work/cgroup-${file##*/}
        mkdir -p "$(dirname "$fake/$file")"
        echo 268435456 >"$fake/$file"
        private "mount --bind $fake /sys/fs/cgroup && exec $run -n 2 $bin/user_limits 0" >"$log" 2>&1
        limit=$(sed -n 's/^limit //p' "$log")
        [ "${limit:-0}" -gt 4096 ] && [ "$limit" -lt 134217728 ]
        row $? "a cgroup's $file of 256 MB bounds the segments of two ranks: $limit bytes"
    done
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
# prlimit sets what "ulimit" names; -f in particular has another unit in each shell
says 'ERROR .* 96.0 MB asked for, the limit is .* ulimit -f leaves 94.0 MB .*raise it' 4 prlimit --fsize=100000000 $job 96
row $? "a segment above ulimit -f: figures and the remedy"
says 'ERROR .* 96.0 MB asked for, the limit is .* ulimit -v leaves .*raise it' 4 prlimit --as=200000000 $job 96
row $? "a segment above ulimit -v: figures and the remedy"
says 'FATAL ERROR .* no space for segments: ulimit -v leaves 0.0 MB .*raise it' 134 prlimit --as=62914560 $job 1
row $? "ulimit -v leaves no segment: figures and the remedy"
says 'ERROR .* [0-9]* MB .* file size limit of 1 MB; raise it with: ulimit -f' 1 prlimit --fsize=1000000 $job 1
row $? "ulimit -f leaves not even the queues: figures and the remedy"
says 'ERROR .* cannot map [0-9]* MB .*ulimit -v' 1 prlimit --as=20000000 $job 1
row $? "ulimit -v leaves not even the queues: figures and the remedy"
for files in 4 5; do
    ! says '^done' 0 prlimit --nofile=$files $job 1 && grep -q 'raise ulimit -n' "$log"
    row $? "$files descriptors: a message, no job"
    ! says '^done' 0 env GASNET_PSHM_NODES=4 prlimit --nofile=$files $bin/user_limits 1 && grep -q 'raise ulimit -n' "$log"
    row $? "$files descriptors, started without gasnetrun: a message, no job"
done
says '^done 1 MB' 0 prlimit --nofile=20 $run -n 64 $bin/user_limits 1
row $? "20 descriptors are enough for 64 ranks"
why="the limit on processes does not bind root, and setpriv is missing"
if [ "$(id -u)" -ne 0 ]; then
    user=
elif command -v setpriv >/dev/null; then
    user="setpriv --reuid=54321 --regid=54321 --clear-groups"
else
    user=no
fi
if [ "$user" = no ]; then
    row 77 "too few processes"
else
    cp $bin/user_limits "$work/program"
    says 'only [0-9] of 8 ranks could be started: .*ulimit -u says 3' 1 \
        env GASNET_PSHM_NODES=8 $user prlimit --nproc=3 "$work/program" 1
    row $? "too few processes: figures and the remedy"
fi
if [ -n "$user" ] && [ "$user" != no ] && $user unshare -rm true 2>/dev/null; then
    says '^done 96 MB' 0 env GASNET_PSHM_NODES=4 $user unshare -rm sh -c \
        "mount -t tmpfs -o ro none /dev/shm && exec $work/program 96"
    row $? "the same as a plain user, /dev/shm mounted with ro"
fi

# --- a client that closes descriptors which it has not opened ---

for fewest in 2 40; do
    env GASNET_CONDUIT=udp GASNET_SUPERNODE_MAXSIZE=1 timeout 10 $run -n $fewest tests/jobs/exit_case-par 46 >"$log" 2>&1
    [ $? -eq 134 ] && [ "$(grep -c '^\*\*\* ' "$log")" -eq 1 ] && grep -q 'rank 1, has been closed' "$log"
    row $? "udp, one of $fewest ranks closes descriptors 3 to 1023: one message, at once"
done

# --- another user of the host, who takes the names that a job might want ---

if [ "$user" != no ]; then
    cp $bin/user_squat "$work/squat"
    $user "$work/squat" 20 >"$work/squatted" 2>&1 &
    squat=$!
    says '^done 1 MB' 0 env GASNET_CONDUIT=udp GASNET_SUPERNODE_MAXSIZE=1 $run -n 16 $bin/user_limits 1
    good=$?
    kill -TERM $squat
    wait $squat
    cat "$work/squatted" >>"$log"
    [ $good -eq 0 ] && grep -q '^seen [1-9][0-9]* taken 0$' "$work/squatted"
    row $? "who reads the names of a job's sockets cannot take those that it will want"
else
    why="no command here that runs a program as another user"
    row 77 "who reads the names of a job's sockets"
fi

# --- page placement, children, threads, side effects ---

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
for program in manners children; do
    env GASNET_PSHM_NODES=2 timeout 60 $bin/user_$program >"$log" 2>&1
    row $? "$program of a program that starts its ranks itself"
    why="no mpirun here that takes --oversubscribe"
    if mpirun --allow-run-as-root --oversubscribe -n 1 true >/dev/null 2>&1; then
        timeout 60 mpirun --allow-run-as-root --oversubscribe -n 2 $bin/user_$program >"$log" 2>&1
        row $? "$program under mpirun"
    else
        row 77 "$program under mpirun"
    fi
done

# --- stall report ---

whom='for rank 1; [0-9]* messages sent, [0-9]* handled'
stall() # AQ_NO_OVERRIDES CASE TEXT
{
    says "rank 0 waits [0-9]* s in $3" 0 env AQ_NO_OVERRIDES=$1 AQ_STALL_REPORT=0.5 $run -n 2 $bin/user_stall $2 1.6
    row $? "stall report of a rank that waits: $2, $([ "$1" -eq 0 ] && echo native || echo reference) path"
}
stall 0 until GASNET_BLOCKUNTIL
stall 0 barrier "gex_Event_Wait (gex_Coll_BarrierNB) $whom"
stall 0 named "gasnet_barrier_wait $whom"
stall 0 space "space for a message $whom"
stall 1 barrier "gex_Event_Wait (gex_Coll_BarrierNB) $whom"
stall 1 named "gasnet_barrier_wait $whom"
stall 1 get "gex_RMA_GetBlocking $whom"
stall 1 event "gex_Event_Wait (gex_RMA_GetNB) $whom"
stall 1 nbi "gex_NBI_Wait $whom"
# of three ranks the last is missing: its number is not that of the member in the team, whose order is the other
missing() # CONDUIT, then CASE and CALL in turn
{
    conduit=$1
    shift
    while [ $# -gt 0 ]; do
        says "rank 0 waits [0-9]* s in gex_Event_Wait (gex_Coll_$2) for rank 2; " 0 env \
            GASNET_SUPERNODE_MAXSIZE=$([ $conduit = udp ] && echo 1 || echo 0) AQ_STALL_REPORT=0.3 \
            $run -c $conduit -n 3 $bin/user_stall $1 1
        row $? "stall report of a rank that waits: $1, $conduit"
        shift 2
    done
}
for conduit in smp udp; do
    missing $conduit broadcast BroadcastNB large-broadcast-from-0 BroadcastNB reduce ReduceToOneNB \
        reduce-all ReduceToAllNB large-reduce-all ReduceToAllNB team-barrier BarrierNB
done
# In two levels, two of four ranks in each neighborhood, the last is missing. A report names a rank that may wait, too: whom
# they name, one after the other, from any rank that reports, ends at the one that does not.
trail() # CASE
{
    timeout 60 env GASNET_SUPERNODE_MAXSIZE=2 AQ_STALL_REPORT=0.5 $run -c udp -n 4 $bin/user_stall $1 1.6 >"$log" 2>&1 &&
        awk '/rank [0-9]+ waits .* in gex_Event_Wait .* for rank [0-9]+;/ {
                sub(/.*: rank /, ""); from = $1; sub(/.* for rank /, ""); to[from] = $1 + 0
            }
            END {
                if (!(0 in to) || 3 in to)
                    exit 1
                for (from in to) {
                    at = from
                    for (step = 0; step < 4 && at in to; step++)
                        at = to[at]
                    if (at != 3)
                        exit 1
                }
            }' "$log"
    row $? "stall reports lead to the missing rank, two levels: $1"
}
for case in broadcast large-broadcast-from-0 reduce large-reduce reduce-all large-reduce-all team-barrier; do trail $case; done
says 'rank 0 waits' 0 env AQ_STALL_REPORT=0 AQ_STALL_SIGNAL=USR2 USER_STALL_SIGNAL=12 \
    $run -n 2 $bin/user_stall barrier 0.5
row $? "a signal asks for the report"
timeout 60 $run -n 2 $bin/user_stall barrier 0.3 >"$log" 2>&1 && ! grep -q waits "$log"
row $? "no report where nobody waits long"
echo "1..$count"
exit $((failed > 0))
