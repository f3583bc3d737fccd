/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench.h - the parts of aq-bench and what they share: options, rows, the job a row runs in,
 * output.
 *
 *   bench_main.c     options; which of the roles below this process plays
 *   bench_front.c    started plainly: launches jobs of aq-bench under gasnetrun, collects their
 *                    records
 *   bench_job.c      inside a job: start-up, commands from rank 0 to the others, running one row
 *   bench_rows.c     the registry: every row of every file, with sizes, budgets and tables
 *   bench_remote.c   inside a job whose ranks share no memory: limits over sockets or MPI, a stream
 *                    under loss
 *   bench_raw.c      limits by bare MPI, beside the mpi conduit: finds and loads module/
 *   bench_am.c bench_rma.c bench_client.c bench_sync.c bench_vis.c bench_atomic.c bench_coll.c
 *                    subjects and limits of the rows
 *   bench_probe.c    inside a job: start-up times and memory of many ranks
 *   bench_many.c     in front: start-up, memory and message rate against the number of ranks
 *   bench_loss.c     in front: bandwidth of a stream of puts when datagrams are lost
 *   bench_load.h     rows of a machine with other work, beside programs that spin and that yield
 *   bench_peers.c    in front: the same rows by Open MPI, MPICH and OpenSHMEM, where installed
 *   bench_against.h  in front: another implementation of the interface beside this one
 *   bench_out.c      table, JSON, progress;  bench_plot.c  SVG files through gnuplot;
 *   bench_page.c     the same rows as a page in Markdown
 *   bench_stat.c bench_limit.c            measuring and physical limits, shared with the peers
 *   bench_wire.c                          limits over UDP sockets
 *
 * Threads   one in every process
 * Uses      gasnetex.h as any client does, the C library, gnuplot when asked for plots
 */
#ifndef AQ_BENCH_H
#define AQ_BENCH_H

#include "gasnetex.h"

#include "bench_limit.h"
#include "bench_raw.h"
#include "bench_stat.h"
#include "bench_wire.h"

struct aq_options {
    const char *conduit; /* NULL: smp */
    unsigned ranks;
    bool quick;
    bool list;
    bool strict; /* a row over its budget makes the exit code 1 */
    bool remote; /* ranks share no memory: rows and budgets of a network */
    bool raw;    /* the limits are by the library that the conduit is over: MPI, or verbs */
    bool verbs;  /* it is verbs */
    bool peers;  /* also measure MPI and OpenSHMEM where installed */
    const char *json, *markdown, *plot, *only, *table;
    const char *against;  /* prefix of another implementation: bench_against.h; NULL: none */
    const char *conduits; /* of that comparison; NULL: smp,udp,mpi where both have them */
    const char *csv, *label, *mode;
    unsigned rounds;
    double limit_s;   /* of one job of the comparison */
    const char *task; /* what the ranks of a job do: rows, stream, startup, memory, talk, load... */
    const char *report; /* where rank 0 of a job writes records; NULL: it prints the table */
};

/* What the ranks share: memory; sockets; MPI; a device. */
enum aq_beside { AQ_BESIDE_SHM, AQ_BESIDE_UDP, AQ_BESIDE_MPI, AQ_BESIDE_VERBS };

static inline enum aq_beside aq_beside(const struct aq_options *options)
{
    if (!options->remote)
        return AQ_BESIDE_SHM;
    return options->verbs ? AQ_BESIDE_VERBS : options->raw ? AQ_BESIDE_MPI : AQ_BESIDE_UDP;
}

/* --- rows --- */

#define AQ_TABLE_LATENCY     1u
#define AQ_TABLE_BANDWIDTH   2u
#define AQ_TABLE_QUICK       8u  /* measured with --quick */
#define AQ_TABLE_REMOTE      16u /* also between ranks that share no memory */
#define AQ_TABLE_ONLY_REMOTE 32u /* only between such ranks */

struct aq_job;
struct aq_row;

/* iters operations of a row's side: on rank 0 (timed) or on the others. */
typedef void (*aq_row_fn)(struct aq_job *job, const struct aq_row *row, uint64_t iters);

/* What a row is compared with when its ranks share no memory. */
struct aq_remote_limit {
    const char *name; /* NULL: no limit */
    aq_row_fn run, peer;
    bool stream; /* travels as a stream: the fastest way is sought */
};

