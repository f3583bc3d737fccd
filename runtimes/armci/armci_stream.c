/*
 * armci_stream.c - see armci_stream.h. All messages from one rank to another have numbers. The
 * network may deliver them in another order, and two threads of the target may handle them: a
 * message whose turn has not come waits in memory.
 *
 * Wire      a Medium request: struct head; then either strides and counts of the section (levels of
 *           each, int32 strides, then levels + 1 counts), or (address, length) pairs of a list;
 *           then the elements. A question is a head alone. A message that asks for an answer gets
 *           one when it is applied: a Short reply, how many messages have been since the last
 * Answers   are asked for by a message that follows no unanswered one, since a fence may be next;
 *           of those in a row by each ANSWER_EVERY-th, and by the question that a fence sends
 * Owns      at the target, for each source: the number of its next message, early messages, and
 *           how many have been applied since the last answer
 * Locks     peer->arriving, while messages of a source are applied; the locks of armci_adder.h are
 *           taken under it
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_stream.h"

#include "armci_adder.h"
#include "armci_impl.h"

#include <stdlib.h>
#include <string.h>

#define MAX_LIST     256 /* segments in one message */
#define ANSWER_EVERY 16u
#define QUESTION     (-2) /* a type of message, beside those of armci_stream.h */

/* --- a section as a sequence of bytes, run after run --- */

static void cursor_advance(struct aq_armci_cursor *at, size_t bytes)
{
    at->done += bytes;
    if (at->done == at->section->bytes)
        aq_armci_cursor_next(at);
}

/* Moves the cursor to a byte of the section. The section came in a message and has no source. */
static void cursor_seek(struct aq_armci_cursor *at, size_t offset)
{
    size_t run = offset / at->section->bytes;

    at->done = offset % at->section->bytes;
    for (size_t i = 0; i < at->section->levels; i++) {
        at->index[i] = run % at->section->count[i];
        at->dst += (ptrdiff_t)at->index[i] * at->section->dst_stride[i];
        run /= at->section->count[i];
    }
}

static size_t cursor_left_of(const struct aq_armci_cursor *at, size_t max_bytes)
{
    const size_t left = at->section->bytes - at->done;

    return left < max_bytes ? left : max_bytes;
}

/* --- messages --- */

struct head {
    void *dst;       /* section: its beginning */
    uint64_t offset; /* section: bytes of the sequence before those of this message */
    uint32_t number; /* of the message, among those of its source to this target */
    int16_t type;    /* see armci_stream.h */
    int16_t levels;  /* section */
    int16_t nfrags;  /* list: its segments; 0: the message is of a section */
    int16_t asks;    /* 1: for an answer */
    double scale[2]; /* accumulate: one value of the type, or two floats */
};

struct frag {
    void *dst;
    uint64_t bytes;
};

/* Of what a message of the section has a whole number, bytes: no element that is added, and no word
 * that is stored, is in two messages. */
static size_t unit_of(int type, const struct aq_armci_section *section)
{
    if (type != AQ_ARMCI_STORE)
        return aq_armci_acc_size(type);
    return section->bytes % sizeof(uint64_t) == 0 ? sizeof(uint64_t) : 1;
}

static void head_init(struct head *head, int type, const void *scale)
{
    memset(head, 0, sizeof(*head));
    head->type = (int16_t)type;
    if (type >= 0)
        memcpy(head->scale, scale, aq_armci_acc_size(type));
}

static size_t section_head_size(const struct aq_armci_section *section)
{
    return sizeof(struct head) + (2 * section->levels + 1) * sizeof(int32_t);
}

static char *write_section(char *out, const struct aq_armci_section *section)
{
    int32_t words[2 * ARMCI_MAX_STRIDE_LEVEL + 1];
    const size_t levels = section->levels;

    for (size_t i = 0; i < levels; i++) {
        words[i] = (int32_t)section->dst_stride[i];
        words[levels + 1 + i] = (int32_t)section->count[i];
    }
    words[levels] = (int32_t)section->bytes;
    memcpy(out, words, (2 * levels + 1) * sizeof(int32_t));
    return out + (2 * levels + 1) * sizeof(int32_t);
}

