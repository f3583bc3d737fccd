/*
 * armci_handle.c - explicit handles, and the implicit one.
 *
 * A handle contains the number of a row of a table and the row's serial number. The first operation
 * of a handle that does not complete at once takes a row; in a debug build the first of any kind.
 * The wait gives the row back, and leaves the handle as it was before. A handle whose row has
 * another serial number is complete: a barrier completes all rows. The serial number in an
 * aggregate handle is negative, AGGREGATE without a row, so the handle stays one when a barrier has
 * taken its row.
 *
 * Owns      the table; row 0 belongs to the implicit handle
 * Threads   the program's
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_impl.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define AGGREGATE -1
#define MAX_OPEN  512 /* parts of one handle under way; more wait for the oldest half */

struct part {
    gex_Event_t event;
    void *owned; /* freed with it */
    int proc;
};

struct request {
    int serial; /* more than 0 */
    bool is_live;
    bool collects; /* belongs to an aggregate handle */
    int nparts, capacity;
    struct part *parts;
    int next_free;                /* the row that was free before it, or 0 */
    const armci_hdl_t *handle;    /* the handle that took the row */
    struct aq_armci_batch *batch; /* made when first needed */
};

static struct request *table; /* row 0 is the implicit handle's */
static int rows, used = 1;    /* rows that have been taken once */
static int last_free;         /* the last row that was given back, or 0 */

static struct request *row_at(int row)
{
    if (row >= rows) {
        const int more = rows == 0 ? 64 : 2 * rows;
        struct request *longer = realloc(table, (size_t)more * sizeof(*table));

        if (longer == NULL)
            aq_armci_fatal("no memory for %d handles", more);
        memset(longer + rows, 0, (size_t)(more - rows) * sizeof(*table));
        table = longer;
        rows = more;
    }
    return &table[row];
}

/* What a handle of the row contains. */
static armci_hdl_t handle_of(int row)
{
    const struct request *request = &table[row];

    return (armci_hdl_t){ row, request->collects ? -request->serial : request->serial };
}

/* Returns the row of a handle, or NULL if it has none. handle NULL: the row of the implicit
 * handle. */
static struct request *find(const armci_hdl_t *handle)
{
    if (handle == NULL)
        return row_at(0);
    if (handle->request < 1 || handle->request >= rows || !table[handle->request].is_live
        || handle_of(handle->request).serial != handle->serial)
        return NULL;
    return &table[handle->request];
}

/* Gives the handle a row. */
static struct request *take_row(armci_hdl_t *handle, bool collects)
{
    const int row = last_free != 0 ? last_free : used++;
    struct request *request = row_at(row);

    if (row == last_free)
        last_free = request->next_free;
    request->is_live = true;
    request->collects = collects;
    request->serial = request->serial == INT_MAX ? 1 : request->serial + 1;
    request->handle = handle;
    *handle = handle_of(row);
    return request;
}

static struct request *find_or_take(armci_hdl_t *handle)
{
    struct request *request = find(handle);

    return request != NULL ? request : take_row(handle, false);
}

static void finish_parts(struct request *request, int first, int end)
{
    for (int i = first; i < end; i++) {
        gex_Event_Wait(request->parts[i].event);
        free(request->parts[i].owned);
    }
    memmove(request->parts + first, request->parts + end,
            (size_t)(request->nparts - end) * sizeof(struct part));
    request->nparts -= end - first;
}

static void finish(struct request *request)
{
    if (request->nparts > 0)
        finish_parts(request, 0, request->nparts);
}

static void free_row(int row)
{
    table[row].is_live = false;
    table[row].next_free = last_free;
    last_free = row;
}

/* Frees the row, and makes the handle what it was before its first operation. */
static void give_row(armci_hdl_t *handle, struct request *request)
{
    free_row(handle->request);
    *handle = (armci_hdl_t){ 0, request->collects ? AGGREGATE : 0 };
}

static void start_collected(int row)
{
    armci_hdl_t handle = handle_of(row);

    if (table[row].is_live && table[row].collects)
        aq_armci_batch_start(&handle, table[row].batch);
}

static void add_part(armci_hdl_t *handle, int proc, gex_Event_t event, void *owned)
{
    struct request *request = find_or_take(handle);

    if (request->nparts == MAX_OPEN)
        finish_parts(request, 0, MAX_OPEN / 2);
    if (request->nparts == request->capacity) {
        const int capacity = request->capacity == 0 ? 4 : 2 * request->capacity;
        struct part *longer = realloc(request->parts, (size_t)capacity * sizeof(*longer));

        if (longer == NULL)
            aq_armci_fatal("no memory for %d operations of a handle", capacity);
        request->parts = longer;
        request->capacity = capacity;
    }
    request->parts[request->nparts++] = (struct part){ event, owned, proc };
}

