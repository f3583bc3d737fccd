/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_info_build.c - how this library was built, from its identification strings and headers.
 */
#ifdef HAVE_CONFIG_H
#include "aq_config.h"
#endif
#include "other/info/aq_info.h"

#include <stdio.h>

#include "base/aq_ident.h"
#include "gasnetex.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unknown"
#endif

static void info_ident(const char *key, const char *label, const char *ident)
{
    unsigned len = 0;
    const char *value = aq_ident_value(ident, &len);
    char text[2048];

    if (value == NULL || len == 0)
        return;
    snprintf(text, sizeof(text), "%.*s", (int)len, value);
    aq_info_text(key, label, text, NULL);
}

void aq_info_build(void)
{
    aq_info_section("build", "Build");
    aq_info_text("version", "Aqueduct", PACKAGE_VERSION, NULL);
    info_ident("release", "corresponds to release", "GASNetReleaseVersion");
    info_ident("ex_spec", "GASNet-EX specification", "GASNetEXAPIVersion");
    info_ident("segment", "segment mode", "GASNetSegment");
#if GASNET_DEBUG
    aq_info_yesno("debug", "debug checks", true, "clients must be built for it");
#else
    aq_info_yesno("debug", "debug checks", false, NULL);
#endif
    aq_info_text("conduits", "conduits", GASNETI_CONDUITS, NULL);
    info_ident("max_segsize", "default of MAX_SEGSIZE", "GASNetDefaultMaxSegsizeStr");
    info_ident("compiler", "compiler", "GASNetCompilerID");
    info_ident("system", "system", "GASNetSystemTuple");
    info_ident("build_id", "build", "GASNetBuildId");
    info_ident("configure_args", "configured with", "GASNetConfigureArgs");
    aq_info_text("config", NULL, GASNET_CONFIG_STRING, NULL);
    aq_info_line("  GASNET_CONFIG_STRING");
    aq_info_line("    %s", GASNET_CONFIG_STRING);
    aq_info_section_end();
}

void aq_info_version(void)
{
    printf("aq-info (Aqueduct) %s\n", PACKAGE_VERSION);
}
