#!/bin/sh
# launch.sh - how udp programs are started: ./prog N, amudprun, gasnetrun_udp, GASNET_SPAWNFN=L, S and C; and how
# they end. ssh is a script that runs its command here; with the right to make namespaces, other hosts too. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
#   launch.sh      AQ_BUILD is the build folder, AQ_SRC the source folder

set -u
build=${AQ_BUILD:-$PWD}
prog=$build/tests/jobs/launch_client
run=$build/amudprun
. "${AQ_SRC:-$(dirname "$0")/../..}/build-aux/tap.sh"
for v in SPAWNFN SSH_SERVERS SSH_CMD SSH_OPTIONS SSH_NODEFILE SSH_KEEPDUP CSPAWN_CMD CSPAWN_SERVERS MASTERIP WORKERIP WORKER_RANK \
    NODEFILE TMPDIR PREFIX NETWORKDEPTH SPAWN_VERBOSE VERBOSEENV UDP_SPAWNER CONDUIT; do
    unset $v GASNET_$v AMUDP_$v
done
unset PBS_NODEFILE PE_HOSTFILE SSS_HOSTLIST LSB_HOSTS LSB_MCPU_HOSTS OAR_NODEFILE SLURM_JOB_NODELIST SLURM_NODELIST

if [ ! -x "$prog" ]; then
    echo "1..0 # SKIP no udp conduit in this build"
    exit 0
fi

# ends STATUS NAME COMMAND...: it does, and is quick about it
ends() {
    want=$1 name=$2
    shift 2
    timeout -s KILL 30 "$@" >"$work/out" 2>"$work/err" </dev/null
    got=$?
    [ "$got" = "$want" ]
    result $? "$name$([ "$got" = "$want" ] || echo " (ended with $got)")"
}

# says FILE TEXT NAME: the last command's out or err has the text
says() {
    grep -qF -- "$2" "$work/$1"
    result $? "$3"
}

# ranks N WORDS NAME: each of N ranks has said just these words
ranks() {
    good=0
    for r in $(seq 0 $(($1 - 1))); do
        grep -qxF -- "rank $r of $1:$2" "$work/out" || good=1
    done
    [ "$(wc -l <"$work/out")" = "$1" ] || good=1
    result $good "$3"
}

# ends_by SIGNAL NUMBER [IGNORE]: sent to the process that the user starts, which dies of it, also where it was ignored
# at the start, as in a background job of a script
ends_by() {
    disposition=${3:-DEFAULT}
    : >"$work/out" # what is counted below is this job's
    GASNET_SPAWNFN=L perl -e '$SIG{INT} = $SIG{QUIT} = shift; exec @ARGV' "$disposition" "$prog" 3 stay 20 >"$work/out" 2>"$work/err" </dev/null &
    pid=$!
    for i in $(seq 100); do
        [ "$(wc -l <"$work/out")" = 3 ] && break
        sleep 0.05
    done
    kill -"$2" $pid
    wait $pid 2>/dev/null
    got=$?
    [ $got = $((128 + $2)) ]
    result $? "SIG$1 to the first process, at the start $disposition: it dies of that (status $got)"
    gone "no rank is left after it"
}

gone() {
    for i in $(seq 100); do
        pgrep -f "^$prog" >"$work/out" 2>/dev/null || break
        sleep 0.05
    done
    ! pgrep -f "^$prog" >"$work/out" 2>&1
    result $? "$1"
}