void aq_armci_attach(armci_hdl_t *handle, int proc, gex_Event_t event, void *owned)
{
    if (event != GEX_EVENT_INVALID) {
        add_part(handle, proc, event, owned);
        return;
    }
    free(owned);
    aq_armci_note_operation(handle);
}

void aq_armci_attach_owned(armci_hdl_t *handle, int proc, void *owned)
{
    add_part(handle, proc, GEX_EVENT_INVALID, owned);
}

void aq_armci_complete_handles(void)
{
    for (int row = 0; row < used && row < rows; row++) {
        start_collected(row);
        finish(&table[row]);
        if (table[row].is_live)
            free_row(row);
    }
}

/* Ends the job (debug build) if a program initialises a handle before it has waited for the
 * operations: it could not any more. Whether they are complete depends on the conduit. Only the
 * same handle counts, since the memory of a new handle has any content. */
static void check_new(const char *call, const armci_hdl_t *handle)
{
    const struct request *request;

    if (!AQ_ARMCI_CHECKS || handle == NULL)
        return;
    request = find(handle);
    if (request != NULL && request->handle == handle)
        aq_armci_fatal("%s: the handle at %p has operations under way; it may be used again after "
                       "ARMCI_Wait, ARMCI_Test or a barrier has completed them",
                       call, (const void *)handle);
}

void ARMCI_INIT_HANDLE(armci_hdl_t *handle)
{
    check_new("ARMCI_INIT_HANDLE", handle);
    *handle = (armci_hdl_t){ 0, 0 };
}

/* --- aggregate handles --- */

/* Is this an aggregate handle without a row? It has never had one, or a barrier has taken it. A
 * handle that the program has not initialised, of whatever content, seldom looks like that. */
static bool was_aggregate(const armci_hdl_t *handle)
{
    if (handle->request == 0)
        return handle->serial == AGGREGATE;
    return handle->request > 0 && handle->request < rows && handle->serial < 0
           && handle->serial >= -table[handle->request].serial;
}

struct aq_armci_batch *aq_armci_batch_of(armci_hdl_t *handle)
{
    struct request *request = handle == NULL ? NULL : find(handle);

    if (request == NULL && handle != NULL && was_aggregate(handle)) {
        request = take_row(handle, true);
        if (request->batch == NULL)
            request->batch = aq_armci_batch_create();
    }
    return request == NULL || !request->collects ? NULL : request->batch;
}

#if AQ_ARMCI_CHECKS
void aq_armci_note_operation(armci_hdl_t *handle)
{
    if (handle != NULL && aq_armci_batch_of(handle) == NULL)
        find_or_take(handle);
}
#endif

void ARMCI_SET_AGGREGATE_HANDLE(armci_hdl_t *handle)
{
    if (find(handle) != NULL)
        PARMCI_Wait(handle);
    *handle = (armci_hdl_t){ 0, AGGREGATE };
}

void ARMCI_UNSET_AGGREGATE_HANDLE(armci_hdl_t *handle)
{
    if (find(handle) != NULL) {
        start_collected(handle->request);
        table[handle->request].collects = false;
        *handle = handle_of(handle->request);
    } else {
        *handle = (armci_hdl_t){ 0, 0 };
    }
}

/* --- waiting --- */

/* Returns the row of a handle, as find() does. A call that finds nothing to wait for makes progress
 * for other ranks now and then. */
static struct request *find_open(const armci_hdl_t *handle)
{
    struct request *request = find(handle);

    if (request == NULL || request->nparts == 0)
        aq_armci_serve();
    return request;
}

int PARMCI_Wait(armci_hdl_t *handle)
{
    struct request *request = find_open(handle);

    if (request == NULL)
        return 0;
    if (handle != NULL)
        start_collected(handle->request);
    finish(request);
    if (handle != NULL)
        give_row(handle, request);
    return 0;
}
AQ_ARMCI_TWIN(Wait);

int PARMCI_Test(armci_hdl_t *handle)
{
    struct request *request = find_open(handle);

    if (request == NULL)
        return 0;
    if (handle != NULL)
        start_collected(handle->request);
    gasnet_AMPoll();
    for (int i = 0; i < request->nparts; i++) {
        if (gex_Event_Test(request->parts[i].event) != GASNET_OK)
            return 1;
        request->parts[i].event = GEX_EVENT_INVALID;
    }
    finish(request);
    if (handle != NULL)
        give_row(handle, request);
    return 0;
}
AQ_ARMCI_TWIN(Test);

int PARMCI_WaitAll(void)
{
    finish(find_open(NULL));
    return 0;
}
AQ_ARMCI_TWIN(WaitAll);

int PARMCI_WaitProc(int proc)
{
    struct request *request = find_open(NULL);

    for (int i = request->nparts - 1; i >= 0; i--)
        if (request->parts[i].proc == proc)
            finish_parts(request, i, i + 1);
    return 0;
}
AQ_ARMCI_TWIN(WaitProc);
