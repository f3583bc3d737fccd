/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_agent.h - a job on several hosts. gasnetrun on the user's host is the root of a tree of
 * agents. An agent is gasnetrun --agent on a host; ssh connects it with its parent, and it
 * supervises the ranks of its host.
 * Owns      struct aq_node: the whole state of the root or of an agent
 * Threads   one, in aq_supervise_run()'s loop; nothing here blocks in it
 * Order     hosts are numbered as in the list. A node is responsible for a range of hosts: an agent
 *           runs on the first of its range and splits the rest among its children. The ranks of a
 *           subtree are therefore consecutive too
 * Promise   a node whose parent is silent or closes the connection kills its ranks and exits. A
 *           child that is lost ends the job. Credits bound the output in flight: a slow terminal
 *           stops the ranks that write, but neither fills memory nor delays other messages
 * Uses      other/spawn/aq_supervise.h, aq_shutdown.h, aq_spawn_agent.h
 * See       docs/launching.md
 */
#ifndef AQ_AGENT_H
#define AQ_AGENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "other/launcher/aq_agent_frame.h"
#include "other/launcher/aq_hostlist.h"
#include "other/launcher/aq_launch.h"
#include "other/spawn/aq_spawn_agent.h"
#include "other/spawn/aq_supervise.h"

#define AQ_AGENT_WORD   "--agent" /* the option that makes gasnetrun an agent */
#define AQ_AGENT_NOBODY UINT32_MAX
#define AQ_AGENT_MS     1000000ull  /* nanoseconds in a millisecond */
#define AQ_AGENT_LOST   255         /* exit code of a job that has lost a host */
#define AQ_AGENT_STDIN  (32u << 10) /* bytes of standard input in flight to rank 0 */
#define AQ_AGENT_LINE   4096        /* a longer line of output is split */
#define AQ_AGENT_HEAD   16          /* space for "[rank] " before it */

/* what every host needs to know about the job; the root makes it, and all hosts get the same */
struct aq_plan {
    uint8_t key[32];
    uint32_t ranks, hosts;
    uint32_t *host_ranks; /* [hosts] */
    uint32_t *host_first; /* [hosts + 1], first rank */
    char **host_name;     /* [hosts], NULL-terminated */
    char *directory;
    char **argv;
    char **set;                 /* NAME=VALUE for the ranks' environment */
    const uint8_t *environment; /* the user's environment, as a block of strings */
    size_t environment_bytes;
    char **ssh;          /* the command, without the host */
    char *remote;        /* path of gasnetrun on the hosts */
    uint32_t timeout_ms; /* GASNET_HOST_TIMEOUT; 0: never */
    uint32_t degree;     /* GASNET_SSH_OUT_DEGREE; 0: no limit */
    uint32_t bind, cpus; /* as in struct aq_launch; cpus: 1 more than there, since 0 means -1 */
    uint32_t verbose;
    bool prefix;
    const uint8_t *blob; /* all of this as a payload */
    size_t blob_len;
};

enum aq_link_state {
    AQ_LINK_NEW, /* the hello has not arrived */
    AQ_LINK_OPEN,
    AQ_LINK_DONE, /* the child has nothing left to do */
    AQ_LINK_CLOSED
};

/* the connection with a child or with the parent */
struct aq_link {
    enum aq_link_state state;
    int in, out, err;    /* process of ssh; 0: the parent's link, or ssh has ended */
    pid_t pid;           /* ssh; 0: the parent, or it has ended */
    int status;          /* wait status of ssh once it has ended */
    int exec_error;      /* errno of exec of ssh; written by the child of vfork */
    uint32_t first, end; /* child: its range of hosts */
    struct aq_frame_in rx;
    struct aq_pack tx;
    size_t tx_head; /* bytes of tx that have been sent */
    uint64_t last_seen_ns, last_sent_ns, born_ns;
    uint64_t eof_ns;      /* when the other side closed the connection; 0: open */
    size_t credit[3];     /* bytes that this node may send: of stdin, stdout, stderr */
    size_t uncredited[3]; /* bytes passed on, for which no credit was returned yet */
    char text[1024];      /* end of ssh's output on stderr before the hello */
    size_t text_len;
    uint8_t *contrib; /* contribution to the current exchange */
    uint32_t contrib_len;
    bool contrib_ready;
    bool joined; /* some rank of its hosts has joined the job */
    bool frozen; /* a rank of its hosts waits for a debugger */
};

