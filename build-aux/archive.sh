#!/bin/sh
# archive.sh AR OUTPUT.a (OBJECT.o | CONVENIENCE.la)... - one plain static archive of objects and libtool parts.
# SPDX-License-Identifier: BSD-3-Clause
#
# The convenience libraries are built from position-independent objects only, so that the archive can be
# linked into programs and into shared objects alike.

set -eu
ar=$1 output=$2
shift 2
{
    echo "CREATE $output"
    for part; do
        case $part in
        *.la) dir=$(dirname "$part"); echo "ADDLIB $dir/.libs/$(basename "$part" .la).a" ;;
        *) echo "ADDMOD $part" ;;
        esac
    done
    echo SAVE
    echo END
} | $ar -M
