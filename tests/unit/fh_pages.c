/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fh_pages.c - an io_uring with a table of registered buffers, and a file in memory that it copies
 * to and from.
 */
#include "tests/unit/fh_pages.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PINS = 1024, LONGEST = 4 << 20 };

static struct {
    pthread_mutex_t lock;
    int ring, file;
    void *queue; /* submissions and completions */
    size_t queue_size;
    struct io_uring_sqe *sqe;
    struct io_uring_params params;
    bool used[PINS];
} pages = { .lock = PTHREAD_MUTEX_INITIALIZER, .ring = -1, .file = -1 };

static int set_pin(unsigned slot, uintptr_t addr, size_t len)
{
    struct iovec part = { (void *)addr, len };
    uint64_t tag = 0;
    struct io_uring_rsrc_update2 update = { .offset = slot,
                                            .data = (uint64_t)(uintptr_t)&part,
                                            .tags = (uint64_t)(uintptr_t)&tag,
                                            .nr = 1 };

    if (syscall(SYS_io_uring_register, pages.ring, IORING_REGISTER_BUFFERS_UPDATE, &update,
                sizeof(update))
        < 0)
        return -errno;
    return 0;
}

static bool open_table(void)
{
    static struct iovec none[PINS];
    struct io_uring_rsrc_register table = { .nr = PINS, .data = (uint64_t)(uintptr_t)none };
    static uint64_t tags[PINS];

    table.tags = (uint64_t)(uintptr_t)tags;
    return syscall(SYS_io_uring_register, pages.ring, IORING_REGISTER_BUFFERS2, &table,
                   sizeof(table))
           == 0;
}

bool fh_pages_open(void)
{
    struct io_uring_params *params = &pages.params;

    memset(params, 0, sizeof(*params));
    pages.ring = (int)syscall(SYS_io_uring_setup, 2, params);
    if (pages.ring < 0)
        return false;
    pages.file = memfd_create("fh_pages", MFD_CLOEXEC);
    if (pages.file < 0 || ftruncate(pages.file, LONGEST) != 0 || !open_table())
        return false;
    pages.queue_size = params->cq_off.cqes + params->cq_entries * sizeof(struct io_uring_cqe);
    pages.queue = mmap(NULL, pages.queue_size, PROT_READ | PROT_WRITE, MAP_SHARED, pages.ring,
                       IORING_OFF_SQ_RING);
    pages.sqe = mmap(NULL, params->sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE,
                     MAP_SHARED, pages.ring, IORING_OFF_SQES);
    return pages.queue != MAP_FAILED && pages.sqe != MAP_FAILED
           && (params->features & IORING_FEAT_SINGLE_MMAP) != 0;
}

void fh_pages_close(void)
{
    munmap(pages.queue, pages.queue_size);
    munmap(pages.sqe, pages.params.sq_entries * sizeof(struct io_uring_sqe));
    close(pages.ring);
    close(pages.file);
}

int fh_pages_pin(uintptr_t addr, size_t len)
{
    int rc = -ENOSPC;

    pthread_mutex_lock(&pages.lock);
    for (unsigned slot = 0; slot < PINS; slot++) {
        if (pages.used[slot])
            continue;
        rc = set_pin(slot, addr, len);
        pages.used[slot] = rc == 0;
        rc = rc == 0 ? (int)slot : rc;
        break;
    }
    pthread_mutex_unlock(&pages.lock);
    return rc;
}

void fh_pages_unpin(int reg)
{
    pthread_mutex_lock(&pages.lock);
    set_pin((unsigned)reg, 0, 0);
    pages.used[reg] = false;
    pthread_mutex_unlock(&pages.lock);
}

static atomic_uint *word(uint32_t offset)
{
    return (atomic_uint *)(void *)((char *)pages.queue + offset);
}

/* One operation, under the lock: bytes done, or negative errno. */
static int run(uint8_t opcode, int reg, uintptr_t addr, size_t len)
{
    const struct io_uring_params *params = &pages.params;
    const unsigned tail = atomic_load(word(params->sq_off.tail));
    const unsigned mask = *(unsigned *)(void *)word(params->sq_off.ring_mask);
    unsigned *array = (unsigned *)(void *)word(params->sq_off.array);
    const struct io_uring_cqe *cqe;
    unsigned head;
    int rc;

    array[tail & mask] = tail & mask;
    pages.sqe[tail & mask] = (struct io_uring_sqe){ .opcode = opcode,
                                                    .fd = pages.file,
                                                    .addr = addr,
                                                    .len = (uint32_t)len,
                                                    .buf_index = (uint16_t)reg };
    atomic_store(word(params->sq_off.tail), tail + 1);
    while (syscall(SYS_io_uring_enter, pages.ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
        if (errno != EINTR)
            return -errno;
    head = atomic_load(word(params->cq_off.head));
    cqe = (const struct io_uring_cqe *)(const void *)word(params->cq_off.cqes)
          + (head & *(unsigned *)(void *)word(params->cq_off.ring_mask));
    rc = cqe->res;
    atomic_store(word(params->cq_off.head), head + 1);
    return rc;
}

int fh_pages_read(int reg, uintptr_t addr, void *dest, size_t len)
{
    int rc;

    pthread_mutex_lock(&pages.lock);
    rc = run(IORING_OP_WRITE_FIXED, reg, addr, len); /* to the file */
    if (rc == (int)len)
        rc = pread(pages.file, dest, len, 0) == (ssize_t)len ? 0 : -errno;
    else if (rc >= 0)
        rc = -EIO;
    pthread_mutex_unlock(&pages.lock);
    return rc;
}

int fh_pages_write(int reg, uintptr_t addr, const void *src, size_t len)
{
    int rc;

    pthread_mutex_lock(&pages.lock);
    rc = pwrite(pages.file, src, len, 0) == (ssize_t)len ? 0 : -errno;
    if (rc == 0) {
        rc = run(IORING_OP_READ_FIXED, reg, addr, len);
        rc = rc == (int)len ? 0 : rc < 0 ? rc : -EIO;
    }
    pthread_mutex_unlock(&pages.lock);
    return rc;
}
