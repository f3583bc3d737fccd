/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_agent_frame.h - the messages between gasnetrun on the user's host and its agents on the
 * others.
 * Owns      the buffers of a struct aq_frame_in or aq_pack
 * Threads   one
 * Wire      first a hello from the agent, AQ_HELLO_BYTES; then frames both ways: length of the
 *           payload:32, type:8, arg:8, zero:16, payload; all numbers big endian
 * Promise   whatever the bytes are, a reader gets frames of known types and bounded length, or an
 *           error; unpacking past the end fails softly and reads nothing
 */
#ifndef AQ_AGENT_FRAME_H
#define AQ_AGENT_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AQ_AGENT_PROTOCOL 1u /* to be raised with every change of the wire */
#define AQ_HELLO_MAGIC    12 /* bytes that no shell start-up file prints */
#define AQ_HELLO_VERSION  16
#define AQ_HELLO_BYTES    (AQ_HELLO_MAGIC + 4 + AQ_HELLO_VERSION)
#define AQ_FRAME_HEAD     8
#define AQ_FRAME_SMALL    (64u << 10) /* longest payload of most frames */
#define AQ_FRAME_LARGE    (64u << 20) /* of SETUP, GATHER, RESULT */

enum aq_frame_type {
    AQ_FRAME_PING = 1, /* both: I am here */
    AQ_FRAME_SETUP,    /* down: the job, see aq_agent_plan.c */
    /* down: which host you are, which hosts are yours, how much output you may send */
    AQ_FRAME_BEGIN,
    AQ_FRAME_STATE,    /* both: exit state and code */
    AQ_FRAME_SAY,      /* up: a line for the user; kind, NUL, text */
    AQ_FRAME_OUT,      /* up: output of ranks; arg: 1 stdout, 2 stderr */
    AQ_FRAME_CREDIT,   /* both: so many bytes more; arg: 1, 2 of output (down), 0 of stdin (up) */
    AQ_FRAME_STDIN,    /* down: for rank 0; empty: the end */
    AQ_FRAME_SIGNAL,   /* down: arg for the ranks that have a handler */
    AQ_FRAME_PAUSE,    /* down: the user has stopped the job */
    AQ_FRAME_RESUME,   /* down */
    AQ_FRAME_GATHER,   /* up: the contributions of a subtree to an exchange */
    AQ_FRAME_RESULT,   /* down: all of them */
    AQ_FRAME_DONE,     /* up: no rank is left in the subtree, all output is out */
    AQ_FRAME_SHUTDOWN, /* down: nor anywhere else; go */
    AQ_FRAME_TYPES
};

struct aq_frame {
    enum aq_frame_type type;
    uint8_t arg;
    const uint8_t *data; /* into the reader's buffer, until the next call */
    uint32_t len;
};

/* what has been read and not yet been taken apart; zero to begin with */
struct aq_frame_in {
    uint8_t *buf;
    size_t head, have, cap; /* buf[head .. have) is waiting */
};

/** aq_frame_space - room for at least want bytes; NULL if out of memory. */
uint8_t *aq_frame_space(struct aq_frame_in *in, size_t want);

/** aq_frame_added - len bytes were put where aq_frame_space() said. */
void aq_frame_added(struct aq_frame_in *in, size_t len);

/** aq_frame_next - 1 and the next frame; 0 if it is not complete; -EPROTO if this is no frame. */
int aq_frame_next(struct aq_frame_in *in, struct aq_frame *frame_out);

/**
 * aq_frame_hello - look for a hello among what is waiting; skipped bytes are noise.
 * protocol_out, version_out  what the agent speaks, and its package's version
 * noise_out, noise_len_out   what stood before it (or all, if it has not come), in the reader's
 *                            buffer
 * Returns 1 and takes noise and hello out of the buffer; 0 if it has not come.
 */
int aq_frame_hello(struct aq_frame_in *in, uint32_t *protocol_out,
                   char version_out[AQ_HELLO_VERSION + 1], const char **noise_out,
                   size_t *noise_len_out);

/** aq_frame_make_hello - an agent's first words. */
void aq_frame_make_hello(uint8_t hello_out[AQ_HELLO_BYTES], const char *version);

/** aq_frame_head - the AQ_FRAME_HEAD bytes before a payload. */
void aq_frame_head(uint8_t head_out[AQ_FRAME_HEAD], enum aq_frame_type type, uint8_t arg,
                   uint32_t len);

void aq_frame_free(struct aq_frame_in *in);

/* a payload under construction; zero to begin with, free(buf) at the end */
struct aq_pack {
    uint8_t *buf;
    size_t len, cap;
    bool failed; /* out of memory; later calls do nothing */
};

void aq_pack_u32(struct aq_pack *p, uint32_t value);
void aq_pack_bytes(struct aq_pack *p, const void *data, size_t len); /* without a length */
void aq_pack_block(struct aq_pack *p, const void *data, size_t len); /* with it */
void aq_pack_text(struct aq_pack *p, const char *text);              /* NUL included */
void aq_pack_texts(struct aq_pack *p, char *const *texts);           /* NULL-terminated list */

/* a payload being read */
struct aq_unpack {
    const uint8_t *at;
    size_t left;
    bool failed; /* something was missing or malformed; later calls give nothing */
};

uint32_t aq_unpack_u32(struct aq_unpack *u);
const uint8_t *aq_unpack_bytes(struct aq_unpack *u, size_t len);      /* NULL if not there */
const uint8_t *aq_unpack_block(struct aq_unpack *u, size_t *len_out); /* NULL if not there */
char *aq_unpack_text(struct aq_unpack *u);   /* to be freed; NULL if not there */
char **aq_unpack_texts(struct aq_unpack *u); /* NULL-terminated; never freed */

#endif
