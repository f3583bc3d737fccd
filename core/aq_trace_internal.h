/*
 * aq_trace_internal.h - internal header of tracing: what its files know of each other.
 *
 * aq_trace.c        which kinds are on, what a thread has recorded, start and end
 * aq_trace_out.c    text without stdio: may be used in a signal handler
 * aq_trace_sink.c   the output files, and the memory that the ranks of a host share
 * aq_trace_json.c   records as a Chrome trace
 * aq_trace_stats.c  the tables of counts
 *
 * Owns      struct aq_trace_state; a struct aq_trace_thread for each thread, never freed
 * Threads   a thread writes its own records and counts without a lock; writing files is under the
 *           output's lock
 * Uses      core/aq_trace.h, other/spawn/aq_jobarea.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_TRACE_INTERNAL_H
#define AQ_TRACE_INTERNAL_H

#include <stdarg.h>
#include <stdatomic.h>

#include "core/aq_trace.h"
#include "other/spawn/aq_jobarea.h"

#define AQ_TRACE_ARGS       10   /* handler arguments that a record holds */
#define AQ_TRACE_SLOTS      8192 /* records of a thread that are kept in memory: 768 KiB */
#define AQ_TRACE_TEXT_MAX   1000 /* bytes of a line of text */
#define AQ_TRACE_CATEGORIES "GPRSWBLAXIOCDNH"

/* --- records --- */

enum aq_trace_flow { AQ_FLOW_NONE, AQ_FLOW_OUT, AQ_FLOW_IN };

/* One event, or the beginning of a line of text, which continues in the slots behind it. */
struct aq_trace_record {
    uint64_t began, ended; /* CLOCK_MONOTONIC, ns */
    uint64_t nbytes;       /* of payload, or of text */
    uint64_t flow;         /* identifies the message that links two events; 0: none */
    const char *file;      /* the client's source line; NULL: none */
    uint32_t line;
    gex_Rank_t peer;
    uint16_t kind;
    uint8_t flow_way; /* enum aq_trace_flow */
    uint8_t handler;  /* handler index of a message */
    uint8_t nargs;    /* number of args */
    uint8_t has_data; /* args are to be shown (category D) */
    gex_AM_Arg_t args[AQ_TRACE_ARGS];
};

/* Sums over calls of one kind. */
struct aq_trace_count {
    uint64_t calls;
    uint64_t bytes, bytes_min, bytes_max;
    uint64_t ns, ns_min, ns_max;
};

/* The same while its thread adds to it: atomic, so that other threads may read it. */
struct aq_trace_tally {
    atomic_uint_fast64_t calls;
    atomic_uint_fast64_t bytes, bytes_min, bytes_max;
    atomic_uint_fast64_t ns, ns_min, ns_max;
};

/* The state of one thread; linked to its struct aq_thread, and never freed. */
struct aq_trace_thread {
    struct aq_trace_thread *next; /* list of all, for the thread that ends the process */
    atomic_uint number;           /* number of the thread */
    atomic_uint named;            /* the number that the trace already has a name for */
    const char *file;             /* the client's source line */
    uint32_t line;
    uint32_t frozen;                /* depth of GASNETT_TRACE_FREEZESOURCELINE() */
    uint64_t flushed;               /* when the records were last written */
    struct aq_trace_record *record; /* [AQ_TRACE_SLOTS]; NULL: tracing is off */
    atomic_uint head;               /* filled slots; written by the thread */
    atomic_uint tail;               /* slots written to the file; under the output's lock */
    atomic_uint epoch;              /* of the counts, see aq_trace_state.epoch */
    struct aq_trace_tally tally[AQ_TRACE_KIND_COUNT];
};

/* --- rows of aq_trace.def --- */

enum aq_trace_form { AQ_TRACE_FORM_CALL, AQ_TRACE_FORM_TRY, AQ_TRACE_FORM_MARK };

struct aq_trace_row {
    const char *name;
    char cat;
    uint8_t form;
};
extern const struct aq_trace_row aq_trace_rows[AQ_TRACE_KIND_COUNT];

/** aq_trace_category - the word of a letter in "cat", for instance "put". */
const char *aq_trace_category(char cat);

/* --- state --- */

struct aq_trace_state {
    uint32_t trace_mask, stats_mask; /* bit [letter - 'A'] */
    bool local;                      /* operations of the rank with itself are recorded */
    bool flush;                      /* each record is written at once */
    bool finished;
    atomic_uint epoch; /* number of resets; statistics count from the last one */
    uint64_t base;     /* the job's time 0 on this host's clock, ns */
    uint64_t end_by;   /* deadline for writing when the process ends, ns; 0: it does not end yet */
    int64_t offset;    /* offset from this host's clock to rank 0's, ns */
    uint64_t began, events, lost; /* run time; records written and lost; under the output's lock */
    struct aq_trace_thread *_Atomic threads;
};
extern struct aq_trace_state aq_trace_state;

/** aq_trace_self - the calling thread's state, made at the first call; NULL without memory. */
struct aq_trace_thread *aq_trace_self(void);

