# aq_am_dispatch.awk - writes core/aq_am_dispatch.inc: the calls of client handlers. A handler is
# an ordinary function of a fixed number of arguments, so it is called through a pointer of
# exactly its type, one for each number.
# SPDX-License-Identifier: BSD-3-Clause
function emit(fn, types, values,    n, i, t, v) {
    printf "static inline void %s(gex_AM_Fn_t fn, unsigned nargs, gex_Token_t token,\n", fn
    printf "    void *buf, size_t nbytes, const gex_AM_Arg_t *a)\n{\n    (void)buf, (void)nbytes;\n"
    printf "    switch (nargs) {\n"
    for (n = 0; n <= 16; n++) {
        t = types; v = values
        for (i = 0; i < n; i++) { t = t ", gex_AM_Arg_t"; v = v ", a[" i "]" }
        printf "    case %d: ((void (*)(%s))fn)(%s); break;\n", n, t, v
    }
    printf "    }\n}\n\n"
}
BEGIN {
    print "/* aq_am_dispatch.inc - generated from aq_am_dispatch.awk. SPDX-License-Identifier: BSD-3-Clause */"
    emit("aq_am_call_short", "gex_Token_t", "token")
    emit("aq_am_call_payload", "gex_Token_t, void *, size_t", "token, buf, nbytes")
}
