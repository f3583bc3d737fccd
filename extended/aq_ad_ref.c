/*
 * aq_ad_ref.c - atomic operations over active messages: the target's processor executes them.
 *
 * A request contains everything that the operation needs, so that the target needs no state: type,
 * opcode, fences, address, operands. Its handler executes it with aq_ad_apply(), which peers that
 * have the target mapped use too, and replies with the old value or with an acknowledgement.
 *
 * Threads   any; replies are counted on whatever thread polls
 * Promise   the reply leaves after the operation took effect
 * Wire      AD_REQUEST(code, address, operation, operand1, operand2, result)
 *           -> AD_RESULT(code, operation, result, value) if fetching, else AD_DONE(code, operation)
 *           code: bit number of the opcode, of the type << 5, GEX_FLAG_AD_REL and _ACQ << 8
 * Uses      core/aq_am.h, core/aq_op.h, extended/aq_ad.h
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "core/aq_am.h"
#include "core/aq_job.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "extended/aq_ad.h"
#include "core/aq_op.h"

#define AQ_AD_FENCES (GEX_FLAG_AD_REL | GEX_FLAG_AD_ACQ)

/* Eight bytes in two handler arguments, and back. */
#define AQ_ARGS_OF_WORD(word) (gex_AM_Arg_t)((word) >> 32), (gex_AM_Arg_t)(uint32_t)(word)

static inline uint64_t aq_word_of_args(gex_AM_Arg_t high, gex_AM_Arg_t low)
{
    return (uint64_t)(uint32_t)high << 32 | (uint32_t)low;
}

/* --- the code word --- */

static inline uint32_t aq_ad_code(gex_DT_t dt, gex_OP_t opcode, gex_Flags_t flags)
{
    return (uint32_t)__builtin_ctz(opcode) | (uint32_t)__builtin_ctz(dt) << 5
           | (uint32_t)(flags & AQ_AD_FENCES) << 8;
}

static inline gex_OP_t aq_ad_code_opcode(gex_AM_Arg_t code)
{
    return (gex_OP_t)1 << ((uint32_t)code & 31);
}

static inline gex_DT_t aq_ad_code_dt(gex_AM_Arg_t code)
{
    return (gex_DT_t)1 << ((uint32_t)code >> 5 & 7);
}

static inline gex_Flags_t aq_ad_code_flags(gex_AM_Arg_t code)
{
    return (gex_Flags_t)((uint32_t)code >> 8) & AQ_AD_FENCES;
}

/* Ends the job if a message from the network would access memory outside this process's
 * segments. */
static void aq_ad_check_request(gex_Token_t token, gex_AM_Arg_t code, const void *addr)
{
    const gex_DT_t dt = aq_ad_code_dt(code);
    const char *error = NULL;
    gex_Token_Info_t info;

    if ((aq_ad_ops_of(dt) & aq_ad_code_opcode(code)) == 0)
        error = "which does not exist";
    else if (((uintptr_t)addr & (aq_ad_size(dt) - 1)) != 0)
        error = "which is not aligned";
#if !GASNET_SEGMENT_EVERYTHING
    else if (aq_job.bound == NULL || !aq_bound_contains(aq_job.rank, addr, aq_ad_size(dt)))
        error = "which is not inside this process's segment";
#endif
    if (AQ_LIKELY(error == NULL))
        return;
    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    aq_fatal("rank %u asked for an atomic operation (0x%x) at %p, %s", info.gex_srcrank,
             (unsigned)code, addr, error);
}

/* --- handlers --- */

