/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_state.h - the variables that belong to one job, so that the next job finds them as new.
 *
 * A variable with AQ_JOB_STATE is in one section of the library (or of a conduit's module). Before
 * the first job the section is copied, and after each job the copy is restored. Before that, the
 * variable's module frees what the variable refers to (memory, descriptors, threads) in its fini.
 * A variable without the mark keeps its value for the life of the process; core/aq_job_end.c lists
 * those.
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

/* The bounds of the section, in the object that this is compiled into: defined by the linker. */
extern char aq_state_begin[] __asm__("__start_aq_job_state") __attribute__((visibility("hidden")));
extern char aq_state_end[] __asm__("__stop_aq_job_state") __attribute__((visibility("hidden")));

/**
 * aq_state_save - copy the section; later calls keep the first copy.
 * image  the copy, NULL before the first call; never freed
 * Returns false without memory.
 */
static inline bool aq_state_save(char **image)
{
    const size_t bytes = (size_t)(aq_state_end - aq_state_begin);

    if (*image == NULL && (*image = malloc(bytes)) != NULL)
        memcpy(*image, aq_state_begin, bytes);
    return *image != NULL;
}

/** aq_state_restore - restores every variable of the section to its value in the copy. */
static inline void aq_state_restore(const char *image)
{
    memcpy(aq_state_begin, image, (size_t)(aq_state_end - aq_state_begin));
}

#endif
