/*
 * armci_protocol.c - the protocols of contiguous transfers between ranks without shared memory:
 * pipelines of chunks through buffers, gets that the target's service thread puts; the settings
 * that choose one; counters.
 *
 * The direct protocol is the automatic choice: the conduit fragments, overlaps and registers, and
 * reads and writes the program's memory. The other protocols are for networks without that, and for
 * comparison.
 *
 * Owns      a ring of buffers in the own segment, allocated at first use
 * States    a buffer is free, or busy until its put or get is complete or its request is answered
 * Threads   the program's; the handlers run on it or on the service thread
 * Wire      AQ_ARMCI_HANDLE_ASSIST(source, destination, bytes, slot) -> a Long reply to the
 *           destination with AQ_ARMCI_HANDLE_ASSIST_DONE(slot)
 * See       J. Nieplocha and others: one-sided communication over Myrinet/GM, and the overview of
 *           ARMCI, for the pipelines, the smaller first chunk and the host-assisted get
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct aq_armci_protocol aq_armci_protocol;
unsigned long aq_armci_counters[AQ_ARMCI_COUNT_END];

/* --- settings --- */

/* A longer put takes as long as a message of its size, without the copies. */
#define EAGER_BYTES 32768

static void finish_all(void);
static void drop_buffers(void);

/* A setting whose values are words, the first of them the default; or a number in a range. */
struct setting {
    const char *name;
    const char *words[5];
    size_t min, max;
};

enum { PUT, GET, STRIDED, AGGREGATE, STATS, EAGER, BUFFERS, CHUNK, FIRST_CHUNK, SETTINGS };

static const struct setting settings[SETTINGS] = {
    [PUT] = { "AQ_ARMCI_PUT", { "auto", "direct", "buffered", "eager" }, 0, 0 },
    [GET] = { "AQ_ARMCI_GET", { "auto", "direct", "buffered", "assisted" }, 0, 0 },
    [STRIDED] = { "AQ_ARMCI_STRIDED", { "auto", "packed", "segments" }, 0, 0 },
    [AGGREGATE] = { "AQ_ARMCI_AGGREGATE", { "vector", "single" }, 0, 0 },
    [STATS] = { "AQ_ARMCI_STATS", { "0", "1" }, 0, 0 },
    [EAGER] = { "AQ_ARMCI_EAGER", { NULL }, 0, (size_t)1 << 30 },
    [BUFFERS] = { "AQ_ARMCI_BUFFERS", { NULL }, 1, AQ_ARMCI_MAX_BUFFERS },
    [CHUNK] = { "AQ_ARMCI_CHUNK", { NULL }, 64, (size_t)1 << 30 },
    [FIRST_CHUNK] = { "AQ_ARMCI_FIRST_CHUNK", { NULL }, 1, (size_t)1 << 30 },
};

static int word_index(const struct setting *setting, const char *value)
{
    for (int i = 0; setting->words[i] != NULL; i++)
        if (strcmp(value, setting->words[i]) == 0)
            return i;
    return -1;
}

/* Returns the number of a word, or the number itself; -1 if the value is not allowed. */
static long value_of(const struct setting *setting, const char *value)
{
    char *end;
    unsigned long number;

    if (setting->words[0] != NULL)
        return word_index(setting, value);
    number = strtoul(value, &end, 10);
    return *end != '\0' || number < setting->min || number > setting->max ? -1 : (long)number;
}

static void apply(int which, long value)
{
    struct aq_armci_protocol *p = &aq_armci_protocol;

    switch (which) {
    case PUT:
        p->put = (enum aq_armci_put)value;
        break;
    case GET:
        p->get = (enum aq_armci_get)value;
        break;
    case EAGER:
        p->eager = (size_t)value;
        break;
    case STRIDED:
        p->strided = (enum aq_armci_strided)value;
        break;
    case AGGREGATE:
        p->aggregate = value == 0;
        break;
    case STATS:
        p->stats = value == 1;
        break;
    case BUFFERS:
        p->buffers = (int)value;
        break;
    case CHUNK:
        p->chunk = (size_t)value;
        break;
    default:
        p->first = (size_t)value;
        break;
    }
}

