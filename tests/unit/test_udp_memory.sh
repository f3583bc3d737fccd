#!/bin/sh
# test_udp_memory.sh - what a rank that is never spoken to costs in a udp job. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
# Two jobs of different size, without shared memory, give the bytes for each further rank, in all tables together, those of
# the core included, once the peers that the start itself speaks to (log2 of the ranks) are taken off at what a
# peer costs. 4,096 ranks are computed from that. The limit is 128 bytes.

build=${AQ_BUILD:-$(pwd)}
PATH=$build:$PATH
# with these the start speaks to the same number of ranks
small=37 large=63

# "bytes peers bytes peers" of rank 0 of a job of $1 ranks
measure()
{
    GASNET_CONDUIT=udp GASNET_SUPERNODE_MAXSIZE=1 timeout 100 gasnetrun -n "$1" "$build/udp-memory" 2>&1 |
        sed -n 's/^bytes \([0-9]*\) peers \([0-9]*\)$/\1 \2/p' | tr '\n' ' '
}

if [ ! -x "$build/udp-memory" ]; then
    echo '1..0 # SKIP no udp conduit (Debian: libsodium-dev)'
    exit 0
fi
echo 1..2
a=$(measure $small)
b=$(measure $large)
echo "$a $b" | awk -v small=$small -v large=$large '
    NF != 8 { print "not ok 1 - the jobs run\nnot ok 2 - memory is measured"; print "# " $0; exit 1 }
    {
        peer = ($7 - $5) / ($8 - $6)
        silent = (($5 - $6 * peer) - ($1 - $2 * peer)) / (large - small)
        printf "# %d ranks: %d bytes with %d peers; %d ranks: %d bytes with %d peers; an open peer: %.0f bytes\n", small, $1,
            $2, large, $5, $6, peer
        printf "# 4,096 ranks: %.0f KiB for those never spoken to\n", silent * 4096 / 1024
        printf "%s 1 - a rank never spoken to costs %.0f bytes, at most 128\n", (silent <= 128 ? "ok" : "not ok"), silent
        good = peer > 0 && peer <= 8192
        printf "%s 2 - an open peer costs %.0f bytes, at most 8192\n", (good ? "ok" : "not ok"), peer
        exit !(silent <= 128 && good)
    }'
