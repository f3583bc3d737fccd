#!/bin/sh
# test_ft.sh - NAS FT verifies: three transposes, one to seven ranks, classes S, W and A, in shared memory and over udp.
# Runs in a build folder. TAP. SPDX-License-Identifier: BSD-3-Clause
#
#   test_ft.sh [CONDUIT CLASS...]   over that conduit alone: two to four ranks with and without shared memory between them

. "${AQ_SRC:-..}/build-aux/tap.sh"
if [ ! -x ./ft ]; then
    skip ft 'built without FFTW 3'
    tap_end
fi

# verify RANKS CLASS TRANSPOSE [ENVIRONMENT]: the last line says "verified", and the exit status is 0
verify()
{
    # shellcheck disable=SC2086
    env ${4:-} timeout -k 5 150 ./gasnetrun -n "$1" ./ft "$2" "$3" >"$work/out" 2>&1
    echo "exit status $?" >"$work/err"
    grep -q 'exit status 0' "$work/err" && tail -n 1 "$work/out" | grep -q verified &&
        ! grep -q 'NOT VERIFIED' "$work/out"
    result $? "class $2, $3, $1 ranks ${4:-}"
}

if [ $# -gt 0 ]; then
    conduit=$1
    shift
    for class; do
        for transpose in exchange slabs pencils; do
            for ranks in 2 3 4; do
                verify $ranks "$class" $transpose "GASNET_CONDUIT=$conduit GASNET_SUPERNODE_MAXSIZE=1"
            done
            verify 4 "$class" $transpose "GASNET_CONDUIT=$conduit"
        done
    done
    tap_end
fi

for transpose in exchange slabs pencils; do
    for ranks in 1 2 3 4 7; do
        verify $ranks S $transpose
    done
    verify 4 S $transpose AQ_NO_OVERRIDES=1
    verify 4 W $transpose
    verify 4 A $transpose
done
# Over the network, no two ranks sharing memory; and over one that loses datagrams
if [ -e libgasnet-udp-par.a ] || [ -e libgasnet-udp-seq.a ]; then
    far='GASNET_CONDUIT=udp GASNET_SUPERNODE_MAXSIZE=1'
    for class in S W; do
        for transpose in exchange slabs pencils; do verify 4 $class $transpose "$far"; done
        verify 4 $class slabs "$far AQ_UDP_FAULTS=drop=5%"
    done
fi
tap_end