void aq_armci_protocol_prepare(void)
{
    const char *strided = getenv("AQ_ARMCI_STRIDED");

    if (strided != NULL && strcmp(strided, "packed") == 0)
        aq_armci_set_default("GASNET_VIS_MAXCHUNK", "1G");
}

void aq_armci_protocol_start(void)
{
    aq_armci_protocol = (struct aq_armci_protocol){
        .aggregate = true, .eager = EAGER_BYTES, .buffers = 4, .chunk = 65536, .first = 16384
    };
    for (int i = 0; i < SETTINGS; i++) {
        const char *value = gasnet_getenv(settings[i].name);

        if (value == NULL || *value == '\0')
            continue;
        if (value_of(&settings[i], value) < 0)
            aq_armci_fatal("%s is '%s', which is none of its values (docs/armci.md)",
                           settings[i].name, value);
        apply(i, value_of(&settings[i], value));
    }
}

int ARMCIX_Set(const char *name, const char *value)
{
    for (int i = 0; i < SETTINGS; i++) {
        if (strcmp(name, settings[i].name) != 0 || value_of(&settings[i], value) < 0)
            continue;
        finish_all();
        if (i == BUFFERS || i == CHUNK)
            drop_buffers();
        apply(i, value_of(&settings[i], value));
        return 0;
    }
    return -1;
}

/* --- counters --- */

#define COUNTER_NAME(name) #name,
static const char *const counter_names[] = { AQ_ARMCI_COUNTERS(COUNTER_NAME) };

long ARMCIX_Counter(const char *name)
{
    for (int i = 0; i < AQ_ARMCI_COUNT_END; i++)
        if (strcmp(name, counter_names[i]) == 0)
            return (long)aq_armci_counters[i];
    return -1;
}

static void print_counters(void)
{
    char line[1024];
    int used = 0;

    for (int i = 0; i < AQ_ARMCI_COUNT_END; i++)
        used += snprintf(line + used, sizeof(line) - (size_t)used, " %s %lu", counter_names[i],
                         aq_armci_counters[i]);
    fprintf(stderr, "ARMCI: rank %d:%s\n", aq_armci.me, line);
}

/* --- the ring of buffers --- */

struct buffer {
    char *data;
    gex_Event_t event;   /* of its put or get */
    _Atomic int pending; /* 1: its request has not been answered */
    int proc;
    char *dst; /* gets: where the bytes are to be copied; NULL: nowhere */
    size_t bytes;
};

static struct buffer ring[AQ_ARMCI_MAX_BUFFERS];
static int at;   /* index of the next buffer to use */
static int busy; /* number of buffers that may be in use */

static void make_buffers(void)
{
    if (ring[0].data != NULL)
        return;
    for (int i = 0; i < aq_armci_protocol.buffers; i++) {
        ring[i].data = aq_armci_heap_alloc(aq_armci.heap, aq_armci_protocol.chunk);
        if (ring[i].data == NULL)
            aq_armci_fatal(
                "no memory for %d buffers of %zu bytes (AQ_ARMCI_BUFFERS, AQ_ARMCI_CHUNK)",
                aq_armci_protocol.buffers, aq_armci_protocol.chunk);
        ring[i].event = GEX_EVENT_INVALID;
    }
}

/* Waits until the transfer of the buffer is complete, and copies the bytes of a get to dst. */
static void finish(struct buffer *buffer)
{
    if (buffer->event != GEX_EVENT_INVALID)
        gex_Event_Wait(buffer->event);
    buffer->event = GEX_EVENT_INVALID;
    /* acquire: pairs with the release of aq_armci_on_assist_done() */
    GASNET_BLOCKUNTIL(atomic_load_explicit(&buffer->pending, memory_order_acquire) == 0);
    if (buffer->dst != NULL) {
        memcpy(buffer->dst, buffer->data, buffer->bytes);
        AQ_ARMCI_COUNT(bytes_copied, buffer->bytes);
    }
    buffer->dst = NULL;
}

