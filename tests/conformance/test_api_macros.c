/*
 * test_api_macros.c - macros and constants: present, usable in #if and static initialisers, pinned
 * values as pinned, flags of one call distinguishable. Most is checked while compiling.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, configuration and constants.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#if 10000 * GASNET_RELEASE_VERSION_MAJOR + 100 * GASNET_RELEASE_VERSION_MINOR \
        + GASNET_RELEASE_VERSION_PATCH                                        \
    != 20250800
#error "release version"
#endif
#if GEX_SPEC_VERSION_MAJOR != 0 || GEX_SPEC_VERSION_MINOR != 19
#error "specification version"
#endif
#if defined(GASNET_DEBUG) + defined(GASNET_NDEBUG) != 1 || GASNET_DEBUG + GASNET_NDEBUG != 1
#error "exactly one of GASNET_DEBUG and GASNET_NDEBUG is 1"
#endif
#if defined(GASNET_SEGMENT_FAST) + defined(GASNET_SEGMENT_LARGE) \
            + defined(GASNET_SEGMENT_EVERYTHING)                 \
        != 1                                                     \
    || GASNET_SEGMENT_FAST + GASNET_SEGMENT_LARGE + GASNET_SEGMENT_EVERYTHING != 1
#error "exactly one segment mode"
#endif
#if defined(GASNET_SEQ) + defined(GASNET_PARSYNC) + defined(GASNET_PAR) != 1 \
    || GASNET_SEQ + GASNET_PARSYNC + GASNET_PAR != 1
#error "exactly one thread mode, which expands to 1"
#endif
#if GASNET_CONDUIT_SMP + GASNET_CONDUIT_UDP + GASNET_CONDUIT_MPI + GASNET_CONDUIT_IBV \
        + GASNET_CONDUIT_OFI + GASNET_CONDUIT_UCX                                     \
    != 1
#error "exactly one conduit macro"
#endif
#define IS_ONE(X) ((X) == 1)
#if defined(GASNET_PSHM) && !IS_ONE(GASNET_PSHM)
#error "GASNET_PSHM"
#endif
#if !(GASNET_ALIGNED_SEGMENTS == 0 || GASNET_ALIGNED_SEGMENTS == 1) || GASNET_NULL_ARGV_OK != 1
#error "always 0 or 1"
#endif
#if GASNET_MAXEPS < 1 || GASNET_MAXEPS > 65535
#error "GASNET_MAXEPS"
#endif
#if GASNET_PAGESIZE < 1 || (GASNET_PAGESIZE & (GASNET_PAGESIZE - 1)) != 0
#error "GASNET_PAGESIZE"
#endif
#if GASNET_MAXNODES < 1
#error "GASNET_MAXNODES"
#endif
#if GASNET_SUPPORTS_TI_SRCRANK != 1 || GASNET_SUPPORTS_TI_EP != 1
#error "required token queries"
#endif
#if !defined(GASNET_HIDDEN_AM_CONCURRENCY_LEVEL) || GASNET_HIDDEN_AM_CONCURRENCY_LEVEL < 0
#error "GASNET_HIDDEN_AM_CONCURRENCY_LEVEL"
#endif
#if SIZEOF_GEX_RMA_VALUE_T != 8
#error "SIZEOF_GEX_RMA_VALUE_T"
#endif
#if GEX_FLAG_IMMEDIATE != 1 || GEX_FLAG_AM_PREPARE_LEAST_CLIENT != 2048                         \
    || GEX_FLAG_AM_PREPARE_LEAST_ALLOC != 4096 || GEX_EP_CAPABILITY_RMA != 1 || GEX_DT_U64 != 8 \
    || GEX_OP_ADD != 8 || GASNET_OK != 0 || GASNET_ERR_NOT_READY != 10004
#error "pinned values"
#endif
#if GEX_AM_INDEX_BASE > 128 || GEX_AM_INDEX_BASE < 1
#error "GEX_AM_INDEX_BASE"
#endif
#if GEX_FLAG_PEER_NEVER_SELF == 0 || GEX_OP_USER_NC == 0 || GEX_DT_USER == 0
#error "flags in #if"
#endif
#if GASNET_WAIT_SPIN != 0 || GASNET_WAIT_BLOCK == GASNET_WAIT_SPINBLOCK
#error "wait modes"
#endif
#if GASNET_ERR_NOT_INIT == GASNET_ERR_RESOURCE || GASNET_ERR_BAD_ARG == GASNET_ERR_BARRIER_MISMATCH
#error "error codes"
#endif

/* As clients do: in static storage, as case labels, in brace initialisers, next to other literals.
 * */
