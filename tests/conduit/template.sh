#!/bin/sh
# template.sh - a copy of conduits/loop under another name is a conduit: one folder and one line. Prints TAP.
# SPDX-License-Identifier: BSD-3-Clause
#
#   template.sh      AQ_SRC is the source folder
#
# Does in a copy of the source what docs/adding-a-conduit.md says, by the document's own commands; builds the
# par library and the programs that it needs, with checks; and runs the rules of the interface over it.

set -u
: "${AQ_SRC:?AQ_SRC is the source folder}"
. "$AQ_SRC/build-aux/tap.sh"
unset GASNET_CONDUIT GASNET_SUPERNODE_MAXSIZE AQ_BUILD
tree=$work/tree
name=mynet
[ ! -d /usr/lib/ccache ] || PATH=/usr/lib/ccache:$PATH
LC_ALL=C
export LC_ALL PATH

# copy TO: the source without what builds and ./bootstrap have made in it.
copy()
{
    mkdir "$1" || return 1
    (cd "$AQ_SRC" && tar -cf - --exclude=./build --exclude=./.git --exclude=./autom4te.cache --exclude=./configure \
        --exclude='./include/*-conduit' --exclude=./conduits/rules.am --exclude=./conduits/probes.m4 \
        --exclude=./conduits/list.h --exclude=./fragments.am .) | tar -C "$1" -xf -
}

# The commands of the document: the lines with four blanks between the mark and the next text.
commands()
{
    sed -n '/tests\/conduit\/template.sh runs this block/,/^[^ ]/!d; /^    /p' "$1"
}

differences()
{
    diff -rq "$work/before" "$tree" >"$work/out"
    printf '%s\n' "Files $work/before/conduits/list.m4 and $tree/conduits/list.m4 differ" \
        "Only in $tree/conduits: $name" | cmp - "$work/out" &&
        [ "$(diff "$work/before/conduits/list.m4" "$tree/conduits/list.m4" | grep -c '^[<>]')" = 1 ]
}

configure()
{
    ./bootstrap >"$work/out" 2>&1 || return 1
    mkdir build && cd build &&
        ../configure --prefix="$work/inst" --enable-debug --disable-seq --disable-parsync --disable-udp --disable-mpi \
            --disable-ibv --enable-$name ${AQ_CACHE:+--cache-file="$AQ_CACHE/gcc.cache"} >"$work/out" 2>&1
}

# What is wrong, and the last line.
rules()
{
    PATH=$PWD:$PATH AQ_BUILD=$PWD sh ../tests/conformance/run.sh --quick --par "$@" >"$work/rules" 2>&1
    status=$?
    grep -v '^ok ' "$work/rules"
    return $status
}

# A rank that is killed ends the job within seconds.
lost()
{
    timeout 20 ./gasnetrun -n 3 tests/conformance/bin/stress-par --seconds 60 >"$work/out" 2>&1 &
    job=$!
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        rank=$(tap_left | sed -n 's/^\([0-9]*\) tests[^ ]*stress-par .*/\1/p' | tail -n 1)
        [ -z "$rank" ] || break
        sleep 0.5
    done
    [ -n "$rank" ] && sleep 1 && kill -KILL "$rank"
    wait $job
    [ $? = 137 ] && grep -q 'was killed by SIGKILL' "$work/out"
}

check "the template is in no list: no build has it" sh -c "! grep -i loop '$AQ_SRC/conduits/list.m4'"
copy "$tree" && copy "$work/before"
result $? "a copy of the source"
commands "$tree/docs/adding-a-conduit.md" >"$work/commands"
cd "$tree" || exit 1
check "the commands of docs/adding-a-conduit.md" sh -eu "$work/commands"
check "they have made one folder and changed one line" differences
check "nothing of the template's name is left in the folder" sh -c "! grep -ri loop conduits/$name && ! find conduits/$name | grep loop"
for test in layers words; do
    AQ_SRC=$tree perl "tests/house/test_$test.pl" >"$work/out" 2>&1
    result $? "the rules of the house: $test"
done
configure
result $? "./bootstrap and configure --enable-$name"
cd "$tree/build" || exit 1
check "make" sh -c 'make -s -j"$(nproc)" check-conformance && make -s launcher-names'
grep -A 5 "conduits/$name/.*warning:" "$work/out" >"$work/warnings"
[ $? = 1 ]
result $? "without a warning for the conduit" "$work/warnings"

AQ_SRC=$tree
GASNET_CONDUIT=$name GASNET_SUPERNODE_MAXSIZE=1
export AQ_SRC GASNET_CONDUIT GASNET_SUPERNODE_MAXSIZE
for ranks in 2 3; do
    check "the rules of the interface, $ranks ranks that share no memory" rules -n $ranks
done
export GASNET_MYNET_SNDBUF=32KB
check "random traffic through small buffers" ./gasnetrun -n 4 tests/conformance/bin/stress-par --seconds 3
unset GASNET_MYNET_SNDBUF
GASNET_SUPERNODE_MAXSIZE=2
check "random traffic where some ranks share memory" ./gasnetrun -n 4 tests/conformance/bin/stress-par --seconds 3
GASNET_SUPERNODE_MAXSIZE=1
lost
result $? "a rank that is killed ends the job"
check "no process is left" tap_gone
tap_end
