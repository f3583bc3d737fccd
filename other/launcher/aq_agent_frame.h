/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_agent_frame.h - the messages between gasnetrun on the user's host and its agents on the
 * others.
 * Owns      the buffers of a struct aq_frame_in or aq_pack
 * Threads   one
 * Wire      the agent sends a hello of AQ_HELLO_BYTES; then frames follow in both directions:
 *           length of the payload:32, type:8, arg:8, zero:16, payload; all numbers big endian
 * Promise   for any input a reader returns frames of known types and bounded length, or an error.
 *           Unpacking past the end sets an error flag and reads nothing
 */
#ifndef AQ_AGENT_FRAME_H
#define AQ_AGENT_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AQ_AGENT_PROTOCOL 1u /* raised with every change of the wire format */
#define AQ_HELLO_MAGIC    12 /* bytes that no shell start-up file prints */
#define AQ_HELLO_VERSION  16
#define AQ_HELLO_BYTES    (AQ_HELLO_MAGIC + 4 + AQ_HELLO_VERSION)
#define AQ_FRAME_HEAD     8
#define AQ_FRAME_SMALL    (64u << 10) /* longest payload of most frames */
#define AQ_FRAME_LARGE    (64u << 20) /* of SETUP, GATHER, RESULT */

enum aq_frame_type {
    AQ_FRAME_PING = 1, /* both: sign of life */
    AQ_FRAME_SETUP,    /* down: the job's plan, see aq_agent_plan.c */
    /* down: the receiver's host number, its range of hosts, and its output credit */
    AQ_FRAME_BEGIN,
    AQ_FRAME_STATE,    /* both: exit state and code */
    AQ_FRAME_SAY,      /* up: a message for the user; kind, NUL, text */
    AQ_FRAME_OUT,      /* up: output of ranks; arg: 1 stdout, 2 stderr */
    AQ_FRAME_CREDIT,   /* both: more credit, bytes; arg: 1, 2 for output (down), 0 for stdin (up) */
    AQ_FRAME_STDIN,    /* down: input of rank 0; empty: end of file */
    AQ_FRAME_SIGNAL,   /* down: send signal arg to the ranks that handle it */
    AQ_FRAME_PAUSE,    /* down: the user has stopped the job */
    AQ_FRAME_RESUME,   /* down */
    AQ_FRAME_GATHER,   /* up: the contributions of a subtree to an exchange */
    AQ_FRAME_RESULT,   /* down: the contributions of all hosts */
    AQ_FRAME_DONE,     /* up: no rank of the subtree is left and all of its output has been sent */
    AQ_FRAME_SHUTDOWN, /* down: no rank of the job is left; exit */
    AQ_FRAME_TYPES
};

struct aq_frame {
    enum aq_frame_type type;
    uint8_t arg;
    const uint8_t *data; /* points into the reader's buffer, valid until the next call */
    uint32_t len;
};

/* bytes that have been read and not yet decoded; zero-initialized */
struct aq_frame_in {
    uint8_t *buf;
    size_t head, have, cap; /* buf[head .. have) is not decoded yet */
};

/** aq_frame_space - returns space for at least want bytes; NULL without memory. */
uint8_t *aq_frame_space(struct aq_frame_in *in, size_t want);

/** aq_frame_added - len bytes have been written to the place that aq_frame_space() returned. */
void aq_frame_added(struct aq_frame_in *in, size_t len);

/** aq_frame_next - returns 1 and the next frame; 0 if it is incomplete; -EPROTO if it is
 * malformed. */
int aq_frame_next(struct aq_frame_in *in, struct aq_frame *frame_out);

/**
 * aq_frame_hello - find a hello in the input; bytes before it are skipped.
 * protocol_out, version_out  the agent's protocol, and the version of its package
 * noise_out, noise_len_out   the skipped bytes (or all, if there is no hello), in the reader's
 *                            buffer
 * Returns 1 and removes the skipped bytes and the hello from the buffer; 0 if there is no hello.
 */
int aq_frame_hello(struct aq_frame_in *in, uint32_t *protocol_out,
                   char version_out[AQ_HELLO_VERSION + 1], const char **noise_out,
                   size_t *noise_len_out);

/** aq_frame_make_hello - encodes an agent's hello. */
void aq_frame_make_hello(uint8_t hello_out[AQ_HELLO_BYTES], const char *version);

/** aq_frame_head - encodes the AQ_FRAME_HEAD bytes before a payload. */
void aq_frame_head(uint8_t head_out[AQ_FRAME_HEAD], enum aq_frame_type type, uint8_t arg,
                   uint32_t len);

void aq_frame_free(struct aq_frame_in *in);

/* a payload under construction; zero-initialized, free(buf) at the end */
struct aq_pack {
    uint8_t *buf;
    size_t len, cap;
    bool failed; /* no memory; later calls do nothing */
};

void aq_pack_u32(struct aq_pack *p, uint32_t value);
void aq_pack_bytes(struct aq_pack *p, const void *data, size_t len); /* without a length */
void aq_pack_block(struct aq_pack *p, const void *data, size_t len); /* with its length */
void aq_pack_text(struct aq_pack *p, const char *text);              /* NUL included */
void aq_pack_texts(struct aq_pack *p, char *const *texts);           /* NULL-terminated list */

/* a payload that is being decoded */
struct aq_unpack {
    const uint8_t *at;
    size_t left;
    bool failed; /* something was missing or malformed; later calls return nothing */
};

uint32_t aq_unpack_u32(struct aq_unpack *u);
const uint8_t *aq_unpack_bytes(struct aq_unpack *u, size_t len);      /* NULL if missing */
const uint8_t *aq_unpack_block(struct aq_unpack *u, size_t *len_out); /* NULL if missing */
char *aq_unpack_text(struct aq_unpack *u);   /* the caller frees it; NULL if missing */
char **aq_unpack_texts(struct aq_unpack *u); /* NULL-terminated; never freed */

#endif
