/*
 * test_mk.c - memory kinds: names and functions exist, and a library without devices says BAD_ARG.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, Memory kinds.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#include "gasnet_mk.h"

#if defined(GASNET_HAVE_MK_CLASS_CUDA_UVA) || defined(GASNET_HAVE_MK_CLASS_HIP) \
    || defined(GASNET_HAVE_MK_CLASS_ZE) || defined(GASNET_HAVE_MK_CLASS_MULTIPLE)
#error "this library claims memory kinds of devices"
#endif

/* Taken, so that each has to be there when this program is linked. */
static void (*const functions[])(void) = {
    (void (*)(void))gex_MK_Destroy,    (void (*)(void))gex_MK_QueryClient,
    (void (*)(void))gex_MK_QueryClass, (void (*)(void))gex_MK_QueryFlags,
    (void (*)(void))gex_MK_SetCData,   (void (*)(void))gex_MK_QueryCData,
};

int main(int argc, char **argv)
{
    const gex_MK_Class_t classes[] = { GEX_MK_CLASS_HOST, GEX_MK_CLASS_CUDA_UVA, GEX_MK_CLASS_HIP,
                                       GEX_MK_CLASS_ZE };
    gex_MK_Create_args_t args;
    gex_MK_t kind = (gex_MK_t)(void *)&args;
    gex_Segment_t segment = (gex_Segment_t)(void *)&args;
    size_t i;

    aq_test_start(&argc, &argv, 1);
    gex_System_SetVerboseErrors(0);
    rule("ext 15.1: classes count from 0; gex_flags is the first field");
    for (i = 0; i < AQ_LENGTH(classes); i++)
        AQ_CHECK_EQ(classes[i], i);
    AQ_CHECK_EQ(offsetof(gex_MK_Create_args_t, gex_flags), 0);
    AQ_CHECK_EQ(sizeof(args.gex_flags), 8);
    for (i = 0; i < AQ_LENGTH(functions); i++)
        AQ_CHECK(functions[i] != NULL);
    rule("ext 15.2: a class the library was built without gives BAD_ARG and leaves the output "
         "alone");
    for (i = 0; i < AQ_LENGTH(classes); i++) {
        memset(&args, 0, sizeof(args));
        args.gex_class = classes[i];
        args.gex_args.gex_class_cuda_uva.gex_CUdevice = 0;
        args.gex_args.gex_class_hip.gex_hipDevice = 0;
        args.gex_args.gex_class_ze.gex_zeDevice = NULL;
        args.gex_args.gex_class_ze.gex_zeContext = NULL;
        args.gex_args.gex_class_ze.gex_zeMemoryOrdinal = 0;
        AQ_CHECK_EQ(gex_MK_Create(&kind, aq_test_client, &args, 0), GASNET_ERR_BAD_ARG);
    }
    AQ_CHECK(kind == (gex_MK_t)(void *)&args);
    AQ_CHECK(GEX_MK_HOST != GEX_MK_INVALID && (uintptr_t)GEX_MK_HOST == 1);
    rule("core 11.4: no segment of a kind that is none");
    AQ_CHECK_EQ(gex_Segment_Create(&segment, aq_test_client, NULL, 4096, kind, 0),
                GASNET_ERR_BAD_ARG);
    AQ_CHECK(segment == (gex_Segment_t)(void *)&args);
    return aq_test_finish();
}
