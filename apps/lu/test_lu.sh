#!/bin/sh
# test_lu.sh - LU verifies and fetches what it must: ranks over ARMCI, on one host and on several in
# name, and threads.
# Runs in a build folder. TAP. SPDX-License-Identifier: BSD-3-Clause
#
#   test_lu.sh           ranks that are processes
#   test_lu.sh threads   ranks that are threads
#   test_lu.sh long      large matrices, all distributions and ways to fetch, every conduit

set -u
AQ_SRC=${AQ_SRC:-..}
. "$AQ_SRC/build-aux/tap.sh"
. "$AQ_SRC/build-aux/armci-apps.sh"

threads()
{
    check "counts of all tables" ./lu-pthread --tables
    check "a word without meaning" refused 'cannot make sense of round' ./lu-pthread round
    check "blocks that do not fit" refused 'no multiple of B' ./lu-pthread 1000 16
    for layout in cyclic block; do
        for t in 1 2 4; do
            check "$layout, $t threads" verified 'serial  *0 elements differ' \
                ./lu-pthread 512 16 $layout --threads $t --serial
        done
    done
    check "2 threads, counts as published" verified \
        '4655 from the same host, 0 over the network.*95, 0' \
        ./lu-pthread 768 8 cyclic --threads 2 --serial
}

# lu RANKS CONDUIT RANKS_A_HOST WORDS ARGUMENT...
lu()
{
    ranks=$1 conduit=$2 per_host=$3 words=$4
    shift 4
    check "$*: $ranks ranks, $conduit, $per_host a host" verified "$words" \
        on_ranks "$ranks" "$conduit" "$per_host" ./lu "$@"
}

published='as enumerated and as published'

short()
{
    for ranks in 1 2; do
        lu $ranks smp 0 'serial  *0 elements differ' 512 16 cyclic get --serial
    done
    lu 4 smp 0 'serial  *0 elements differ' 1024 16 cyclic get --serial
    lu 4 smp 0 'as enumerated' 512 16 block load --serial
    # 96 blocks a side: the counts of the published tables
    lu 2 smp 0 '4655 from the same host, 0 over' 768 8 cyclic nbget --serial
    lu 4 udp 2 '4655 from the same host, 4655 over' 768 8 cyclic get --serial
    lu 4 udp 2 '3480 from the same host, 3480 over' 768 8 block nbget --serial
    lu 4 udp 2 '4655 from the same host, 3480 over' 768 8 hybrid load --serial
    lu 4 udp 1 '0 from the same host, 9310 over' 768 8 cyclic nbget --serial
    lu 2 mpi 1 '0 from the same host, 3480 over' 768 8 hybrid get --serial
    # 16 blocks a side; and every update fetching anew
    lu 4 udp 2 '135 from the same host, 100 over' 512 32 hybrid get --serial
    lu 4 udp 2 'counts  *as enumerated' 256 16 hybrid anew --serial
    lu 2 smp 0 'as enumerated' 2048 16 block nbget
    check "a word without meaning" refused 'cannot make sense of round' on_ranks 2 smp 0 ./lu round
}

long()
{
    for layout in cyclic block hybrid; do
        for fetch in get nbget load; do
            lu 2 smp 0 'as enumerated' 2048 16 $layout $fetch
            lu 4 udp 2 'as enumerated' 1024 16 $layout $fetch --serial
            lu 4 udp 2 "$published" 3072 32 $layout $fetch
            lu 4 udp 1 "$published" 512 32 $layout $fetch --serial
            lu 4 mpi 1 "$published" 512 32 $layout $fetch --serial
        done
        lu 2 smp 0 "$published" 768 8 $layout anew --serial
        for per_host in 1 2; do
            lu 4 udp $per_host "$published" 768 8 $layout anew --serial
        done
        check "$layout, 2 threads, large" verified 'as enumerated' \
            ./lu-pthread 2048 16 $layout --threads 2
    done
}

case ${1:-} in
threads) threads ;;
*)
    if [ -x ./lu ]; then "${1:-short}"; else skip "lu" "built without libarmci"; fi
    check "no process is left" tap_gone
    ;;
esac
tap_end
