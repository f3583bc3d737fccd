/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_ident.c - "$Key: value $" strings, which tell launchers what an executable was built for
 * (`ident a.out`, upcxx-run, gasnetrun).
 * Owns      one constant; compiled once for each archive, with its conduit's headers
 * Form      one blank after the colon and one before the closing dollar; scanners split at '$'
 * Uses      the public headers' configuration macros
 * See       docs/launching.md
 */
#ifdef HAVE_CONFIG_H
#include "aq_config.h"
#endif
#include "base/aq_ident.h"

#include <string.h>

#include "gasnetex.h"
#include "gasnet_tools.h"

#ifndef AQ_DEFAULT_MAX_SEGSIZE
#define AQ_DEFAULT_MAX_SEGSIZE "0.85/H"
#endif

#ifdef __clang__
#define AQ_IDENT_COMPILER __VERSION__
#else
#define AQ_IDENT_COMPILER "GNU " __VERSION__
#endif

#define AQ_IDENT(key, value) "$" key ": " value " $\0"

/* conduits/NAME/ident.h, if it exists, replaces these strings */
#ifdef AQ_CONDUIT_IDENT
#include AQ_CONDUIT_IDENT
#else
#define AQ_IDENT_CONDUIT               \
    AQ_IDENT("GASNetFORKSpawner", "1") \
    AQ_IDENT("GASNetSSHSpawner", "1")  \
    AQ_IDENT("GASNetMPISpawner", "1")  \
    AQ_IDENT("GASNetPMISpawner", "1")
#endif

#define AQ_IDENT_VERSION                     \
    _STRINGIFY(GASNET_RELEASE_VERSION_MAJOR) \
    "." _STRINGIFY(GASNET_RELEASE_VERSION_MINOR) "." _STRINGIFY(GASNET_RELEASE_VERSION_PATCH)

/* clang-format off */
const char aq_ident_strings[] =
    AQ_IDENT("GASNetConduitName", GASNET_CONDUIT_NAME_STR)
    AQ_IDENT_CONDUIT
    AQ_IDENT("GASNetCoreLibraryName", GASNET_CORE_NAME_STR)
    AQ_IDENT("GASNetCoreLibraryVersion", GASNET_CORE_VERSION_STR)
    AQ_IDENT("GASNetExtendedLibraryName", GASNET_EXTENDED_NAME_STR)
    AQ_IDENT("GASNetExtendedLibraryVersion", GASNET_EXTENDED_VERSION_STR)
    "(libgasnet.a) "
    AQ_IDENT("GASNetConfig", GASNET_CONFIG_STRING)
    AQ_IDENT("GASNetToolsConfig", GASNETT_CONFIG_STRING)
    AQ_IDENT("GASNetToolsThreadModel", AQ_TOOLS_MODE_STR)
    AQ_IDENT("GASNetReleaseVersion", AQ_IDENT_VERSION)
    AQ_IDENT("GASNetAPIVersion", _STRINGIFY(GASNET_SPEC_VERSION_MAJOR))
    AQ_IDENT("GASNetEXAPIVersion",
             _STRINGIFY(GEX_SPEC_VERSION_MAJOR) "." _STRINGIFY(GEX_SPEC_VERSION_MINOR))
    AQ_IDENT("GASNetThreadModel", "GASNET_" AQ_MODE_STR)
    AQ_IDENT("GASNetSegment", "GASNET_SEGMENT_" AQ_SEGMENT_STR)
    AQ_IDENT("GASNetDefaultMaxSegsizeStr", AQ_DEFAULT_MAX_SEGSIZE)
    AQ_IDENT("GASNetPSHM", "memfd")
    AQ_IDENT("GASNetTracingEnabled", "1")
    AQ_IDENT("GASNetStatisticsEnabled", "1")
    AQ_IDENT("GASNetCompilerID", AQ_IDENT_COMPILER)
    AQ_IDENT("GASNetSystemName", GASNETI_SYSTEM_NAME)
    AQ_IDENT("GASNetSystemTuple", GASNETI_SYSTEM_TUPLE)
    AQ_IDENT("GASNetConfigureArgs", GASNETI_CONFIGURE_ARGS)
    AQ_IDENT("GASNetBuildId", GASNETI_BUILD_ID);
/* clang-format on */

const char *aq_ident_value(const char *key, unsigned *len_out)
{
    size_t key_len = strlen(key);

    for (const char *at = aq_ident_strings; *at != '\0'; at += strlen(at) + 1) {
        const char *dollar = strchr(at, '$');
        const char *value, *end;

        if (strncmp(dollar + 1, key, key_len) != 0 || dollar[1 + key_len] != ':')
            continue;
        value = dollar + 1 + key_len + 2;
        end = strrchr(value, '$');
        *len_out = (unsigned)(end - value - 1);
        return value;
    }
    return NULL;
}
