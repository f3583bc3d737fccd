/*
 * gasnet1_body.h - every name of the GASNet-1 interface with its type, for C and C++ alike; what
 * gasnet1.c and gasnet1.cc define as VALUE, DO and SAME is explained in names_calls.h. And the
 * names that clients define for themselves, which the headers may not.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

/* constants that clients use in #if */
#if GASNET_SPEC_VERSION_MAJOR != 1 || GASNET_SPEC_VERSION_MINOR != 8 || GASNET_VERSION != 1
#error "version of the GASNet-1 specification"
#endif
#if GEX_SPEC_VERSION_MAJOR != 0 || GEX_SPEC_VERSION_MINOR < 5
#error "version of the GASNet-EX specification"
#endif
#if SIZEOF_GASNET_REGISTER_VALUE_T != 8 || SIZEOF_GEX_RMA_VALUE_T != 8
#error "size of register values"
#endif
#if GASNET_BARRIERFLAG_ANONYMOUS != 1 || GASNET_BARRIERFLAG_MISMATCH != 2
#error "barrier flags"
#endif
#if GASNET_BARRIERFLAG_UNNAMED != 9 || defined(GASNET_BARRIERFLAG_IMAGES)
#error "barrier flags beyond the specification"
#endif
#if GASNET_WAIT_SPIN != 0 || GASNET_WAIT_BLOCK != 1 || GASNET_WAIT_SPINBLOCK != 2
#error "wait modes"
#endif
#if GASNET_OK != 0 || GASNET_ERR_NOT_INIT != 10001 || GASNET_ERR_RESOURCE != 10002
#error "return codes"
#endif
#if GASNET_ERR_BAD_ARG != 10003 || GASNET_ERR_NOT_READY != 10004 \
    || GASNET_ERR_BARRIER_MISMATCH != 10005
#error "return codes"
#endif
#if GASNET_PAGESIZE < 4096 || GASNET_PAGESIZE & (GASNET_PAGESIZE - 1) || GASNET_MAXNODES < 65536
#error "limits"
#endif
#if !defined(GASNET_ALIGNED_SEGMENTS) || !defined(GASNET_NULL_ARGV_OK) || GASNETI_MAX_THREADS < 1
#error "constants that are always there"
#endif
#if defined(GASNET_SEGMENT_FAST) + defined(GASNET_SEGMENT_LARGE) \
        + defined(GASNET_SEGMENT_EVERYTHING)                     \
    != 1
#error "exactly one segment configuration"
#endif
#if defined(GASNET_DEBUG) + defined(GASNET_NDEBUG) != 1
#error "either GASNET_DEBUG or GASNET_NDEBUG"
#endif
#if GASNET_CONDUIT_SMP && !GASNET_PSHM
#error "smp is shared memory"
#endif
#if !defined(_INCLUDED_GASNET_H) || !defined(_INCLUDED_GASNETEX_H) \
    || !defined(_INCLUDED_GASNET_TOOLS_H)
#error "names that tell what is included"
#endif

/* names of clients */
#if defined(GASNET_Safe) || defined(GASNET_SAFE) || defined(GASNET_Safe_Retval) \
    || defined(CHECK_GASNET)
#error "a macro for checked calls is the client's"
#endif
#if defined(GASNET_BARRIER) || defined(GASNET_PUT) || defined(GASNET_PUTS) || defined(GASNET_GET)
#error "a macro for transfers or barriers is the client's"
#endif
#if defined(GASNET_WAIT_PUTS) || defined(GASNET_WAIT_ALL) || defined(GASNET_COLL_FLAGS)
#error "a macro for waiting is the client's"
#endif
static int GASNET_Safe, GASNET_SAFE, GASNET_Safe_Retval, CHECK_GASNET, GASNET_BARRIER, GASNET_PUT,
    GASNET_GET;
static int GASNET_PUTS, GASNET_GETS, GASNET_WAIT_PUTS, GASNET_WAIT_ALL, GASNET_HANDLER_BASE,
    GASNET_COLL_FLAGS;
static int gasnet_parse_command_line, gasnet_mem_size, _gasnet_c_to_c_put;

