/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_launch.h - internal header of gasnetrun.
 * Owns      struct aq_launch: the user's options
 * Threads   one
 * Uses      other/spawn/aq_supervise.h; hwloc if it was there at build time
 */
#ifndef AQ_LAUNCH_H
#define AQ_LAUNCH_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>

#include "base/aq_conduit_info.h"
#include "other/spawn/aq_supervise.h"

struct aq_hosts;

enum aq_launch_bind {
    AQ_BIND_NONE,
    AQ_BIND_HWTHREAD,
    AQ_BIND_CORE,
    AQ_BIND_CACHE,
    AQ_BIND_NUMA,
    AQ_BIND_SOCKET,
    AQ_BIND_SHARE, /* an equal share of the cores */
    AQ_BINDS
};

/* SPAWNFN=C: a worker whose host already has an agent */
struct aq_launch_idle {
    int fd; /* its connection, which carries nothing and closes with the worker; -1: closed */
    uint32_t rank;
    const char *host;
};

struct aq_launch {
    const char *self;                   /* name by which this program was called */
    char conduit[16];                   /* lower case; the first conduit if none is named */
    const struct aq_conduit_info *info; /* of that conduit; of a plain one if it is unknown */
    /* named by -c or by the command's name: the ranks are told */
    bool conduit_given;
    /* named by those, by GASNET_CONDUIT or by the program; else the ranks choose */
    bool conduit_known;
    uint32_t ranks;        /* 0: not given */
    uint32_t hosts;        /* 0: not given */
    const char *host_list; /* -H, NULL if not given */
    const char *host_file; /* --hostfile, NULL if not given */
    struct aq_hosts
        *workers; /* hosts whose workers have connected (SPAWNFN=C); NULL: read a list */
    struct aq_launch_idle *idle; /* [idles], NULL if none */
    uint32_t idles;
    int signal;      /* signal that ended the job; 0: none */
    char *tunnel;    /* the command that takes ssh's place for them */
    int cpus;        /* CPUs of a rank; -1: not given, 0: do not bind */
    char *env_names; /* -E lists joined by commas, NULL if none */
    int verbose;     /* count of -v */
    bool tell;       /* print what is done: -v or -t */
    bool dry;        /* -t */
    bool keep;       /* -k */
    int encode;      /* encode values of variables: 1 yes, 0 no, -1 not given */
    bool prefix;     /* lines begin with the rank */
    enum aq_spawner spawner;
    enum aq_launch_bind bind;
    bool bind_given;
    char **argv;   /* program and arguments, NULL-terminated; may be kept */
    char *program; /* path of the program after look-up */
};

/** aq_launch_parse - fills in lo from the command line; on misuse prints usage and exits with
 * status 1. */
void aq_launch_parse(struct aq_launch *lo, int argc, char **argv);

/** aq_launch_error - "SELF: text" on stderr, then exit with status 1. */
_Noreturn void aq_launch_error(const struct aq_launch *lo, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/** aq_launch_option_env - every rank gets the variables of list, names with commas between them. */
void aq_launch_option_env(struct aq_launch *lo, const char *list);

/** aq_launch_tell - "gasnetrun: text" on stderr if -v or -t was given. */
void aq_launch_tell(const struct aq_launch *lo, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/** aq_launch_spawner_name - "fork", "ssh", "mpi", "pmi" or "custom". */
const char *aq_launch_spawner_name(enum aq_spawner spawner);

/**
 * aq_launch_look_up - find a program: a path, else the current folder, else PATH.
 * Returns the path, which the caller frees, or NULL and *why_out.
 */
char *aq_launch_look_up(const char *name, const char **why_out);

/** aq_launch_conduit_in - returns the conduit that a program (a word of the command) was built
 * for; else leaves conduit_out unchanged. */
void aq_launch_conduit_in(const char *word, char conduit_out[16]);

/** aq_launch_map - maps a file for reading; NULL if there is none. The caller calls munmap(). */
char *aq_launch_map(const char *path, size_t *size_out);

/**
 * aq_launch_mpirun - the command that starts a job of the MPI that the program will use: the one
 * that was compiled into its module or into the conduit's module, else the one that configure
 * found. The caller frees it.
 */
char *aq_launch_mpirun(const struct aq_launch *lo);

/** aq_launch_check - checks that the program has the identification strings of conduit and
 * spawner. */
void aq_launch_check(const struct aq_launch *lo);

/** aq_launch_fork - starts the ranks on this host and supervises them. Returns the job's exit
 * code. */
int aq_launch_fork(struct aq_launch *lo);

/** aq_launch_exec - replace this process by the launcher that MPIRUN_CMD or PMIRUN_CMD names. */
_Noreturn void aq_launch_exec(struct aq_launch *lo);

/**
 * aq_launch_bindings - returns one CPU set for each rank, or NULL for no binding.
 * size_out  bytes of each set
 */
cpu_set_t **aq_launch_bindings(const struct aq_launch *lo, size_t *size_out);

#define AQ_START_FDS 3 /* the job area and two memfds for the conduit */

struct aq_prefix;

/* what the process of each rank is made from; the child of vfork only reads it */
struct aq_start {
    const struct aq_launch *lo;
    struct aq_supervise sv;
    struct aq_prefix *prefix;
    int fds[AQ_START_FDS];
    int null_fd;
    int link_fd;     /* connection of slot 0 with its agent; -1: none */
    int stdio[3];    /* of the next rank; -1: inherited */
    bool limit_back; /* the ranks get `limit` as their limit of open files, not the launcher's */
    struct rlimit limit;
    char **envp;
    char note[128]; /* AQ_SPAWN_FORK=..., part of envp */
    cpu_set_t **cpus;
    size_t cpus_size;
    pid_t self;
    volatile int exec_error; /* written by the child of vfork */
};

/**
 * aq_start_open - make job area, descriptors and environment for lo->ranks ranks on this host; ends
 * the process on failure.
 * s  zeroed, except for the settings in sv
 */
void aq_start_open(struct aq_start *s, const struct aq_launch *lo);

/**
 * aq_launch_high_fd - move a descriptor that ranks inherit to a number above those that shell
 * scripts use, if ulimit -n allows; close-on-exec. fd is closed; ends the process if no number is
 * free.
 */
int aq_launch_high_fd(const struct aq_launch *lo, int fd);

/** aq_start_slot - starts the rank of a slot. Returns 0, or errno: of execve if s->exec_error is
 * set, else of vfork. */
int aq_start_slot(struct aq_start *s, uint32_t slot);

/** aq_start_exec_text - why a program could not be run, in words. */
const char *aq_start_exec_text(int error);

/** aq_start_close - all ranks run: closes the descriptors that were meant for them. */
void aq_start_close(struct aq_start *s);

/** aq_prefix_open - pipes for ranks' stdout and stderr; exits if descriptors run out. */
struct aq_prefix *aq_prefix_open(const struct aq_launch *lo);

/** aq_prefix_child - in the rank's process: makes stdout and stderr its pipes. Safe in a child of
 * vfork. */
void aq_prefix_child(struct aq_prefix *px, uint32_t rank);

/** aq_prefix_started - in the launcher, when the ranks run: closes their ends. */
struct aq_supervise_io *aq_prefix_started(struct aq_prefix *px);

#endif
