# gasnet1_forms.awk - writes gasnet/gasnet1_forms.h: every argument-count form of the seven kinds of
# GASNet-1 messages. Each is a typed inline function behind a macro of the same name that casts each
# handler argument, in parentheses, at the call; then one macro for each kind that is given the count.
# SPDX-License-Identifier: BSD-3-Clause

# name, fn  the public stem, and the function in gasnet1_am.h that does it
# params    what stands before the handler arguments; values: the same without the types
# fixed     how many arguments that is
function emit(name, fn, params, values, fixed,    n, i, decl, cast, list, margs) {
    for (n = 0; n <= 16; n++) {
        decl = ""; cast = ""; list = ""; margs = ""
        for (i = 0; i < n; i++) {
            decl = decl ", gasnet_handlerarg_t a" i
            list = list (i ? ", " : " ") "a" i
            margs = margs ", a" i
            cast = cast ", (gasnet_handlerarg_t)(a" i ")"
        }
        printf "static inline AQ_UNUSED int %s%d(%s%s)\n{\n", name, n, params, decl
        if (n)
            printf "    const gasnet_handlerarg_t args[] = {%s };\n\n", list
        printf "    return %s(\"%s%d\", %s, %du, %s);\n}\n", fn, name, n, values, n, n ? "args" : "NULL"
        if (n) {    # two steps: an argument may itself be a macro that makes several arguments
            printf "#define %s%d(...) aq_cast_%s%d(__VA_ARGS__)\n", name, n, name, n
            printf "#define aq_cast_%s%d(%s%s) \\\n    %s%d(%s%s)\n", name, n, values, margs,
                name, n, values, cast
        }
        printf "#define aq_counted_%s%d(%s, numargs%s) \\\n", name, n, values, margs
        printf "    (aq_gasnet1_check_count(\"%s\", (int)(numargs), %d), \\\n     %s%d(%s%s))\n\n", name, n,
            name, n, values, cast
    }
    printf "#define %s(...) \\\n    AQ_GASNET1_PICK(aq_counted_%s, AQ_GASNET1_COUNT_%d(__VA_ARGS__))(__VA_ARGS__)\n\n",
        name, name, fixed + 1
    counts[fixed + 1] = 1
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
    printf "#define AQ_GASNET1_COUNT_%d(...) \\\n    AQ_GASNET1_COUNT_%d_(__VA_ARGS__, %s0)\n", fixed, fixed, numbers
    printf "#define AQ_GASNET1_COUNT_%d_(%sn, ...) n\n", fixed, names
}

BEGIN {
    print "/* gasnet1_forms.h - generated from gasnet1_forms.awk: the argument-count forms of GASNet-1 messages."
    print " * SPDX-License-Identifier: BSD-3-Clause */"
    print "#ifndef GASNET_GASNET1_FORMS_H\n#define GASNET_GASNET1_FORMS_H 1\n"
    print "#include \"gasnet.h\"\n\nAQ_BEGIN_DECLS\n"
    print "#define AQ_GASNET1_PICK(name, count) AQ_GASNET1_PICK_(name, count)"
    print "#define AQ_GASNET1_PICK_(name, count) name##count\n"

    peer = "gasnet_node_t dest, gasnet_handler_t handler"
    reply = "gasnet_token_t token, gasnet_handler_t handler"
    payload = ", const void *source_addr,\n    size_t nbytes"
    emit("gasnet_AMRequestShort", "aq_gasnet1_request_short", peer, "dest, handler", 2)
    emit("gasnet_AMRequestMedium", "aq_gasnet1_request_medium", peer payload,
         "dest, handler, source_addr, nbytes", 4)
    emit("gasnet_AMRequestLong", "aq_gasnet1_request_long", peer payload ", void *dest_addr",
         "dest, handler, source_addr, nbytes, dest_addr", 5)
    emit("gasnet_AMRequestLongAsync", "aq_gasnet1_request_long", peer payload ", void *dest_addr",
         "dest, handler, source_addr, nbytes, dest_addr", 5)
    emit("gasnet_AMReplyShort", "aq_gasnet1_reply_short", reply, "token, handler", 2)
    emit("gasnet_AMReplyMedium", "aq_gasnet1_reply_medium", reply payload,
         "token, handler, source_addr, nbytes", 4)
    emit("gasnet_AMReplyLong", "aq_gasnet1_reply_long", reply payload ", void *dest_addr",
         "token, handler, source_addr, nbytes, dest_addr", 5)
    for (fixed = 3; fixed <= 6; fixed++)
        if (fixed in counts)
            emit_count(fixed)
    print "\nAQ_END_DECLS\n\n#endif"
}