static const char *read_section(const char *in, const struct head *head,
                                struct aq_armci_section *section)
{
    int32_t words[2 * ARMCI_MAX_STRIDE_LEVEL + 1];
    const size_t levels = (size_t)head->levels;

    memcpy(words, in, (2 * levels + 1) * sizeof(int32_t));
    memset(section, 0, sizeof(*section));
    section->dst = head->dst;
    section->levels = levels;
    section->bytes = (size_t)words[levels];
    for (size_t i = 0; i < levels; i++) {
        section->dst_stride[i] = words[i];
        section->count[i] = (size_t)words[levels + 1 + i];
    }
    return in + (2 * levels + 1) * sizeof(int32_t);
}

static size_t round_down(size_t bytes, size_t unit)
{
    return bytes / unit * unit;
}

static gex_AM_SrcDesc_t prepare(int proc, size_t min_bytes, size_t max_bytes)
{
    return gex_AM_PrepareRequestMedium(aq_armci.tm, (gex_Rank_t)proc, NULL, min_bytes, max_bytes,
                                       NULL, 0, 0);
}

/* Does the next message to the peer ask for an answer? */
static bool asks_for_answer(const struct aq_armci_peer *peer, int type)
{
    /* relaxed: an answer that comes meanwhile makes no difference but to the number of answers */
    return type == QUESTION || peer->sent - peer->asked >= ANSWER_EVERY - 1
           || atomic_load_explicit(&peer->done, memory_order_relaxed) == peer->sent;
}

/* Writes the head, which now gets its number. */
static char *write_head(char *out, struct head *head, int proc)
{
    const struct aq_armci_peer *peer = &aq_armci.peers[proc];

    head->number = peer->sent;
    head->asks = asks_for_answer(peer, head->type);
    memcpy(out, head, sizeof(*head));
    return out + sizeof(*head);
}

static void commit(gex_AM_SrcDesc_t sd, const struct head *head, int proc, size_t bytes)
{
    struct aq_armci_peer *peer = &aq_armci.peers[proc];

    peer->sent = head->number + 1;
    if (head->asks)
        peer->asked = peer->sent;
    if (head->type == AQ_ARMCI_STORE)
        AQ_ARMCI_COUNT(put_messages, 1);
    else if (head->type != QUESTION)
        AQ_ARMCI_COUNT(acc_messages, 1);
    aq_armci_mark(proc);
    gex_AM_CommitRequestMedium0(sd, AQ_ARMCI_HANDLE_STREAM, bytes);
}

/* Sends one message of a section, from *at on. Returns the bytes of its elements. */
static size_t send_part(const struct aq_armci_section *section, struct head *head,
                        struct aq_armci_cursor *at, size_t left, int proc)
{
    const size_t unit = unit_of(head->type, section);
    const size_t fixed = section_head_size(section);
    const gex_AM_SrcDesc_t sd = prepare(proc, fixed + unit, fixed + left);
    const size_t bytes = round_down(gex_AM_SrcDescSize(sd) - fixed, unit);
    char *out = write_section(write_head(gex_AM_SrcDescAddr(sd), head, proc), section);

    for (size_t done = 0, n; done < bytes; done += n) {
        n = cursor_left_of(at, bytes - done);
        memcpy(out + done, at->src + at->done, n);
        cursor_advance(at, n);
    }
    commit(sd, head, proc, fixed + bytes);
    head->offset += bytes;
    return bytes;
}

void aq_armci_stream_section(int type, const void *scale, const struct aq_armci_section *section,
                             int proc)
{
    size_t left = section->bytes * section->runs;
    struct aq_armci_cursor at;
    struct head head;

    aq_armci_cursor_begin(&at, section);
    head_init(&head, type, scale);
    head.dst = section->dst;
    head.levels = (int16_t)section->levels;
    while (left > 0)
        left -= send_part(section, &head, &at, left, proc);
}

