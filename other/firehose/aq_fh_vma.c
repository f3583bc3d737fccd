/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_fh_vma.c - the mapping at an address: by an ioctl on /proc/self/maps where the kernel has it
 * (1 us), else by reading that file up to the address (50 us and more in a large program).
 */
#include "other/firehose/aq_fh_vma.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/aq_rc.h"

#define AQ_FH_MAPS "/proc/self/maps"
#define AQ_FH_TEXT 4096 /* bytes read at a time */

/* The ioctl as linux/fs.h has it since 6.11; repeated here, because headers are often older than
 * kernels. */
struct aq_fh_query {
    uint64_t size, flags, addr;
    uint64_t start, end, vma_flags, page_size, offset, inode;
    uint32_t dev_major, dev_minor, name_size, build_id_size;
    uint64_t name_addr, build_id_addr;
};
#define AQ_FH_QUERY        _IOWR('f', 17, struct aq_fh_query)
#define AQ_FH_QUERY_SHARED 8u

enum { AQ_FH_UNKNOWN = -1, AQ_FH_NO_QUERY = -2 };
static atomic_int aq_fh_maps = AQ_FH_UNKNOWN; /* the descriptor */

static bool aq_fh_begins(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static void aq_fh_vma_classify(struct aq_fh_vma *vma, uint64_t inode, const char *name)
{
    vma->heap = strcmp(name, "[heap]") == 0;
    vma->stack = strcmp(name, "[stack]") == 0;
    if (aq_fh_begins(name, "[v") || aq_fh_begins(name, "/dev/") || aq_fh_begins(name, "[uprobes]"))
        vma->backing = AQ_FH_DEVICE;
    else if (inode != 0
             && !aq_fh_begins(name, "/anon_hugepage")) /* that one has no name in any folder */
        vma->backing = AQ_FH_FILE;
    else
        vma->backing = AQ_FH_ANONYMOUS;
}

/* --- by ioctl --- */

static int aq_fh_vma_query(int fd, uintptr_t addr, struct aq_fh_vma *vma_out)
{
    char name[PATH_MAX];
    struct aq_fh_query query = { .size = sizeof(query),
                                 .addr = addr,
                                 .name_size = sizeof(name),
                                 .name_addr = (uint64_t)(uintptr_t)name };

    name[0] = '\0';
    if (ioctl(fd, AQ_FH_QUERY, &query) != 0)
        return errno == ENOENT ? AQ_ERR_ARG : AQ_ERR_SYS;
    vma_out->start = (uintptr_t)query.start;
    vma_out->end = (uintptr_t)query.end;
    vma_out->shared = (query.vma_flags & AQ_FH_QUERY_SHARED) != 0;
    aq_fh_vma_classify(vma_out, query.inode, query.name_size != 0 ? name : "");
    return AQ_OK;
}

/* The descriptor to ask, opened at first use; negative if the kernel does not answer. */
static int aq_fh_vma_descriptor(void)
{
    /* acquire: pairs with the release below; a descriptor is all that is passed on */
    int fd = atomic_load_explicit(&aq_fh_maps, memory_order_acquire), none = AQ_FH_UNKNOWN;
    struct aq_fh_vma own_vma;

    if (fd != AQ_FH_UNKNOWN)
        return fd;
    fd = open(AQ_FH_MAPS, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && aq_fh_vma_query(fd, (uintptr_t)&own_vma, &own_vma) != AQ_OK) {
        close(fd);
        fd = AQ_FH_NO_QUERY;
    }
    /* release: as above; another thread may have been faster */
    if (atomic_compare_exchange_strong_explicit(&aq_fh_maps, &none, fd, memory_order_release,
                                                memory_order_acquire))
        return fd;
    if (fd >= 0)
        close(fd);
    return none;
}

int aq_fh_vma_find(uintptr_t addr, struct aq_fh_vma *vma_out)
{
    const int fd = aq_fh_vma_descriptor();
    const int rc = fd >= 0 ? aq_fh_vma_query(fd, addr, vma_out) : AQ_ERR_SYS;

    return rc != AQ_ERR_SYS ? rc : aq_fh_vma_read(addr, vma_out);
}

void aq_fh_vma_close(void)
{
    /* relaxed: no other thread is asking */
    const int fd = atomic_load_explicit(&aq_fh_maps, memory_order_relaxed);

    atomic_store_explicit(&aq_fh_maps, AQ_FH_UNKNOWN, memory_order_relaxed);
    if (fd >= 0)
        close(fd);
}

/* --- by reading --- */

static bool aq_fh_hex(const char **text, uint64_t *out)
{
    const char *at = *text;
    uint64_t value = 0;

    for (;; at++) {
        if (*at >= '0' && *at <= '9')
            value = value * 16 + (uint64_t)(*at - '0');
        else if (*at >= 'a' && *at <= 'f')
            value = value * 16 + (uint64_t)(*at - 'a') + 10;
        else
            break;
    }
    if (at == *text)
        return false;
    *text = at;
    *out = value;
    return true;
}

static void aq_fh_skip_word(const char **text)
{
    while (**text != ' ' && **text != '\0')
        ++*text;
    while (**text == ' ')
        ++*text;
}

/* "7f00-7f01 rw-p 00000000 08:01 1234   /name": false if it is not that. */
static bool aq_fh_vma_parse(const char *line, struct aq_fh_vma *vma_out)
{
    uint64_t start, end, inode = 0;

    if (!aq_fh_hex(&line, &start) || *line++ != '-' || !aq_fh_hex(&line, &end) || *line++ != ' '
        || strlen(line) < 4)
        return false;
    vma_out->start = (uintptr_t)start;
    vma_out->end = (uintptr_t)end;
    vma_out->shared = line[3] == 's';
    for (int word = 0; word < 3; word++) /* access, offset, device */
        aq_fh_skip_word(&line);
    for (; *line >= '0' && *line <= '9'; line++)
        inode = inode * 10 + (uint64_t)(*line - '0');
    while (*line == ' ')
        line++;
    aq_fh_vma_classify(vma_out, inode, line);
    return true;
}

/* What a line of the text means for a scan. */
enum aq_fh_scan { AQ_FH_SCAN_NEXT, AQ_FH_SCAN_FOUND, AQ_FH_SCAN_NONE };

typedef enum aq_fh_scan aq_fh_scan_fn(const struct aq_fh_vma *vma, uintptr_t addr);

/* Reads lines until look() has found the mapping, or knows that there is none. AQ_OK, AQ_ERR_ARG
 * (none) or AQ_ERR_SYS (no text). */
static int aq_fh_vma_scan(aq_fh_scan_fn *look, uintptr_t addr, struct aq_fh_vma *vma_out)
{
    const int fd = open(AQ_FH_MAPS, O_RDONLY | O_CLOEXEC);
    char text[AQ_FH_TEXT], line[128]; /* of a longer line the start will do */
    struct aq_fh_vma vma;
    size_t len = 0;
    ssize_t n;
    enum aq_fh_scan scan = AQ_FH_SCAN_NEXT;

    if (fd < 0)
        return AQ_ERR_SYS;
    while (scan == AQ_FH_SCAN_NEXT && (n = read(fd, text, sizeof(text))) > 0) {
        for (ssize_t i = 0; i < n && scan == AQ_FH_SCAN_NEXT; i++) {
            if (text[i] != '\n') {
                if (len < sizeof(line) - 1)
                    line[len++] = text[i];
                continue;
            }
            line[len] = '\0';
            len = 0;
            if (aq_fh_vma_parse(line, &vma))
                scan = look(&vma, addr);
        }
    }
    close(fd);
    if (scan != AQ_FH_SCAN_FOUND)
        return AQ_ERR_ARG;
    *vma_out = vma;
    return AQ_OK;
}

static enum aq_fh_scan aq_fh_scan_address(const struct aq_fh_vma *vma, uintptr_t addr)
{
    if (vma->end <= addr)
        return AQ_FH_SCAN_NEXT;
    return vma->start <= addr ? AQ_FH_SCAN_FOUND : AQ_FH_SCAN_NONE;
}

int aq_fh_vma_read(uintptr_t addr, struct aq_fh_vma *vma_out)
{
    return aq_fh_vma_scan(aq_fh_scan_address, addr, vma_out);
}

static enum aq_fh_scan aq_fh_scan_heap(const struct aq_fh_vma *vma, uintptr_t addr)
{
    (void)addr;
    return vma->heap ? AQ_FH_SCAN_FOUND : AQ_FH_SCAN_NEXT;
}

int aq_fh_vma_heap(struct aq_fh_vma *vma_out)
{
    return aq_fh_vma_scan(aq_fh_scan_heap, 0, vma_out);
}
