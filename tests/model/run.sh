#!/bin/sh
# run.sh - has spin explore the models: flow control of udp, the handshake of ibv, sleep and wake-up, mutexes of
# ARMCI. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
#   run.sh [--long]
#
# A row is: what is expected, the model, what it is compiled with, what it shows. "good": spin finds no fault
# in any state; "deadlock", "assertion", "cycle": it must find that one, which shows that the model can fail.

src=${AQ_SRC:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/model
when=${1:-}
if ! command -v spin >/dev/null 2>&1; then
    echo '1..0 # SKIP no spin (Debian: spin)'
    exit 0
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
cd "$work" || exit 1

rows()
{
    cat <<'END_ROWS'
good|udp|-DRANKS=2 -DWINDOW=1 -DREQUESTS=3|2 ranks, window 1: nobody waits for ever
good|udp|-DRANKS=2 -DWINDOW=2 -DREQUESTS=3|2 ranks, window 2: nobody waits for ever
good|udp|-DRANKS=2 -DWINDOW=1 -DREQUESTS=2 -DLONG_REPLIES|2 ranks, window 1, replies with data: nobody waits for ever
good|udp|-DRANKS=2 -DWINDOW=1 -DREQUESTS=3 -DACK_TAKEN|2 ranks, acknowledged when handled: nobody waits for ever
good|udp|-DRANKS=3 -DDIRECT=1 -DREQUESTS=2|3 ranks, queues of 1: nobody waits for ever
good|udp|-DRANKS=3 -DDIRECT=2 -DREQUESTS=2|3 ranks, queues of 2: nobody waits for ever
good|udp|-DRANKS=3 -DDIRECT=1 -DREQUESTS=2 -DLONG_REPLIES|3 ranks, queues of 1, replies with data: nobody waits for ever
good|udp|-DRANKS=2 -DWINDOW=1 -DREQUESTS=2 -DPROGRESS|2 ranks, window 1: every request is answered
good|udp|-DRANKS=3 -DDIRECT=1 -DREQUESTS=2 -DPROGRESS|3 ranks, queues of 1: every request is answered
deadlock|udp|-DRANKS=3 -DDIRECT=1 -DREQUESTS=2 -DSHARED_CHANNEL|with one channel for everything 3 ranks wait for each other
deadlock|udp|-DRANKS=2 -DWINDOW=1 -DREQUESTS=4 -DLONG_REPLIES -DSHARED_CHANNEL|with one channel and replies with data 2 ranks do
cycle|udp|-DRANKS=3 -DDIRECT=1 -DREQUESTS=2 -DSHARED_CHANNEL -DPROGRESS|with one channel some request is never answered
good|udp_link|-DDUPLICATES|loss, duplicates, reordering, refusals: once, undamaged, acknowledged when placed
good|udp_link|-DLOSSES=1 -DFRAMES=3 -DPROGRESS|a loss: all arrives, and the sender knows
assertion|udp_link|-DDUPLICATES -DACK_REFUSED|acknowledging what is refused is found out
assertion|udp_link|-DDUPLICATES -DACK_CLAIMED|acknowledging what is not placed yet is found out
assertion|udp_link|-DDUPLICATES -DWINDOW_LONG|a window longer than the receiver's ring is found out
assertion|udp_link|-DDUPLICATES -DSACK_FREES|a slot freed by a selective acknowledgement is found out
good|ibv_hello|-DDUPLICATES|one asks, loss and duplicates: who sends finds a receiver
good|ibv_hello|-DDUPLICATES -DBOTH|both ask, loss and duplicates: who sends finds a receiver
good|ibv_hello|-DLOSSES=4 -DPROGRESS|one asks, 4 losses: both are ready in the end
good|ibv_hello|-DLOSSES=4 -DBOTH -DPROGRESS|both ask, 4 losses: both are ready in the end
assertion|ibv_hello|-DBOTH -DEAGER|sending before the peer is known to receive is found out
cycle|ibv_hello|-DLOSSES=1 -DMUTE -DPROGRESS|with a HAVE that nobody answers one side waits for ever
good|sleep|-DWAKERS=2 -DMESSAGES=2|a sleeper, 2 wakers: nobody sleeps for ever
good|sleep|-DTHREADS=2 -DMESSAGES=2|2 threads, a waker: nobody sleeps for ever
good|sleep|-DLISTENER -DDATAGRAMS=2|a listener, a waker, the network: nobody sleeps for ever
good|sleep|-DLISTENER -DTHREADS=2 -DDATAGRAMS=1|2 threads, one the listener, a waker, the network: nobody sleeps for ever
deadlock|sleep|-DMESSAGES=2 -DNO_MEMBARRIER|without membarrier a wake-up is lost
deadlock|sleep|-DMESSAGES=2 -DNO_LAST_LOOK|without a look after the announcement a message is missed
deadlock|sleep|-DMESSAGES=2 -DCOUNT_LATE|a count read after the last look misses a wake-up
deadlock|sleep|-DLISTENER -DMESSAGES=2 -DLISTENER_FIRST|a waker that looks for a listener too early misses it
deadlock|sleep|-DLISTENER -DANNOUNCE_LATE|a listener that looks at the count too early misses a wake-up
deadlock|sleep|-DLISTENER -DTHREADS=2 -DDATAGRAMS=1 -DALONE|a listener that leaves the others asleep leaves them for good
deadlock|sleep|-DLISTENER -DTHREADS=2 -DDATAGRAMS=1 -DNO_MEMBARRIER|without membarrier nobody listens
good|sleep_barrier|-DRANKS=3|a barrier of 3 ranks: nobody sleeps for ever
good|sleep_barrier|-DRANKS=3 -DLEADER|a barrier whose leader comes last: nobody sleeps for ever
deadlock|sleep_barrier|-DRANKS=2 -DNO_MEMBARRIER|without membarrier the last to arrive misses a sleeper
deadlock|sleep_barrier|-DRANKS=3 -DNO_FENCE|two who come last together without a fence wake nobody
deadlock|sleep_barrier|-DRANKS=3 -DLEADER -DLEADER_SLEEPS|a leader that nobody wakes sleeps for ever
good|mutex|-DRANKS=2 -DTICKS=2|a mutex, 2 ranks, quiet releases: nobody waits for ever
good|mutex|-DRANKS=3 -DTICKS=1 -DROUNDS=1|a mutex, 3 ranks: nobody waits for ever
good|mutex|-DRANKS=1 -DREMOTES=1 -DTICKS=2|a mutex, a rank and one of another host: nobody waits for ever
good|mutex|-DRANKS=2 -DREMOTES=1 -DTICKS=1 -DROUNDS=1|a mutex, 2 ranks and one of another host: nobody waits for ever
deadlock|mutex|-DRANKS=2 -DTICKS=2 -DQUIET_ALWAYS|a quiet release long after the last wake-up leaves a sleeper
deadlock|mutex|-DRANKS=2 -DTICKS=2 -DNO_LOOK|a quiet release that time passes in leaves a sleeper
deadlock|mutex|-DRANKS=2 -DTICKS=2 -DWOKE_NOBODY|who goes to sleep while nobody sleeps is not ended by a quiet release
deadlock|mutex|-DRANKS=2 -DTICKS=2 -DLONG_AGAIN|nor is a sleep without a limit after a wake-up
deadlock|mutex|-DRANKS=2 -DTICKS=2 -DSIGNAL_LONG|nor is one after a signal has ended the sleep that is relied on
deadlock|mutex|-DRANKS=2 -DTICKS=1 -DROUNDS=4 -DOTHERS=1 -DLATE_LONG|nor is one after an attempt that came too late to sleep
good|mutex|-DRANKS=2 -DTICKS=1 -DROUNDS=4 -DOTHERS=1|a mutex, many quiet releases: nobody waits for ever
deadlock|mutex|-DRANKS=1 -DREMOTES=1 -DTICKS=2 -DFREE_FOR_QUEUE|a mutex made free leaves the queue unserved
END_ROWS
    [ "$when" = --long ] && cat <<'END_ROWS'
good|udp|-DRANKS=2 -DWINDOW=2 -DREQUESTS=2 -DLONG_REPLIES|2 ranks, window 2, replies with data: nobody waits for ever
good|udp|-DRANKS=2 -DWINDOW=1 -DREQUESTS=3 -DLONG_REPLIES|2 ranks, 3 requests, replies with data: nobody waits for ever
good|udp|-DRANKS=3 -DDIRECT=2 -DREQUESTS=3|3 ranks, queues of 2, 3 requests: nobody waits for ever
good|udp|-DRANKS=3 -DDIRECT=1 -DREQUESTS=2 -DLONG_REPLIES -DPROGRESS|3 ranks, replies with data: every request is answered
good|udp_link|-DDUPLICATES -DWINDOW=3 -DFRAMES=5|window 3: once, undamaged, acknowledged when placed
good|udp_link|-DLOSSES=2 -DFRAMES=3 -DPROGRESS|two losses: all arrives, and the sender knows
deadlock|udp|-DRANKS=3 -DDIRECT=2 -DREQUESTS=4 -DSHARED_CHANNEL|longer queues do not help one channel
good|sleep|-DTHREADS=2 -DWAKERS=2|2 threads, 2 wakers: nobody sleeps for ever
good|sleep|-DLISTENER -DTHREADS=2 -DMESSAGES=2|2 threads, one the listener, 2 messages: nobody sleeps for ever
good|mutex|-DRANKS=3 -DTICKS=1 -DROUNDS=2 -DOTHERS=1|a mutex, 3 ranks, quiet releases: nobody waits for ever
good|mutex|-DRANKS=2 -DREMOTES=1 -DTICKS=2 -DROUNDS=2 -DOTHERS=1|the same with one of another host: nobody waits for ever
END_ROWS
}

# explore MODEL OPTIONS: runs spin's program; its report is in ./report. An incomplete search is no success.
explore()
{
    rm -f pan pan.c ./*.trail report
    # shellcheck disable=SC2086
    spin -a $2 "$src/$1.pml" >report 2>&1 || return 1
    case $2 in
    *PROGRESS*) how='-DNFAIR=6'; search='-a -f' ;;
    *) how='-DSAFETY -DNOCLAIM'; search= ;;
    esac
    # shellcheck disable=SC2086
    cc -O1 -w $how -DCOLLAPSE -DVECTORSZ=4096 -DMEMLIM=3000 -o pan pan.c >report 2>&1 || return 1
    # shellcheck disable=SC2086
    ./pan -n -m200000 -w22 $search >report 2>&1
    return 0
}

verdict()
{
    if grep -q '^pan:1: invalid end state' report; then
        echo deadlock
    elif grep -q '^pan:1: acceptance cycle' report; then
        echo cycle
    elif grep -q '^pan:1: assertion violated' report; then
        echo assertion
    elif grep -q 'errors: 0' report && ! grep -q -e 'max search depth too small' -e 'Search not completed' \
             -e 'out of memory' -e 'reached -DMEMLIM' report; then
        echo good
    else
        echo broken
    fi
}

n=0
failed=0
rows >rows
echo "1..$(wc -l <rows)"
while IFS='|' read -r expected model options what; do
    n=$((n + 1))
    explore "$model" "$options"
    got=$(verdict)
    states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' report)
    if [ "$got" = "$expected" ]; then
        echo "ok $n - $what (${states:-?} states)"
    else
        echo "not ok $n - $what"
        echo "# $model.pml $options: $expected expected, but it is $got"
        sed 's/^/# /' report | head -n 20
        failed=1
    fi
done <rows
exit $failed
