#!/bin/sh
# test_mpi_order.sh - the parts of the mpi conduit, and those of other/spawn's MPI provider, call
# only lower parts: a graph of which object uses a symbol of which other has no ring.
# SPDX-License-Identifier: BSD-3-Clause
set -eu

echo 1..1
archive=
for file in .libs/libaq-mpi-par.a .libs/libaq-mpi-seq.a; do
    [ -n "$archive" ] || [ ! -e "$file" ] || archive=$file
done
[ -n "$archive" ] || { echo "ok 1 # SKIP no archive of the mpi conduit here"; exit 0; }
edges=$(nm -A "$archive" | awk '
    { n = split($1, path, ":"); part = path[2]; sub(/.*_la-/, "", part) }
    $2 ~ /^[TDBRVWC]$/ { owner[$3] = part }
    $1 ~ /:$/ && $2 == "U" { user[++count] = part; symbol[count] = $3 }
    END { for (i = 1; i <= count; i++)
              if (symbol[i] in owner && owner[symbol[i]] != user[i])
                  print user[i], owner[symbol[i]] }' | sort -u)
[ "$(echo "$edges" | wc -l)" -gt 10 ] || { echo "not ok 1 - $archive: no calls between parts found"; exit 1; }
if rings=$(echo "$edges" | tsort 2>&1 >/dev/null) && [ -z "$rings" ]; then
    echo "ok 1 - parts of $archive call lower parts only"
else
    echo "not ok 1 - parts that call each other in a ring"
    echo "$rings" | sed 's/^/# /'
    exit 1
fi