/** aq_trace_apply - the masks have changed: sets the switches of each kind. */
void aq_trace_apply(void);

/** aq_trace_mask_of - converts letters, perhaps after ^, to a mask; warns about other
 * characters. */
uint32_t aq_trace_mask_of(const char *cats, const char *variable);

/** aq_trace_categories_of - the letters of a mask; text has space for 32. */
void aq_trace_categories_of(uint32_t mask, char *text);

/** aq_trace_line - adds a line of text, if its kind is on; cut at AQ_TRACE_TEXT_MAX. */
void aq_trace_line(enum aq_trace_kind kind, const char *text, size_t len);

/** aq_trace_serve_client - connects the client's macros. */
void aq_trace_serve_client(void);

/** aq_trace_disconnect_client - disconnects them. */
void aq_trace_disconnect_client(void);

/* --- text without stdio --- */

struct aq_trace_out {
    char *at, *end; /* what does not fit is dropped: call aq_trace_out_space() before */
};

void aq_trace_put(struct aq_trace_out *out, const char *text);
void aq_trace_put_char(struct aq_trace_out *out, char c);
void aq_trace_put_number(struct aq_trace_out *out, uint64_t n);
void aq_trace_put_signed(struct aq_trace_out *out, int64_t n);
void aq_trace_put_hex(struct aq_trace_out *out, uint64_t n);
void aq_trace_put_us(struct aq_trace_out *out, uint64_t ns); /* microseconds, three decimals */
void aq_trace_put_json(struct aq_trace_out *out, const char *text, size_t len); /* in quotes */
void aq_trace_put_padded(struct aq_trace_out *out, const char *text, size_t width);

static inline size_t aq_trace_out_space(const struct aq_trace_out *out)
{
    return (size_t)(out->end - out->at);
}

/* --- output files --- */

struct aq_trace_sink {
    const char *variable; /* GASNET_TRACEFILE or GASNET_STATSFILE */
    int fd;               /* -1: not open */
    bool listed;          /* this rank writes to it */
    bool
        /* a regular file: can be locked and truncated; another may have a reader that takes
         * nothing */
        is_file;
    /* send() must not block; O_NONBLOCK would affect others that share the socket */
    bool is_socket;
    bool is_shared; /* all ranks write into it */
    bool failed;    /* the failure has been reported */
    char path[1024];
};
extern struct aq_trace_sink aq_trace_sink, aq_stats_sink;

/* What the ranks of a host share, in a memory file. */
struct aq_trace_common {
    atomic_uint warned[2];         /* [0] trace, [1] statistics: the failure has been reported */
    atomic_uint finished[2];       /* ranks that have written everything */
    uint32_t writers[2];           /* ranks that write; constant after start */
    gex_Rank_t first[2];           /* lowest rank that writes */
    struct aq_trace_count count[]; /* [host size][AQ_TRACE_KIND_COUNT] */
};
extern struct aq_trace_common *aq_trace_common;

/**
 * aq_trace_sinks_open - collective: open the files that GASNET_TRACEFILE and GASNET_STATSFILE name.
 * Afterwards a sink's fd is -1 if it is off, if this rank is not listed, or if it cannot be opened,
 * which one rank has reported.
 */
void aq_trace_sinks_open(void);

/** aq_trace_sinks_close - the job has ended: closes the files and unmaps the shared memory. */
void aq_trace_sinks_close(void);

/**
 * aq_trace_sink_write - append len bytes, whole or not at all as far as the file allows.
 * Returns false if they could not be written: nothing more is then tried.
 */
bool aq_trace_sink_write(struct aq_trace_sink *sink, const char *text, size_t len, bool in_signal);

/** aq_trace_sink_reopen - later output goes to the file of the first rank that writes one. */
void aq_trace_sink_reopen(struct aq_trace_sink *sink);

/** aq_trace_sink_last - this rank has written everything: returns true if it is the last on the
 * host. */
bool aq_trace_sink_last(struct aq_trace_sink *sink);

/* One thread at a time writes. aq_trace_lock() returns false if the lock could not be had, because
 * a signal handler has interrupted its owner or the owner is stuck. on_exit: at shutdown only. */
bool aq_trace_lock(bool on_exit);
void aq_trace_unlock(void);

/* --- the two kinds of output --- */

void aq_trace_json_begin(void); /* after the sinks are open */
void aq_trace_json_flush(struct aq_trace_thread *t, bool in_signal);
void aq_trace_json_end(const char *why, bool in_signal);

void aq_stats_begin(void);
void aq_stats_write(bool in_signal); /* the section of this rank */
void aq_stats_end(bool in_signal);
void aq_stats_add(struct aq_trace_thread *t, unsigned kind, uint64_t ns, uint64_t nbytes);
void aq_stats_text(const char *text); /* one line of the client */
void aq_stats_register(void (*callback)(void (*print)(const char *fmt, ...)));

/* Lines "R> text" at the beginning of either output: program, command line, configuration, mask. */
void aq_trace_about(struct aq_trace_out *out,
                    void (*line)(struct aq_trace_out *out, const char *what, const char *text));

#endif
