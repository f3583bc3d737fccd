# positions.awk - makes a program of positions.list: every macro in every position that its form
# has. SPDX-License-Identifier: BSD-3-Clause
#
#   awk -v language=c|++ [-v rows=forms] -f positions.awk positions.list >program
#
# rows=forms: the rows of that kind only, otherwise the others; they are thousands of calls.
# The last line of the program is a comment with the number of wrong calls in it.

function trim(s) { gsub(/^ +| +$/, "", s); return s }

# Replaces what each occurrence of from, a plain string, stands for.
function put(text, from, to,    at, done)
{
    done = ""
    while ((at = index(text, from)) > 0) {
        done = done substr(text, 1, at - 1) to
        text = substr(text, at + length(from))
    }
    return done text
}

# The macro as it stands before a declaration; if that is its argument, closing() closes it.
function opening(k, member)
{
    if (form[k] == "attr")
        return bare[k] " "
    if (form[k] == "inline")
        return bare[k] "(@f) "
    if (form[k] == "never")
        return bare[k] "(@f, "
    return bare[k] (member ? "(@f, 3, 4, " : "(@f, 2, 3, ")
}

function closing(k) { return form[k] == "attr" || form[k] == "inline" ? "" : ")" }

function pragma_of(k)
{
    return bare[k] ~ /_(NORETURN|MALLOC|PURE|CONST)$/ ? "\n" bare[k] "P(@f)\n" : ""
}

function wrong_calls(text, k,    n, callee)
{
    while (match(text, /@W\([^)]*\)/)) {
        if (wrong[k] != "")
            n++
        callee = substr(text, RSTART + 3, RLENGTH - 4)
        text = substr(text, 1, RSTART - 1) (wrong[k] == "" ? "" : "CALL(" callee wrong[k] ")") \
            substr(text, RSTART + RLENGTH)
    }
    if (bare[k] == "GASNETT_DEPRECATED" && text ~ /@U/) # taking the address is a use, too
        n++
    calls += n
    return text
}

function common(text)
{
    text = put(text, "@U", "extern void (*const use_@f)(void); " \
        "void (*const use_@f)(void) = (void (*)(void))@f;")
    text = put(text, "@f", "a" ++names)
    return put(text, "\\n", "\n")
}

function fill(text, k)
{
    text = wrong_calls(text, k)
    text = put(put(text, "@[", opening(k, 1)), "@]", closing(k))
    text = put(put(text, "@{", opening(k, 0)), "@}", closing(k))
    text = put(put(text, "@M", bare[k]), "@N", pragma_of(k))
    text = put(text, "@H", attribute[k] == "" ? "" : "HAS(@f, " attribute[k] ")")
    text = put(put(put(text, "@T", type[k]), "@P", parameters[k]), "@B", body[k])
    return common(text)
}

function macro(rest,    field)
{
    split(rest, field, "|")
    n++
    bare[n] = trim(field[1])
    sub(/\(\)$/, "", bare[n])
    form[n] = trim(field[2])
    type[n] = trim(field[3])
    parameters[n] = trim(field[4])
    body[n] = trim(field[5])
    wrong[n] = trim(field[6])
    attribute[n] = trim(field[7])
}

# What stands for a call: in a function, and in those of classes.
function call(parameters, body)
{
    print common("void @f" parameters "; void @f" parameters " { " body " }")
    if (language == "++")
        print common("struct c_@f { void f" parameters " { " body " } static void g" parameters \
            "; }; void c_@f::g" parameters " { " body " } template <class X> struct d_@f { void f" \
            parameters " const { " body " } }; template struct d_@f<int>;")
}

# n handler arguments of several types, each with a comma before it.
function arguments(n,    i, list)
{
    list = ""
    for (i = 0; i < n; i++)
        list = list ", " (i % 4 == 0 ? "k" : i % 4 == 1 ? "'c'" : i % 4 == 2 ? i "u" : "k ? " i " : -1")
    return list
}

# The forms of a call for 0 to 16 handler arguments: with the number in the name, and without it.
function all_forms(rest,    field, word, n, one, body)
{
    split(rest, field, "|")
    split(field[1], word, " ")
    body = "int sum = 0; (void)k; "
    for (n = 0; n <= 16; n++) {
        one = word[2] n trim(field[2]) "(" trim(field[4]) arguments(n) ")"
        body = body (word[1] == "void" ? "if (k) " one "; else " one ";\\n" : "sum += " one ";\\n")
        one = word[2] trim(field[2]) "(" trim(field[4]) (trim(field[5]) == "" ? "" : ", " n) arguments(n) ")"
        body = body (word[1] == "void" ? one ";\\n" : "if (" one " == 0) sum++;\\n")
    }
    call("(" trim(field[3]) ", long k)", body "if (sum != 0) return;")
}

# A macro, a position, a call, its forms or a text of its own, in one line.
function row(line,    kind, rest, at, forms, k)
{
    kind = substr(line, 1, index(line, " ") - 1)
    rest = substr(line, index(line, " ") + 1)
    if (kind == "macro") {
        macro(rest)
        return
    }
    if ((kind == "forms") != (rows == "forms"))
        return
    if (kind == "forms") {
        all_forms(rest)
        return
    }
    at = index(rest, "|")
    if (kind == "call") {
        call(trim(substr(rest, 1, at - 1)), trim(substr(rest, at + 1)))
        return
    }
    if (trim(substr(rest, 1, at - 1)) == "++" && language != "++")
        return
    rest = substr(rest, at + 1)
    if (kind == "text") {
        print common(trim(rest))
        return
    }
    at = index(rest, "|")
    forms = " " trim(substr(rest, 1, at - 1)) " "
    for (k = 1; k <= n; k++)
        if (index(forms, " " form[k] " ") > 0)
            print fill(trim(substr(rest, at + 1)), k)
}

BEGIN {
    print "#include \"positions.h\""
}

/^    / {
    kept = kept " " trim($0)
    next
}

kept != "" {
    row(kept)
    kept = ""
}

/^(macro|position|call|forms|text) / {
    kept = $0
}

END {
    if (kept != "")
        row(kept)
    print "/* " calls + 0 " wrong calls, " names + 0 " uses */"
}