static gex_Event_t s_event = GEX_EVENT_INVALID, s_no_op = GEX_EVENT_NO_OP;
static gex_Event_t *s_now = GEX_EVENT_NOW, *s_defer = GEX_EVENT_DEFER, *s_group = GEX_EVENT_GROUP;
static gex_TM_t s_tm = GEX_TM_INVALID;
static gex_EP_t s_ep = GEX_EP_INVALID;
static gex_Client_t s_client = GEX_CLIENT_INVALID;
static gex_Segment_t s_segment = GEX_SEGMENT_INVALID;
static gex_MK_t s_mk = GEX_MK_INVALID, s_host = GEX_MK_HOST;
static gex_AM_SrcDesc_t s_desc = GEX_AM_SRCDESC_NO_OP;
static gex_HSL_t s_hsl = GEX_HSL_INITIALIZER;
static const char config[] = "$config: " GASNET_CONFIG_STRING " $";
static const char conduit[] = GASNET_CONDUIT_NAME_STR;
enum { SHORT = GEX_FLAG_AM_SHORT, ALL_CAPS = GEX_EP_CAPABILITY_ALL, TI = GEX_TI_ALL };

_Static_assert(sizeof(gex_Rank_t) == 4 && (gex_Rank_t)-1 > 0, "gex_Rank_t");
_Static_assert(sizeof(gex_EP_Index_t) == 2 && sizeof(gex_Flags_t) == 4, "pinned sizes");
_Static_assert(GEX_RANK_INVALID > (gex_Rank_t)GASNET_MAXNODES, "GEX_RANK_INVALID");
_Static_assert(offsetof(gex_AM_Entry_t, gex_index) == 0, "entry order");
_Static_assert(offsetof(gex_AM_Entry_t, gex_fnptr) < offsetof(gex_AM_Entry_t, gex_flags)
                   && offsetof(gex_AM_Entry_t, gex_flags) < offsetof(gex_AM_Entry_t, gex_nargs)
                   && offsetof(gex_AM_Entry_t, gex_nargs) < offsetof(gex_AM_Entry_t, gex_cdata)
                   && offsetof(gex_AM_Entry_t, gex_cdata) < offsetof(gex_AM_Entry_t, gex_name),
               "entry order");

/* Each flag of a group has a bit that no other flag of the group has. */
static void check_distinct(const gex_Flags_t *flags, size_t n)
{
    size_t i, j;
    gex_Flags_t others;

    for (i = 0; i < n; i++) {
        for (j = 0, others = 0; j < n; j++)
            others |= j == i ? 0 : flags[j];
        if ((flags[i] & ~others) == 0)
            aq_test_fail(__FILE__, __LINE__, "flag %zu (0x%x) has no bit of its own", i, flags[i]);
    }
}