# --- ./prog N ---
ends 255 "no number of ranks: status 255" "$prog"
says err "usage: " "and the usage"
says err "GASNET_SPAWNFN=L" "and an example"
ends 1 "a word for the number: status 1" "$prog" four
says err "'four' is no number of ranks" "and it is named"
ends 1 "no ranks: status 1" "$prog" 0
ends 1 "too many ranks: status 1" "$prog" 1000000
ends 0 "GASNET_SPAWNFN=L ./prog 3 words" env GASNET_SPAWNFN=L "$prog" 3 one 'two words' '' '*'
ranks 3 " [one] [two words] [] [*]" "the ranks see their arguments without the number"
ends 0 "GASNET_PSHM_NODES beside it" env GASNET_SPAWNFN=L GASNET_PSHM_NODES=2 "$prog" 3 one
ranks 3 " [one]" "three ranks, who see their arguments without the number"
ends 0 "AMUDP_SPAWNFN=l" env AMUDP_SPAWNFN=l "$prog" 2
ranks 2 "" "two ranks"
ends 0 "SPAWNFN=L" env SPAWNFN=L "$prog" 1
ranks 1 "" "one rank"
ends 0 "spellings that contradict each other" env GASNET_SPAWNFN=L SPAWNFN=C "$prog" 1
says err "GASNET_SPAWNFN=L is used; SPAWNFN=C contradicts it" "are told"
ends 1 "SPAWNFN=X: status 1" env SPAWNFN=X "$prog" 2
says err "write L (this host), S (ssh) or C" "and what there is"
ends 0 "SPAWNFN=L sets GASNET_MASTERIP" env SPAWNFN=L "$prog" 2 env GASNET_MASTERIP
ranks 2 " [env] [GASNET_MASTERIP] is 127.0.0.1" "to this host"
ends 0 "an empty GASNET_MASTERIP" env GASNET_MASTERIP= SPAWNFN=L "$prog" 2 env GASNET_MASTERIP
ranks 2 " [env] [GASNET_MASTERIP] is " "stays empty"

# --- how a job ends ---
export GASNET_SPAWNFN=L
ends 5 "all call gasnet_exit(5)" "$prog" 3 all 5
ends 4 "all return 4 from main" "$prog" 3 allreturn 4
ends 6 "rank 1 calls gasnet_exit(6)" "$prog" 3 exit 6
ends 3 "rank 1 calls exit(3)" "$prog" 3 libc 3
ends 8 "rank 1 returns 8 from main" "$prog" 3 return 8
ends 255 "rank 1 gets SIGSEGV" "$prog" 3 kill 11
ends 1 "rank 1 gets SIGINT" "$prog" 3 kill 2
ends 1 "rank 1 gets SIGTERM" "$prog" 3 kill 15
ends 255 "rank 1 gets SIGKILL" "$prog" 3 kill 9
for signal in 'TERM 15' 'PIPE 13' 'QUIT 3'; do
    ends 1 "rank 1 gets SIG${signal% *} while rank 0 ends with 0" "$prog" 2 late "${signal#* }"
    says err "Caught a signal (proc 1): SIG${signal% *}" "and says so"
done
ends 1 "a spawner that does not exist" env GASNET_UDP_SPAWNER=none "$prog" 2
says err "GASNET_UDP_SPAWNER=none is none of fork, ssh, pmi, pmix and mpi" "is named"
ends 1 "a spawner that is not there" env GASNET_UDP_SPAWNER=pmi "$prog" 2
says err "GASNET_UDP_SPAWNER=pmi, but no launcher offers PMI or PMIx" "is missed"
ends 1 "a limit of files below the memory that ranks share" sh -c "ulimit -f 4; exec '$prog' 2"
says err "raise the file size limit: ulimit -f unlimited" "is to be raised"
for network in 1.2.3.4/ 1.2.3.4/abc 192.0.2.0/24x 1.2.3.4/4294967296; do
    ends 1 "GASNET_UDP_INTERFACE=$network" env GASNET_SUPERNODE_MAXSIZE=1 GASNET_UDP_INTERFACE=$network "$prog" 2
    says err "GASNET_UDP_INTERFACE='$network' is neither an interface nor an address nor a network" "is none of these"
done
unset GASNET_SPAWNFN
ends_by INT 2
ends_by TERM 15
ends_by HUP 1
ends_by QUIT 3
ends_by INT 2 IGNORE
ends_by QUIT 3 IGNORE
ends_by KILL 9

