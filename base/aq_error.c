/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_error.c - names and descriptions of the public return codes, and whether errors are printed.
 * Threads   any
 * Uses      gasnetex.h, base/aq_log.h
 */
#include "base/aq_log.h"
#include "gasnetex.h"

const char *gasnet_ErrorName(int errval)
{
    switch (errval) {
    case GASNET_OK:
        return "GASNET_OK";
    case GASNET_ERR_NOT_INIT:
        return "GASNET_ERR_NOT_INIT";
    case GASNET_ERR_RESOURCE:
        return "GASNET_ERR_RESOURCE";
    case GASNET_ERR_BAD_ARG:
        return "GASNET_ERR_BAD_ARG";
    case GASNET_ERR_NOT_READY:
        return "GASNET_ERR_NOT_READY";
    case GASNET_ERR_BARRIER_MISMATCH:
        return "GASNET_ERR_BARRIER_MISMATCH";
    default:
        return "unknown return code";
    }
}

const char *gasnet_ErrorDesc(int errval)
{
    switch (errval) {
    case GASNET_OK:
        return "the operation succeeded";
    case GASNET_ERR_NOT_INIT:
        return "called before the library was initialised, or initialised a second time";
    case GASNET_ERR_RESOURCE:
        return "a resource of the machine, the system or the network is exhausted or failed";
    case GASNET_ERR_BAD_ARG:
        return "an argument is not allowed";
    case GASNET_ERR_NOT_READY:
        return "not complete yet; try again";
    case GASNET_ERR_BARRIER_MISMATCH:
        return "the ranks gave different names to one barrier";
    default:
        return "a number that is not a return code of this library";
    }
}

int gex_System_GetVerboseErrors(void)
{
    return aq_log_verbose_errors();
}

void gex_System_SetVerboseErrors(int enable)
{
    aq_log_set_verbose_errors(enable != 0);
}
