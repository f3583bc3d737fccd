/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_pmi.c - jobs started by a launcher that speaks PMI-1 over an inherited socket: MPICH's
 * mpiexec (hydra) and its relatives.
 * Owns      the connection on PMI_FD
 * Threads   one at start; get from any, fini and abort from the monitor thread. One request is
 *           outstanding at a time
 * Wire      lines of blank-separated name=value words, "cmd=" first; a request, then its answer
 * Secrets   PMI does not promise that the store is private to a user. The store is in the
 *           launcher's processes (hydra's, under the user's id), which exchange it over their own
 *           connections: it is as safe as the start of the program itself
 * See       PMI_process_mapping as MPICH documents it: "(vector,(node,nodes,ranks on each),...)"
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "other/spawn/aq_spawn_kvs.h"

#define AQ_PMI_LINE 2048

static struct {
    int fd;
    uint32_t rank, size;
    char space[256];      /* name of the job's key-value space */
    pthread_mutex_t lock; /* held for a request and its answer */
} aq_pmi = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool aq_pmi_offered(void)
{
    return getenv("PMI_FD") != NULL && getenv("PMI_RANK") != NULL && getenv("PMI_SIZE") != NULL;
}

/* copies the value of a word in an answer to value_out; false if it is missing */
static bool aq_pmi_word(const char *line, const char *name, char *value_out, size_t cap)
{
    size_t len = strlen(name);

    for (const char *at = line; *at != '\0'; at += strspn(at, " ")) {
        size_t word = strcspn(at, " \n");

        if (word > len && strncmp(at, name, len) == 0 && at[len] == '=') {
            size_t value = word - len - 1;

            if (value >= cap)
                return false;
            memcpy(value_out, at + len + 1, value);
            value_out[value] = '\0';
            return true;
        }
        at += word;
        if (*at == '\n')
            break;
    }
    return false;
}

static int aq_pmi_read_line(char line[AQ_PMI_LINE])
{
    size_t len = 0;

    while (len < AQ_PMI_LINE - 1) {
        ssize_t got = read(aq_pmi.fd, line + len, 1);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return aq_fail(AQ_ERR_SYS, "spawn: the launcher has closed the PMI connection");
        if (line[len++] == '\n') {
            line[len] = '\0';
            return AQ_OK;
        }
    }
    return aq_fail(AQ_ERR_SYS, "spawn: the launcher's PMI answer has no end");
}

/* replaces the request in line by its answer */
static int aq_pmi_exchange(char line[AQ_PMI_LINE])
{
    size_t len = strlen(line), done = 0;

    while (done < len) {
        ssize_t put = write(aq_pmi.fd, line + done, len - done);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return aq_fail(AQ_ERR_SYS, "spawn: PMI_FD: %s", strerror(errno));
        done += (size_t)put;
    }
    return aq_pmi_read_line(line);
}

static int aq_pmi_ask(char line[AQ_PMI_LINE], const char *answer)
{
    char cmd[64], rc[16];
    int failed;

    pthread_mutex_lock(&aq_pmi.lock);
    failed = aq_pmi_exchange(line);
    pthread_mutex_unlock(&aq_pmi.lock);
    if (failed != AQ_OK)
        return failed;
    if (!aq_pmi_word(line, "cmd", cmd, sizeof(cmd)) || strcmp(cmd, answer) != 0
        || (aq_pmi_word(line, "rc", rc, sizeof(rc)) && strcmp(rc, "0") != 0))
        return aq_fail(AQ_ERR_SYS, "spawn: the launcher answered '%.*s', not %s",
                       (int)strcspn(line, "\n"), line, answer);
    return AQ_OK;
}

static int aq_pmi_init(uint32_t *rank_out, uint32_t *size_out)
{
    char line[AQ_PMI_LINE];

    aq_pmi.fd = atoi(getenv("PMI_FD"));
    aq_pmi.rank = (uint32_t)strtoul(getenv("PMI_RANK"), NULL, 10);
    aq_pmi.size = (uint32_t)strtoul(getenv("PMI_SIZE"), NULL, 10);
    if (aq_pmi.size == 0 || aq_pmi.rank >= aq_pmi.size
        || fcntl(aq_pmi.fd, F_SETFD, FD_CLOEXEC) != 0)
        return aq_fail(AQ_ERR_ARG, "spawn: PMI_FD, PMI_RANK or PMI_SIZE do not fit together");
    strcpy(line, "cmd=init pmi_version=1 pmi_subversion=1\n");
    if (aq_pmi_ask(line, "response_to_init") != AQ_OK)
        return AQ_ERR_SYS;
    strcpy(line, "cmd=get_my_kvsname\n");
    if (aq_pmi_ask(line, "my_kvsname") != AQ_OK)
        return AQ_ERR_SYS;
    if (!aq_pmi_word(line, "kvsname", aq_pmi.space, sizeof(aq_pmi.space)))
        return aq_fail(AQ_ERR_SYS, "spawn: the launcher named no PMI key-value space");
    *rank_out = aq_pmi.rank;
    *size_out = aq_pmi.size;
    return AQ_OK;
}

/* PMI words end at a blank: hex digits and '.' need no care, so only blanks are replaced, by '~' */
static void aq_pmi_swap(char *text, char from, char to)
{
    for (; *text != '\0'; text++)
        if (*text == from)
            *text = to;
}

