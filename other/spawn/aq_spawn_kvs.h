/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_kvs.h - joins a job whose launcher offers a key-value store and a fence (PMIx, PMI).
 * Owns      discovery of the ranks on each host, the job area among them, exchanges between hosts
 * Threads   lookup: any; all else: one, at start. The monitor is a thread of its own
 *           (aq_spawn_monitor.h)
 * Scale     a rank keeps 4 bytes for each rank of the job (info.host_of). Between hosts only first
 *           ranks of hosts exchange data, on behalf of their host; an address is fetched when it is
 *           first needed
 * Uses      aq_fdpass.h, aq_spawn_link.h
 */
#ifndef AQ_SPAWN_KVS_H
#define AQ_SPAWN_KVS_H

#include <stddef.h>
#include <stdint.h>

#include "other/spawn/aq_spawn_provider.h"

#define AQ_KVS_VALUE 512 /* bytes of text that every store accepts, NUL included */
#define AQ_KVS_CHUNK ((AQ_KVS_VALUE - 2) / 2) /* bytes in one value, as hex digits */
#define AQ_KVS_GET_S 60                       /* limit of a get of something that has been put */

/* Readers of a value. HOST: ranks that the launcher regards as neighbours; the value need not leave
 * the host. */
enum aq_kvs_scope { AQ_KVS_HOST, AQ_KVS_JOB };

/* every int function returns AQ_OK or a negative AQ_ERR_*, logged */
struct aq_kvs_ops {
    int (*init)(uint32_t *rank_out, uint32_t *size_out);
    /* the launcher's statement of which ranks share a host: equal numbers below size in
     * host_of_out[size]; the same on every rank. False if it makes none */
    bool (*place)(uint32_t *host_of_out, uint32_t size);
    /* the value becomes readable by others as (this rank, key) after the next fence */
    int (*put)(const char *key, const char *value, enum aq_kvs_scope scope);
    /* collect: carries what was put to all hosts at once; otherwise each get fetches it */
    int (*fence)(bool collect);
    /* any thread; waits for seconds at most */
    int (*get)(uint32_t rank, const char *key, char value_out[AQ_KVS_VALUE], int seconds);
    /* a connection to the launcher that closes when the launcher ends; NULL or -1: none */
    int (*life_fd)(void);
    void (*abort)(int code, const char *text);
    /* called before fini, on the thread that ends: all ranks have come to the exit, and may wait
     * for each other here. NULL: nothing to do */
    void (*disconnect)(enum aq_shutdown_mode how);
    void (*fini)(void);
};

struct aq_kvs {
    const struct aq_kvs_ops *ops;
    uint32_t rank, size;
    uint32_t exchanges;         /* number so far; part of the keys, which are used once */
    bool published;             /* the addresses are in the store */
    struct aq_jobarea *jobarea; /* while joining */
};

extern struct aq_kvs aq_kvs_me;

int aq_spawn_kvs_join(struct aq_spawn_state *st, const struct aq_kvs_ops *ops);
int aq_spawn_kvs_allgather(struct aq_spawn_state *st, const void *own_data, size_t len, void *all);
int aq_spawn_kvs_bcast(struct aq_spawn_state *st, void *buf, size_t len, uint32_t root);
int aq_spawn_kvs_fence(struct aq_spawn_state *st);
int aq_spawn_kvs_publish(struct aq_spawn_state *st, const void *address, size_t len);
int aq_spawn_kvs_lookup(struct aq_spawn_state *st, uint32_t rank, void *addr_out, size_t len);
void aq_spawn_kvs_notify(struct aq_spawn_state *st);
int aq_spawn_kvs_shutdown(struct aq_spawn_state *st, int code, enum aq_shutdown_mode how);

/** aq_kvs_to_hex - writes 2 * len digits and a NUL. */
void aq_kvs_to_hex(char *text, const uint8_t *bytes, size_t len);

/** aq_kvs_from_hex - AQ_OK if text is len bytes in hex digits; else AQ_ERR_ARG, not logged. */
int aq_kvs_from_hex(uint8_t *bytes, size_t len, const char *text);

#endif
