/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_launch_custom.h - internal header of SPAWNFN=C.
 * Owns      struct aq_custom: the master's whole state
 * Threads   one
 */
#ifndef AQ_LAUNCH_CUSTOM_H
#define AQ_LAUNCH_CUSTOM_H

#include <limits.h>
#include <poll.h>
#include <sys/types.h>

#include "other/launcher/aq_custom_wire.h"
#include "other/launcher/aq_launch.h"

#define AQ_CUSTOM_PENDING 128 /* unauthenticated connections at a time */

/* one host's line, in a memfd that the processes in ssh's place inherit */
struct aq_custom_entry {
    char name[264];
    int sock;
    uint8_t tx_key[32], rx_key[32];
    uint8_t cpus[AQ_CUSTOM_CPUS]; /* of all workers of the host */
};

enum aq_unauth_state { AQ_UNAUTH_HELLO, AQ_UNAUTH_CLAIM };

struct aq_unauth {
    int fd; /* -1: free */
    enum aq_unauth_state state;
    size_t have;
    uint64_t since_ns;
    struct aq_custom_handshake handshake;
    uint8_t buf[AQ_CUSTOM_CLAIM > AQ_CUSTOM_HELLO ? AQ_CUSTOM_CLAIM : AQ_CUSTOM_HELLO];
};

struct aq_worker {
    int fd;              /* -1: lost or closed */
    int64_t rank;        /* -1: the worker has no rank of its own */
    uint8_t address[16]; /* IPv6, or IPv4 as such */
    uint16_t port;
    struct aq_worker_info info;
    uint8_t tx_key[32], rx_key[32];
};

struct aq_custom {
    struct aq_launch *lo;
    uint8_t key[AQ_CUSTOM_KEY];
    int listen_fd;
    uint16_t port;
    char file[PATH_MAX]; /* "": no file */
    pid_t command;       /* 0: ended */
    int cleaner;         /* pipe to the process that cleans up after this one */
    int command_status;
    uint64_t ended_ns, noted_ns;
    uint64_t came_ns;      /* when the last worker connected; 0: none has */
    uint64_t timeout_ns;   /* GASNET_HOST_TIMEOUT; 0: never */
    struct pollfd *polled; /* [1 + AQ_CUSTOM_PENDING + ranks] */
    uint32_t unauthenticated;
    struct aq_unauth unauth[AQ_CUSTOM_PENDING];
    struct aq_worker *worker;
    uint32_t count;
};

/* aq_launch_custom.c */

/** aq_custom_give_up - cleans up, prints why, exits with status 1. */
_Noreturn void aq_custom_give_up(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* aq_custom_cleaner.c */

/**
 * aq_custom_start_cleaner - start the process that removes file and ends the command once this
 * process has ended. Returns the descriptor for aq_custom_tell_cleaner(), close-on-exec, or -1 with
 * errno
 */
int aq_custom_start_cleaner(const char *file);

/** aq_custom_tell_cleaner - reports the command's process group; 0: it has ended.
 * Async-signal-safe. */
void aq_custom_tell_cleaner(int fd, pid_t group);

/* aq_custom_command.c */
void aq_custom_listen(struct aq_custom *c);

/** aq_custom_name_file - chooses the path of a file that does not exist yet. */
void aq_custom_name_file(struct aq_custom *c);
void aq_custom_write_file(struct aq_custom *c);

/** aq_custom_command - returns CSPAWN_CMD with its %-words replaced; the caller frees it. */
char *aq_custom_command(const struct aq_custom *c);

/** aq_custom_self - returns the path of this program on the workers' hosts. */
const char *aq_custom_self(void);

/* aq_custom_place.c */
void aq_custom_order(struct aq_custom *c);
void aq_custom_group(struct aq_custom *c, struct aq_hosts *hosts);

/** aq_custom_missing - describes the missing workers for a message: how many have connected, from
 * which hosts. */
void aq_custom_missing(const struct aq_custom *c, char *text_out, size_t size);

#endif