/* How rows of one kind run. A side without _peer leaves the other ranks polling. */
struct aq_row_kind {
    const char *name;
    const char *limit_name; /* NULL: no limit */
    aq_row_fn subject, subject_peer;
    aq_row_fn limit, limit_peer;
    aq_row_fn prepare; /* before the row, on every rank; may be NULL */
    bool (*possible)(const struct aq_job *job, const struct aq_row *row);
    struct aq_remote_limit remote;
    enum aq_raw_kind raw;           /* the same over the mpi and ibv conduits */
    bool everyone;                  /* all ranks take part, not only 0 and 1 */
    uint64_t (*min)(uint64_t size); /* operations of a slice at least; NULL: one */
};

struct aq_row {
    const struct aq_row_kind *kind;
    uint64_t size;        /* bytes of an operation; 0 if it carries none */
    double budget;        /* largest ratio; negative: so many ns above the limit; or 0 */
    unsigned tables;      /* AQ_TABLE_* */
    double remote_budget; /* over udp */
    double raw_budget;    /* over mpi */
};

/** aq_rows - every row, the same in every process; *count_out gets their number. */
const struct aq_row *aq_rows(size_t *count_out);

/** aq_row_wanted - do the options ask for this row, given whether ranks share memory or are
 * remote? */
bool aq_row_wanted(const struct aq_options *options, const struct aq_row *row, bool remote);

/** aq_row_budget, aq_row_limit_name - the row's budget as struct aq_row has it, and its limit in
 *  words, or NULL, given the options. */
double aq_row_budget(const struct aq_options *options, const struct aq_row *row, bool remote);
const char *aq_row_limit_name(const struct aq_options *options, const struct aq_row *row);

/** aq_row_name_wanted - does --only (comma-separated parts of name/size) allow this name? */
bool aq_row_name_wanted(const struct aq_options *options, const char *name);

/* --- the job --- */

#define AQ_SLOTS 64 /* 8-byte targets, a power of two */

struct aq_slot {
    gex_Rank_t rank;
    void *owner;     /* the address that its owner uses, for the library */
    void *local;     /* the same memory here, for the limit; NULL if not mapped */
    uint64_t offset; /* of local from job->peer_local */
    void *again;     /* equal to local */
    uint64_t next;   /* the slot to go to from here: a circle through all */
    void *twin;      /* a word beside it, for lists of mapped addresses; NULL if not mapped */
};

/* What each rank knows; one per process, reached through aq_job_get() by the handlers. */
struct aq_job {
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t tm;
    gex_Rank_t rank, size;
    const struct aq_options *options;
    unsigned char *segment; /* mine */
    size_t segment_size;
    unsigned char *peer_owner; /* rank 1's on rank 0, rank 0's elsewhere, as its owner sees it */
    unsigned char *peer_local; /* the same mapped here, or NULL */
    size_t pool_size;          /* bytes of the transfer area behind AQ_POOL_OFFSET */
    size_t pool_step, pool_at; /* cold rows walk through the pool; warm rows have step 0 */
    unsigned char *buffer;     /* private memory, as large as the pool */
    struct aq_slot slots[AQ_SLOTS];
    uint64_t word;         /* source or destination of the 8-byte rows */
    struct aq_limit limit; /* limit.area is NULL if the peer is not mapped */
    struct aq_wire wire;   /* sockets between ranks 0 and 1, if they share no memory */
    bool remote, wired;
    const struct aq_raw_lib *raw; /* MPI or verbs between the ranks, or NULL */
    unsigned raw_way;
    size_t max_medium, max_long;
    size_t medium; /* payload that handlers answer with */
    bool read_payload;
    uint64_t overlap_steps;    /* computation that takes as long as the transfer */
    volatile uint64_t replies; /* counted by handlers on rank 0 */
    volatile uint64_t handled; /* messages handled since the start */
    uint64_t handled_target;
    volatile uint64_t acks; /* peers that finished the present command */
    uint64_t acks_target;
    volatile uint64_t
        peer_switches;          /* how often the kernel interrupted the others during commands */
    volatile uint64_t commands; /* commands received */
    volatile uint32_t command_row, command_side;
    volatile uint64_t command_iters;
};

#define AQ_POOL_OFFSET (1u << 20) /* the limit area lies before it */

/** aq_job_get - this process's job. */
struct aq_job *aq_job_get(void);

