/*
 * names_body.h - the function around names_calls.h, common to names.c and names.cc, which define
 * VALUE, DO, SAME and INTEGRAL for their language.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

static void hook(void *base, uintptr_t size)
{
    (void)base;
    (void)size;
}

void all_names(void);
void all_names(void)
{
    GASNET_BEGIN_FUNCTION();
    gex_Client_t client = GEX_CLIENT_INVALID;
    gex_EP_t ep = GEX_EP_INVALID;
    gex_TM_t tm = GEX_TM_INVALID;
    gex_Segment_t segment = GEX_SEGMENT_INVALID;
    gex_Event_t event = GEX_EVENT_INVALID, *lc = GEX_EVENT_NOW;
    const gex_Event_t *lc_in = lc;
    gex_Token_t token = 0;
    gex_Token_Info_t info = gex_Token_Info_t_zero;
    gex_AM_Entry_t entry = { 0, 0, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, 0, "entry" };
    gex_AM_Index_t h = GEX_AM_INDEX_BASE;
    gex_RankInfo_t *rankinfo = 0;
    gex_EP_Location_t location = { 0, 0 };
    gex_Memvec_t memvec = { 0, 0 };
    gex_ProgressThreadInfo_t thread = { 0, 0, 0, 0 };
    const gex_ProgressThreadInfo_t *threads = &thread;
    gasnet_seginfo_t seginfo = { 0, 0 };
    gasnet_nodeinfo_t nodeinfo = { 0, 0, 0 };
    gex_HSL_t hsl = GEX_HSL_INITIALIZER;
    gex_Rank_t rank = 0;
    gex_EP_Index_t index = 0;
    gex_Flags_t flags = 0;
    unsigned int numargs = 0;
    gex_AM_SrcDesc_t sd = GEX_AM_SRCDESC_NO_OP;
    gex_RMA_Value_t value = 0;
    gex_AD_t ad = GEX_AD_INVALID;
    gex_MK_t kind = GEX_MK_INVALID;
    gex_MK_Create_args_t mk_args = gex_MK_Create_args_t_zero;
    uintptr_t size = 0;
    void *addr = 0;
    const void *data = 0;
    const char *text = "";
    int argc = 0;
    char **argv = 0;
    gex_AM_Arg_t v[16] = { 0 };
    const ptrdiff_t stride[1] = { 0 };
    const size_t counts[1] = { 0 };

#include "names_calls.h"

#define CONSTANT(NAME) case_of(NAME)
#include "constants.h" /* made by names.sh of macros.list */
    (void)client, (void)ep, (void)segment, (void)event, (void)lc_in, (void)token, (void)info,
        (void)entry;
    (void)h, (void)rankinfo, (void)location, (void)memvec, (void)threads, (void)seginfo,
        (void)nodeinfo;
    (void)hsl, (void)index, (void)flags, (void)numargs, (void)value, (void)size, (void)addr,
        (void)data;
    (void)text, (void)argc, (void)argv, (void)v, (void)tm, (void)rank, (void)sd, (void)ad;
    (void)kind, (void)mk_args;
}