static int aq_pmi_put(const char *key, const char *value, enum aq_kvs_scope scope)
{
    char line[AQ_PMI_LINE], text[AQ_KVS_VALUE];

    (void)scope; /* there is only one scope */
    snprintf(text, sizeof(text), "%s", value);
    aq_pmi_swap(text, ' ', '~');
    snprintf(line, sizeof(line), "cmd=put kvsname=%s key=aq.%u.%s value=%s\n", aq_pmi.space,
             aq_pmi.rank, key, text);
    return aq_pmi_ask(line, "put_result");
}

static int aq_pmi_fence(bool collect)
{
    char line[AQ_PMI_LINE] = "cmd=barrier_in\n";

    (void)collect; /* hydra always collects */
    return aq_pmi_ask(line, "barrier_out");
}

static int aq_pmi_get(uint32_t rank, const char *key, char value_out[AQ_KVS_VALUE], int seconds)
{
    char line[AQ_PMI_LINE];

    (void)seconds; /* the launcher's process on this host has it, and answers at once */
    snprintf(line, sizeof(line), "cmd=get kvsname=%s key=aq.%u.%s\n", aq_pmi.space, rank, key);
    if (aq_pmi_ask(line, "get_result") != AQ_OK)
        return AQ_ERR_SYS;
    if (!aq_pmi_word(line, "value", value_out, AQ_KVS_VALUE))
        return aq_fail(AQ_ERR_SYS, "spawn: the launcher has no value of %s for rank %u", key, rank);
    aq_pmi_swap(value_out, '~', ' ');
    return AQ_OK;
}

/* parses "(vector,(0,2,4),(2,1,3))": blocks of ranks on nodes; it is repeated for further ranks */
static bool aq_pmi_read_mapping(const char *text, uint32_t *host_of, uint32_t size)
{
    const char *blocks = strchr(text, '('), *at;
    uint32_t rank = 0;

    blocks = blocks != NULL ? strchr(blocks + 1, '(') : NULL;
    at = blocks;
    while (at != NULL && rank < size) {
        unsigned first, nodes, each;

        if (sscanf(at, "(%u,%u,%u)", &first, &nodes, &each) != 3 || nodes == 0 || each == 0
            || nodes > size || first > size - nodes)
            return false;
        for (uint64_t i = 0; i < (uint64_t)nodes * each && rank < size; i++)
            host_of[rank++] = first + (uint32_t)(i / each);
        at = strchr(at + 1, '(');
        if (at == NULL)
            at = blocks;
    }
    return rank == size;
}

static bool aq_pmi_place(uint32_t *host_of, uint32_t size)
{
    char line[AQ_PMI_LINE], text[AQ_PMI_LINE], rc[16];
    int failed;

    snprintf(line, sizeof(line), "cmd=get kvsname=%s key=PMI_process_mapping\n", aq_pmi.space);
    pthread_mutex_lock(&aq_pmi.lock);
    failed = aq_pmi_exchange(line);
    pthread_mutex_unlock(&aq_pmi.lock);
    /* not every launcher has it, which is no reason for a message */
    return failed == AQ_OK && (!aq_pmi_word(line, "rc", rc, sizeof(rc)) || strcmp(rc, "0") == 0)
           && aq_pmi_word(line, "value", text, sizeof(text))
           && aq_pmi_read_mapping(text, host_of, size);
}

static int aq_pmi_life_fd(void)
{
    return aq_pmi.fd;
}

static void aq_pmi_abort(int code, const char *text)
{
    (void)text;
    if (dprintf(aq_pmi.fd, "cmd=abort exitcode=%d\n", code) < 0)
        return; /* the launcher has ended, and so does this process */
}

static void aq_pmi_fini(void)
{
    char line[AQ_PMI_LINE] = "cmd=finalize\n";

    /* a thread may wait in the fence for ranks that never come */
    if (pthread_mutex_trylock(&aq_pmi.lock) != 0)
        return;
    if (aq_pmi_exchange(line) != AQ_OK)
        line[0] = '\0'; /* the launcher has ended */
    pthread_mutex_unlock(&aq_pmi.lock);
}

static const struct aq_kvs_ops aq_pmi_ops = {
    .init = aq_pmi_init,
    .place = aq_pmi_place,
    .put = aq_pmi_put,
    .fence = aq_pmi_fence,
    .get = aq_pmi_get,
    .life_fd = aq_pmi_life_fd,
    .abort = aq_pmi_abort,
    .fini = aq_pmi_fini,
};

static int aq_pmi_join(struct aq_spawn_state *st)
{
    return aq_spawn_kvs_join(st, &aq_pmi_ops);
}

const struct aq_spawn_provider aq_spawn_pmi_provider = {
    .name = "pmi",
    .offered = aq_pmi_offered,
    .join = aq_pmi_join,
    .allgather = aq_spawn_kvs_allgather,
    .bcast = aq_spawn_kvs_bcast,
    .fence = aq_spawn_kvs_fence,
    .publish = aq_spawn_kvs_publish,
    .lookup = aq_spawn_kvs_lookup,
    .notify = aq_spawn_kvs_notify,
    .finish = aq_spawn_kvs_shutdown,
};
