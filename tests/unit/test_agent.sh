#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_agent.sh - gasnetrun and its agents: several "hosts" that are this one, reached by a stand-in for ssh
# which runs the command here. Start, exchanges, output, input, and every way in which such a job ends:
# the right exit status, one message, nothing left. TAP. AQ_BUILD: the build folder.
build=$(cd "${AQ_BUILD:-.}" && pwd) || exit 1
prog=$build/tests/unit/bin/test_agent_job
test -x "$build/gasnetrun" && test -x "$prog" || exit 1
. "${AQ_SRC:-$(dirname "$0")/../..}/build-aux/tap.sh"
# copies under unique names, so that leftover processes can be distinguished from other users'
cp "$build/gasnetrun" "$work/gasnetrun" && cp "$prog" "$work/rank" || exit 1
run=$work/gasnetrun
prog=$work/rank

cat > "$work/here" << 'END'
#!/bin/sh
for last; do :; done
exec sh -c "$last"
END
cat > "$work/noisy" << 'END'
#!/bin/sh
for last; do :; done
echo Welcome; printf 'no newline\377\000AQ-agen'; echo about stderr >&2
exec sh -c "$last"
END
cat > "$work/refused" << 'END'
#!/bin/sh
case " $* " in *" b "*) echo "user@b: Permission denied (publickey)." >&2; exit 255 ;; esac
for last; do :; done
exec sh -c "$last"
END
# agents that speak another protocol, break off, or send what is no frame, and one that never comes
hello='\377\000AQ-agent\376\n'
zeros='\000\000\000\000\000\000\000\000\000\000'
printf '#!/bin/sh\nprintf "%s\\000\\000\\000\\1779.9.9.%s\\000"; sleep 5\n' "$hello" "$zeros" > "$work/other"
printf '#!/bin/sh\nprintf "%s\\000\\000\\000\\0010.1.0.%s\\000"; echo and then something else; sleep 5\n' \
    "$hello" "$zeros" > "$work/garbage"
