# covered.awk - which macros are in no position? SPDX-License-Identifier: BSD-3-Clause
#
#   awk -f covered.awk positions.list HEADER...
#
# Asks for every macro of the headers that has parameters, and for every other that annotates a
# declaration or initialises a variable, whatever it is called; AQ_ and aq_ are the library's own.
# Each is in a row of positions.list, or an exception there, with its reason. Prints what is not so,
# and fails.

BEGIN { list = ARGV[1] }

FILENAME == list && /^except / {
    excepted[$2] = NF > 3 && $3 == "|"
    next
}

# the forms for 0 to 16 arguments, and the one that counts them
FILENAME == list && /^forms / {
    split($0, field, /[ \t]*\|[ \t]*/)
    split(field[1], word, " ")
    for (n = 0; n <= 16; n++)
        listed[word[3] n field[2]]
    listed[word[3] field[2]]
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

# Does a macro without parameters stand for anything but a value? body: what it stands for
function annotates(body)
{
    sub(/\/\*.*/, "", body)
    gsub(/[ \t\\]+/, "", body)
    return body == "" || body ~ /^\{/ || body ~ /AQ_ATTR|__attribute__|\[\[|__restrict|_Pragma|^extern/
}

/^[ \t]*#[ \t]*define[ \t]+[A-Za-z_]/ {
    body = $0
    sub(/^[ \t]*#[ \t]*define[ \t]+/, "", body)
    name = body
    sub(/[^A-Za-z0-9_].*/, "", name)
    body = substr(body, length(name) + 1)
    if (name !~ /^(AQ|aq)_/ && (body ~ /^\(/ || annotates(body) && body !~ /\\$/))
        macros[name]
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
    if (found < 400) # the headers were not found
        complain(found + 0, "macros are too few")
    exit failed
}