static void aq_ad_on_request(gex_Token_t token, gex_AM_Arg_t code, gex_AM_Arg_t addr_high,
                             gex_AM_Arg_t addr_low, gex_AM_Arg_t op_high, gex_AM_Arg_t op_low,
                             gex_AM_Arg_t a_high, gex_AM_Arg_t a_low, gex_AM_Arg_t b_high,
                             gex_AM_Arg_t b_low, gex_AM_Arg_t result_high, gex_AM_Arg_t result_low)
{
    const gex_OP_t opcode = aq_ad_code_opcode(code);
    const gex_DT_t dt = aq_ad_code_dt(code);
    void *addr = aq_ptr_of_args(addr_high, addr_low);
    union { /* the types that the value may be written as */
        uint64_t word8;
        uint32_t word4;
        double dbl;
        float flt;
    } old = { 0 };
    uint64_t value;

    aq_ad_check_request(token, code, addr);
    aq_ad_apply(dt, addr, &old, opcode, aq_word_of_args(a_high, a_low),
                aq_word_of_args(b_high, b_low), aq_ad_code_flags(code));
    value = aq_ad_size(dt) == 4 ? old.word4 : old.word8;
    if (aq_ad_fetches(opcode)) {
        const gex_AM_Arg_t args[] = { code,        op_high,    op_low,
                                      result_high, result_low, AQ_ARGS_OF_WORD(value) };

        aq_am_reply_short(token, AQ_HIDX_AD_RESULT, 0, 7, args);
    } else {
        const gex_AM_Arg_t args[] = { code, op_high, op_low };

        aq_am_reply_short(token, AQ_HIDX_AD_DONE, 0, 3, args);
    }
}

static void aq_ad_on_result(gex_Token_t token, gex_AM_Arg_t code, gex_AM_Arg_t op_high,
                            gex_AM_Arg_t op_low, gex_AM_Arg_t result_high, gex_AM_Arg_t result_low,
                            gex_AM_Arg_t value_high, gex_AM_Arg_t value_low)
{
    struct aq_op *op = aq_ptr_of_args(op_high, op_low);
    void *result_p = aq_ptr_of_args(result_high, result_low);
    const uint64_t word8 = aq_word_of_args(value_high, value_low);
    const uint32_t word4 = (uint32_t)word8;

    (void)token;
    aq_op_acquire(op);
    if (aq_ad_size(aq_ad_code_dt(code)) == 4)
        memcpy(result_p, &word4, sizeof(word4));
    else
        memcpy(result_p, &word8, sizeof(word8));
    aq_op_end(op, aq_ad_category(aq_ad_code_opcode(code)), 1);
}

static void aq_ad_on_done(gex_Token_t token, gex_AM_Arg_t code, gex_AM_Arg_t op_high,
                          gex_AM_Arg_t op_low)
{
    (void)token;
    aq_op_end(aq_ptr_of_args(op_high, op_low), aq_ad_category(aq_ad_code_opcode(code)), 1);
}

/* --- initiation --- */

int aq_ref_ad(struct aq_op *op, gex_Rank_t jobrank, gex_DT_t dt, void *result_p, void *tgt_addr,
              gex_OP_t opcode, uint64_t operand1, uint64_t operand2, gex_Flags_t flags)
{
    const gex_TM_t tm = aq_tm_handle(aq_job.tm);
    const gex_EC_t category = aq_ad_category(opcode);
    const gex_AM_Arg_t args[] = { (gex_AM_Arg_t)aq_ad_code(dt, opcode, flags),
                                  AQ_ARGS_OF_PTR(tgt_addr),
                                  AQ_ARGS_OF_PTR(op),
                                  AQ_ARGS_OF_WORD(operand1),
                                  AQ_ARGS_OF_WORD(operand2),
                                  AQ_ARGS_OF_PTR(result_p) };

    aq_op_begin(op, category, 1);
    if (aq_am_request_short(tm, jobrank, AQ_HIDX_AD_REQUEST, flags & GEX_FLAG_IMMEDIATE,
                            sizeof(args) / sizeof(args[0]), args)
        != 0) {
        aq_op_end(op, category, 1);
        return AQ_RETRY;
    }
    return AQ_OK;
}

void aq_ref_ad_init(void)
{
    const gex_Flags_t request = GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST;
    const gex_Flags_t reply = GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY;

    aq_am_register_internal(AQ_HIDX_AD_REQUEST, (gex_AM_Fn_t)aq_ad_on_request, request, 11,
                            "atomic operation");
    aq_am_register_internal(AQ_HIDX_AD_RESULT, (gex_AM_Fn_t)aq_ad_on_result, reply, 7,
                            "result of an atomic operation");
    aq_am_register_internal(AQ_HIDX_AD_DONE, (gex_AM_Fn_t)aq_ad_on_done, reply, 3,
                            "end of an atomic operation");
}
