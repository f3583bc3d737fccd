/*
 * comex_request.c - requests: numbers that stand for handles of ARMCI.
 *
 * A request is the number of a row of a table and the row's serial number. A row belongs to one
 * operation, until it is complete. Any other number is a request that is complete: the row has
 * another serial number by now. So requests that the program forgets cost rows until the next
 * barrier, fence or comex_wait_all; when there is no row left, all operations are completed.
 *
 * Owns      the table, whose pages take memory when rows are first used
 * Threads   the program's
 * Uses      comex_impl.h, armci.h
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comex_impl.h"

#define ROWS    4096
#define SERIALS (1 << 19) /* ROWS * SERIALS requests are not negative */
#define ANY     -1        /* any rank */

struct row {
    armci_hdl_t handle;
    int serial; /* from 1 to SERIALS - 1: no request is 0 */
    int proc;   /* world rank */
    int next_free;
    bool is_live;
};

static struct row table[ROWS];
static int used; /* rows that have been used at all */
static int live;
static int first_free = -1;

static struct row *find(const comex_request_t *request)
{
    struct row *row;

    if (*request < 0)
        return NULL;
    row = &table[*request % ROWS];
    return row->is_live && row->serial == *request / ROWS ? row : NULL;
}

static void release(struct row *row)
{
    row->is_live = false;
    row->next_free = first_free;
    first_free = (int)(row - table);
    live--;
}

/* Completes the operations with proc that have requests. */
static void complete(int proc)
{
    for (int i = 0; i < used && live > 0; i++)
        if (table[i].is_live && (proc == ANY || table[i].proc == proc)) {
            PARMCI_Wait(&table[i].handle);
            release(&table[i]);
        }
}

static struct row *take(void)
{
    struct row *row;

    if (first_free < 0 && used == ROWS)
        complete(ANY);
    if (first_free < 0)
        return &table[used++];
    row = &table[first_free];
    first_free = row->next_free;
    return row;
}

armci_hdl_t *aq_comex_request_open(comex_request_t *request, int proc)
{
    struct row *row;

    if (request == NULL)
        return NULL;
    row = take();
    live++;
    row->is_live = true;
    row->serial = row->serial == SERIALS - 1 ? 1 : row->serial + 1;
    row->proc = proc;
    ARMCI_INIT_HANDLE(&row->handle);
    *request = row->serial * ROWS + (int)(row - table);
    return &row->handle;
}

int aq_comex_request_started(const comex_request_t *request, int rc)
{
    if (rc != 0 && request != NULL)
        release(find(request));
    return aq_comex_code(rc);
}

void aq_comex_requests_complete(void)
{
    complete(ANY);
    PARMCI_WaitAll();
}

void aq_comex_requests_forget(void)
{
    for (int i = 0; i < used; i++)
        if (table[i].is_live)
            release(&table[i]);
}

/* --- calls --- */

int comex_wait(comex_request_t *request)
{
    struct row *row;

    if (request == NULL)
        return aq_comex_code(PARMCI_WaitAll());
    row = find(request);
    if (row != NULL) {
        PARMCI_Wait(&row->handle);
        release(row);
    }
    return COMEX_SUCCESS;
}

int comex_test(comex_request_t *request, int *status)
{
    struct row *row = request == NULL ? NULL : find(request);

    *status = 0;
    if (request == NULL || row != NULL)
        *status = PARMCI_Test(row == NULL ? NULL : &row->handle);
    if (row != NULL && *status == 0)
        release(row);
    return COMEX_SUCCESS;
}

int comex_wait_all(comex_group_t group)
{
    ARMCI_Group *of;

    if (!aq_comex_group(group, &of))
        return COMEX_FAILURE;
    aq_comex_requests_complete();
    return COMEX_SUCCESS;
}

int comex_wait_proc(int proc, comex_group_t group)
{
    const int rank = aq_comex_member(proc, group);

    if (rank < 0)
        return COMEX_FAILURE;
    complete(rank);
    return aq_comex_code(PARMCI_WaitProc(rank));
}