# --- amudprun ---
ends 0 "amudprun -np 2 -spawn L" "$run" -np 2 -spawn L "$prog" a -b
ranks 2 " [a] [-b]" "two ranks, their arguments"
ends 0 "amudprun -n 2" env GASNET_SPAWNFN=L "$run" -n 2 "$prog"
ends 0 "amudprun -N 2 -v" env GASNET_SPAWNFN=L "$run" -N 2 -v "$prog"
says err "starting 2 ranks" "-v tells what is done"
ends 0 "amudprun -depth 77" "$run" -np 1 -depth 77 -spawn l -- "$prog" env GASNET_NETWORKDEPTH
ranks 1 " [env] [GASNET_NETWORKDEPTH] is 77" "is GASNET_NETWORKDEPTH"
ends 0 "amudprun -E NAME=TEXT" "$run" -np 2 -spawn L -E 'AQ_WORD=a=b,c' "$prog" env AQ_WORD
ranks 2 " [env] [AQ_WORD] is a=b,c" "sets the variable"
ends 0 "amudprun -E NAMES" env AQ_WORD=q "$run" -np 1 -spawn L -E AQ_WORD,HOME "$prog" env AQ_WORD
ranks 1 " [env] [AQ_WORD] is q" "lets them be"
for wrong in A-B=1 =1 A,B=1; do
    ends 1 "amudprun -E $wrong" "$run" -np 1 -spawn L -E "$wrong" "$prog"
    says err "-E " "names the option"
done
ends 0 "amudprun -h" "$run" -h
says out "usage: amudprun -np N" "shows its options"
ends 1 "amudprun without a number" "$run" "$prog"
says err "say how many ranks" "says so"
ends 1 "amudprun without a program" "$run" -np 2
ends 1 "amudprun -np two" "$run" -np two "$prog"
ends 1 "amudprun --wrong" "$run" --wrong -np 2 "$prog"
says err "unknown option '--wrong'" "names the option"
ends 1 "amudprun -spawn X" "$run" -np 2 -spawn X "$prog"
ends 255 "amudprun: a rank that is killed" env GASNET_SPAWNFN=L "$run" -np 3 "$prog" kill 9
ends 7 "amudprun: gasnet_exit(7)" env GASNET_SPAWNFN=L "$run" -np 3 "$prog" exit 7
ends 1 "the default is ssh, which needs hosts" "$run" -np 2 "$prog"
says err "GASNET_SSH_SERVERS='host1 host2 ...', or GASNET_SPAWNFN=L" "the message names the variables"
ends 1 "./prog 2 likewise" "$prog" 2
says err "GASNET_SPAWNFN=L" "with the same message"
ends 0 "gasnetrun_udp -n 2 without hosts stays here" "$build/gasnetrun_udp" -n 2 "$prog"
ranks 2 "" "two ranks"
mkdir -p "$work/prefix/bin"
printf '#!/bin/sh\necho "$0" "$@"\n' >"$work/prefix/bin/amudprun"
chmod +x "$work/prefix/bin/amudprun"
ends 0 "GASNET_PREFIX names the launcher" env GASNET_PREFIX="$work/prefix" "$prog" 3 x 'y z'
says out "$work/prefix/bin/amudprun -np 3 -spawn S -- $prog x y z" "which gets the command"

# --- what all ranks find wrong is said by one ---
ends 134 "a conduit that is not there" "$build/gasnetrun" -c none -n 8 "$prog"
says err "GASNET_CONDUIT asks for the conduit 'none', which this program's library does not hold" "is named"
[ "$(grep -c "does not hold" "$work/err")" = 1 ]
result $? "by one rank of the eight"


# complains VARIABLE=VALUE TEXT: a job with it ends at once; one line says TEXT, whatever the number of ranks
complains() {
    ends 134 "$1: status 134" env GASNET_SUPERNODE_MAXSIZE=1 "$1" "$build/gasnetrun_udp" -n 3 "$prog"
    says err "$2" "says: $2"
    [ "$(wc -l <"$work/err")" = 1 ]
    result $? "once"
}
complains GASNET_FAULT_RATE=1e20 '"1e20", which is out of range; it must be from 0 to 1'
complains GASNET_UDP_MTU=7 'it must be 0, or from 1232 to 65504'
complains GASNET_HOST_TIMEOUT=nan 'from 0 to 1000000s'
complains GASNET_NO_CATCH_SIGNAL=SGEV "'SGEV' is not a signal; write for instance SIGSEGV,bus,11, or *"
complains GASNET_FREEZE_SIGNAL=STOP "GASNET_FREEZE_SIGNAL=STOP is not a signal that can be caught"
complains AQ_UDP_FAULTS=drop=nan "'drop=nan' is not a probability from 0 to 1"
complains AQ_UDP_FAULTS=delay=1e99s "'delay=1e99s' is not a time from 0 to 60s"
complains AQ_UDP_FAULTS=seed=x "'seed=x' is not a whole number"

