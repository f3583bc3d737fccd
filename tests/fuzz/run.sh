#!/bin/sh
# run.sh - fuzzes the udp conduit's datagrams from the kept corpus. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
#   run.sh [SECONDS]
#
# New inputs that reach new code are only kept in the build folder (check-fuzz/corpus), so that a longer
# run goes on from there. What fails stays beside them as crash-*, with how to repeat it.

seconds=${1:-15}
src=${AQ_SRC:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${AQ_BUILD:-$(pwd)}
dir=$build/check-fuzz
if ! command -v clang >/dev/null 2>&1; then
    echo '1..0 # SKIP no clang (Debian: clang)'
    exit 0
fi
if [ ! -f /usr/include/sodium.h ]; then
    echo '1..0 # SKIP no libsodium, so no udp conduit (Debian: libsodium-dev)'
    exit 0
fi
rm -rf "$dir/seeds"
mkdir -p "$dir/corpus" || exit 1
echo 1..4

compile()
{
    # shellcheck disable=SC2086
    clang -std=gnu11 -g -O1 -Wall -Wextra -Werror -fno-sanitize-recover=all $1 -D_GNU_SOURCE=1 -DGASNET_PAR=1 -D_REENTRANT \
        -DAQ_BUILD_LIBRARY=1 -I"$src" -I"$src/include" -I"$src/include/smp-conduit" -I"$build" -I"$build/include" \
        -o "$2" "$3" "$src/conduits/udp/aq_udp_link.c" "$src/conduits/udp/aq_udp_link_in.c" \
        "$src/conduits/udp/aq_udp_auth.c" -lsodium >"$dir/compile.log" 2>&1
}

result()
{
    if [ "$1" = 0 ]; then
        echo "ok $2"
    else
        echo "not ok $2"
        sed 's/^/# /' "$3" | tail -n 40
    fi
}

compile '-fsanitize=fuzzer,address,undefined' "$dir/fuzz_udp" "$src/tests/fuzz/fuzz_udp.c"
result $? '1 - the target compiles' "$dir/compile.log"
compile '-fsanitize=address,undefined' "$dir/corpus_udp" "$src/tests/fuzz/corpus_udp.c" &&
    "$dir/corpus_udp" "$dir/seeds" >>"$dir/compile.log" 2>&1 && diff -r "$dir/seeds" "$src/tests/fuzz/corpus/udp" \
    >>"$dir/compile.log" 2>&1
result $? '2 - the kept corpus is what corpus_udp.c writes' "$dir/compile.log"
cd "$dir" || exit 1
./fuzz_udp -runs=0 "$src/tests/fuzz/corpus/udp" "$dir/corpus" >replay.log 2>&1
result $? '3 - every input of the corpora' replay.log
./fuzz_udp -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2000 -max_len=8000 -print_final_stats=1 \
    corpus "$src/tests/fuzz/corpus/udp" >fuzz.log 2>&1
status=$?
runs=$(sed -n 's/^stat::number_of_executed_units: *//p' fuzz.log)
result $status "4 - ${runs:-no} inputs in $seconds s" fuzz.log
for crash in crash-* leak-* timeout-*; do
    [ -e "$crash" ] && echo "# repeat: $dir/fuzz_udp $dir/$crash"
done
exit $status
