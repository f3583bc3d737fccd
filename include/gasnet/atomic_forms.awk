# atomic_forms.awk - writes gasnet/atomic_forms.h: for each of the six types the operations on one
# word, and the two calls that start them. What an operation does is said here and nowhere else:
# the inline path, the library's (aq_ad_apply_*) and the handlers at a target all use it.
# SPDX-License-Identifier: BSD-3-Clause

# Words to values and back, and what a compare-and-swap loop is to store.
function integer_parts(t, C, W, S) {
    printf "static inline AQ_UNUSED %s aq_ad_bits_%s(%s value)\n{\n    return (%s)value;\n}\n\n", W, t, C, W
    printf "static inline AQ_UNUSED %s aq_ad_value_%s(%s bits)\n{\n    return (%s)bits;\n}\n\n", C, t, W, C
    printf "static AQ_AD_INLINE %s aq_ad_next_%s(unsigned number, %s old, %s a)\n{\n", W, t, W, W
    print  "    switch (number) {"
    print  "    case AQ_AD_MULT: return old * a;"
    printf "    case AQ_AD_MIN: return (%s)old < (%s)a ? old : a;\n", S, S
    printf "    case AQ_AD_MAX: return (%s)old > (%s)a ? old : a;\n", S, S
    print  "    default: return old;"
    print  "    }\n}\n"
}

function floating_parts(t, C, W) {
    printf "static inline AQ_UNUSED %s aq_ad_bits_%s(%s value)\n{\n    %s bits;\n\n", W, t, C, W
    printf "    memcpy(&bits, &value, sizeof(bits));\n    return bits;\n}\n\n"
    printf "static inline AQ_UNUSED %s aq_ad_value_%s(%s bits)\n{\n    %s value;\n\n", C, t, W, C
    printf "    memcpy(&value, &bits, sizeof(value));\n    return value;\n}\n\n"
    printf "static AQ_AD_INLINE %s aq_ad_next_%s(unsigned number, %s old, %s a)\n{\n", W, t, W, W
    printf "    const %s x = aq_ad_value_%s(old), y = aq_ad_value_%s(a);\n\n", C, t, t
    print  "    switch (number) {"
    printf "    case AQ_AD_ADD: return aq_ad_bits_%s(x + y);\n", t
    printf "    case AQ_AD_SUB: return aq_ad_bits_%s(x - y);\n", t
    printf "    case AQ_AD_MULT: return aq_ad_bits_%s(x * y);\n", t
    printf "    case AQ_AD_MIN: return x < y ? old : a;\n"
    printf "    case AQ_AD_MAX: return x > y ? old : a;\n"
    printf "    case AQ_AD_INC: return aq_ad_bits_%s(x + 1);\n", t
    printf "    case AQ_AD_DEC: return aq_ad_bits_%s(x - 1);\n", t
    print  "    default: return old;"
    print  "    }\n}\n"
}

# The operation itself; returns what was there before, of which only fetching ones make use.
function operation(t, W, is_integer) {
    printf "static AQ_AD_INLINE %s aq_ad_do_%s(%s *at, unsigned number, int fetches, %s a, %s b,\n",
        W, t, W, W, W
    printf "    gex_Flags_t flags)\n{\n    %s old, next;\n\n    switch (number) {\n", W
    if (is_integer) {
        print "    case AQ_AD_AND: return __atomic_fetch_and(at, a, AQ_AD_ORDER);"
        print "    case AQ_AD_OR: return __atomic_fetch_or(at, a, AQ_AD_ORDER);"
        print "    case AQ_AD_XOR: return __atomic_fetch_xor(at, a, AQ_AD_ORDER);"
        print "    case AQ_AD_ADD: return __atomic_fetch_add(at, a, AQ_AD_ORDER);"
        print "    case AQ_AD_SUB: return __atomic_fetch_sub(at, a, AQ_AD_ORDER);"
        print "    case AQ_AD_INC: return __atomic_fetch_add(at, 1u, AQ_AD_ORDER);"
        print "    case AQ_AD_DEC: return __atomic_fetch_sub(at, 1u, AQ_AD_ORDER);"
    }
    print "    case AQ_AD_SET:"
    print "        if (fetches)"
    print "            return __atomic_exchange_n(at, a, AQ_AD_ORDER);"
    print "        __atomic_store_n(at, a, AQ_AD_ORDER);"
    print "        return a;"
    print "    case AQ_AD_CAS: /* strong: it must not fail spuriously; a becomes what was found */"
    print "        (void)__atomic_compare_exchange_n(at, &a, b, 0, AQ_AD_ORDER, AQ_AD_ORDER);"
    print "        return a;"
    print "    case AQ_AD_GET: return __atomic_load_n(at, AQ_AD_ORDER);"
    print "    default: break;"
    print "    }"
    print "    old = __atomic_load_n(at, AQ_AD_ORDER);"
    print "    do {"
    printf "        next = aq_ad_next_%s(number, old, a);\n", t
    print "        if (next == old && aq_ad_is_unordered(flags))"
    print "            break;"
    print "    } while (!__atomic_compare_exchange_n(at, &old, next, 1, AQ_AD_ORDER, AQ_AD_ORDER));"
    print "    return old;\n}\n"

    printf "static AQ_AD_INLINE void aq_ad_run_%s(%s *at, %s *result_p, gex_OP_t opcode, %s a, %s b,\n",
        t, W, ctype[t], W, W
    printf "    gex_Flags_t flags)\n{\n"
    print  "    const unsigned number = aq_ad_number(opcode);"
    print  "    const int fetches = aq_ad_fetches(opcode);"
    printf "    %s old;\n\n", W
    print  "    aq_ad_fence_before(number, flags);"
    printf "    old = aq_ad_do_%s(at, number, fetches, a, b, flags);\n", t
    print  "    aq_ad_fence_after(number, fetches, flags);"
    print  "    if (fetches)"
    printf "        *result_p = aq_ad_value_%s(old);\n}\n\n", t
}

