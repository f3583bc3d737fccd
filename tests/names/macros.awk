# macros.awk - makes #if and #error of macros.list. SPDX-License-Identifier: BSD-3-Clause
#
#   awk -v header=NAME -f macros.awk macros.list >file       what #if can find out
#   awk -v constants=1 -f macros.awk macros.list >file       CONSTANT(name) for each constant

function refuse(condition, why)
{
    print "#if " condition
    print "#error \"" why "\""
    print "#endif"
}

# A name, or one with its value, of the words behind the kind.
function check(word,    at, name, value)
{
    at = index(word, "=")
    name = at ? substr(word, 1, at - 1) : word
    value = at ? substr(word, at + 1) : ""
    if (constants) {
        if (kind == "constant" || kind == "cast")
            print "CONSTANT(" name ")"
        return
    }
    if (kind == "undefined")
        refuse("defined(" name ")", name " is a macro")
    else if (kind == "optional")
        refuse("defined(" name ") && " name " + 0 != 1", name " is neither 1 nor undefined")
    else if (kind == "exactly-one") {
        refuse("defined(" name ") && " name " + 0 != 1", name " is neither 1 nor undefined")
        sum = sum (sum == "" ? "" : " + ") "defined(" name ")"
    } else {
        refuse("!defined(" name ")", name " is not a macro")
        if (value != "")
            refuse(name " != " value, name " is not " value)
        else if (kind == "number") # if it is none the compiler says so
            refuse("(" name ") < 0", name " is negative")
        else if (kind == "constant")
            refuse("(" name ") == 0", name " is 0")
    }
}

$1 == "in" { wanted = constants || $2 == header; next }

NF == 0 || /^#/ || !wanted { next }

{
    kind = $1
    sum = ""
    star = index($2, "*")
    for (i = star ? 3 : 2; i <= NF; i++)
        check(star ? substr($2, 1, star - 1) $i substr($2, star + 1) : $i)
    if (sum != "" && !constants)
        refuse(sum " != 1", "not exactly one: " $0)
}
