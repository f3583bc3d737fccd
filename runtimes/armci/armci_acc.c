/*
 * armci_acc.c - accumulate: in mapped memory under the target's locks, elsewhere by messages.
 *
 * Locks     each block of 16 KiB of a segment (a stretch) has one of its owner's 64 locks. Ranks
 *           that map the segment, and the owner's handler, hold it while they add there. An element
 *           belongs to the stretch of its first byte
 * Wire      a Medium request: struct head; then either strides and counts of the section (levels of
 *           each, int32 strides, then levels + 1 counts), or (address, length) pairs of a list;
 *           then the elements. Each message is complete in itself, so messages may arrive in any
 *           order. A Short reply acknowledges each message
 * Promise   at return the source may be reused: its elements are in messages. Fences wait for the
 *           acknowledgements
 * Threads   the program's; the handler runs on it or on the service thread
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_impl.h"

#include <string.h>

#define MAX_LIST 256 /* segments in one message */

/* --- adding where the memory is mapped --- */

/* The state of an addition. It holds at most one lock, that of the current stretch. */
struct adder {
    struct aq_armci_control *control;
    const char *base;
    int type;
    size_t size; /* of an element */
    const void *scale;
    struct aq_armci_lock *lock;
};

static void adder_begin(struct adder *adder, const struct aq_armci_peer *peer, int type,
                        const void *scale)
{
    *adder =
        (struct adder){ peer->control, peer->base, type, aq_armci_acc_size(type), scale, NULL };
}

static void adder_end(struct adder *adder)
{
    if (adder->lock != NULL)
        aq_armci_lock_give(adder->lock);
}

static void hold(struct adder *adder, size_t stretch)
{
    struct aq_armci_lock *lock = &adder->control->stripe[stretch % AQ_ARMCI_STRIPES];

    if (lock == adder->lock)
        return;
    adder_end(adder);
    aq_armci_lock_take(lock);
    adder->lock = lock;
}

static void adder_add(struct adder *adder, char *dst, const char *src, size_t bytes)
{
    while (bytes >= adder->size) {
        const size_t offset = (size_t)(dst - adder->base);
        const size_t stretch = offset >> AQ_ARMCI_STRETCH_SHIFT;
        const size_t left = ((stretch + 1) << AQ_ARMCI_STRETCH_SHIFT) - offset;
        size_t n = (left + adder->size - 1) / adder->size;

        if (n > bytes / adder->size)
            n = bytes / adder->size;
        hold(adder, stretch);
        aq_armci_add(adder->type, dst, src, n, adder->scale);
        dst += n * adder->size;
        src += n * adder->size;
        bytes -= n * adder->size;
    }
}

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
    int32_t type;
    int16_t levels;  /* section */
    int16_t nfrags;  /* list: its segments; 0: the message is of a section */
    double scale[2]; /* one value of the type, or two floats */
};

struct frag {
    void *dst;
    uint64_t bytes;
};