static bool is_under_way(struct buffer *buffer)
{
    if (buffer->event != GEX_EVENT_INVALID && gex_Event_Test(buffer->event) == GASNET_OK)
        buffer->event = GEX_EVENT_INVALID;
    return buffer->event != GEX_EVENT_INVALID
           || atomic_load_explicit(&buffer->pending, memory_order_relaxed)
                  != 0; /* finish() acquires */
}

/* Returns the next buffer, after waiting until it is free. */
static struct buffer *take_buffer(int proc)
{
    struct buffer *buffer = &ring[at];

    if (is_under_way(buffer))
        AQ_ARMCI_COUNT(stalls, 1);
    finish(buffer);
    at = (at + 1) % aq_armci_protocol.buffers;
    busy = busy < aq_armci_protocol.buffers ? busy + 1 : busy;
    buffer->proc = proc;
    return buffer;
}

/* Waits for all buffers in the order of their use, the oldest first. */
static void finish_all(void)
{
    for (; busy > 0; busy--)
        finish(&ring[(at + aq_armci_protocol.buffers - busy) % aq_armci_protocol.buffers]);
}

void aq_armci_wait_chunks(int proc)
{
    for (int i = 0; busy > 0 && i < aq_armci_protocol.buffers; i++)
        if (ring[i].proc == proc)
            finish(&ring[i]);
}

static void drop_buffers(void)
{
    for (int i = 0; i < aq_armci_protocol.buffers && ring[i].data != NULL; i++)
        aq_armci_heap_free(aq_armci.heap, ring[i].data, 0);
    memset(ring, 0, sizeof(ring));
    at = 0;
}

void aq_armci_protocol_end(void)
{
    finish_all();
    drop_buffers();
    if (aq_armci_protocol.stats)
        print_counters();
    memset(aq_armci_counters, 0, sizeof(aq_armci_counters));
}

/* Returns the bytes of the chunk that begins at offset done. The first chunk is small, so that the
 * pipeline starts early. Each next chunk is twice as large, up to the full size: if the wire is at
 * most half as fast as a copy, a chunk is copied before the wire has sent the chunk before it. */
static size_t chunk_after(size_t done, size_t bytes)
{
    const size_t chunk = aq_armci_protocol.chunk, next = done + aq_armci_protocol.first;
    const size_t max = bytes > chunk && next < chunk ? next : chunk;

    return bytes - done < max ? bytes - done : max;
}

/* --- puts --- */

bool aq_armci_put_chunks(int proc, void *owner, const void *src, size_t bytes)
{
    if (aq_armci_protocol.put != AQ_ARMCI_PUT_BUFFERED) {
        AQ_ARMCI_COUNT(put_direct, 1);
        return false;
    }
    make_buffers();
    for (size_t done = 0, n; done < bytes; done += n) {
        struct buffer *buffer = take_buffer(proc);

        n = chunk_after(done, bytes);
        memcpy(buffer->data, (const char *)src + done, n);
        buffer->event = gex_RMA_PutNB(aq_armci.tm, (gex_Rank_t)proc, (char *)owner + done,
                                      buffer->data, n, GEX_EVENT_DEFER, 0);
        AQ_ARMCI_COUNT(put_chunks, 1);
    }
    AQ_ARMCI_COUNT(bytes_copied, bytes);
    AQ_ARMCI_COUNT(put_buffered, 1);
    aq_armci_mark(proc);
    return true;
}

/* --- gets --- */

static gex_AM_Arg_t high_word(uintptr_t word)
{
    return (gex_AM_Arg_t)(uint32_t)(word >> 32);
}

