# am_forms.awk - writes gasnet/am_forms.h: every argument-count form of the calls that send active
# messages, with a fixed payload (six kinds) and with a negotiated one (four kinds, two generations).
# Each form is a typed inline function, so that types are checked and a debugger stops in it,
# behind a macro of the same name that casts each handler argument to gex_AM_Arg_t at the call.
# SPDX-License-Identifier: BSD-3-Clause

# All forms of name<M>suffix: its result, the function that does the work, the parameters before the
# M handler arguments, their names, how many they are, and what the function is called with.
function emit(result, name, suffix, fn, params, names, fixed, values,
    n, i, decl, cast, list, margs, full) {
    for (n = 0; n <= 16; n++) {
        decl = ""; cast = ""; list = ""; margs = ""; full = name n suffix
        for (i = 0; i < n; i++) {
            decl = decl ", gex_AM_Arg_t a" i
            list = list (i ? ", " : " ") "a" i
            margs = margs ", a" i
            cast = cast ", (gex_AM_Arg_t)(a" i ")"
        }
        printf "static inline AQ_UNUSED %s %s(%s%s)\n{\n", result, full, params, decl
        if (n)
            printf "    const gex_AM_Arg_t args[] = {%s };\n\n", list
        printf "    AQ_AM_CHECK_INDEX(\"%s\", h);\n", full
        printf "    %s%s(%s, %du, %s);\n}\n", result == "void" ? "(void)" : "return ", fn, values,
            n, n ? "args" : "NULL"
        if (n) {    # two steps: an argument may itself be a macro that makes several arguments
            printf "#define %s(...) aq_cast_%s(__VA_ARGS__)\n", full, full
            printf "#define aq_cast_%s(%s%s) \\\n    %s(%s%s)\n", full, names, margs, full, names, cast
        }
        printf "\n"
    }
    printf "#define %s%s(...) AQ_AM_PICK(%s, AQ_AM_COUNT_%d(__VA_ARGS__), %s)(__VA_ARGS__)\n\n",
        name, suffix, name, fixed, suffix
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

function emit_fixed_payload(    peer, reply, medium, long) {
    peer = "gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t h"
    reply = "gex_Token_t token, gex_AM_Index_t h"
    medium = ", const void *src,\n    size_t nbytes, gex_Event_t *lc_opt, gex_Flags_t flags"
    long = ", const void *src,\n    size_t nbytes, void *dest, gex_Event_t *lc_opt, gex_Flags_t flags"
    fixed_payload("gex_AM_RequestShort", "aq_am_request_short", peer ", gex_Flags_t flags",
                  "tm, rank, h, flags", 4)
    fixed_payload("gex_AM_RequestMedium", "aq_am_request_medium", peer medium,
                  "tm, rank, h, src, nbytes, lc_opt, flags", 7)
    fixed_payload("gex_AM_RequestLong", "aq_am_request_long", peer long,
                  "tm, rank, h, src, nbytes, dest, lc_opt, flags", 8)
    fixed_payload("gex_AM_ReplyShort", "aq_am_reply_short", reply ", gex_Flags_t flags",
                  "token, h, flags", 3)
    fixed_payload("gex_AM_ReplyMedium", "aq_am_reply_medium", reply medium,
                  "token, h, src, nbytes, lc_opt, flags", 6)
    fixed_payload("gex_AM_ReplyLong", "aq_am_reply_long", reply long,
                  "token, h, src, nbytes, dest, lc_opt, flags", 7)
}

function fixed_payload(name, fn, params, names, fixed) {
    emit("int", name, "", fn, params, names, fixed, names)
}

# The first generation of Commit waits for room as long as it takes, and so has nothing to return.
function negotiated_payload(name, fn, params, names, fixed) {
    emit("void", name, "", fn, params, names, fixed, names ", 0")
    emit("int", name, "_v2", fn, params ", gex_Flags_t cflags", names ", cflags", fixed + 1,
         names ", cflags")
}

function emit_negotiated_payload(    medium, long) {
    medium = "gex_AM_SrcDesc_t sd, gex_AM_Index_t h, size_t nbytes"
    long = medium ",\n    void *dest"
    negotiated_payload("gex_AM_CommitRequestMedium", "aq_npam_commit_request_medium", medium,
                       "sd, h, nbytes", 3)
    negotiated_payload("gex_AM_CommitRequestLong", "aq_npam_commit_request_long", long,
                       "sd, h, nbytes, dest", 4)
    negotiated_payload("gex_AM_CommitReplyMedium", "aq_npam_commit_reply_medium", medium,
                       "sd, h, nbytes", 3)
    negotiated_payload("gex_AM_CommitReplyLong", "aq_npam_commit_reply_long", long,
                       "sd, h, nbytes, dest", 4)
}

BEGIN {
    print "/* am_forms.h - generated from am_forms.awk: the argument-count forms of the AM calls."
    print " * SPDX-License-Identifier: BSD-3-Clause */"
    print "#include \"gasnetex.h\" /* first: the parts come in its order */\n"
    print "#ifndef GASNET_AM_FORMS_H\n#define GASNET_AM_FORMS_H 1\n\nAQ_BEGIN_DECLS\n"
    print "#define AQ_AM_PICK(name, count, suffix) AQ_AM_PICK_(name, count, suffix)"
    print "#define AQ_AM_PICK_(name, count, suffix) name##count##suffix\n"
    emit_fixed_payload()
    emit_negotiated_payload()
    for (fixed = 3; fixed <= 8; fixed++)
        if (fixed in counts)
            emit_count(fixed)
    print "\nAQ_END_DECLS\n\n#endif"
}