# --- lists of hosts ---
ends 0 "gasnetrun_udp -t -H a,b:2 -n 4" "$build/gasnetrun_udp" -t -n 4 -H a,b:2 "$prog"
says err "host b: ranks 2-3" "places two there"
says err "host a: ranks 0-1" "and what is left on the other"
ends 1 "-N 4 on two hosts" env GASNET_SSH_SERVERS='a b' "$build/gasnetrun_udp" -n 8 -N 4 "$prog"
says err "GASNET_SSH_SERVERS names 2 hosts, -N asks for 4" "says who names how many"
printf '# ours\nh1\n\nh2 slots=3\n' >"$work/hosts"
ends 0 "--hostfile" "$build/gasnetrun_udp" -t -n 4 --hostfile "$work/hosts" "$prog"
says err "host h1: rank 0" "one rank on the first"
says err "host h2: ranks 1-3" "three on the second"
ends 1 "a file that is not there" "$build/gasnetrun_udp" -n 4 -hostfile "$work/none" "$prog"
says err "cannot read $work/none" "is named"

# --- SPAWNFN=S: the remote shell is a script, the hosts are this one ---
cat >"$work/remote" <<'END'
#!/bin/sh
while [ $# -gt 2 ]; do shift; done
echo "$1" >>"${0%/*}/hosts-asked"
exec sh -c "$2"
END
chmod +x "$work/remote"
export SSH_CMD="$work/remote"
ends 0 "SSH_SERVERS='h1 h2' ./prog 4" env SSH_SERVERS='h1 h2' LAUNCH_TEST='of the master' "$prog" 4 env LAUNCH_TEST
ranks 4 " [env] [LAUNCH_TEST] is of the master" "four ranks see the master's environment"
[ "$(sort "$work/hosts-asked" | tr '\n' ' ')" = "h1 h2 " ]
result $? "on these hosts"
rm -f "$work/hosts-asked"
ends 0 "a name for each worker; more than that are ignored" env AMUDP_SSH_SERVERS='h1,h1;h2/h3:h4' "$run" -np 3 "$prog" x
ranks 3 " [x]" "three ranks"
[ "$(sort "$work/hosts-asked" | tr '\n' ' ')" = "h1 h2 " ]
result $? "on two hosts"
ends 9 "gasnet_exit(9) on another host" env SSH_SERVERS='h1 h2' "$run" -np 2 "$prog" exit 9
ends 255 "a rank that is killed on another host" env SSH_SERVERS='h1 h2' "$run" -np 2 "$prog" kill 9
ends 0 "gasnetrun_udp -H h1,h2" env GASNET_SSH_CMD="$work/remote" "$build/gasnetrun_udp" -H h1,h2 -n 2 "$prog"
ranks 2 "" "two ranks"
ends 0 "gasnetrun_udp with GASNET_SPAWNFN=L and hosts" env GASNET_SPAWNFN=L SSH_SERVERS='no.such.host' "$build/gasnetrun_udp" -n 2 "$prog"
unset SSH_CMD

# a remote shell that talks and stays
cat >"$work/talks" <<'END'
#!/bin/sh
head -c 100000 /dev/zero | tr '\0' x
exec sleep 61.8
END
chmod +x "$work/talks"
ends 1 "a host that prints much and starts no agent" env SSH_CMD="$work/talks" "$build/gasnetrun_udp" -H h1,h2 -n 2 "$prog"
says err "prints more than 65536 bytes when one logs in, and no agent answers" "is named"
! pgrep -f "^sleep 61.8" >"$work/out"
result $? "and its remote shell is ended"

# background jobs of a shell without job control
printf '#!/bin/sh\nsed -n "s/^SigIgn:.*\\(.\\)$/ignored: \\1/p" /proc/self/status\n' >"$work/ignored"
chmod +x "$work/ignored"
ends 0 "SIGINT and SIGQUIT ignored at the start" env PMIRUN_CMD="$work/ignored" PMIRUN_CMD_OK=1 \
    perl -e '$SIG{INT} = $SIG{QUIT} = "IGNORE"; exec @ARGV' "$build/gasnetrun_smp" -spawner=pmi -n 2 "$prog"
grep -q "ignored: [0189]" "$work/out" # of the last four signals, HUP may be
result $? "are not when PMIRUN_CMD runs"

# few descriptors are enough, or named as what lacks
small="ulimit -n 24; SSH_CMD='$work/remote' exec '$build/gasnetrun_udp' -H h1,h2 -n 3 '$prog'"
ends 0 "agents and ranks with 24 descriptors each" sh -c "$small"
ends 1 "with 16" sh -c "$(echo "$small" | sed s/24/16/)"
says err "raise ulimit -n" "the message says what to raise"

# --- descriptors 0, 1 and 2 closed: no file of the library's takes their places ---
for how in L S C; do
    ends 5 "SPAWNFN=$how with descriptors 0, 1 and 2 closed" env GASNET_SPAWNFN=$how SSH_CMD="$work/remote" SSH_SERVERS='h1 h2' \
        CSPAWN_CMD='%C & %C & wait' GASNET_TMPDIR="$work" sh -c "exec '$prog' 2 all 5 <&- >&- 2>&-"
done
GASNET_TRACEFILE="$work/closed.json" "$build/tests/jobs/exit_case-par" 0 >&-
[ -s "$work/closed.json" ] && ! grep -q "^ready" "$work/closed.json"
result $? "a rank by itself, too"

# --- SPAWNFN=C: the command starts the workers here ---
export GASNET_TMPDIR="$work/shared" GASNET_SPAWNFN=C
mkdir "$work/shared"
ends 1 "no CSPAWN_CMD" "$prog" 2
says err "GASNET_CSPAWN_CMD='srun -n %N %C'" "the message has an example"
export CSPAWN_CMD='for i in $(seq %N); do %C & done; wait'
ends 0 "CSPAWN_CMD='for ...; do %C & done; wait'" env LAUNCH_TEST=seen "$prog" 4 env LAUNCH_TEST
ranks 4 " [env] [LAUNCH_TEST] is seen" "four ranks see the master's environment"
[ -z "$(ls -A "$work/shared")" ]
result $? "the file that workers find the master by is gone"
ends 6 "gasnet_exit(6)" "$prog" 3 exit 6
ends 255 "a rank that is killed" "$prog" 3 kill 9
ends 0 "numbers that fix the ranks" env CSPAWN_CMD='for i in $(seq %N); do AMUDP_WORKER_RANK=$((%N-i)) %C & done; wait' "$prog" 3
ranks 3 "" "three ranks"
ends 0 "a variable that holds them" env CSPAWN_CMD='for i in $(seq %N); do MINE=$((i-1)) WORKER_RANK=MINE %C & done; wait' "$prog" 2
ends 1 "two workers with one number" env CSPAWN_CMD='for i in $(seq %N); do WORKER_RANK=1 %C & done; wait' "$prog" 2
says err "each rank of 0 to 1 must be one worker's" "are told"
ends 1 "a variable that does not exist" env GASNET_HOST_TIMEOUT=100 CSPAWN_CMD='WORKER_RANK=NONE_SUCH %C & wait' "$prog" 1
says err "GASNET_WORKER_RANK: 'NONE_SUCH' is not a rank" "is named at once"
ends 1 "a folder that nobody can write to" env GASNET_TMPDIR=/proc "$prog" 2
says err "cannot make the file /proc/.aqueduct-job-" "the file is named"
ends 0 "%D, %M, %P and %%" env CSPAWN_SERVERS='h1 h2 h3' CSPAWN_CMD="echo %D/%P/%M/%% >$work/words; %C & %C & wait" "$prog" 2
[ "$(cat "$work/words")" = "$PWD/$prog/h1 h2/%" ]
result $? "are the folder, the program, the hosts and a percent sign"
ends 1 "a word that stands for nothing" env CSPAWN_CMD='%C %X' "$prog" 2
says err "%X stands for nothing" "is named"
ends 1 "a command that fails" env CSPAWN_CMD='exit 3; %C' "$prog" 2
says err "ended with status 3 after 0 of 2 workers" "ends the job"
[ -z "$(ls -A "$work/shared")" ]
result $? "and leaves no file"
ends 0 "amudprun -t is not known, gasnetrun_udp -t shows the command" "$build/gasnetrun_udp" -t -n 2 "$prog"
says err "would run: for i in" "and runs nothing"
ends 0 "who may read the file" env CSPAWN_CMD="set -- %C; stat -c %%a \$3 >$work/mode; env >$work/environment; \"\$@\"" "$prog" 1
[ "$(cat "$work/mode")" = 600 ]
result $? "its owner only"
"$run" -np 3 -spawn C "$prog" stay 20 >"$work/out" 2>"$work/err" </dev/null &
pid=$!
for i in $(seq 100); do
    [ "$(wc -l <"$work/out")" = 3 ] && break
    sleep 0.05
done
kill -9 $pid
wait $pid 2>/dev/null
gone "SIGKILL to the master ends the ranks of its workers"
cat >"$work/unauthenticated" <<'END'
# arguments: gasnetrun --worker FILE. First people who do not know the secret, then the worker.
port=$(sed -n 's/^port //p' "$3")
perl -MIO::Socket::INET -e 'for my $text ("", "GET / HTTP/1.0\r\n\r\n" x 9, "AQUEDUCT-WORKER1" . "x" x 900) {
    my $s = IO::Socket::INET->new("127.0.0.1:$ARGV[0]") or exit 1; syswrite $s, $text; push @s, $s; } sleep 1' "$port" &
