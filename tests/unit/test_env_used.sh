#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_env_used.sh - every row of base/aq_env.def and of each env.def is read somewhere, or says that it is accepted
# for compatibility only; and every variable that the sources read has a row. TAP.
# AQ_SRC: the source folder.
src=${AQ_SRC:-$(dirname "$0")/../..}
cd "$src" || exit 1
. build-aux/tap.sh
dirs=
for dir in base core extended conduits other; do
    test -d $dir && dirs="$dirs $dir"
done
files=$(find $dirs -name '*.[ch]' ! -name 'aq_env*' ! -path 'other/info/*')

# rows: "kind id name", one a line
rows=$(cat base/aq_env.def conduits/*/env.def other/*/env.def | tr '\n' ' ' |
    sed 's/\(AQ_ENV(\|AQ_ENV_COMPAT(\)/\n\1/g' |
    sed -n 's/^\(AQ_ENV[A-Z_]*\)(\([A-Z0-9_]*\), *"\([A-Z0-9_]*\)".*/\1 \2 \3/p')
test "$(echo "$rows" | wc -l)" -gt 20
result $? "the table was understood"

# the core reads the two that steer its own messages in base/aq_env.c
own=" VERBOSEENV QUIET AQ_LOG_LEVEL DISABLE_ENVDECODE "

unread=$(echo "$rows" | while read -r kind id name; do
    test "$kind" = AQ_ENV || continue
    case $own in *" $id "*) continue ;; esac
    case $name in # one format for all conduits
    GASNET_*_SPAWNER) grep -q '"GASNET_%s_SPAWNER"' $files && continue ;;
    esac
    grep -qE "AQ_ENV_$id\b|\"$name\"" $files || echo "$name"
done)
test -z "$unread"
result $? "every row is read by the library${unread:+, but not: $(echo $unread)}"

read_too=$(echo "$rows" | while read -r kind id name; do
    test "$kind" = AQ_ENV_COMPAT || continue
    grep -qE "AQ_ENV_$id\b|getenv\(\"$name\"\)" $files && echo "$name"
done)
test -z "$read_too"
result $? "compatibility rows are not read${read_too:+, but these are: $(echo $read_too)}"

unlisted=$(grep -ohE "(getenv|aq_env_get)\(\"(GASNET|AQ)_[A-Z0-9_]+\"\)" $files |
    sed 's/.*"\(.*\)".*/\1/' | sort -u | while read -r name; do
        echo "$rows" | grep -q " $name\$" || echo "$name"
    done)
test -z "$unlisted"
result $? "every variable that the sources read has a row${unlisted:+, but not: $(echo $unlisted)}"

tap_end
