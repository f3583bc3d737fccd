/*
 * pipeline.c - the pipelines of armci_protocol.c in virtual time, against the models: with one
 * buffer copy and wire take turns, with several the slower of them is always busy, two buffers are
 * enough while the wire takes one to three times as long as the copy, and a smaller first chunk
 * saves what it is smaller. Prints each figure; ends with 0 if all are right.
 *
 * Built by run.sh beside pipeline/armci_impl.h, which stands for the library and Aqueduct.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdarg.h>
#include <stdio.h>

#include "armci_impl.h"
#undef memcpy

#define BYTES ((size_t)16 << 20)

struct aq_armci aq_armci;
static double processor, device, bc, bn, latency; /* seconds, bytes a second */
static int failures;

/* --- the host and the network --- */

void vt_copy(void *dst, const void *src, size_t n)
{
    memcpy(dst, src, n);
    processor += (double)n / bc;
}

gex_Event_t vt_transfer(void *dst, const void *src, size_t n)
{
    gex_Event_t event = malloc(sizeof(*event));

    memcpy(dst, src, n);
    if (device < processor)
        device = processor;
    device += (double)n / bn;
    *event = device + latency;
    return event;
}

void vt_wait(gex_Event_t event)
{
    if (event == GEX_EVENT_INVALID)
        return;
    if (processor < *event)
        processor = *event;
    free(event);
}

int vt_test(gex_Event_t event)
{
    return *event <= processor ? (free(event), GASNET_OK) : GASNET_ERR_NOT_READY;
}

/* --- a target that puts what it is asked for; requests are answered in order --- */

static struct {
    gex_Event_t event;
    int slot;
} requests[AQ_ARMCI_MAX_BUFFERS];
static int nrequests;

void vt_request(void *dst, const void *src, size_t n, int slot)
{
    const double before = processor;

    processor += latency; /* the request's way */
    requests[nrequests].event = vt_transfer(dst, src, n);
    requests[nrequests++].slot = slot;
    processor = before;
}

void vt_next_answer(void)
{
    const int slot = requests[0].slot;

    vt_wait(requests[0].event);
    memmove(&requests[0], &requests[1], (size_t)--nrequests * sizeof(requests[0]));
    aq_armci_on_assist_done(0, NULL, 0, slot);
}

/* --- the library --- */

void aq_armci_fatal(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    exit(2);
}

void *aq_armci_heap_alloc(void *heap, size_t bytes)
{
    (void)heap;
    return malloc(bytes);
}

void aq_armci_heap_free(void *heap, void *ptr, size_t keep)
{
    (void)heap, (void)keep;
    free(ptr);
}

void aq_armci_mark(int proc)
{
    (void)proc;
}

/* --- transfers --- */

static char *local, *remote;

static void set(const char *name, size_t value)
{
    char text[32];

    snprintf(text, sizeof(text), "%zu", value);
    if (ARMCIX_Set(name, text) != 0)
        aq_armci_fatal("%s=%s\n", name, text);
}

static void shape(int buffers, size_t chunk, size_t first)
{
    set("AQ_ARMCI_BUFFERS", (size_t)buffers);
    set("AQ_ARMCI_CHUNK", chunk);
    set("AQ_ARMCI_FIRST_CHUNK", first);
    processor = device = 0;
}

static void verify(const char *what)
{
    if (memcmp(local, remote, BYTES) == 0)
        return;
    printf("not right: bytes of %s\n", what);
    failures++;
}

static void fill(char *at, int seed)
{
    for (size_t i = 0; i < BYTES; i++)
        at[i] = (char)(i * 31 + i / 509 + (size_t)seed);
}

static double get_time(int buffers, size_t chunk, size_t bytes)
{
    static int seed;

    shape(buffers, chunk, chunk);
    fill(remote, ++seed);
    memcpy(local, remote, BYTES);
    memset(local, 0, bytes);
    aq_armci_get_chunks(1, local, remote, bytes);
    verify("a get");
    return processor;
}