static void head_init(struct head *head, int type, const void *scale)
{
    memset(head, 0, sizeof(*head));
    head->type = type;
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

static void commit(gex_AM_SrcDesc_t sd, int proc, size_t bytes)
{
    aq_armci.peers[proc].acc_sent++;
    AQ_ARMCI_COUNT(acc_messages, 1);
    aq_armci_mark(proc);
    gex_AM_CommitRequestMedium0(sd, AQ_ARMCI_HANDLE_ACC, bytes);
}

/* Sends one message of a section, from *at on. Returns the bytes of its elements. */
static size_t send_part(const struct aq_armci_section *section, struct head *head,
                        struct aq_armci_cursor *at, size_t left, int proc)
{
    const size_t unit = aq_armci_acc_size(head->type);
    const size_t fixed = section_head_size(section);
    const gex_AM_SrcDesc_t sd = prepare(proc, fixed + unit, fixed + left);
    const size_t bytes = round_down(gex_AM_SrcDescSize(sd) - fixed, unit);
    char *out = gex_AM_SrcDescAddr(sd);

    memcpy(out, head, sizeof(*head));
    out = write_section(out + sizeof(*head), section);
    for (size_t done = 0, n; done < bytes; done += n) {
        n = cursor_left_of(at, bytes - done);
        memcpy(out + done, at->src + at->done, n);
        cursor_advance(at, n);
    }
    commit(sd, proc, fixed + bytes);
    head->offset += bytes;
    return bytes;
}

static void send_section(int type, const void *scale, const struct aq_armci_section *section,
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

static void add_section(struct adder *adder, struct aq_armci_cursor *at, const char *src,
                        size_t bytes)
{
    for (size_t done = 0, n; done < bytes; done += n) {
        n = cursor_left_of(at, bytes - done);
        adder_add(adder, at->dst + at->done, src + done, n);
        cursor_advance(at, n);
    }
}

static void add_list(struct adder *adder, const struct head *head, const char *in)
{
    const char *src = in + (size_t)head->nfrags * sizeof(struct frag);

    for (int i = 0; i < head->nfrags; i++) {
        struct frag frag;

        memcpy(&frag, in + (size_t)i * sizeof(frag), sizeof(frag));
        adder_add(adder, frag.dst, src, frag.bytes);
        src += frag.bytes;
    }
}

void aq_armci_on_acc(gex_Token_t token, void *payload, size_t bytes)
{
    const char *in = payload;
    struct aq_armci_section section;
    struct adder adder;
    struct aq_armci_cursor at;
    struct head head;

    memcpy(&head, in, sizeof(head));
    adder_begin(&adder, &aq_armci.peers[aq_armci.me], head.type, head.scale);
    if (head.nfrags > 0) {
        add_list(&adder, &head, in + sizeof(head));
    } else {
        const char *src = read_section(in + sizeof(head), &head, &section);

        aq_armci_cursor_begin(&at, &section);
        cursor_seek(&at, head.offset);
        add_section(&adder, &at, src, bytes - (size_t)(src - in));
    }
    adder_end(&adder);
    gex_AM_ReplyShort0(token, AQ_ARMCI_HANDLE_ACC_DONE, 0);
}

void aq_armci_on_acc_done(gex_Token_t token)
{
    /* release: pairs with the acquire of aq_armci_wait_all() */
    atomic_fetch_add_explicit(&aq_armci.peers[aq_armci_source(token)].acc_done, 1,
                              memory_order_release);
}

/* --- calls --- */

/* Waits for earlier puts to proc. Accumulates have no order among each other. */
static struct aq_armci_peer *begin(int proc)
{
    struct aq_armci_peer *peer = &aq_armci.peers[proc];

    aq_armci_tick();
    if (peer->put != GEX_EVENT_INVALID)
        aq_armci_wait_puts(proc);
    aq_armci_wait_chunks(proc);
    return peer;
}

static int check_op(const char *call, int op)
{
    const int type = aq_armci_acc_type(op);

    if (type < 0)
        aq_armci_fatal("%s: %d is no accumulate operation", call, op);
    return type;
}

static int accumulate(const char *call, int op, void *scale, ARMCI_STRIDED_ARGS_)
{
    const int type = check_op(call, op);
    struct aq_armci_section section;
    const struct aq_armci_peer *peer;
    const int rc = aq_armci_section_init(call, &section, src_ptr, src_stride_arr, dst_ptr,
                                         dst_stride_arr, count, stride_levels, proc);

    if (rc != 0 || scale == NULL)
        return scale == NULL ? FAIL : rc < 0 ? rc : 0;
    peer = begin(proc);
    aq_armci_check_section(&section, section.dst, section.dst_stride, proc);
    /* what a run has behind its last whole element is ignored */
    section.bytes = round_down(section.bytes, aq_armci_acc_size(type));
    if (section.bytes == 0)
        return 0;
    if (aq_armci_is_local(peer)) {
        struct adder adder;
        struct aq_armci_cursor at;

        aq_armci_cursor_begin(&at, &section);
        adder_begin(&adder, peer, type, scale);
        for (size_t run = 0; run < section.runs; run++) {
            adder_add(&adder, at.dst, at.src, section.bytes);
            aq_armci_cursor_next(&at);
        }
        adder_end(&adder);
    } else {
        send_section(type, scale, &section, proc);
    }
    return 0;
}

/* Returns rc. An operation that has succeeded is complete at the origin, and so on its handle. */
static int noted(armci_hdl_t *handle, int rc)
{
    if (rc == 0)
        aq_armci_note_operation(handle);
    return rc;
}

int PARMCI_AccS(int op, void *scale, ARMCI_STRIDED_ARGS_)
{
    return accumulate("ARMCI_AccS", op, scale, src_ptr, src_stride_arr, dst_ptr, dst_stride_arr,
                      count, stride_levels, proc);
}
AQ_ARMCI_TWIN(AccS);

int PARMCI_NbAccS(int op, void *scale, ARMCI_STRIDED_ARGS_, armci_hdl_t *handle)
{
    return noted(handle, accumulate("ARMCI_NbAccS", op, scale, src_ptr, src_stride_arr, dst_ptr,
                                    dst_stride_arr, count, stride_levels, proc));
}
AQ_ARMCI_TWIN(NbAccS);

int PARMCI_Acc(int op, void *scale, void *src, void *dst, int bytes, int proc)
{
    return accumulate("ARMCI_Acc", op, scale, src, NULL, dst, NULL, &bytes, 0, proc);
}
AQ_ARMCI_TWIN(Acc);

int PARMCI_NbAcc(int op, void *scale, void *src, void *dst, int bytes, int proc,
                 armci_hdl_t *handle)
{
    return noted(handle,
                 accumulate("ARMCI_NbAcc", op, scale, src, NULL, dst, NULL, &bytes, 0, proc));
}
AQ_ARMCI_TWIN(NbAcc);

/* Sends one message with as many segments as fit, from number first on. Returns their number. */
static int send_list(int type, const void *scale, const armci_giov_t *giov, int first, int proc)
{
    const size_t bytes = (size_t)giov->bytes, each = bytes + sizeof(struct frag);
    const int left =
        giov->ptr_array_len - first < MAX_LIST ? giov->ptr_array_len - first : MAX_LIST;
    const gex_AM_SrcDesc_t sd =
        prepare(proc, sizeof(struct head) + each, sizeof(struct head) + (size_t)left * each);
    const int n = (int)((gex_AM_SrcDescSize(sd) - sizeof(struct head)) / each);
    char *out = gex_AM_SrcDescAddr(sd), *data;
    struct head head;

    head_init(&head, type, scale);
    head.nfrags = (int16_t)n;
    memcpy(out, &head, sizeof(head));
    out += sizeof(head);
    data = out + (size_t)n * sizeof(struct frag);
    for (int i = 0; i < n; i++) {
        const struct frag frag = { giov->dst_ptr_array[first + i], bytes };

        memcpy(out + (size_t)i * sizeof(frag), &frag, sizeof(frag));
        memcpy(data + (size_t)i * bytes, giov->src_ptr_array[first + i], bytes);
    }
    commit(sd, proc, sizeof(head) + (size_t)n * each);
    return n;
}

/* Sends the segments of a descriptor. A segment that is too long for a message goes as a section of
 * one run. */
static void send_giov(const char *call, int type, void *scale, const armci_giov_t *giov, int proc)
{
    const size_t limit = gex_AM_MaxRequestMedium(aq_armci.tm, (gex_Rank_t)proc, NULL,
                                                 GEX_FLAG_AM_PREPARE_LEAST_ALLOC, 0);

    if (sizeof(struct head) + sizeof(struct frag) + (size_t)giov->bytes <= limit) {
        for (int i = 0; i < giov->ptr_array_len;)
            i += send_list(type, scale, giov, i, proc);
        return;
    }
    for (int i = 0; i < giov->ptr_array_len; i++) {
        int bytes = giov->bytes;

        accumulate(call, type, scale, giov->src_ptr_array[i], NULL, giov->dst_ptr_array[i], NULL,
                   &bytes, 0, proc);
    }
}

static int accumulate_lists(const char *call, int op, void *scale, armci_giov_t darr[], int len,
                            int proc)
{
    const int type = check_op(call, op);
    const int rc = aq_armci_check_giov(call, darr, len, proc);
    const struct aq_armci_peer *peer;
    struct adder adder;

    if (rc != 0 || scale == NULL)
        return rc != 0 ? rc : FAIL;
    peer = begin(proc);
    adder_begin(&adder, peer, type, scale);
    for (int i = 0; i < len; i++) {
        for (int k = 0; k < darr[i].ptr_array_len; k++) {
            aq_armci_check_range(call, darr[i].dst_ptr_array[k], (size_t)darr[i].bytes, proc);
            if (aq_armci_is_local(peer))
                adder_add(&adder, darr[i].dst_ptr_array[k], darr[i].src_ptr_array[k],
                          (size_t)darr[i].bytes);
        }
        if (!aq_armci_is_local(peer))
            send_giov(call, type, scale, &darr[i], proc);
    }
    adder_end(&adder);
    return 0;
}

int PARMCI_AccV(int op, void *scale, armci_giov_t darr[], int len, int proc)
{
    return accumulate_lists("ARMCI_AccV", op, scale, darr, len, proc);
}
AQ_ARMCI_TWIN(AccV);

int PARMCI_NbAccV(int op, void *scale, armci_giov_t darr[], int len, int proc, armci_hdl_t *handle)
{
    return noted(handle, accumulate_lists("ARMCI_NbAccV", op, scale, darr, len, proc));
}
AQ_ARMCI_TWIN(NbAccV);