static void check_flags(void)
{
    static const gex_Flags_t rma[] = {
        GEX_FLAG_IMMEDIATE,       GEX_FLAG_SELF_SEG_UNKNOWN, GEX_FLAG_SELF_SEG_SOME,
        GEX_FLAG_SELF_SEG_BOUND,  GEX_FLAG_SELF_SEG_OFFSET,  GEX_FLAG_PEER_SEG_UNKNOWN,
        GEX_FLAG_PEER_SEG_SOME,   GEX_FLAG_PEER_SEG_BOUND,   GEX_FLAG_PEER_SEG_OFFSET,
        GEX_FLAG_PEER_NEVER_SELF, GEX_FLAG_PEER_NEVER_NBRHD,
    };
    static const gex_Flags_t am[] = { GEX_FLAG_IMMEDIATE, GEX_FLAG_AM_PREPARE_LEAST_CLIENT,
                                      GEX_FLAG_AM_PREPARE_LEAST_ALLOC };
    static const gex_Flags_t reg[] = { GEX_FLAG_AM_SHORT, GEX_FLAG_AM_MEDIUM, GEX_FLAG_AM_LONG,
                                       GEX_FLAG_AM_REQUEST, GEX_FLAG_AM_REPLY };
    static const gex_Flags_t client[] = { GEX_FLAG_USES_GASNET1, GEX_FLAG_DEFER_THREADS };
    static const gex_Flags_t team[] = {
        GEX_FLAG_TM_SCRATCH_SIZE_MIN,  GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED,
        GEX_FLAG_TM_GLOBAL_SCRATCH,    GEX_FLAG_TM_LOCAL_SCRATCH,
        GEX_FLAG_TM_SYMMETRIC_SCRATCH, GEX_FLAG_TM_NO_SCRATCH,
        GEX_FLAG_SCRATCH_SEG_OFFSET,   GEX_FLAG_RANK_IS_JOBRANK,
    };

    check_distinct(rma, AQ_LENGTH(rma));
    check_distinct(am, AQ_LENGTH(am));
    check_distinct(reg, AQ_LENGTH(reg));
    check_distinct(client, AQ_LENGTH(client));
    check_distinct(team, AQ_LENGTH(team));
    AQ_CHECK(GEX_FLAG_AM_MEDLONG != GEX_FLAG_AM_MEDIUM && GEX_FLAG_AM_MEDLONG != GEX_FLAG_AM_LONG);
    AQ_CHECK(GEX_FLAG_AM_REQREP != GEX_FLAG_AM_REQUEST && GEX_FLAG_AM_REQREP != GEX_FLAG_AM_REPLY);
}

static void check_bits(void)
{
    static const uint32_t op[] = {
        GEX_OP_AND,  GEX_OP_OR,   GEX_OP_XOR,     GEX_OP_ADD,  GEX_OP_SUB,  GEX_OP_MULT,
        GEX_OP_MIN,  GEX_OP_MAX,  GEX_OP_INC,     GEX_OP_DEC,  GEX_OP_SET,  GEX_OP_CAS,
        GEX_OP_FAND, GEX_OP_FOR,  GEX_OP_FXOR,    GEX_OP_FADD, GEX_OP_FSUB, GEX_OP_FMULT,
        GEX_OP_FMIN, GEX_OP_FMAX, GEX_OP_FINC,    GEX_OP_FDEC, GEX_OP_SWAP, GEX_OP_FCAS,
        GEX_OP_GET,  GEX_OP_USER, GEX_OP_USER_NC,
    };
    static const uint32_t dt[] = { GEX_DT_I32, GEX_DT_U32, GEX_DT_I64, GEX_DT_U64,
                                   GEX_DT_FLT, GEX_DT_DBL, GEX_DT_USER };
    uint32_t all = 0;
    size_t i;

    for (i = 0; i < AQ_LENGTH(op); i++) {
        AQ_CHECK(op[i] != 0 && (op[i] & (op[i] - 1)) == 0 && (all & op[i]) == 0);
        all |= op[i];
    }
    AQ_CHECK_EQ(GEX_OP_CSWAP, GEX_OP_FCAS);
    for (i = 0, all = 0; i < AQ_LENGTH(dt); i++) {
        AQ_CHECK(dt[i] != 0 && (dt[i] & (dt[i] - 1)) == 0 && (all & dt[i]) == 0);
        all |= dt[i];
    }
    AQ_CHECK_EQ(GEX_EP_CAPABILITY_ALL, GEX_EP_CAPABILITY_RMA | GEX_EP_CAPABILITY_AM
                                           | GEX_EP_CAPABILITY_VIS | GEX_EP_CAPABILITY_COLL
                                           | GEX_EP_CAPABILITY_AD);
    AQ_CHECK((GEX_EC_ALL & GEX_EC_PUT) == GEX_EC_PUT && GEX_EC_PUT != 0);
    AQ_CHECK((GEX_EC_ALL & GEX_EC_GET) == GEX_EC_GET && GEX_EC_GET != 0);
    AQ_CHECK((GEX_EC_ALL & GEX_EC_RMW) == GEX_EC_RMW && GEX_EC_RMW != 0);
    AQ_CHECK((GEX_EC_ALL & GEX_EC_AM) == GEX_EC_AM && GEX_EC_AM != 0);
    AQ_CHECK((GEX_EC_ALL & GEX_EC_LC) == GEX_EC_LC && GEX_EC_LC != 0);
    AQ_CHECK(
        (GEX_TI_ALL & (GEX_TI_SRCRANK | GEX_TI_EP | GEX_TI_ENTRY | GEX_TI_IS_REQ | GEX_TI_IS_LONG))
        == GEX_TI_ALL);
    AQ_CHECK(GASNET_BARRIERFLAG_ANONYMOUS != GASNET_BARRIERFLAG_MISMATCH);
    AQ_CHECK((GASNET_BARRIERFLAG_UNNAMED & GASNET_BARRIERFLAG_ANONYMOUS) != 0);
}