sleep 0.2
sed "s/^key ..../key 0000/" "$3" >"$3.wrong"
"$1" "$2" "$3.wrong" 2>"${0%/*}/wrong-key"
rm -f "$3.wrong"
exec "$@"
END
ends 0 "unauthenticated peers and a worker with another key at the listener" env CSPAWN_CMD="sh '$work/unauthenticated' %C" "$prog" 1
ranks 1 "" "do not keep the right one out"
grep -q "no address of the first process answers" "$work/wrong-key"
result $? "and the wrong one is told"
# a worker is lost; the command waits for the others, and they wait for the end
before=$(date +%s)
ends 1 "a worker that is killed before it comes" env GASNET_HOST_TIMEOUT=1 \
    CSPAWN_CMD='(sh -c "kill -9 \$\$"; : %C) & %C & %C & wait' "$prog" 3
[ $(($(date +%s) - before)) -le 6 ]
result $? "ends the job soon"
says err "a worker is lost: 2 of 3 workers are here (2 on host $(hostname)), and none has come for 1 s" "it says who is here"
says err "raise GASNET_HOST_TIMEOUT" "and what to do"
ends 1 "a command that starts too few and ends" env GASNET_HOST_TIMEOUT=0.5 CSPAWN_CMD='(exec %C) & sleep 0.3' "$prog" 2
says err "1 of 2 workers are here" "ends the job too"
says err "since the command ended" "and that is told"
ends 1 "a worker that is missing among numbered ones" env GASNET_HOST_TIMEOUT=1 \
    CSPAWN_CMD='WORKER_RANK=0 %C & WORKER_RANK=2 %C & wait' "$prog" 3
