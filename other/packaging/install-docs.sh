#!/bin/sh
# install-docs.sh - the documents in their installed places, with links that lead somewhere there.
# SPDX-License-Identifier: BSD-3-Clause
#
#   install-docs.sh SOURCE DESTINATION [FILE=NAME]...
#
# The folder docs is installed as it is, all but the manual pages; each FILE besides under NAME, as users of this kind of
# library know it. A link to a document leads to its installed place; what is in the source tree only becomes plain text.

set -eu
from=$1 to=$2
shift 2

# relink FILE NAME: FILE on standard output, as NAME is to read. Lines of code are left alone.
relink()
{
    LC_ALL=C awk -v from="${1%/*}" -v depth="$(printf '%s' "$2" | tr -cd / | wc -c)" -v top="$1" -v stays="$([ "$1" != "$2" ] || echo 1)" \
        -v listed="$(printf '%s ' $folders)" '
    # path, relative to the folder "from", seen from the top of the source tree
    function resolved(path,    parts, n, i, out, kept)
    {
        n = split((from == top ? "" : from "/") path, parts, "/")
        kept = 0
        for (i = 1; i <= n; i++) {
            if (parts[i] == ".." && kept > 0)
                kept--
            else if (parts[i] != "." && parts[i] != "")
                out[++kept] = parts[i]
        }
        path = ""
        for (i = 1; i <= kept; i++)
            path = path (i > 1 ? "/" : "") out[i]
        return path
    }
    function back(    i, up) { for (i = 0; i < depth; i++) up = up "../"; return up }
    # the target of a link in its installed place; "" if it is not installed
    function installed(target,    path, mark)
    {
        if (target ~ /^(#|[a-z]+:)/)
            return target
        mark = index(target, "#") ? substr(target, index(target, "#")) : ""
        path = resolved(substr(target, 1, length(target) - length(mark)))
        if (path == "README.md")
            return back() "README" mark
        if (path == "LICENSE" || path == "ChangeLog")
            return back() path
        if (!(path in places))
            return ""
        return stays ? target : back() path mark
    }
    BEGIN {
        n = split(listed, all, /[ \n]+/)
        for (i = 1; i <= n; i++)
            places[all[i]] = 1
    }
    /^```/ { code = !code }
    code || /^    / { print; next }
    {
        done = ""
        rest = $0
        while (match(rest, /\[[^][]*\]\([^() ]+\)/)) {
            link = substr(rest, RSTART, RLENGTH)
            done = done substr(rest, 1, RSTART - 1)
            rest = substr(rest, RSTART + RLENGTH)
            cut = index(link, "](")
            target = installed(substr(link, cut + 2, length(link) - cut - 2))
            done = done (target == "" ? substr(link, 2, cut - 2) : substr(link, 1, cut + 1) target ")")
        }
        print done rest
    }' "$from/$1"
}

mkdir -p "$to"
to=$(cd "$to" && pwd)
cd "$from"
from=$(pwd)
files=$(find docs -type f ! -path 'docs/man/*' ! -name 'GASNet-EX.txt' ! -name '.*' ! -name '*~')
folders=$(find docs -type d ! -path docs/man; echo "$files")
for file in $files; do
    mkdir -p "$to/${file%/*}"
    case $file in
    *.md) relink "$file" "$file" >"$to/$file" ;;
    *) cp "$file" "$to/$file" ;;
    esac
    chmod 644 "$to/$file"
done
for pair; do
    relink "${pair%=*}" "${pair#*=}" >"$to/${pair#*=}"
    chmod 644 "$to/${pair#*=}"
done