static const char config[] = "built as " GASNET_CONFIG_STRING ".";
static gasnet_hsl_t a_lock = GASNET_HSL_INITIALIZER, no_lock_yet;
struct with_lock {
    int before;
    gasnet_hsl_t lock;
};
static struct with_lock embedded = { 1, GASNET_HSL_INITIALIZER };

#define CALL_AM(N)                                                                        \
    VALUE(int, gasnet_AMRequestShort##N(node, handler AQ_GIVEN(N)))                       \
    VALUE(int, gasnet_AMRequestMedium##N(node, handler, addr, size AQ_GIVEN(N)))          \
    VALUE(int, gasnet_AMRequestLong##N(node, handler, addr, size, addr AQ_GIVEN(N)))      \
    VALUE(int, gasnet_AMRequestLongAsync##N(node, handler, addr, size, addr AQ_GIVEN(N))) \
    VALUE(int, gasnet_AMReplyShort##N(token, handler AQ_GIVEN(N)))                        \
    VALUE(int, gasnet_AMReplyMedium##N(token, handler, addr, size AQ_GIVEN(N)))           \
    VALUE(int, gasnet_AMReplyLong##N(token, handler, addr, size, addr AQ_GIVEN(N)))       \
    VALUE(int, gasnet_AMRequestShort(node, handler, N AQ_GIVEN(N)))                       \
    VALUE(int, gasnet_AMRequestMedium(node, handler, addr, size, N AQ_GIVEN(N)))          \
    VALUE(int, gasnet_AMRequestLong(node, handler, addr, size, addr, N AQ_GIVEN(N)))      \
    VALUE(int, gasnet_AMRequestLongAsync(node, handler, addr, size, addr, N AQ_GIVEN(N))) \
    VALUE(int, gasnet_AMReplyShort(token, handler, N AQ_GIVEN(N)))                        \
    VALUE(int, gasnet_AMReplyMedium(token, handler, addr, size, N AQ_GIVEN(N)))           \
    VALUE(int, gasnet_AMReplyLong(token, handler, addr, size, addr, N AQ_GIVEN(N)))

void all_gasnet1_names(void);
void all_gasnet1_names(void)
{
    GASNET_BEGIN_FUNCTION();
    gasnet_handle_t handle = GASNET_INVALID_HANDLE, handles[2] = { GASNET_INVALID_HANDLE, 0 };
    gasnet_handlerentry_t entry = { 128, 0 };
    gasnet_valget_handle_t valget = 0;
    gasnet_register_value_t value = 0;
    gasnet_node_t node = 0;
    gasnet_handler_t handler = 200;
    gasnet_handlerarg_t v[16] = { 0 };
    gasnet_token_t token = 0;
    gasnet_memvec_t memvec = { 0, 0 };
    gasnet_seginfo_t seginfo = { 0, 0 };
    gasnet_nodeinfo_t nodeinfo = { 0, 0, 0 };
    gasnet_threadinfo_t threadinfo = GASNET_GET_THREADINFO();
    gasnet_hsl_t *hsl = &a_lock;
    gex_Client_t client = 0;
    gex_EP_t ep = 0;
    gex_TM_t tm = 0;
    gex_Segment_t segment = 0;
    void *addr = 0, *addrs[2] = { 0, 0 };
    const void *data = 0;
    size_t size = 0, sizes[2] = { 0, 0 };
    uintptr_t bytes = 0;
    const char *text = config;
    int argc = 0, id = 0, flags = 0;
    char **argv = 0;

    SAME(gasnet_node_t, gex_Rank_t)
    SAME(gasnet_handler_t, gex_AM_Index_t)
    SAME(gasnet_handlerarg_t, gex_AM_Arg_t)
    SAME(gasnet_token_t, gex_Token_t)
    SAME(gasnet_handle_t, gex_Event_t)
    SAME(gasnet_register_value_t, gex_RMA_Value_t)
    SAME(gasnet_hsl_t *, gex_HSL_t *)
    SAME(gasnet_threadinfo_t, void *)
    VALUE(gasnet_handle_t, GASNET_INVALID_HANDLE)
    VALUE(gasnet_handler_t, entry.index)
    VALUE(gex_AM_Fn_t, entry.fnptr)
    VALUE(void *, memvec.addr)
    VALUE(size_t, memvec.len)
    VALUE(void *, seginfo.addr)
    VALUE(uintptr_t, seginfo.size)
    VALUE(gasnet_node_t, nodeinfo.host)
    VALUE(gasnet_node_t, nodeinfo.supernode)
    VALUE(uintptr_t, nodeinfo.offset)

    VALUE(int, gasnet_init(&argc, &argv))
    VALUE(int, gasnet_attach(&entry, 1, bytes, bytes))
    DO(gasnet_QueryGexObjects(&client, &ep, &tm, &segment))
    VALUE(uintptr_t, gasnet_getMaxLocalSegmentSize())
    VALUE(uintptr_t, gasnet_getMaxGlobalSegmentSize())
    VALUE(int, gasnet_getSegmentInfo(&seginfo, 1))
    VALUE(int, gasnet_getNodeInfo(&nodeinfo, 1))
    VALUE(gasnet_node_t, gasnet_mynode())
    VALUE(gasnet_node_t, gasnet_nodes())
    VALUE(char *, gasnet_getenv(text))
    VALUE(const char *, gasnet_ErrorName(0))
    VALUE(const char *, gasnet_ErrorDesc(0))
    VALUE(int, gasnet_set_waitmode(GASNET_WAIT_BLOCK))
    DO(gasnet_hsl_init(&no_lock_yet))
    DO(gasnet_hsl_destroy(&embedded.lock))
    DO(gasnet_hsl_lock(hsl))
    VALUE(int, gasnet_hsl_trylock(hsl))
    DO(gasnet_hsl_unlock(hsl))
    DO(gasnet_hold_interrupts())
    DO(gasnet_resume_interrupts())

    VALUE(size_t, gasnet_AMMaxArgs())
    VALUE(size_t, gasnet_AMMaxMedium())
    VALUE(size_t, gasnet_AMMaxLongRequest())
    VALUE(size_t, gasnet_AMMaxLongReply())
    VALUE(int, gasnet_AMPoll())
    VALUE(int, gasnet_AMGetMsgSource(token, &node))
    DO(GASNET_BLOCKUNTIL(flags == 0))
    AQ_EACH(CALL_AM)

    DO(gasnet_get(addr, node, data, size))
    DO(gasnet_put(node, addr, data, size))
    DO(gasnet_get_bulk(addr, node, data, size))
    DO(gasnet_put_bulk(node, addr, data, size))
    DO(gasnet_memset(node, addr, 0, size))
    VALUE(gasnet_handle_t, gasnet_put_nb(node, addr, data, size))
    VALUE(gasnet_handle_t, gasnet_put_nb_bulk(node, addr, data, size))
    VALUE(gasnet_handle_t, gasnet_get_nb(addr, node, data, size))
    VALUE(gasnet_handle_t, gasnet_get_nb_bulk(addr, node, data, size))
    VALUE(gasnet_handle_t, gasnet_memset_nb(node, addr, 0, size))
    DO(gasnet_put_nbi(node, addr, data, size))
    DO(gasnet_put_nbi_bulk(node, addr, data, size))
    DO(gasnet_get_nbi(addr, node, data, size))
    DO(gasnet_get_nbi_bulk(addr, node, data, size))
    DO(gasnet_memset_nbi(node, addr, 0, size))
    DO(gasnet_put_val(node, addr, value, size))
    VALUE(gasnet_handle_t, gasnet_put_nb_val(node, addr, value, size))
    DO(gasnet_put_nbi_val(node, addr, value, size))
    VALUE(gasnet_register_value_t, gasnet_get_val(node, data, size))
    VALUE(gasnet_valget_handle_t, gasnet_get_nb_val(node, data, size))
    VALUE(gasnet_register_value_t, gasnet_wait_syncnb_valget(valget))

    DO(gasnet_wait_syncnb(handle))
    VALUE(int, gasnet_try_syncnb(handle))
    VALUE(int, gasnet_try_syncnb_nopoll(handle))
    DO(gasnet_wait_syncnb_all(handles, size))
    VALUE(int, gasnet_try_syncnb_all(handles, size))
    VALUE(int, gasnet_try_syncnb_all_nopoll(handles, size))
    DO(gasnet_wait_syncnb_some(handles, size))
    VALUE(int, gasnet_try_syncnb_some(handles, size))
    VALUE(int, gasnet_try_syncnb_some_nopoll(handles, size))
    DO(gasnet_wait_syncnbi_gets())
    DO(gasnet_wait_syncnbi_puts())
    DO(gasnet_wait_syncnbi_all())
    VALUE(int, gasnet_try_syncnbi_gets())
    VALUE(int, gasnet_try_syncnbi_puts())
    VALUE(int, gasnet_try_syncnbi_all())
    DO(gasnet_begin_nbi_accessregion())
    VALUE(gasnet_handle_t, gasnet_end_nbi_accessregion())

    DO(gasnet_putv_bulk(node, size, &memvec, size, &memvec))
    VALUE(gasnet_handle_t, gasnet_putv_nb_bulk(node, size, &memvec, size, &memvec))
    DO(gasnet_putv_nbi_bulk(node, size, &memvec, size, &memvec))
    DO(gasnet_getv_bulk(size, &memvec, node, size, &memvec))
    VALUE(gasnet_handle_t, gasnet_getv_nb_bulk(size, &memvec, node, size, &memvec))
    DO(gasnet_getv_nbi_bulk(size, &memvec, node, size, &memvec))
    DO(gasnet_puti_bulk(node, size, addrs, size, size, addrs, size))
    VALUE(gasnet_handle_t, gasnet_puti_nb_bulk(node, size, addrs, size, size, addrs, size))
    DO(gasnet_puti_nbi_bulk(node, size, addrs, size, size, addrs, size))
    DO(gasnet_geti_bulk(size, addrs, size, node, size, addrs, size))
    VALUE(gasnet_handle_t, gasnet_geti_nb_bulk(size, addrs, size, node, size, addrs, size))
    DO(gasnet_geti_nbi_bulk(size, addrs, size, node, size, addrs, size))
    DO(gasnet_puts_bulk(node, addr, sizes, addr, sizes, sizes, size))
    VALUE(gasnet_handle_t, gasnet_puts_nb_bulk(node, addr, sizes, addr, sizes, sizes, size))
    DO(gasnet_puts_nbi_bulk(node, addr, sizes, addr, sizes, sizes, size))
    DO(gasnet_gets_bulk(addr, sizes, node, addr, sizes, sizes, size))
    VALUE(gasnet_handle_t, gasnet_gets_nb_bulk(addr, sizes, node, addr, sizes, sizes, size))
    DO(gasnet_gets_nbi_bulk(addr, sizes, node, addr, sizes, sizes, size))

    DO(gasnet_barrier_notify(id, flags))
    VALUE(int, gasnet_barrier_wait(id, flags))
    VALUE(int, gasnet_barrier_try(id, flags))
    VALUE(int, gasnet_barrier(id, flags))
    VALUE(int, gasnet_barrier_result(&id))
    {
        GASNET_POST_THREADINFO(threadinfo);
        int declared_after = 0;

        (void)declared_after;
    }
    (void)GASNET_Safe, (void)GASNET_SAFE, (void)GASNET_Safe_Retval, (void)CHECK_GASNET,
        (void)GASNET_BARRIER;
    (void)GASNET_PUT, (void)GASNET_GET, (void)GASNET_PUTS, (void)GASNET_GETS,
        (void)GASNET_WAIT_PUTS;
    (void)GASNET_WAIT_ALL, (void)GASNET_HANDLER_BASE, (void)GASNET_COLL_FLAGS,
        (void)gasnet_mem_size;
    (void)gasnet_parse_command_line, (void)_gasnet_c_to_c_put, (void)threadinfo, (void)valget,
        (void)value;
    (void)handle, (void)handles, (void)entry, (void)node, (void)handler, (void)v, (void)token,
        (void)memvec;
    (void)seginfo, (void)nodeinfo, (void)hsl, (void)client, (void)ep, (void)tm, (void)segment,
        (void)addr;
    (void)addrs, (void)data, (void)size, (void)sizes, (void)bytes, (void)text, (void)argc, (void)id,
        (void)flags;
    (void)argv, (void)embedded;
}
