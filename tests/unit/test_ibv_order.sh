#!/bin/sh
# test_ibv_order.sh - the parts of the ibv conduit are in the order of conduits/ibv/Makefile.inc: an
# object uses symbols only of objects above it in that list, and a header includes only headers
# above it.
# SPDX-License-Identifier: BSD-3-Clause
set -eu

src=$(cd "$(dirname "$0")/../.." && pwd)
echo 1..2
order=$(sed -n 's,^\tconduits/ibv/\([a-z_]*\.[ch]\).*,\1,p' "$src/conduits/ibv/Makefile.inc")

# Lines "user owner" on standard input: those whose owner is not above the user, or is not listed.
upward()
{
    awk -v order="$order" '
        BEGIN { n = split(order, part, "\n"); for (i = 1; i <= n; i++) at[part[i]] = i }
        !($1 in at) || !($2 in at) || at[$2] >= at[$1] { print $1 " uses " $2 }'
}

# judge NUMBER NAME EDGES
judge()
{
    if [ "$(echo "$3" | wc -l)" -lt 20 ]; then
        echo "not ok $1 - $2: hardly any edges were found"
        return 1
    fi
    bad=$(echo "$3" | upward)
    [ -n "$bad" ] || { echo "ok $1 - $2"; return 0; }
    echo "not ok $1 - $2"
    echo "$bad" | sed 's/^/# /'
    return 1
}

failed=0
archive=
for file in .libs/libaq-ibv-par.a .libs/libaq-ibv-seq.a; do
    [ -n "$archive" ] || [ ! -e "$file" ] || archive=$file
done
if [ -n "$archive" ]; then
    calls=$(nm -A "$archive" | awk '
        { split($1, path, ":"); part = path[2]; sub(/.*_la-/, "", part); sub(/\.o$/, ".c", part) }
        $2 ~ /^[TDBRVWC]$/ { owner[$3] = part }
        $1 ~ /:$/ && $2 == "U" { user[++count] = part; symbol[count] = $3 }
        END { for (i = 1; i <= count; i++)
                  if (symbol[i] in owner && owner[symbol[i]] != user[i])
                      print user[i], owner[symbol[i]] }' | sort -u)
    judge 1 "parts of $archive call lower parts only" "$calls" || failed=1
else
    echo "ok 1 # SKIP no archive of the ibv conduit here"
fi
includes=$(cd "$src/conduits/ibv" && for header in *.h; do
    sed -n "s,^#include \"conduits/ibv/\(.*\)\",$header \1,p" "$header"
done)
judge 2 "headers include lower headers only" "$includes" || failed=1
exit $failed
