/*
 * upcxx_lite.c - the one C file of a client in the manner of UPC++, for which threads do not
 * matter: it is compiled with the mode of the rest, forgets it, and includes the tools alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#undef GASNET_SEQ
#undef GASNET_PAR
#define GASNETT_LITE_MODE 1
#include <gasnet_tools.h>

#if GASNET_RELEASE_VERSION_MAJOR * 100 + GASNET_RELEASE_VERSION_MINOR < 202003
#error "an EX release"
#endif
#if PLATFORM_COMPILER_GNU && PLATFORM_COMPILER_VERSION_LT(4, 8, 0)
#error "too old a compiler"
#endif
#if GASNET_DEBUG
#define LITE_BUILD "debug"
#else
#define LITE_BUILD "opt"
#endif

GASNETT_IDENT(lite_compiler, "$RuntimeLiteCompiler: " PLATFORM_COMPILER_IDSTR " $");
GASNETT_IDENT(lite_release,
              "$RuntimeLiteRelease: " _STRINGIFY(GASNET_RELEASE_VERSION_MAJOR) " " LITE_BUILD " $");

const char *lite_build(void) GASNETT_USED;
const char *lite_build(void)
{
    return LITE_BUILD;
}