/** aq_job_start - gex_Client_Init, handlers, pinning; no segment yet. Ends the process on
 *  failure. */
void aq_job_start(struct aq_job *job, const struct aq_options *options, int *argc, char ***argv);

/** aq_job_rows - attaches, then rank 0 measures every wanted row with the others' help. */
void aq_job_rows(struct aq_job *job);

/** aq_job_wait_acks - rank 0, inside a timed side: until all peers have finished theirs. */
void aq_job_wait_acks(struct aq_job *job);

/** aq_job_shared_pool - rank 0's transfer area as mapped here. */
unsigned char *aq_job_shared_pool(const struct aq_job *job);

/** aq_job_probe - tasks startup, memory and talk; rank 0 reports one line. */
void aq_job_probe(struct aq_job *job, double main_ns, double init_ns);

/** aq_job_load - tasks load, load-many, load-run and load-rate: what a job on a machine with other
 *  work measures; bench_load_front.c has what rank 0 reports. */
void aq_job_load(struct aq_job *job);

/* Handlers of the rows, indices fixed so that all processes agree. */
enum aq_handler {
    AQ_H_COMMAND = GEX_AM_INDEX_BASE,
    AQ_H_ACK,
    AQ_H_PING_SHORT,
    AQ_H_PONG_SHORT,
    AQ_H_PING_MEDIUM,
    AQ_H_PONG_MEDIUM,
    AQ_H_PING_LONG,
    AQ_H_PONG_LONG,
    AQ_H_SINK_SHORT,
    AQ_H_SINK_MEDIUM,
    AQ_H_SINK_LONG,
    AQ_H_GATHER,
    AQ_H_WIRE,
    AQ_H_RAW,
    AQ_H_SELF_SHORT,
    AQ_H_SELF_MEDIUM
};

/** aq_am_register, aq_client_register - the handlers of the message rows. */
void aq_am_register(struct aq_job *job);
void aq_client_register(struct aq_job *job);

extern const struct aq_row_kind aq_kind_am_short, aq_kind_am_medium, aq_kind_am_medium_read,
    aq_kind_am_long;
extern const struct aq_row_kind aq_kind_am_short_flood, aq_kind_am_medium_flood,
    aq_kind_am_long_flood;
extern const struct aq_row_kind aq_kind_am_rate, aq_kind_am_two_lines;
extern const struct aq_row_kind aq_kind_put8_latency, aq_kind_get8_latency, aq_kind_getval8;
extern const struct aq_row_kind aq_kind_put8_rate, aq_kind_put8_nbi_rate, aq_kind_put8_store,
    aq_kind_putval8;
extern const struct aq_row_kind aq_kind_get8_rate, aq_kind_get8_nbi_rate, aq_kind_get8_pair,
    aq_kind_getval8_rate;
extern const struct aq_row_kind aq_kind_self_short, aq_kind_self_medium, aq_kind_self_negotiated;
extern const struct aq_row_kind aq_kind_put, aq_kind_put_nb, aq_kind_put_nbi, aq_kind_put_cold;
extern const struct aq_row_kind aq_kind_get, aq_kind_get_nb, aq_kind_get_nbi, aq_kind_get_cold;
extern const struct aq_row_kind aq_kind_barrier, aq_kind_barrier_named;
extern const struct aq_row_kind aq_kind_progress_put, aq_kind_progress_get, aq_kind_overlap_put,
    aq_kind_overlap_get;

extern const struct aq_row_kind aq_kind_strided_put, aq_kind_strided_put_gaps, aq_kind_strided_get,
    aq_kind_strided_get_gaps;
extern const struct aq_row_kind aq_kind_strided_runs, aq_kind_strided_runs_gaps,
    aq_kind_strided_bytes;
extern const struct aq_row_kind aq_kind_strided_1d, aq_kind_strided_2d, aq_kind_strided_3d,
    aq_kind_strided_4d;
extern const struct aq_row_kind aq_kind_strided_1d_packed, aq_kind_strided_2d_packed,
    aq_kind_strided_3d_packed, aq_kind_strided_4d_packed;
extern const struct aq_row_kind aq_kind_fadd, aq_kind_add, aq_kind_fcas, aq_kind_fadd_double,
    aq_kind_fadd_contended;