struct aq_chunk {
    struct aq_chunk *next;
    uint32_t from; /* index of the child, or AQ_AGENT_NOBODY */
    uint32_t len, at;
    char data[];
};

/* output on its way to the parent, or to the terminal */
struct aq_outq {
    struct aq_chunk *head, **tail;
    size_t own; /* bytes of it from this host's ranks */
};

/* stdout or stderr of one rank; text is its incomplete last line */
struct aq_stream {
    int fd;        /* -1 when closed */
    uint8_t which; /* 1 stdout, 2 stderr */
    uint32_t rank;
    uint32_t len;
    uint64_t since_ns; /* when the oldest byte of text arrived */
    char line[AQ_AGENT_LINE];
};

/* a descriptor of the user's; reads and writes of it never block */
struct aq_console {
    int fd; /* -1: closed */
    bool is_socket, may_block, is_tty;
};

enum aq_ref_kind {
    AQ_REF_IN,
    AQ_REF_OUT,
    AQ_REF_ERR,
    AQ_REF_STREAM,
    AQ_REF_CONSOLE,
    AQ_REF_STDIN,
    AQ_REF_FEED,
    AQ_REF_LOCAL,
    AQ_REF_IDLE
};

struct aq_ref {
    enum aq_ref_kind kind;
    /* index of the child (AQ_AGENT_NOBODY: parent), stream, console or idle worker */
    uint32_t index;
};

struct aq_node {
    struct aq_plan plan;
    struct aq_launch *lo;
    bool is_root;
    uint32_t host;   /* host number of an agent */
    uint32_t window; /* bytes of each kind of output that a child may have in flight to this node */
    struct aq_link up;
    struct aq_link *child;
    uint32_t children;
    struct aq_supervise *sv;
    struct aq_start *start; /* agents only */
    struct aq_supervise_io io;
    struct aq_ref *ref; /* what each pollfd belongs to */
    struct aq_outq out[3];
    struct aq_console console[3];
    struct aq_stream *stream;
    uint32_t streams;
    uint64_t drained_ns; /* when a stream last had output after the ranks had ended */
    int drain_round;
    uint32_t started;  /* ranks started */
    char failed[1024]; /* why no rank can be started; "" if ranks can */
    int feed_fd;       /* stdin of rank 0; -1 */
    struct aq_pack feed;
    size_t feed_head;
    bool feed_end;
    bool stdin_end;
    int local_fd;                       /* connection with the host's first rank; -1: none */
    struct aq_exchange_request request; /* that rank's exchange request */
    bool request_open;
    uint32_t rounds;
    uint32_t alive; /* ranks of this host that are running */
    uint32_t sent_state, sent_joined, sent_stopped, sent_frozen;
    int sent_code;
    uint64_t sent_ask_ns;
    bool joined;
    bool frozen; /* a rank of the subtree waits for a debugger */
    bool paused;
    bool orphan; /* the parent is lost: kill the ranks and exit */
    bool done_sent;
    bool in_shutdown, finished; /* SHUTDOWN has been sent to all; all children have exited */
    uint64_t shutdown_ns, kill_ns, stop_ns;
    uint64_t step_ns;             /* when the loop last ran */
    uint64_t absent_ns, back_ns;  /* how long this process was stopped; when it continued */
    struct aq_shutdown *shutdown; /* valid in the loop only */
};

/* aq_agent_plan.c */
uint32_t aq_plan_host_timeout_ms(const struct aq_launch *lo); /* GASNET_HOST_TIMEOUT; 0: never */
void aq_plan_make(struct aq_plan *plan, const struct aq_launch *lo, const struct aq_hosts *hosts);
bool aq_plan_read(struct aq_plan *plan, const uint8_t *blob, size_t len);
/* ranks of hosts [first, end) as "rank 3" or "ranks 3-7" */
const char *aq_plan_ranks(const struct aq_plan *plan, uint32_t first, uint32_t end,
                          char text_out[64]);

/* aq_agent_link.c */
void aq_link_init(struct aq_link *l, int in, int out, int err);
void aq_link_send(struct aq_link *l, enum aq_frame_type type, uint8_t arg, const void *data,
                  size_t len);
