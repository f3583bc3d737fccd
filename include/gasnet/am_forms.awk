# am_forms.awk - writes gasnet/am_forms.h: every argument-count form of the six kinds of message.
# Each form is a typed inline function, so that types are checked and a debugger stops in it,
# behind a macro of the same name that casts each handler argument to gex_AM_Arg_t at the call.
# SPDX-License-Identifier: BSD-3-Clause

function emit(name, fn, params, values, fixed,    n, i, decl, cast, list, margs) {
    for (n = 0; n <= 16; n++) {
        decl = ""; cast = ""; list = ""; margs = ""
        for (i = 0; i < n; i++) {
            decl = decl ", gex_AM_Arg_t a" i
            list = list (i ? ", " : " ") "a" i
            margs = margs ", a" i
            cast = cast ", (gex_AM_Arg_t)(a" i ")"
        }
        printf "static inline AQ_UNUSED int %s%d(%s%s)\n{\n", name, n, params, decl
        if (n)
            printf "    const gex_AM_Arg_t args[] = {%s };\n\n", list
        printf "    return %s(%s, %du, %s);\n}\n", fn, values, n, n ? "args" : "NULL"
        if (n) {    # two steps: an argument may itself be a macro that makes several arguments
            printf "#define %s%d(...) aq_cast_%s%d(__VA_ARGS__)\n", name, n, name, n
            printf "#define aq_cast_%s%d(%s%s) \\\n    %s%d(%s%s)\n", name, n, values, margs,
                name, n, values, cast
        }
        printf "\n"
    }
    printf "#define %s(...) AQ_AM_PICK(%s, AQ_AM_COUNT_%d(__VA_ARGS__))(__VA_ARGS__)\n\n",
        name, name, fixed
    counts[fixed] = 1
}

# Number of arguments beyond the first `fixed`: the arguments push the right number into place.
function emit_count(fixed,    i, names, numbers) {
    names = ""; numbers = ""
    for (i = 1; i <= fixed + 16; i++)
        names = names "p" i ", "
    for (i = 16; i >= 0; i--)
        numbers = numbers i ", "
    for (i = 1; i < fixed; i++)
        numbers = numbers "err, "
    printf "#define AQ_AM_COUNT_%d(...) AQ_AM_COUNT_%d_(__VA_ARGS__, %s0)\n", fixed, fixed, numbers
    printf "#define AQ_AM_COUNT_%d_(%sn, ...) n\n", fixed, names
}

BEGIN {
    print "/* am_forms.h - generated from am_forms.awk: the argument-count forms of the AM calls."
    print " * SPDX-License-Identifier: BSD-3-Clause */"
    print "#ifndef GASNET_AM_FORMS_H\n#define GASNET_AM_FORMS_H 1\n\nAQ_BEGIN_DECLS\n"
    print "#define AQ_AM_PICK(name, count) AQ_AM_PICK_(name, count)"
    print "#define AQ_AM_PICK_(name, count) name##count\n"

    peer = "gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t h"
    reply = "gex_Token_t token, gex_AM_Index_t h"
    emit("gex_AM_RequestShort", "aq_am_request_short",
         peer ", gex_Flags_t flags", "tm, rank, h, flags", 4)
    emit("gex_AM_RequestMedium", "aq_am_request_medium",
         peer ", const void *src,\n    size_t nbytes, gex_Event_t *lc_opt, gex_Flags_t flags",
         "tm, rank, h, src, nbytes, lc_opt, flags", 7)
    emit("gex_AM_RequestLong", "aq_am_request_long",
         peer ", const void *src,\n    size_t nbytes, void *dest, gex_Event_t *lc_opt, gex_Flags_t flags",
         "tm, rank, h, src, nbytes, dest, lc_opt, flags", 8)
    emit("gex_AM_ReplyShort", "aq_am_reply_short",
         reply ", gex_Flags_t flags", "token, h, flags", 3)
    emit("gex_AM_ReplyMedium", "aq_am_reply_medium",
         reply ", const void *src,\n    size_t nbytes, gex_Event_t *lc_opt, gex_Flags_t flags",
         "token, h, src, nbytes, lc_opt, flags", 6)
    emit("gex_AM_ReplyLong", "aq_am_reply_long",
         reply ", const void *src,\n    size_t nbytes, void *dest, gex_Event_t *lc_opt, gex_Flags_t flags",
         "token, h, src, nbytes, dest, lc_opt, flags", 7)
    for (fixed = 3; fixed <= 8; fixed++)
        if (fixed in counts)
            emit_count(fixed)
    print "\nAQ_END_DECLS\n\n#endif"
}