static gex_AM_Arg_t low_word(uintptr_t word)
{
    return (gex_AM_Arg_t)(uint32_t)word;
}

static void *pointer_of(gex_AM_Arg_t high, gex_AM_Arg_t low)
{
    return (void *)((uintptr_t)(uint32_t)high << 32 | (uint32_t)low);
}

/* At the target: replies with the bytes, straight to the address that the request names. */
void aq_armci_on_assist(gex_Token_t token, gex_AM_Arg_t source_high, gex_AM_Arg_t source_low,
                        gex_AM_Arg_t dest_high, gex_AM_Arg_t dest_low, gex_AM_Arg_t bytes,
                        gex_AM_Arg_t slot)
{
    gex_AM_ReplyLong1(token, AQ_ARMCI_HANDLE_ASSIST_DONE, pointer_of(source_high, source_low),
                      (size_t)bytes, pointer_of(dest_high, dest_low), GEX_EVENT_NOW, 0, slot);
}

void aq_armci_on_assist_done(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t slot)
{
    (void)token;
    (void)data;
    (void)bytes;
    /* release: pairs with the acquire of finish() */
    atomic_store_explicit(&ring[slot].pending, 0, memory_order_release);
}

static void request_chunk(struct buffer *buffer, const char *owner, char *dest, size_t n)
{
    const uintptr_t source = (uintptr_t)owner, to = (uintptr_t)dest;

    atomic_store_explicit(&buffer->pending, 1,
                          memory_order_relaxed); /* before the request is sent */
    gex_AM_RequestShort6(aq_armci.tm, (gex_Rank_t)buffer->proc, AQ_ARMCI_HANDLE_ASSIST, 0,
                         high_word(source), low_word(source), high_word(to), low_word(to),
                         (gex_AM_Arg_t)n, (gex_AM_Arg_t)(buffer - ring));
}

/* A Long reply can write to the own segment only. Other memory is reached through a buffer. */
static bool is_in_segment(const void *ptr, size_t bytes)
{
    const struct aq_armci_peer *self = &aq_armci.peers[aq_armci.me];
    const size_t offset = (size_t)((const char *)ptr - self->base);

    return offset < self->size && bytes <= self->size - offset;
}

static size_t longest_reply(int proc)
{
    return gex_AM_MaxReplyLong(aq_armci.tm, (gex_Rank_t)proc, GEX_EVENT_NOW, 0, 1);
}

bool aq_armci_get_chunks(int proc, void *dst, const void *owner, size_t bytes)
{
    const bool assisted = aq_armci_protocol.get == AQ_ARMCI_GET_ASSISTED;
    const bool straight = assisted && is_in_segment(dst, bytes);
    const size_t max = assisted ? longest_reply(proc) : bytes;

    if (!assisted && aq_armci_protocol.get != AQ_ARMCI_GET_BUFFERED) {
        AQ_ARMCI_COUNT(get_direct, 1);
        return false;
    }
    make_buffers();
    for (size_t done = 0, n; done < bytes; done += n) {
        struct buffer *buffer = take_buffer(proc);
        const char *from = (const char *)owner + done;

        n = chunk_after(done, bytes) < max ? chunk_after(done, bytes) : max;
        buffer->bytes = n;
        buffer->dst = straight ? NULL : (char *)dst + done;
        if (assisted)
            request_chunk(buffer, from, straight ? (char *)dst + done : buffer->data, n);
        else
            buffer->event = gex_RMA_GetNB(aq_armci.tm, buffer->data, (gex_Rank_t)proc,
                                          (void *)(uintptr_t)from, n, 0);
        AQ_ARMCI_COUNT(get_chunks, 1);
    }
    finish_all();
    if (assisted)
        AQ_ARMCI_COUNT(get_assisted, 1);
    else
        AQ_ARMCI_COUNT(get_buffered, 1);
    return true;
}