extern const struct aq_row_kind aq_kind_broadcast, aq_kind_reduce, aq_kind_allreduce;

/** aq_atomic_start - the domains of the atomics' rows; collective, after attach. */
void aq_atomic_start(struct aq_job *job);

/** aq_remote_start - ranks 0 and 1 connect sockets for the limits, or MPI is made ready; nothing if
 *  they share memory or cannot. Collective, before the first row. */
void aq_remote_start(struct aq_job *job);

/** aq_remote_stream - the task of that name: rank 0 puts one MiB after another into rank 1's
 *  segment and reports how long one takes on average. */
void aq_remote_stream(struct aq_job *job);

/** aq_remote_possible - has the row a limit here? aq_remote_ways - how many ways are there to run
 *  it; aq_remote_take_way - this one from now on; aq_remote_name - the way in use, in words. */
bool aq_remote_possible(const struct aq_job *job, const struct aq_row *row);
unsigned aq_remote_ways(const struct aq_job *job, const struct aq_row *row);
void aq_remote_take_way(struct aq_job *job, unsigned way);
void aq_remote_name(const struct aq_job *job, const struct aq_row *row, char *buf, size_t size);

/** aq_remote_run - this rank's part of iters operations of the limit. aq_remote_ready - rank 1 says
 *  that it is about to; aq_remote_is_ready - has it said so? aq_remote_forget - what is left over
 *  from before. */
void aq_remote_run(struct aq_job *job, const struct aq_row *row, uint64_t iters);
void aq_remote_ready(struct aq_job *job);
bool aq_remote_is_ready(struct aq_job *job);
void aq_remote_forget(struct aq_job *job);

/** aq_raw_start - loads the module with the limits by MPI or verbs, if there is one: job->raw;
 *  operations of at most largest bytes. aq_raw_stop - gives back what it has. Both collective. */
void aq_raw_start(struct aq_job *job, size_t largest);
void aq_raw_stop(struct aq_job *job);

/** aq_remote_ping, ... - limits over sockets, by the size of the row. */
void aq_remote_ping(struct aq_job *job, const struct aq_row *row, uint64_t iters);
void aq_remote_pong(struct aq_job *job, const struct aq_row *row, uint64_t iters);
void aq_remote_exchange(struct aq_job *job, const struct aq_row *row, uint64_t iters);
void aq_remote_flood(struct aq_job *job, const struct aq_row *row, uint64_t iters);
void aq_remote_drain(struct aq_job *job, const struct aq_row *row, uint64_t iters);
void aq_remote_put(struct aq_job *job, const struct aq_row *row, uint64_t iters);
void aq_remote_put_peer(struct aq_job *job, const struct aq_row *row, uint64_t iters);
void aq_remote_get(struct aq_job *job, const struct aq_row *row, uint64_t iters);
void aq_remote_get_peer(struct aq_job *job, const struct aq_row *row, uint64_t iters);
void aq_remote_put_stream(struct aq_job *job, const struct aq_row *row, uint64_t iters);
void aq_remote_put_stream_peer(struct aq_job *job, const struct aq_row *row, uint64_t iters);
void aq_remote_get_stream(struct aq_job *job, const struct aq_row *row, uint64_t iters);
void aq_remote_get_stream_peer(struct aq_job *job, const struct aq_row *row, uint64_t iters);

extern const struct aq_row_kind aq_kind_put_stream, aq_kind_get_stream;

/* --- output --- */

/* Rows as they come, kept for JSON and plots. */
struct aq_out {
    const struct aq_options *options;
    struct aq_result *results;
    size_t count, capacity;
    size_t expected, done; /* for progress and time left */
    double started;
    bool terminal;       /* standard error is one: progress line */
    bool whole;          /* no job has failed, nobody has interrupted */
    bool unwritten;      /* a file that was asked for is not there */
    char limits_by[128]; /* whose calls the limits are, in words; "": plain memory or sockets */
    double load;         /* the machine's load average at the start */
    char heading[32];
};

void aq_out_init(struct aq_out *out, const struct aq_options *options);

/** aq_out_expect - so many more rows will come. */
void aq_out_expect(struct aq_out *out, size_t rows);

/** aq_out_running - name is what is being measured now (progress line on a terminal). */
void aq_out_running(struct aq_out *out, const char *name);

/** aq_out_result - one finished row: printed and kept. */
void aq_out_result(struct aq_out *out, const struct aq_result *r);