# A constant opcode is worked out by the compiler; the library has the switch for the others.
function here(t, C, W) {
    printf "AQ_PUBLIC void aq_ad_apply_%s(%s *at, %s *result_p, gex_OP_t opcode, %s a, %s b,\n", t, W, C, W, W
    printf "    gex_Flags_t flags);\n\n"
    printf "static AQ_AD_INLINE void aq_ad_here_%s(intptr_t delta, %s *result_p, void *tgt_addr,\n", t, C
    printf "    gex_OP_t opcode, %s operand1, %s operand2, gex_Flags_t flags)\n{\n", C, C
    printf "    %s *const at = (%s *)(void *)aq_rma_ptr(delta, tgt_addr);\n", W, W
    printf "    const %s a = aq_ad_bits_%s(operand1), b = aq_ad_bits_%s(operand2);\n\n", W, t, t
    print  "    if (__builtin_constant_p(opcode))"
    printf "        aq_ad_run_%s(at, result_p, opcode, a, b, flags);\n", t
    print  "    else"
    printf "        aq_ad_apply_%s(at, result_p, opcode, a, b, flags);\n}\n\n", t
}

function call(t, T, C, suffix, ret, must, done, out,    name) {
    name = "gex_AD_Op" suffix "_" T
    printf "static AQ_AD_INLINE %s%s %s(gex_AD_t ad, %s *result_p, gex_Rank_t tgt_rank,\n", must, ret, name, C
    printf "    void *tgt_addr, gex_OP_t opcode, %s operand1, %s operand2, gex_Flags_t flags)\n{\n", C, C
    printf "    AQ_AD_CHECK(\"%s\", ad, GEX_DT_%s, result_p, tgt_rank, tgt_addr, opcode, flags);\n", name, T
    print  "    const intptr_t delta = aq_ad_delta(ad, tgt_rank, flags);\n"
    print  "    if (AQ_UNLIKELY(delta == AQ_NOT_MAPPED))"
    printf "        return %s(ad, result_p, tgt_rank, tgt_addr, opcode, aq_ad_bits_%s(operand1),\n", out, t
    printf "                         aq_ad_bits_%s(operand2), flags);\n", t
    printf "    aq_ad_here_%s(delta, result_p, tgt_addr, opcode, operand1, operand2, flags);\n", t
    printf "    return %s;\n}\n\n", done
}

function type(T, t, C, W, is_integer) {
    printf "/* --- %s: %s --- */\n\n", T, C
    ctype[t] = C
    if (is_integer)
        integer_parts(t, C, W, C)
    else
        floating_parts(t, C, W)
    operation(t, W, is_integer)
    here(t, C, W)
    call(t, T, C, "NB", "gex_Event_t", "AQ_MUST_USE ", "GEX_EVENT_INVALID", "aq_ad_nb")
    call(t, T, C, "NBI", "int", "", "0", "aq_ad_nbi")
    list = list " \\\n    X(" T ", " t ", " C ", " W ")"
}

BEGIN {
    print "/* atomic_forms.h - generated from atomic_forms.awk: the operations of each type."
    print " * Included by gasnet/atomic.h. SPDX-License-Identifier: BSD-3-Clause */\n"
    type("I32", "i32", "int32_t", "aq_ad_word4", 1)
    type("U32", "u32", "uint32_t", "aq_ad_word4", 1)
    type("I64", "i64", "int64_t", "aq_ad_word8", 1)
    type("U64", "u64", "uint64_t", "aq_ad_word8", 1)
    type("FLT", "flt", "float", "aq_ad_word4", 0)
    type("DBL", "dbl", "double", "aq_ad_word8", 0)
    print "/* Each type: GEX_DT_T, its name in functions, the C type, the word. */"
    print "#define AQ_AD_TYPES(X)" list
}
