/*
 * tools_lite.c - the subset that needs no thread mode: what a launcher or a query program uses, in
 * the manner of a client that drops its mode for one file. Source: GASNet tools specification 1.20,
 * threading modes. SPDX-License-Identifier: BSD-3-Clause
 */
#undef GASNET_SEQ
#undef GASNET_PAR
#undef GASNETT_THREAD_SAFE
#undef GASNETT_THREAD_SINGLE
#define GASNETT_LITE_MODE
#include "gasnet_tools.h"

#include "aq_tap.h"

GASNETT_IDENT(lite_ident, "$LiteIdent: " GASNETT_CONFIG_STRING " $");

#if defined(gasnett_mutex_lock) || defined(GASNETT_ATOMIC_NONE) || defined(gasnett_fatalerror)
#error "LITE has no locks, atomics or processes"
#endif

int main(void)
{
    const gasnett_tick_t began = gasnett_ticks_now();

    rule("LITE: timers, fences, annotations, versions, configuration, sizes");
    CHECK_EQ(GASNETT_LITE_MODE, 1);
    CHECK_STR(_STRINGIFY(GASNETT_THREAD_MODEL), "LITE");
    CHECK(strstr(GASNETT_CONFIG_STRING, ",LITE,") && !strstr(GASNETT_CONFIG_STRING, "atomic"));
    gasnett_local_mb();
    gasnett_spinloop_hint();
    CHECK_EQ(gasnett_nsleep(1000000), 0);
    CHECK(gasnett_ticks_to_ns(gasnett_ticks_now() - began) >= 900000);
    CHECK(GASNET_RELEASE_VERSION_MAJOR == 2025 && strlen(PLATFORM_COMPILER_IDSTR) > 20);
    CHECK(GASNETT_PAGESIZE > 0 && GASNETT_CACHE_LINE_BYTES > 0);
    CHECK_STR(gasnett_release_version_str(), "2025.8.0");
#if !defined(GASNET_DEBUG) && !defined(GASNET_NDEBUG)
    CHECK(!"one of GASNET_DEBUG and GASNET_NDEBUG is defined");
#endif
    return tap_finish();
}
