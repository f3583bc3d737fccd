/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_state.h - the variables that belong to one job, so that another job finds them as new.
 *
 * A variable with AQ_JOB_STATE lies in one section of the library (or of a conduit's module).
 * Before the first job its owner takes a copy of the section, and after each job it puts the copy
 * back.
 * What such a variable names (memory, descriptors, threads) is given back by its module's fini
 * before that. A variable without the mark keeps its value for the life of the process; the list of
 * those is in core/aq_job_end.c.
 *
 * Not for constants, thread-local variables, or variables that a client's program names: the
 * linker may have moved a copy of those into the program.
 *
 * Threads   aq_state_save() and aq_state_restore() while no other thread is in the library
 */
#ifndef AQ_STATE_H
#define AQ_STATE_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define AQ_JOB_STATE __attribute__((section("aq_job_state")))

/* The bounds of the section, of whichever object this is compiled into: made by the linker. */
extern char aq_state_begin[] __asm__("__start_aq_job_state") __attribute__((visibility("hidden")));
extern char aq_state_end[] __asm__("__stop_aq_job_state") __attribute__((visibility("hidden")));

/**
 * aq_state_save - take the copy; later calls keep the first.
 * image  where the copy is, NULL before the first call; it stays for the life of the process
 * Returns false if there is no memory.
 */
static inline bool aq_state_save(char **image)
{
    const size_t bytes = (size_t)(aq_state_end - aq_state_begin);

    if (*image == NULL && (*image = malloc(bytes)) != NULL)
        memcpy(*image, aq_state_begin, bytes);
    return *image != NULL;
}

/** aq_state_restore - every variable of the section is what it was when the copy was taken. */
static inline void aq_state_restore(const char *image)
{
    memcpy(aq_state_begin, image, (size_t)(aq_state_end - aq_state_begin));
}

#endif