printf '#!/bin/sh\nprintf "%s\\000\\000\\000\\0010.1.0.%s\\000"; exit 3\n' "$hello" "$zeros" > "$work/broken"
printf '#!/bin/sh\nexec sleep 20\n' > "$work/stuck"
chmod +x "$work"/*
GASNET_SSH_CMD=$work/here
export GASNET_SSH_CMD
unset GASNET_SSH_OPTIONS GASNET_SSH_SERVERS GASNET_SSH_NODEFILE GASNET_SSH_OUT_DEGREE GASNET_HOST_TIMEOUT

# pids of agents or ranks of this test, without zombies: running WORD
running() {
    ps axo pid,stat,args | awk -v what="$work/$1" '$2 !~ /^Z/ && $3 == what { print $1 }'
}

# tests whether a process of this test still runs; a process that is ending has a moment for it
left() {
    tries=0
    while test -n "$(running rank)$(running gasnetrun)"; do
        tries=$((tries + 1))
        if test $tries = 25; then
            ps axo pid,stat,args | grep "$work/" | grep -v grep | sed 's/^/# left: /'
            return 0
        fi
        sleep 0.2
    done
    return 1
}

# job STATUS TEXT WHAT ARGUMENTS...: ends with that status, says one line with that (or nothing), leaves nothing
job() {
    status=$1
    text=$2
    what=$3
    shift 3
    timeout 60 "$run" -c udp "$@" > "$work/out" 2> "$work/all" < /dev/null
    rc=$?
    grep -v '^gasnetrun: \|about stderr' "$work/all" > "$work/err"
    if test -n "$text"; then
        test "$(grep -c "$text" "$work/err")" = 1 && test "$(wc -l < "$work/err")" = 1
    else
        ! test -s "$work/err"
    fi
    said=$?
    test "$rc" = "$status" && test "$said" = 0 && ! left
    result $? "$what (status $rc)"
}

# kill_one WHICH SIGNAL STATUS TEXT WHAT: something is done to a running job
kill_one() {
    "$run" -c udp -n 4 -H a,b "$prog" sleep > "$work/out" 2> "$work/err" < /dev/null &
    root=$!
    tries=0
    until test "$(running rank | wc -l)" = 4 || test $tries = 50; do
        tries=$((tries + 1))
        sleep 0.1
    done
    sleep 0.5
    pid=
    case $1 in
    root) pid=$root ;;
    agent) pid=$(running gasnetrun | grep -v "^$root\$" | head -1) ;;
    rank) pid=$(running rank | tail -1) ;;
    esac
    test -n "$pid" && kill "-$2" "$pid"
    start=$(date +%s)
    if test "$1 $2" = "root STOP"; then
        sleep 4
        kill -CONT "$root"
    fi
    wait "$root" 2> /dev/null
    rc=$?
    end=$(date +%s)
    test -z "$4" || { test "$(grep -c "$4" "$work/err")" = 1 && test "$(grep -c . "$work/err")" = 1; }
    said=$?
    test "$1 $2" != "agent STOP" || kill -CONT "$pid" 2> /dev/null
    test "$rc" = "$3" && test "$said" = 0 && test $((end - start)) -le 6 && ! left
    result $? "$5 (status $rc)"
}

job 0 "" "5 ranks on 3 hosts" -n 5 -H a,b,c "$prog" hello
test "$(sort "$work/out" | tr '\n' ';')" = "rank 0 of 5 on host 0 of 3, slot 0 of 2;rank 1 of 5 on host 0 of 3, \
slot 1 of 2;rank 2 of 5 on host 1 of 3, slot 0 of 2;rank 3 of 5 on host 1 of 3, slot 1 of 2;rank 4 of 5 on host 2 \
of 3, slot 0 of 1;"
result $? "ranks are where they belong"
GASNET_SSH_OUT_DEGREE=2 job 0 "" "20 hosts in a tree of degree 2" -n 20 -H 'n[1-20]' "$prog" hello
test "$(sort -u "$work/out" | wc -l)" = 20
result $? "all of the tree's ranks are there"
GASNET_SSH_CMD=$work/noisy job 0 "" "shells that print when one logs in" -n 2 -H a,b "$prog" hello
test "$(wc -l < "$work/out")" = 2
result $? "what they print is no output of ranks"

job 0 "" "-l" -l -n 3 -H a,b "$prog" hello
test "$(grep -c '^\[\([0-2]\)\] rank \1 of 3' "$work/out")" = 3
result $? "-l: each line has its rank before it"
printf 'one\ntwo\nlast' | timeout 60 "$run" -c udp -n 3 -H a,b "$prog" stdin > "$work/out" 2> "$work/err"
test "$(cat "$work/out")" = "read one
read two
read last"
result $? "rank 0 reads our standard input, to its end"
timeout 60 "$run" -c udp -n 4 -H a,b "$prog" much 2> "$work/err" < /dev/null | (sleep 2; cat) > "$work/out"
test "$(wc -l < "$work/out")" = 80000 && test "$(awk 'NF != 21' "$work/out" | wc -l)" = 0 &&
    test "$(grep '^rank 2 ' "$work/out" | awk '$4 != NR - 1' | wc -l)" = 0
status=$?
: > "$work/out"
result $status "7 MB to a slow reader: all lines, whole and in order"
value='two
lines, "quoted" $HOME'
AQ_TEST_VALUE=$value job 0 "" "values with newlines" -n 2 -H a,b "$prog" getenv AQ_TEST_VALUE
# lines of two ranks come whole, in any order
test "$(sort "$work/out")" = "$(printf 'rank %s has %s|%s\n' 0 "$value" "$value" 1 "$value" "$value" | sort)"
result $? "variables reach the ranks as they are"

job 5 "" "all return 5" -n 4 -H a,b "$prog" return 5
job 6 "" "rank 1 exits with 6, the others are asked" -n 4 -H a,b "$prog" exit 6
job 7 "" "the last rank exits with 7" -n 4 -H a,b "$prog" last 7
job 0 "" "one rank exits with 0" -n 4 -H a,b "$prog" last 0
job 137 "rank 3 .* was killed by SIGKILL" "a rank that kills itself" -n 4 -H a,b "$prog" die 9
job 139 "Caught a fatal signal (proc 3): SIGSEGV" "a rank that crashes" -n 4 -H a,b "$prog" die 11
job 1 "rank 3 .* ended with status 0, without" "a rank that ends without a word" -n 4 -H a,b "$prog" silent 0
job 1 "before it joined the job" "one that never joins" -n 4 -H a,b "$prog" early 1
job 0 "" "a program that is none of ours" -n 3 -H a,b true
job 1 "" "the same, failing" -n 3 -H a,b false
job 1 "host [ab]: no-such-program: no such program" "a program that does not exist" -n 4 -H a,b no-such-program
GASNET_SSH_REMOTE_PATH=/no/such job 1 "has no directory /no/such" "a folder that does not exist" -n 2 -H a,b "$prog"
GASNET_REMOTE_RUN=/no/such job 1 "cannot run /no/such.*GASNET_REMOTE_RUN" "no gasnetrun there" -n 2 -H a,b "$prog"
GASNET_SSH_CMD=no-such-ssh job 1 "cannot run no-such-ssh.*GASNET_SSH_CMD" "no ssh here" -n 2 -H a,b "$prog"
GASNET_SSH_CMD=$work/refused job 1 "host b: user@b: Permission denied.*without a password" "ssh asks for a password" \
    -n 4 -H a,b "$prog" sleep
GASNET_SSH_CMD=$work/other job 1 "version 9.9.9. of gasnetrun, which does not understand" "another version there" \
    -n 2 -H a,b "$prog" sleep
GASNET_SSH_CMD=$work/garbage job 1 "sends what is no message" "garbage from an agent" -n 2 -H a,b "$prog" sleep
GASNET_SSH_CMD=$work/broken job 255 "host [ab] (rank [01]) was lost" "an agent that ends at once" -n 2 -H a,b "$prog" sleep
GASNET_HOST_TIMEOUT=0.5 GASNET_SSH_CMD=$work/stuck job 1 "has not answered in 3 s" "a login that hangs" \
    -n 2 -H a,b "$prog" sleep

kill_one rank KILL 137 "was killed by SIGKILL" "a rank is killed"
kill_one agent KILL 255 "host [ab] (ranks .*) was lost" "an agent is killed"
kill_one root TERM 1 "SIGTERM(15): ending the job" "gasnetrun is told to end"
kill_one root HUP 1 "SIGHUP(1): ending the job" "its terminal goes away"
kill_one root KILL 137 "" "gasnetrun is killed"
GASNET_HOST_TIMEOUT=1
export GASNET_HOST_TIMEOUT
kill_one agent STOP 255 "nothing heard of it for [12] s" "an agent falls silent"
kill_one root STOP 255 "gasnetrun was stopped for [0-9]* s" "gasnetrun falls silent"

tap_end
