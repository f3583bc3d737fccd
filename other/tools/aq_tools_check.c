/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_tools_check.c - the kind of this library: the functions that clients' objects refer to, so
 * that they link only with a library of their kind; versions; and, in the tools-only libraries, the
 * identification strings (a conduit library has them in base/aq_ident.c).
 *
 * Compiled once for the conduit libraries and once, with AQ_TOOLS_ALONE, for the tools-only ones.
 */
#include "other/tools/aq_tools.h"

/* Both libraries have the functions for LITE; par serves parsync, whose tools are those of SEQ. */
#define AQ_TOOLS_IS(mode)                      \
    AQ_PUBLIC void AQ_TOOLS_CHECK(mode)(void); \
    void AQ_TOOLS_CHECK(mode)(void)            \
    {                                          \
    }

AQ_TOOLS_IS(_LITE)
#if GASNETT_THREAD_SAFE
AQ_TOOLS_IS(_PAR)
AQ_TOOLS_IS(_PARSYNC)
#else
AQ_TOOLS_IS(_SEQ)
#endif

#if AQ_TOOLS_ALONE
GASNETT_IDENT(aq_tools_ident_config, "$GASNetToolsConfig: " GASNETT_CONFIG_STRING " $");
GASNETT_IDENT(aq_tools_ident_model, "$GASNetToolsThreadModel: " AQ_TOOLS_MODE_STR " $");
GASNETT_IDENT(aq_tools_ident_tuple, "$GASNetSystemTuple: " GASNETI_SYSTEM_TUPLE " $");
GASNETT_IDENT(aq_tools_ident_build, "$GASNetBuildId: " GASNETI_BUILD_ID " $");
GASNETT_IDENT(aq_tools_ident_args, "$GASNetConfigureArgs: " GASNETI_CONFIGURE_ARGS " $");
GASNETT_IDENT(aq_tools_ident_compiler, "$GASNetCompilerID: " PLATFORM_COMPILER_IDSTR " $");
#endif

const char *gasnett_release_version_str(void)
{
    return _STRINGIFY(GASNETT_RELEASE_VERSION_MAJOR) "." _STRINGIFY(
        GASNETT_RELEASE_VERSION_MINOR) "." _STRINGIFY(GASNETT_RELEASE_VERSION_PATCH);
}

uint64_t gasnett_release_version(void)
{
    return GASNETT_RELEASE_VERSION_MAJOR * UINT64_C(1000000)
           + GASNETT_RELEASE_VERSION_MINOR * UINT64_C(10000) + GASNETT_RELEASE_VERSION_PATCH;
}

const char *gasnett_performance_warning_str(void)
{
    return ""
#if GASNET_DEBUG
           "debugging: every call is checked, nothing is optimised\n"
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
           "a sanitizer is compiled in\n"
#endif
        ;
}
