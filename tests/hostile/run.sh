#!/bin/sh
# run.sh - an unauthenticated peer sprays a running udp job with a million datagrams, and forges the network's notes that a peer is
# gone; the job must not mind. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
#   run.sh [COUNT [SECONDS]]
#
# Two jobs of two ranks without shared memory, each with COUNT datagrams in at most SECONDS: heads hashed, bits turned in
# heads; and all hashed, bits turned anywhere. The job's own counters (AQ_UDP_STATS=1) tell what it saw.

count=${1:-500000}
seconds=${2:-12}
build=${AQ_BUILD:-$(pwd)}
PATH=$build:$PATH
stress=$build/tests/conformance/bin/stress-par
work=$(mktemp -d) || exit 1
job=
# Asks the job's launcher to end it, if it is still there.
end_job() { [ -z "$job" ] || kill "$job" 2>/dev/null; }
trap 'end_job; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

if [ "$(id -u)" != 0 ]; then
    echo '# not root: no traffic can be recorded and no sender forged; random datagrams only'
fi
n=0
result()
{
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi
}

# The UDP ports at which the processes of this job listen: sockets without a peer of their own.
ports()
{
    for pid in $(cat "/proc/$job/task/$job/children" 2>/dev/null); do
        for fd in /proc/"$pid"/fd/*; do
            inode=$(readlink "$fd" 2>/dev/null | sed -n 's/^socket:\[\([0-9]*\)\]$/\1/p')
            [ -n "$inode" ] && awk -v inode="$inode" '$10 == inode && $3 ~ /:0000$/ { split($2, at, ":"); print at[2] }' \
                "/proc/$pid/net/udp" 2>/dev/null
        done
    done | while read -r hex; do echo $((0x$hex)); done
}

# attack NAME BITS: one job and one unauthenticated peer.
attack()
{
    GASNET_CONDUIT=udp GASNET_SUPERNODE_MAXSIZE=1 GASNET_UDP_AUTH=$1 AQ_UDP_STATS=1 \
        gasnetrun -n 2 "$stress" --seconds "$seconds" >"$work/job" 2>&1 &
    job=$!
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        sleep 0.3
        # shellcheck disable=SC2046
        set -- "$1" "$2" $(ports)
        [ $# -eq 4 ] && break
        set -- "$1" "$2"
    done
    if [ $# -ne 4 ]; then
        result 1 "AUTH=$1: the job starts and has two ports"
        cat "$work/job" | sed 's/^/# /'
        end_job
        wait "$job"
        job=
        return
    fi
    "$build/hostile-spray" "$count" "$((seconds - 2))" 1 "$2" "$3" "$4" >"$work/spray" 2>&1
    sprayed=$?
    sed 's/^/# /' "$work/spray"
    wait "$job"
    status=$?
    job=
    sed -n 's/^udp:/# &/p' "$work/job"
    [ $sprayed -ne 1 ]
    result $? "AUTH=$1: unauthenticated peers get no answer"
    [ $sprayed -eq 0 ]
    result $? "AUTH=$1: the unauthenticated peer could send what it wanted"
    [ $status -eq 0 ] && [ "$(grep -c '^ok' "$work/job")" -ge 5 ] && ! grep -q '^not ok' "$work/job"
    good=$?
    result $good "AUTH=$1: the job ends with right results"
    [ $good -eq 0 ] || sed 's/^/# /' "$work/job"
    # what was dropped is counted, and nothing was believed; data cut off behind a good head is malformed
    awk '/^udp: rank/ {
            for (i = 1; i < NF; i++) { gsub(/[,;]/, "", $(i + 1)); value[$i] += $(i + 1) }
        } END { exit !(value["unauthenticated"] > 0 && value["badhash"] > 0 && value["badacks"] == 0 &&
                       value["outside"] == 0 && (auth == "head" || value["malformed"] == 0)) }' auth="$1" "$work/job"
    result $? "AUTH=$1: unauthenticated datagrams and wrong hashes are counted, and that is all"
}

# The unauthenticated peer itself: what it records may be another unauthenticated peer's, of any form. One half of these datagrams has a hashed
# part, as the job's have, the other none.
mixed_traffic()
{
    perl -MIO::Socket::INET -e '
        my ($from, $to) = map { IO::Socket::INET->new(Proto => "udp", LocalAddr => "127.0.0.1") } 1, 2;
        my $at = sockaddr_in($to->sockport, inet_aton("127.0.0.1"));
        my $spray = fork // die;
        exec "$ARGV[0]", 50000, 6, 1, "head", $from->sockport, $to->sockport or exit 3 unless $spray;
        for (1 .. 2000) {
            $from->send("\0" x 30 . chr($_ % 2 * 48) . "\0" x 17, 0, $at);
            select undef, undef, undef, 0.001;
        }
        waitpid $spray, 0;
        exit($? != 0);' "$build/hostile-spray" >"$work/spray" 2>&1
    result $? "the unauthenticated peer copes with what others like it send"
    sed 's/^/# /' "$work/spray"
}

# Notes that nobody sent but the unauthenticated peer: "port unreachable" and "host unreachable", with the ports of both ranks, about a
# datagram of zeros, every half second while one rank computes and the other has something unacknowledged.
forge()
{
    perl -MSocket -e '
        socket my $raw, PF_INET, SOCK_RAW, 1 or exit 3;
        my ($seconds, @port) = @ARGV;
        my $at = inet_aton("127.0.0.1");
        for (1 .. 2 * $seconds) {
            for my $way ([@port], [reverse @port]) {
                for my $code (1, 3) {
                    my $quote = pack("CCnnnCCna4a4", 0x45, 0, 76, 0, 0, 64, 17, 0, $at, $at)
                                . pack("nnnn", @$way, 56, 0) . "\0" x 48;
                    my $sum = 0x300 + $code;
                    $sum += $_ for unpack "n*", $quote;
                    $sum = ($sum & 0xffff) + ($sum >> 16) while $sum >> 16;
                    send $raw, pack("CCnN", 3, $code, ~$sum & 0xffff, 0) . $quote, 0, pack_sockaddr_in(0, $at) or exit 3;
                }
            }
            select undef, undef, undef, 0.5;
        }' "$@"
}

forged_notes()
{
    if [ "$(id -u)" != 0 ]; then
        result 0 "forged notes # SKIP not root"
        return
    fi
    GASNET_CONDUIT=udp GASNET_SUPERNODE_MAXSIZE=1 AQ_UDP_STATS=1 \
        gasnetrun -n 2 "$build/tests/jobs/user_stall" barrier 12 >"$work/job" 2>&1 &
    job=$!
    sleep 0.7
    # shellcheck disable=SC2046
    forge 11 $(ports)
    forged=$?
    wait "$job"
    status=$?
    job=
    [ $forged -eq 0 ] && [ $status -eq 0 ] && grep -q 'errors [1-9]' "$work/job"
    result $? "forged notes of a peer's end do not end the job"
    sed 's/^/# /' "$work/job"
}

# While the launcher is stopped only the network can tell that a rank is gone.
dead_rank()
{
    GASNET_CONDUIT=udp GASNET_SUPERNODE_MAXSIZE=1 gasnetrun -n 2 "$stress" --seconds 60 >"$work/job" 2>&1 &
    job=$!
    sleep 1
    # shellcheck disable=SC2046
    set -- $(cat "/proc/$job/task/$job/children")
    kill -STOP "$job"
    kill -KILL "$2"
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        sleep 1
        grep -q 'was lost' "$work/job" && break
    done
    kill -CONT "$job"
    end_job
    wait "$job"
    job=
    grep -q 'rank 1 was lost (its process has ended, or a firewall rejects its packets: its port answers as closed at [0-9.:]* for [5-9]\.[0-9] s' "$work/job"
    result $? "a rank that is gone is noticed by the network's notes"
    sed 's/^/# /' "$work/job"
}

echo 1..11
mixed_traffic
forged_notes
dead_rank
attack head head
attack full all
