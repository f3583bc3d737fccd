/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_kvs.h - joining a job whose launcher offers a key-value store and a fence (PMIx, PMI).
 * Owns      discovery of the ranks on this host, the board among them, exchanges between hosts
 * Threads   join and allgather: one; the minder is a thread of its own (aq_spawn_minder.h)
 * Uses      aq_fdpass.h
 */
#ifndef AQ_SPAWN_KVS_H
#define AQ_SPAWN_KVS_H

#include <stddef.h>
#include <stdint.h>

#include "other/spawn/aq_spawn_provider.h"

#define AQ_KVS_VALUE 512             /* bytes of text that every store takes, NUL included */

/* every function returns AQ_OK or a negative AQ_ERR_*, logged */
struct aq_kvs_ops {
    int (*init)(uint32_t *rank_out, uint32_t *size_out);
    /* value becomes readable by others as (my rank, key) after the next fence */
    int (*put)(const char *key, const char *value);
    int (*fence)(void);
    int (*get)(uint32_t rank, const char *key, char value_out[AQ_KVS_VALUE]);
    /* "0,1,2" or "0-2,5": the ranks of this host, caller frees; NULL if the store does not know */
    char *(*local_peers)(void);
    void (*abort)(int code, const char *text);
    void (*fini)(void);
};

int aq_spawn_kvs_join(struct aq_spawn_state *st, const struct aq_kvs_ops *ops);
int aq_spawn_kvs_allgather(struct aq_spawn_state *st, const void *mine, size_t len, void *all);
void aq_spawn_kvs_notify(struct aq_spawn_state *st);
int aq_spawn_kvs_leave(struct aq_spawn_state *st, int code, bool orderly);

#endif