static void check_handles(void)
{
    AQ_CHECK(s_event == (gex_Event_t)0 && (uintptr_t)s_no_op == 1);
    AQ_CHECK((uintptr_t)s_now == 1 && (uintptr_t)s_defer == 2 && (uintptr_t)s_group == 3);
    AQ_CHECK(s_tm == (gex_TM_t)0 && s_ep == (gex_EP_t)0 && s_client == (gex_Client_t)0);
    AQ_CHECK(s_segment == (gex_Segment_t)0 && s_mk == (gex_MK_t)0 && (uintptr_t)s_host == 1);
    AQ_CHECK(s_desc == (gex_AM_SrcDesc_t)0);
    AQ_CHECK(sizeof(gex_Event_t) == sizeof(void *) && sizeof(gex_TM_t) == sizeof(uintptr_t));
    AQ_CHECK(SHORT == (int)GEX_FLAG_AM_SHORT && ALL_CAPS != 0 && TI != 0);
    gex_HSL_Lock(&s_hsl);
    gex_HSL_Unlock(&s_hsl);
}

int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 1);
    rule("core 3.3, 3.4: configuration and version macros in #if");
    AQ_CHECK(strncmp(config, "$config: ", 9) == 0 && strlen(config) > 12);
    AQ_CHECK(strchr(GASNET_CONFIG_STRING, ',') != NULL);
    AQ_CHECK(strcmp(conduit, _STRINGIFY(GASNET_CONDUIT_NAME)) == 0);
    AQ_CHECK(sizeof(GASNET_CORE_NAME_STR GASNET_CORE_VERSION_STR GASNET_EXTENDED_NAME_STR
                        GASNET_EXTENDED_VERSION_STR)
             > 4);
    rule("core 5: flags accepted by one call have bits of their own");
    check_flags();
    rule("core 4.2, extended 3: operation, type, capability, category bits");
    check_bits();
    rule("core 4.1, 4.3: handle constants, pinned values, static initialisers");
    check_handles();
    rule("core 3.5: helper names that clients use");
    AQ_CHECK_EQ(MIN(3, 4), 3);
    AQ_CHECK_EQ(MAX(3, 4), 4);
    AQ_CHECK_EQ(_CONCAT(1, 2), 12);
    if_pf(argc < 0) AQ_CHECK(0);
    if_pt(argc > 0) AQ_CHECK(1);
    AQ_CHECK(strcmp(PRIuSZ, "zu") == 0);
    return aq_test_finish();
}