/* Until the last byte has arrived. */
static double put_time(int buffers, size_t chunk, size_t first, size_t bytes)
{
    static int seed = 1000;

    shape(buffers, chunk, first);
    fill(local, ++seed);
    memcpy(remote, local, BYTES);
    memset(remote, 0, bytes);
    aq_armci_put_chunks(1, remote, local, bytes);
    aq_armci_wait_chunks(1);
    verify("a put");
    return processor;
}

static void within(const char *what, double value, double min, double upper)
{
    const bool is_right = value >= min && value <= upper;

    printf("%s%s: %.4f (%.4g to %.4g)\n", is_right ? "" : "not right: ", what, value, min, upper);
    failures += !is_right;
}

/* The rates of the paper on Myrinet, its buffer of 400 KB. A get takes the bytes from where they
 * are, so that only one side copies. */
static void gets(void)
{
    const size_t chunk = 400000;
    double rate;

    bc = 330e6, bn = 101.8e6, latency = 0;
    rate = (double)BYTES / get_time(1, chunk, BYTES);
    within("get, 1 buffer, of 1/(1/bc + 1/bn)", rate * (1 / bc + 1 / bn), 0.99, 1.01);
    rate = (double)BYTES / get_time(4, chunk, BYTES);
    within("get, 4 buffers, of the wire", rate / bn, 0.97, 1);
    bc = 101.8e6, bn = 330e6;
    rate = (double)BYTES / get_time(4, chunk, BYTES);
    within("get, 4 buffers, of the copy", rate / bc, 0.97, 1);
}

/* The target puts each chunk to its place: no copy, the wire is always busy. */
static void assisted_gets(void)
{
    double rate;

    bc = 330e6, bn = 101.8e6, latency = 20e-6;
    ARMCIX_Set("AQ_ARMCI_GET", "assisted");
    rate = (double)BYTES / get_time(4, 400000, BYTES);
    within("get, assisted, of the wire", rate / bn, 0.97, 1);
    ARMCIX_Set("AQ_ARMCI_GET", "buffered");
}

static void puts_by_buffers(void)
{
    for (double ratio = 1; ratio <= 3; ratio += 0.5) {
        const size_t chunk = 65536;
        double one, two, four;
        char what[64];

        bn = 100e6, bc = ratio * bn, latency = 20e-6;
        one = put_time(1, chunk, chunk, BYTES);
        two = put_time(2, chunk, chunk, BYTES);
        four = put_time(4, chunk, chunk, BYTES);
        snprintf(what, sizeof(what), "put, wire %.1f times the copy, 4 buffers of 2", ratio);
        within(what, four / two, 0.97, 1);
        snprintf(what, sizeof(what), "put, wire %.1f times the copy, 1 buffer of 2", ratio);
        within(what, one / two, 1.2, 3);
    }
}

static void first_chunk(size_t first, double ratio, double min)
{
    const size_t chunk = 65536;

    bn = 100e6, bc = ratio * bn, latency = 0;
    for (size_t n = 2; n <= 16; n *= 2) {
        const double equal = put_time(4, chunk, chunk, n * chunk),
                     small = put_time(4, chunk, first, n * chunk);
        char what[80];

        snprintf(what, sizeof(what), "put, %zu chunks, wire %.1f times the copy, first %zu: gain",
                 n, ratio, first);
        within(what, (equal - small) / ((double)(chunk - first) / bc), min, 1.05);
    }
}

/* All of the gain where a copy is twice as fast as the wire, some of it elsewhere. */
static void first_chunks(void)
{
    for (size_t first = 4096; first <= 32768; first *= 2) {
        first_chunk(first, 2, 0.95);
        first_chunk(first, 3.24, 0.95);
        first_chunk(first, 1.2, 0);
    }
}

int main(void)
{
    local = malloc(BYTES);
    remote = malloc(BYTES);
    aq_armci.peers[0].base = local;
    aq_armci.peers[0].size = BYTES;
    aq_armci_protocol_start();
    ARMCIX_Set("AQ_ARMCI_GET", "buffered");
    ARMCIX_Set("AQ_ARMCI_PUT", "buffered");
    gets();
    assisted_gets();
    puts_by_buffers();
    first_chunks();
    aq_armci_protocol_end();
    free(local);
    free(remote);
    return failures != 0;
}