int aq_armci_stream_list(int type, const void *scale, const armci_giov_t *giov, int first, int proc)
{
    const size_t bytes = (size_t)giov->bytes, each = bytes + sizeof(struct frag);
    const int left =
        giov->ptr_array_len - first < MAX_LIST ? giov->ptr_array_len - first : MAX_LIST;
    gex_AM_SrcDesc_t sd;
    struct head head;
    char *out, *data;
    int n;

    if (sizeof(head) + each > gex_AM_MaxRequestMedium(aq_armci.tm, (gex_Rank_t)proc, NULL,
                                                      GEX_FLAG_AM_PREPARE_LEAST_ALLOC, 0))
        return 0;
    sd = prepare(proc, sizeof(head) + each, sizeof(head) + (size_t)left * each);
    n = (int)((gex_AM_SrcDescSize(sd) - sizeof(head)) / each);
    head_init(&head, type, scale);
    head.nfrags = n;
    out = write_head(gex_AM_SrcDescAddr(sd), &head, proc);
    data = out + (size_t)n * sizeof(struct frag);
    for (int i = 0; i < n; i++) {
        const struct frag frag = { giov->dst_ptr_array[first + i], bytes };

        memcpy(out + (size_t)i * sizeof(frag), &frag, sizeof(frag));
        memcpy(data + (size_t)i * bytes, giov->src_ptr_array[first + i], bytes);
    }
    commit(sd, &head, proc, sizeof(head) + (size_t)n * each);
    return n;
}

void aq_armci_stream_ask(int proc)
{
    const struct aq_armci_peer *peer = &aq_armci.peers[proc];
    gex_AM_SrcDesc_t sd;
    struct head head;

    if (peer->asked == peer->sent)
        return;
    sd = prepare(proc, sizeof(head), sizeof(head));
    head_init(&head, QUESTION, NULL);
    write_head(gex_AM_SrcDescAddr(sd), &head, proc);
    commit(sd, &head, proc, sizeof(head));
}

struct aq_armci_peer *aq_armci_stream_after(int proc)
{
    struct aq_armci_peer *peer = &aq_armci.peers[proc];

    if (peer->put != GEX_EVENT_INVALID)
        aq_armci_wait_puts(proc);
    aq_armci_wait_chunks(proc);
    return peer;
}

/* --- at the target --- */

/* release: a rank that reads a word here, a flag perhaps, reads what was put before. */
static void store(char *dst, const char *src, size_t bytes)
{
    uint64_t word8;
    uint32_t word4;

    if (bytes == sizeof(word8) && (uintptr_t)dst % sizeof(word8) == 0) {
        memcpy(&word8, src, sizeof(word8));
        __atomic_store_n((uint64_t *)(void *)dst, word8, __ATOMIC_RELEASE);
    } else if (bytes == sizeof(word4) && (uintptr_t)dst % sizeof(word4) == 0) {
        memcpy(&word4, src, sizeof(word4));
        __atomic_store_n((uint32_t *)(void *)dst, word4, __ATOMIC_RELEASE);
    } else {
        memcpy(dst, src, bytes);
    }
}

static void apply_run(struct aq_armci_adder *adder, char *dst, const char *src, size_t bytes)
{
    if (adder->type == AQ_ARMCI_STORE)
        store(dst, src, bytes);
    else
        aq_armci_adder_add(adder, dst, src, bytes);
}

static void apply_section(struct aq_armci_adder *adder, const struct head *head, const char *in,
                          const char *end)
{
    struct aq_armci_section section;
    struct aq_armci_cursor at;
    const char *src = read_section(in, head, &section);

    aq_armci_cursor_begin(&at, &section);
    cursor_seek(&at, head->offset);
    for (size_t n; src < end; src += n) {
        n = cursor_left_of(&at, (size_t)(end - src));
        apply_run(adder, at.dst + at.done, src, n);
        cursor_advance(&at, n);
    }
}

