/*
 * aq_mk.c - memory kinds: this library has GEX_MK_HOST only.
 *
 * No other handle can exist, so the other calls have no valid argument and report that.
 * See       GASNet-EX specification 0.19, Memory kinds. SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include "core/aq_mk.h"

#include <sys/mman.h>

#include "gasnet_mk.h"

#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_word.h"

/* --- host memory --- */

static int aq_mk_host_alloc(uintptr_t size, void **base_out)
{
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (base == MAP_FAILED)
        return AQ_ERR_SYS;
    *base_out = base;
    return AQ_OK;
}

static void aq_mk_host_free(void *base, uintptr_t size)
{
    munmap(base, size);
}

const struct aq_mk_ops aq_mk_host = {
    .is_host = true,
    .alloc = aq_mk_host_alloc,
    .free = aq_mk_host_free,
    .copy_in = aq_word_write,
    .copy_out = aq_word_read,
};

const struct aq_mk_ops *aq_mk_find(gex_MK_t kind)
{
    return kind == GEX_MK_HOST ? &aq_mk_host : NULL;
}

/* --- the interface: kinds that clients make --- */

static const char *aq_mk_class_name(gex_MK_Class_t mk_class)
{
    switch (mk_class) {
    case GEX_MK_CLASS_HOST:
        return "GEX_MK_CLASS_HOST";
    case GEX_MK_CLASS_CUDA_UVA:
        return "GEX_MK_CLASS_CUDA_UVA";
    case GEX_MK_CLASS_HIP:
        return "GEX_MK_CLASS_HIP";
    case GEX_MK_CLASS_ZE:
        return "GEX_MK_CLASS_ZE";
    }
    return "an unknown class";
}

int gex_MK_Create(gex_MK_t *kind_p, gex_Client_t client, const gex_MK_Create_args_t *args,
                  gex_Flags_t flags)
{
    aq_check_started(__func__);
    if (kind_p == NULL || client == GEX_CLIENT_INVALID || args == NULL)
        return aq_fail(GASNET_ERR_BAD_ARG, "gex_MK_Create: the output, the client or args is NULL");
    if (flags != 0 || args->gex_flags != 0)
        return aq_fail(GASNET_ERR_BAD_ARG,
                       "gex_MK_Create: flags 0x%x and gex_flags 0x%llx must be 0", (unsigned)flags,
                       (unsigned long long)args->gex_flags);
    return aq_fail(GASNET_ERR_BAD_ARG,
                   "gex_MK_Create: this library makes no kinds of %s; host memory "
                   "is GEX_MK_HOST",
                   aq_mk_class_name(args->gex_class));
}

static _Noreturn void aq_mk_no_such(const char *call, gex_MK_t kind)
{
    aq_check_started(call);
    aq_fatal("%s: %s is no memory kind made by gex_MK_Create", call,
             kind == GEX_MK_HOST      ? "GEX_MK_HOST"
             : kind == GEX_MK_INVALID ? "GEX_MK_INVALID"
                                      : "this");
}

void gex_MK_Destroy(gex_MK_t kind, gex_Flags_t flags)
{
    (void)flags;
    aq_mk_no_such("gex_MK_Destroy", kind);
}

gex_Client_t gex_MK_QueryClient(gex_MK_t kind)
{
    aq_mk_no_such("gex_MK_QueryClient", kind);
}

gex_MK_Class_t gex_MK_QueryClass(gex_MK_t kind)
{
    aq_mk_no_such("gex_MK_QueryClass", kind);
}

gex_Flags_t gex_MK_QueryFlags(gex_MK_t kind)
{
    aq_mk_no_such("gex_MK_QueryFlags", kind);
}

void gex_MK_SetCData(gex_MK_t kind, const void *val)
{
    (void)val;
    aq_mk_no_such("gex_MK_SetCData", kind);
}

void *gex_MK_QueryCData(gex_MK_t kind)
{
    aq_mk_no_such("gex_MK_QueryCData", kind);
}
