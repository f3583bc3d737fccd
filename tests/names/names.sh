#!/bin/sh
# names.sh - every public name exists and has the right kind and type, from C and C++; a client that
# chooses no thread mode, or two, is refused. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
#   names.sh [INCLUDE-FLAGS...]   in a build folder, or with the -I flags of an installed tree;
#                                 AQ_SRC is the source folder

set -u
src=${AQ_SRC:-$(cd "$(dirname "$0")/../.." && pwd)}
[ $# -gt 0 ] || set -- -I"$src/include" -I"$src/include/smp-conduit" -Iinclude
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
count=0
failed=0

report() { # ok|not name
    count=$((count + 1))
    if [ "$1" = ok ]; then
        echo "ok $count - $2"
    else
        echo "not ok $count - $2"
        head -n 12 "$work/err" | sed 's/^/# /'
        failed=$((failed + 1))
    fi
}

compiles() { # name, then the command
    name=$1
    shift
    if "$@" -fsyntax-only >"$work/err" 2>&1; then report ok "$name"; else report not "$name"; fi
}

refused() { # name, text that the message has to contain, then the command
    name=$1 text=$2
    shift 2
    if "$@" -fsyntax-only >"$work/err" 2>&1; then
        echo "compiled, but should not have" >"$work/err"
        report not "$name"
    elif grep -q "$text" "$work/err"; then
        report ok "$name"
    else
        report not "$name"
    fi
}

printf '#include "gasnetex.h"\nint x;\n' >"$work/a.c"
printf '#include "gasnetex.h"\n#if GASNET_PARSYNC != 1 || defined(GASNET_PAR)\n#error wrong\n#endif\n' >"$work/b.c"
set -- -I"$src/tests/conformance" "$@"
for cc in gcc clang; do
    command -v $cc >/dev/null 2>&1 || continue
    for mode in SEQ PAR PARSYNC; do
        for std in c11 c17; do
            compiles "$cc $std: public names and their types ($mode)" $cc -std=$std -Wall -Wextra -Werror \
                -DGASNET_$mode "$@" "$src/tests/names/names.c"
            for order in '' -DGASNETEX_FIRST; do
                compiles "$cc $std: GASNet-1 names and their types ($mode $order)" $cc -std=$std -Wall -Wextra \
                    -Wshadow -Werror -DGASNET_$mode $order "$@" "$src/tests/names/gasnet1.c"
            done
        done
    done
    refused "$cc: no thread mode" 'GASNET_SEQ' $cc "$@" "$work/a.c"
    refused "$cc: two thread modes" 'GASNET_SEQ' $cc -DGASNET_SEQ -DGASNET_PAR "$@" "$work/a.c"
    compiles "$cc: the mode expands to 1, the others stay undefined" $cc -DGASNET_PARSYNC "$@" "$work/b.c"
done
# The other conduits' faces hold the same names.
for face in "$src"/include/*-conduit; do
    [ "${face##*/}" != smp-conduit ] || continue
    for mode in SEQ PAR; do
        compiles "gcc: public names with the face ${face##*/} ($mode)" gcc -std=c11 -Wall -Wextra -Werror \
            -DGASNET_$mode -I"$face" "$@" "$src/tests/names/names.c"
        compiles "g++: public names with the face ${face##*/} ($mode)" g++ -std=c++17 -Wall -Wextra -Werror \
            -DGASNET_$mode -I"$face" "$@" "$src/tests/names/names.cc"
    done
done
for cxx in g++ clang++; do
    command -v $cxx >/dev/null 2>&1 || continue
    for mode in SEQ PAR PARSYNC; do
        for std in c++11 c++17 c++20; do
            compiles "$cxx $std: public names and their types ($mode)" $cxx -std=$std -Wall -Wextra -Werror \
                -DGASNET_$mode "$@" "$src/tests/names/names.cc"
            for order in '' -DGASNETEX_FIRST; do
                compiles "$cxx $std: GASNet-1 names and their types ($mode $order)" $cxx -std=$std -Wall \
                    -Wextra -Wshadow -Werror -DGASNET_$mode $order "$@" "$src/tests/names/gasnet1.cc"
            done
        done
    done
done
echo "1..$count"
[ $failed -eq 0 ]
