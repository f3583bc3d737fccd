/*
 * aq_mpi_atomic.c - atomic domains by MPI's accumulate operations.
 *
 * Domains     MPI's accumulates are atomic with each other only: not with the processor's atomic
 *             instructions, which local ranks and message handlers use, and not with accumulates of
 *             another operation. MPI assumes that all concurrent accumulates on a word are of one
 *             operation or MPI_NO_OP (accumulate_ops, default same_op_no_op). The conduit therefore
 *             serves a whole domain, every target of every member, and only if its operations map
 *             to one MPI operation, with GET as MPI_NO_OP: additions and subtractions are MPI_SUM,
 *             SET and SWAP are MPI_REPLACE. Active messages serve all other domains. The interface
 *             demands a barrier between operations of different domains on a word
 * Local ranks use processor instructions, so domains are served here only in jobs without local
 *             ranks
 * Completion  the request returns the old value; a flush makes the new value visible to the
 *             target's own loads
 * Threads     any
 * Uses        aq_mpi_path.h, extended/aq_ad.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/mpi/aq_mpi_atomic.h"

#include <string.h>

#include "conduits/mpi/aq_mpi_lock.h"
#include "conduits/mpi/aq_mpi_path.h"
#include "core/aq_job.h"
#include "base/aq_rc.h"
#include "extended/aq_ad.h"
#include "core/aq_op.h"

/* The operation without the fetch. */
static inline gex_OP_t aq_mpi_atomic_plain(gex_OP_t ops)
{
    gex_OP_t plain = 0;

    for (; ops != 0; ops &= ops - 1) {
        const unsigned bit = (unsigned)__builtin_ctz(ops);

        plain |= (gex_OP_t)1 << (bit >= AQ_AD_FETCHING ? bit - AQ_AD_FETCHING : bit);
    }
    return plain;
}

/* Maps the operation to MPI's, or to AQ_MPI_OPS if there is none. */
static enum aq_mpi_op aq_mpi_atomic_op(unsigned number)
{
    switch (number) {
    case AQ_AD_AND:
        return AQ_MPI_BAND;
    case AQ_AD_OR:
        return AQ_MPI_BOR;
    case AQ_AD_XOR:
        return AQ_MPI_BXOR;
    case AQ_AD_ADD:
    case AQ_AD_SUB:
    case AQ_AD_INC:
    case AQ_AD_DEC:
        return AQ_MPI_SUM;
    case AQ_AD_MULT:
        return AQ_MPI_PROD;
    case AQ_AD_MIN:
        return AQ_MPI_MIN;
    case AQ_AD_MAX:
        return AQ_MPI_MAX;
    case AQ_AD_SET:
        return AQ_MPI_REPLACE;
    case AQ_AD_GET:
        return AQ_MPI_NO_OP;
    default:
        return AQ_MPI_OPS;
    }
}

bool aq_mpi_ad_serves(gex_DT_t dt, gex_OP_t ops, gex_Flags_t flags)
{
    enum aq_mpi_op only = AQ_MPI_NO_OP;

    (void)dt, (void)flags;
    if (!aq_mpi_rma.atomics || aq_job.nbrhd_count != aq_job.size)
        return false;
    for (gex_OP_t plain = aq_mpi_atomic_plain(ops); plain != 0; plain &= plain - 1) {
        const enum aq_mpi_op op = aq_mpi_atomic_op((unsigned)__builtin_ctz(plain));

        if (op == AQ_MPI_OPS || (op != AQ_MPI_NO_OP && only != AQ_MPI_NO_OP && op != only))
            return false;
        only = op != AQ_MPI_NO_OP ? op : only;
    }
    return true;
}

/* --- one operation --- */

static enum aq_mpi_type aq_mpi_atomic_type(gex_DT_t dt)
{
    switch (dt) {
    case GEX_DT_I32:
        return AQ_MPI_I32;
    case GEX_DT_U32:
        return AQ_MPI_U32;
    case GEX_DT_I64:
        return AQ_MPI_I64;
    case GEX_DT_U64:
        return AQ_MPI_U64;
    case GEX_DT_FLT:
        return AQ_MPI_FLT;
    default:
        return AQ_MPI_DBL;
    }
}

/* Returns 1 or -1 in the representation of the type. */
static uint64_t aq_mpi_atomic_one(gex_DT_t dt)
{
    const float flt = 1;
    const double dbl = 1;
    uint32_t word4;
    uint64_t word8 = 1;

    if (dt == GEX_DT_FLT) {
        memcpy(&word4, &flt, sizeof(word4));
        word8 = word4;
    } else if (dt == GEX_DT_DBL) {
        memcpy(&word8, &dbl, sizeof(word8));
    }
    return word8;
}

static uint64_t aq_mpi_atomic_minus(gex_DT_t dt, uint64_t word)
{
    if (dt == GEX_DT_FLT)
        return word ^ UINT64_C(1) << 31;
    if (dt == GEX_DT_DBL)
        return word ^ UINT64_C(1) << 63;
    return 0 - word;
}

static uint64_t aq_mpi_atomic_operand(gex_DT_t dt, unsigned number, uint64_t operand)
{
    switch (number) {
    case AQ_AD_INC:
        return aq_mpi_atomic_one(dt);
    case AQ_AD_DEC:
        return aq_mpi_atomic_minus(dt, aq_mpi_atomic_one(dt));
    case AQ_AD_SUB:
        return aq_mpi_atomic_minus(dt, operand);
    default:
        return operand;
    }
}

static void aq_mpi_atomic_fill(struct aq_mpi_xfer *xfer, gex_DT_t dt, void *result_p,
                               gex_OP_t opcode, uint64_t operand)
{
    const unsigned number = aq_ad_number(opcode);
    struct aq_mpi_atomic *atomic = &xfer->atomic;
    const uint64_t word8 = aq_mpi_atomic_operand(dt, number, operand);
    const uint32_t word4 = (uint32_t)word8;

    atomic->size = (uint8_t)aq_ad_size(dt);
    atomic->result_p = aq_ad_fetches(opcode) ? result_p : NULL;
    atomic->operand = 0;
    if (atomic->size == 4)
        memcpy(&atomic->operand, &word4, sizeof(word4));
    else
        atomic->operand = word8;
    atomic->type = (uint8_t)aq_mpi_atomic_type(dt);
    atomic->op = (uint8_t)aq_mpi_atomic_op(number);
    atomic->category = (uint8_t)aq_ad_category(opcode);
    xfer->type = AQ_MPI_X_FETCH;
}

int aq_mpi_ad_op(struct aq_op *op, gex_Rank_t jobrank, gex_DT_t dt, void *result_p, void *tgt_addr,
                 gex_OP_t opcode, uint64_t operand1, uint64_t operand2, gex_Flags_t flags)
{
    struct aq_mpi_xfer *xfer;

    (void)operand2; /* only CAS has it */
    if (aq_mpi_xfer_lock(&aq_mpi_rma.xfers, jobrank, flags) != AQ_OK)
        return AQ_RETRY;
    xfer = aq_mpi_xfer_new(&aq_mpi_rma.xfers);
    xfer->op = op;
    xfer->rank = jobrank;
    xfer->remote = (uintptr_t)tgt_addr - (uintptr_t)aq_job.bound[jobrank].addr;
    xfer->needs_polls = aq_mpi_rma.atomics_need_polls;
    aq_mpi_atomic_fill(xfer, dt, result_p, opcode, operand1);
    aq_op_begin(op, xfer->atomic.category, 1);
    aq_mpi_xfer_start(&aq_mpi_rma.xfers, xfer);
    aq_mpi_unlock();
    return AQ_OK;
}
