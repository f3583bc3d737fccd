# covered.awk - which macros with parameters are in no position? SPDX-License-Identifier: BSD-3-Clause
#
#   awk -f covered.awk positions.list HEADER...
#
# Every one of the interface's is in a row of positions.list, or an exception there, with its reason.
# Prints what is not so, and fails.

BEGIN { list = ARGV[1] }

FILENAME == list && /^except / {
    excepted[$2] = NF > 3 && $3 == "|"
    next
}

FILENAME == list {
    if (!/^#/) {
        gsub(/[^A-Za-z0-9_]+/, " ")
        for (i = 1; i <= NF; i++)
            listed[$i]
    }
    next
}

/^[ \t]*#[ \t]*define[ \t]+(GASNETT?|gasnett|GEX)_[A-Za-z0-9_]+\(/ {
    sub(/^[ \t]*#[ \t]*define[ \t]+/, "")
    sub(/\(.*/, "")
    macros[$0]
}

function complain(name, what)
{
    print name " " what
    failed = 1
}

END {
    for (name in macros)
        if (!(name in listed) && !(name in excepted))
            complain(name, "is in no row of positions.list")
    for (name in excepted) {
        if (!(name in macros) || name in listed)
            complain(name, "is an exception of positions.list for nothing")
        if (!excepted[name])
            complain(name, "is an exception of positions.list without a reason")
    }
    for (name in macros)
        found++
    if (found < 60) # the headers were not found
        complain(found + 0, "macros are too few")
    exit failed
}