says err "rank 1 is not" "is named"
ends 1 "a worker that is killed while others are awaited" env \
    CSPAWN_CMD='WORKER_RANK=1 %C & sleep 1; kill -9 $!; sleep 20' "$prog" 2
says err "the worker of rank 1 on host $(hostname) was lost while 1 of 2 workers were here" "is named"
[ -z "$(ls -A "$work/shared")" ]
result $? "no file is left"

cat >"$work/second" <<'END'
# arguments: gasnetrun --worker FILE. Kills the worker of rank 1 once the ranks run.
WORKER_RANK=0 "$@" & WORKER_RANK=1 "$@" & second=$!; WORKER_RANK=2 "$@" &
for i in $(seq 200); do
    [ "$(wc -l <"${0%/*}/out")" = 3 ] && break
    sleep 0.05
done
kill -9 $second
wait
END
ends 255 "a worker that is not its host's first is killed" env CSPAWN_CMD="sh '$work/second' %C" "$prog" 3 stay 20
says err "the worker of rank 1 on host $(hostname) was lost" "is named, and ends the job"

GASNET_CSPAWN_CMD="(trap '' TERM; echo here >$work/command; sleep 61.7) & wait; : %C" \
    "$run" -np 2 "$prog" >"$work/out" 2>"$work/err" </dev/null &
pid=$!
for i in $(seq 100); do
    [ -s "$work/command" ] && break
    sleep 0.05
done
[ -n "$(ls -A "$work/shared")" ]
result $? "while workers are awaited there is the file"
kill -9 $pid
wait $pid 2>/dev/null
for i in $(seq 100); do
    pgrep -fx "sleep 61.7" >"$work/left" || break
    sleep 0.05
done
[ ! -s "$work/left" ]
result $? "SIGKILL to the master ends the command, though it ignores SIGTERM"
[ -z "$(ls -A "$work/shared")" ]
result $? "and removes the file"
if unshare -u true 2>/dev/null; then
    ends 0 "workers on two hosts" env CSPAWN_CMD='for i in $(seq %N); do unshare -u sh -c "hostname w$((i %% 2)); exec %C" & done; wait' \
        "$build/gasnetrun_udp" -v -n 4 "$prog"
    says err "on 2 hosts" "are grouped by host"
else
    skip "workers on two hosts" "no right to make namespaces"
fi
unset CSPAWN_CMD GASNET_SPAWNFN

# --- Open MPI's store, in files of its own: what docs/launching.md says of the key ---
if command -v mpirun.openmpi >/dev/null; then
    mkdir "$work/ompi"
    env TMPDIR="$work/ompi" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 GASNET_SUPERNODE_MAXSIZE=1 \
        timeout -s KILL 30 mpirun.openmpi --oversubscribe -n 2 "$prog" stay 20 >"$work/out" 2>"$work/err" </dev/null &
    pid=$!
    for i in $(seq 200); do
        [ "$(grep -c '^rank' "$work/out")" = 2 ] && break
        sleep 0.05
    done
    find "$work/ompi" -type f -exec grep -la 'aq\.' {} + >"$work/stores" 2>/dev/null
    wider=$(xargs -r stat -c '%a' <"$work/stores" | grep -vc '00$')
    wider=$((wider + $(stat -c '%a' "$work"/ompi/ompi.*/pid.* | grep -vc '00$')))
    [ -s "$work/stores" ] && [ "$wider" = 0 ]
    result $? "under Open MPI the store, with the job's key, is the user's alone ($(wc -l <"$work/stores") files)"
    kill $pid
    wait $pid 2>/dev/null