void aq_link_send_pack(struct aq_link *l, enum aq_frame_type type, uint8_t arg, struct aq_pack *p);
bool aq_link_flush(struct aq_link *l);   /* false: the other side has ended */
bool aq_link_receive(struct aq_link *l); /* false: the other side has closed */
bool aq_link_has_output(const struct aq_link *l);
void aq_link_read_err(struct aq_node *n, struct aq_link *l);
void aq_link_close(struct aq_link *l);

/* aq_agent_ssh.c */
void aq_ssh_command(struct aq_plan *plan, const struct aq_launch *lo);
void aq_ssh_print(const struct aq_plan *plan, uint32_t host);
bool aq_ssh_start(struct aq_node *n, struct aq_link *l);
void aq_ssh_said(const struct aq_link *l, char text_out[512]); /* ssh's output, in one line */
void aq_ssh_why(const struct aq_node *n, const struct aq_link *l, char *text_out, size_t size);

/* aq_agent_output.c */
void aq_out_init(struct aq_node *n);
void aq_out_push(struct aq_node *n, uint8_t which, uint32_t from, const char *data, size_t len);
void aq_out_pump(struct aq_node *n);
bool aq_out_is_empty(const struct aq_node *n);
void aq_out_credit_update(struct aq_node *n, struct aq_link *l, uint8_t which, size_t bytes);

/* aq_agent_stream.c */
void aq_stream_open(struct aq_node *n, uint32_t slots);
bool aq_stream_make(struct aq_node *n, uint32_t slot, int stdio_out[3]); /* false with errno */
void aq_stream_read(struct aq_node *n, struct aq_stream *s);
bool aq_stream_may_read(const struct aq_node *n, const struct aq_stream *s);
bool aq_stream_tidy(struct aq_node *n,
                    uint64_t now); /* flushes old half lines; true if some still wait */
bool aq_stream_drained(struct aq_node *n, uint64_t now);
void aq_feed_write(struct aq_node *n);
void aq_feed_take(struct aq_node *n, const struct aq_frame *f);

/* aq_agent_console.c */
void aq_console_open(struct aq_console *c, int fd);
ssize_t aq_console_write(struct aq_console *c, const char *data,
                         size_t len); /* 0: not now; -1: closed */
/* the same; 0 is end of file */
ssize_t aq_console_read(struct aq_console *c, char *data, size_t len);
bool aq_console_may_read(const struct aq_console *c);

/* aq_agent_round.c */
void aq_round_local(struct aq_node *n);
void aq_round_contrib(struct aq_node *n, struct aq_link *l, const struct aq_frame *f);
void aq_round_result(struct aq_node *n, const struct aq_frame *f);

/* aq_agent_node.c */
void aq_node_children(struct aq_node *n, uint32_t first, uint32_t end);
bool aq_node_run_io(struct aq_node *n); /* false: out of memory */
/* Returns true if this process, the root, has just continued after it was stopped for longer than
 * its children wait. */
bool aq_node_was_absent(const struct aq_node *n, uint64_t now);
void aq_node_signal(struct aq_node *n, int sig); /* USR1, USR2 for ranks of this host */
void aq_node_fail(struct aq_node *n, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void aq_node_tell_children(struct aq_node *n, enum aq_frame_type type, uint8_t arg,
                           const void *data, size_t len);

/* aq_agent_child.c */
void aq_child_read(struct aq_node *n, struct aq_link *l);
bool aq_child_check(struct aq_node *n, struct aq_link *l, uint64_t now); /* true: call again soon */

/* aq_agent_dispatch.c */
void aq_node_take_up(struct aq_node *n, const struct aq_frame *f);
void aq_node_take_child(struct aq_node *n, struct aq_link *l, const struct aq_frame *f);
void aq_node_send_state(struct aq_node *n);
/* for a child that has just connected */
void aq_node_send_state_to(struct aq_node *n, struct aq_link *l);

/* aq_agent_host.c */
void aq_host_start_some(struct aq_node *n);
void aq_host_pause(struct aq_node *n, bool on);
int aq_agent_main(void);

/* aq_agent_root.c */
void aq_root_lose_idle(struct aq_node *n, struct aq_launch_idle *w);
int aq_launch_hosts(struct aq_launch *lo);

#endif
