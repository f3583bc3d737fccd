#!/bin/sh
# test_md.sh - molecular dynamics verifies, is the same on any number of ranks, and sends what it must.
# Runs in a build folder. TAP. SPDX-License-Identifier: BSD-3-Clause
#
#   test_md.sh        one host, and two in name
#   test_md.sh long   more atoms, steps and ranks, every conduit

set -u
AQ_SRC=${AQ_SRC:-..}
. "$AQ_SRC/build-aux/tap.sh"
. "$AQ_SRC/build-aux/armci-apps.sh"

# md RANKS CONDUIT RANKS_A_HOST WORDS ARGUMENT...
md()
{
    ranks=$1 conduit=$2 per_host=$3 words=$4
    shift 4
    check "$*: $ranks ranks, $conduit, $per_host a host" verified "$words" \
        on_ranks "$ranks" "$conduit" "$per_host" ./md "$@"
}

checksum() { sed -n 's/^checksum *\([0-9a-f]*\).*/\1/p' "$work/run"; }

# as_one_rank COMMAND...: every bit is what it was with one rank
as_one_rank()
{
    verified checksum "$@" && [ -n "$one" ] && [ "$(checksum)" = "$one" ]
}

# same RANKS CONDUIT RANKS_A_HOST ARGUMENT...
same()
{
    ranks=$1 conduit=$2 per_host=$3
    shift 3
    check "$*: $ranks ranks, $conduit, $per_host a host, as one rank" as_one_rank \
        on_ranks "$ranks" "$conduit" "$per_host" ./md "$@"
}

short()
{
    md 1 smp 0 'changed boxes: the same' 8 50 --serial
    one=$(checksum)
    for ranks in 2 4 8; do
        same $ranks smp 0 8 50
    done
    same 4 smp 0 8 50 vector
    same 4 udp 2 8 50 permuted
    same 2 mpi 1 8 50 vector
    md 4 udp 1 'changed boxes: the same' 8 20 vector --serial
    # a ring of four boxes: with neighbours on different hosts, then half of them on one
    one_way='calls, 0 bytes within hosts; 84 calls, 2257920 bytes between: as the map says'
    half='42 calls, 1128960 bytes within hosts; 42 calls, 1128960 bytes between: as the map says'
    md 4 udp 2 "positions got .*$one_way" 8 20 plain --grid 4x1x1
    md 4 udp 2 "forces sent .*$half" 8 20 permuted --grid 4x1x1
    # the communication alone: 24,000 bytes from each neighbour, forces on a third of its atoms
    md 8 smp 0 'positions *560 calls, 13440000 bytes within' 8 10 --pattern
    md 4 udp 2 'positions .* 80 calls, 1920000 bytes between' 8 10 plain --pattern --grid 4x1x1
    md 4 udp 2 'forces .* 40 calls, 320640 bytes between' 8 10 permuted --pattern --grid 4x1x1
    check "a word without meaning" refused 'cannot make sense of solid' \
        on_ranks 1 smp 0 ./md 8 10 solid
    check "too many boxes" refused 'too small' on_ranks 4 smp 0 ./md 5 10
    check "a grid of another size" refused 'not as many boxes' on_ranks 2 smp 0 ./md --grid 3x1x1
}

long()
{
    md 1 smp 0 'changed boxes: the same' 12 300 --serial
    one=$(checksum)
    for halo in strided vector; do
        same 2 smp 0 12 300 $halo
        same 8 smp 0 12 300 $halo
        same 12 smp 0 12 300 $halo --grid 3x2x2
        for order in plain permuted; do
            same 8 udp 4 12 300 $halo $order
            same 4 udp 2 12 300 $halo $order --grid 4x1x1
        done
        same 4 udp 1 12 300 $halo
        same 4 mpi 1 12 300 $halo
    done
    # 3 x 3 x 3 boxes: 26 neighbours each
    md 27 smp 0 'positions *70200 calls, 1684800000 bytes within' 12 100 --pattern
}

if [ -x ./md ]; then
    "${1:-short}"
    check "no process is left" tap_gone
else
    skip "md" "built without libarmci"
fi
tap_end