else
    skip "Open MPI's store" "no mpirun.openmpi"
fi

# --- real hosts, in namespaces, where the machine allows that ---
lab=${AQ_SRC:-$(dirname "$0")/../..}/tests/jobs/hosts.sh
if sh "$lab" check >/dev/null 2>&1; then
    ends 0 "./prog 4 on two hosts by ssh" env GASNET_SSH_SERVERS='h1 h2' sh "$lab" with 2 "$prog" 4 here
    ranks 4 " [here]" "four ranks"
    ends 0 "the same by a command, a worker a rank" env GASNET_CSPAWN_SERVERS='h1 h1 h2 h2' \
        GASNET_CSPAWN_CMD='for h in %M; do ssh $h %C & done; wait' sh "$lab" with 2 "$run" -v -np 4 -spawn C "$prog" there
    ranks 4 " [there]" "four ranks"
    says err "host h2: ranks 2-3" "two of them on the second host"
    ends 255 "a rank that is killed there" env GASNET_CSPAWN_SERVERS='h1 h2' \
        GASNET_CSPAWN_CMD='for h in %M; do ssh $h %C & done; wait' sh "$lab" with 2 "$run" -np 2 -spawn C "$prog" kill 9
else
    skip "several hosts" "$(sh "$lab" check 2>&1 | tail -n 1)"
fi

gone "no process is left"
! pgrep -f "^$build/gasnetrun --(worker|tunnel|agent)" >"$work/out"
result $? "no worker, tunnel or agent either"
tap_end