static void apply_list(struct aq_armci_adder *adder, const struct head *head, const char *in)
{
    const char *src = in + (size_t)head->nfrags * sizeof(struct frag);

    for (int i = 0; i < head->nfrags; i++) {
        struct frag frag;

        memcpy(&frag, in + (size_t)i * sizeof(frag), sizeof(frag));
        apply_run(adder, frag.dst, src, frag.bytes);
        src += frag.bytes;
    }
}

static void apply(struct aq_armci_peer *peer, const char *payload, size_t bytes)
{
    const char *in = payload + sizeof(struct head);
    struct aq_armci_adder adder = { .type = AQ_ARMCI_STORE };
    struct head head;

    memcpy(&head, payload, sizeof(head));
    peer->next++;
    peer->unanswered++;
    peer->answer_due = peer->answer_due || head.asks;
    if (head.type == QUESTION)
        return;
    if (head.type != AQ_ARMCI_STORE)
        aq_armci_adder_begin(&adder, &aq_armci.peers[aq_armci.me], head.type, head.scale);
    if (head.nfrags > 0)
        apply_list(&adder, &head, in);
    else
        apply_section(&adder, &head, in, payload + bytes);
    aq_armci_adder_end(&adder);
}

/* A message that has come before its turn. */
struct aq_armci_early {
    struct aq_armci_early *next;
    uint32_t number;
    size_t bytes;
    char payload[];
};

static void put_aside(struct aq_armci_peer *peer, uint32_t number, const char *payload,
                      size_t bytes)
{
    struct aq_armci_early *early = malloc(sizeof(*early) + bytes);

    if (early == NULL)
        aq_armci_fatal("no memory for a message of %zu bytes that came too early", bytes);
    early->next = peer->early;
    early->number = number;
    early->bytes = bytes;
    memcpy(early->payload, payload, bytes);
    peer->early = early;
}

/* Returns the early message whose turn it is now, or NULL. */
static struct aq_armci_early *take_next(struct aq_armci_peer *peer)
{
    for (struct aq_armci_early **at = &peer->early; *at != NULL; at = &(*at)->next) {
        struct aq_armci_early *early = *at;

        if (early->number == peer->next) {
            *at = early->next;
            return early;
        }
    }
    return NULL;
}

/* Applies a message, and early ones that follow it. */
static void take_turn(struct aq_armci_peer *peer, const char *payload, size_t bytes)
{
    struct aq_armci_early *early;

    apply(peer, payload, bytes);
    while ((early = take_next(peer)) != NULL) {
        apply(peer, early->payload, early->bytes);
        free(early);
    }
}

/* What an answer is to say now; 0: none is due. */
static uint32_t take_answer(struct aq_armci_peer *peer)
{
    const uint32_t applied = peer->unanswered;

    if (!peer->answer_due)
        return 0;
    peer->unanswered = 0;
    peer->answer_due = false;
    return applied;
}

void aq_armci_on_stream(gex_Token_t token, void *payload, size_t bytes)
{
    struct aq_armci_peer *peer = &aq_armci.peers[aq_armci_source(token)];
    struct head head;
    uint32_t applied;

    memcpy(&head, payload, sizeof(head));
    gex_HSL_Lock(&peer->arriving);
    if (head.number == peer->next)
        take_turn(peer, payload, bytes);
    else
        put_aside(peer, head.number, payload, bytes);
    applied = take_answer(peer);
    gex_HSL_Unlock(&peer->arriving);
    if (applied > 0)
        gex_AM_ReplyShort1(token, AQ_ARMCI_HANDLE_STREAM_DONE, 0, (gex_AM_Arg_t)applied);
}

void aq_armci_on_stream_done(gex_Token_t token, gex_AM_Arg_t applied)
{
    /* release: pairs with the acquire of aq_armci_wait_all() */
    atomic_fetch_add_explicit(&aq_armci.peers[aq_armci_source(token)].done, (uint32_t)applied,
                              memory_order_release);
}