/** aq_out_finish - closing lines, JSON, plots and, if the run is whole, the page; returns how many
 *  rows are over budget. */
int aq_out_finish(struct aq_out *out);

/** aq_out_size - 65536 as "64 KiB"; buf of at least 16 bytes. */
const char *aq_out_size(uint64_t size, char *buf);

/* A row's figures as text; "" for what it lacks. */
struct aq_cells {
    char size[16], time[16], rate[16]; /* of a transfer in GB/s */
    char limit[16], quartiles[32], aa[16], ratio[16];
    char budget[32]; /* and the verdict */
};

void aq_out_cells(const struct aq_result *r, struct aq_cells *cells);

/** aq_page_write - the rows as a page in Markdown; 0 or -1 with a message. It shows the plots if
 *  they are drawn. */
int aq_page_write(const struct aq_out *out, bool drawn, const char *path);

/** aq_plot_write - latency.svg, bandwidth.svg and startup.svg into dir; 0 or -1 with a message. */
int aq_plot_write(const struct aq_out *out, const char *dir);

/** aq_plot_find - file and title of the plot at index or behind it that these rows have points for,
 *  and its index; -1: there is none. */
int aq_plot_find(const struct aq_out *out, int index, const char **file_out,
                 const char **title_out);

/** aq_out_machine - processor, cores, kernel in one line. */
void aq_out_machine(char *buf, size_t size);

/** aq_out_conduit - the conduit that is measured. */
const char *aq_out_conduit(const struct aq_out *out);

/** aq_out_build - how the library was built, in one line. */
void aq_out_build(char *buf, size_t size);

/* --- in front --- */

/** aq_front_run - the whole benchmark, started plainly; returns the exit code. */
int aq_front_run(const struct aq_options *options);

/* Runs aq-bench --task under the launcher with so many ranks; line() gets every line the job
 * reports. Returns 0, or -1 with a message if the job failed or took longer than limit_s
 * seconds. */
typedef void (*aq_line_fn)(void *arg, const char *line);
int aq_front_job(const struct aq_options *options, const char *task, unsigned ranks, double limit_s,
                 aq_line_fn line, void *arg);

/** aq_front_missing - says that rows of this name could not be measured; aq-bench ends with an
 *  error. A failed job does the same. Says nothing after an interrupt. */
void aq_front_missing(const char *name);

/** aq_front_temp - makes a private folder in TMPDIR or /tmp; its path in dir. 0, or -1 with a
 *  message. */
int aq_front_temp(char *dir, size_t size);

/** aq_front_self - path of this program. */
const char *aq_front_self(void);

/** aq_front_sources - the folder in which a source is installed: AQ_BENCH_DATADIR, the configured
 *  place, or its place relative to this program; false if it is in none, with one of them in dir.
 */
bool aq_front_sources(const char *file, char *dir, size_t size);

/** aq_front_catch - SIGINT, SIGTERM and SIGHUP ask for an interrupt from now on. aq_front_stop -
 *  was one asked for? aq_front_stop_code - the exit code that says so. */
void aq_front_catch(void);
bool aq_front_stop(void);
int aq_front_stop_code(void);

/** aq_many_count, aq_many_run - start-up, memory and message rate rows. */
size_t aq_many_count(const struct aq_options *options);
void aq_many_run(const struct aq_options *options, struct aq_out *out);

/** aq_loss_count, aq_loss_run - the row of a stream under loss. */
size_t aq_loss_count(const struct aq_options *options);
void aq_loss_run(const struct aq_options *options, struct aq_out *out);

/** aq_load_count, aq_load_run - the rows of a machine with other work. aq_load_list - prints their
 *  names. */
size_t aq_load_count(const struct aq_options *options);
void aq_load_run(const struct aq_options *options, struct aq_out *out);
void aq_load_list(const struct aq_options *options);

/** aq_peers_count, aq_peers_run - rows of other libraries. */
size_t aq_peers_count(const struct aq_options *options);
void aq_peers_run(const struct aq_options *options, struct aq_out *out);

/** aq_script_wanted - is this a part that is a script: aq-bench armci? */
bool aq_script_wanted(int argc, char **argv);

/** aq_script_run - becomes the script, with the arguments from argv[2] on; returns 2 if that fails.
 */
int aq_script_run(char **argv);

#endif
