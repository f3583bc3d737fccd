/*
 * aq_ibv_gid.c - which of a port's GIDs is this process's address.
 *
 * A RoCE port has several: for each address of its interfaces one of version 1 and one of version
 * 2, in an order that differs between hosts. So they are chosen by what they are, never by index.
 * Version 2 is UDP: it passes routers, and is all that some devices have.
 *
 * Threads   pure functions
 * Uses      nothing. SPDX-License-Identifier: BSD-3-Clause
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "conduits/ibv/aq_ibv_device.h"

static bool aq_ibv_gid_is_v4(const uint8_t gid[16])
{
    static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

    return memcmp(gid, mapped, sizeof(mapped)) == 0;
}

static bool aq_ibv_gid_is_local(const uint8_t gid[16])
{
    return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

/* The larger the better; 0: not to be used. */
static int aq_ibv_gid_score(const struct aq_ibv_gid_row *row)
{
    const uint8_t *gid = row->gid.raw;
    const int version = row->type == AQ_IBV_GID_ROCE2 ? 10 : row->type == AQ_IBV_GID_ROCE1 ? 1 : 0;

    if (version == 0)
        return 0;
    if (aq_ibv_gid_is_v4(gid)) /* 127.x and 169.254.x reach nobody else, or nobody for sure */
        return version + (gid[12] == 127 ? 0 : gid[12] == 169 && gid[13] == 254 ? 2 : 4);
    return version + (aq_ibv_gid_is_local(gid) ? 1 : 3);
}

int aq_ibv_gid_choose(const struct aq_ibv_gid_row *rows, size_t count, bool ethernet, int64_t pref)
{
    int best = -1, score = 0;

    for (size_t i = 0; i < count; i++) {
        if (pref >= 0) {
            if (rows[i].index == (uint64_t)pref)
                return (int)i;
        } else if (!ethernet) {
            return (int)i; /* the port's own; others are for virtual machines */
        } else if (aq_ibv_gid_score(&rows[i]) > score) {
            score = aq_ibv_gid_score(&rows[i]);
            best = (int)i;
        }
    }
    return best;
}

bool aq_ibv_gid_alike(const struct aq_ibv_gid_row *a, const uint8_t b[16], uint32_t b_type)
{
    return a->type == b_type && aq_ibv_gid_is_v4(a->gid.raw) == aq_ibv_gid_is_v4(b);
}

const char *aq_ibv_gid_text(const uint8_t gid[16], char *text, size_t size)
{
    char plain[INET6_ADDRSTRLEN];

    if (aq_ibv_gid_is_v4(gid))
        inet_ntop(AF_INET, gid + 12, plain, sizeof(plain));
    else
        inet_ntop(AF_INET6, gid, plain, sizeof(plain));
    snprintf(text, size, "%s", plain);
    return text;
}
