/*
 * mk.h - memory kinds: the kind of memory that a segment consists of.
 *
 * Host memory is GEX_MK_HOST, which every process has. Kinds for devices are made with
 * gex_MK_Create. This library has none yet: GASNET_HAVE_MK_CLASS_* says so at compile time, and
 * GASNET_ERR_BAD_ARG at run time. No vendor's header is needed.
 *
 * Source: GASNet-EX specification 0.19, Memory kinds. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet_mk.h" /* first: it brings what this part needs, whichever of them a client names */

#ifndef GASNET_MK_PART_H
#define GASNET_MK_PART_H 1

AQ_BEGIN_DECLS

/* The classes; all exist in every build. */
typedef enum {
    GEX_MK_CLASS_HOST = 0,
    GEX_MK_CLASS_CUDA_UVA = 1,
    GEX_MK_CLASS_HIP = 2,
    GEX_MK_CLASS_ZE = 3
} gex_MK_Class_t;

/* Clients set unused fields to zero. */
typedef struct gex_MK_Create_args_s {
    uint64_t gex_flags; /* 0 */
    gex_MK_Class_t gex_class;
    union {
        struct {
            int gex_CUdevice;
        } gex_class_cuda_uva;
        struct {
            int gex_hipDevice;
        } gex_class_hip;
        struct {
            void *gex_zeDevice;
            void *gex_zeContext;
            uint32_t gex_zeMemoryOrdinal;
        } gex_class_ze;
    } gex_args;
} gex_MK_Create_args_t;

/**
 * gex_MK_Create - make a memory kind.
 * kind_p  output; written on success only
 * client  the job's client
 * args    class and device
 * flags   0
 * Context ordinary code; not collective
 * Returns GASNET_OK; GASNET_ERR_BAD_ARG for a class that this library was built without. That is
 * every class here, including GEX_MK_CLASS_HOST, whose only kind is GEX_MK_HOST.
 */
AQ_PUBLIC int gex_MK_Create(gex_MK_t *kind_p, gex_Client_t client, const gex_MK_Create_args_t *args,
                            gex_Flags_t flags);

/** gex_MK_Destroy - end a kind without segments; flags 0. Not for GEX_MK_HOST. */
AQ_PUBLIC void gex_MK_Destroy(gex_MK_t kind, gex_Flags_t flags);

/** gex_MK_QueryClient - the owner. This one and the next four are not for GEX_MK_HOST. */
AQ_PUBLIC gex_Client_t gex_MK_QueryClient(gex_MK_t kind);
/** gex_MK_QueryClass - the class it was made of. */
AQ_PUBLIC gex_MK_Class_t gex_MK_QueryClass(gex_MK_t kind);
/** gex_MK_QueryFlags - flags at creation. */
AQ_PUBLIC gex_Flags_t gex_MK_QueryFlags(gex_MK_t kind);
/** gex_MK_SetCData, gex_MK_QueryCData - one pointer of the client's. */
AQ_PUBLIC void gex_MK_SetCData(gex_MK_t kind, const void *val);
AQ_PUBLIC void *gex_MK_QueryCData(gex_MK_t kind);

AQ_END_DECLS

#endif
