/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_launch_mpi.c - finds the mpirun that fits a program.
 *
 * How       the module of a conduit that MPI starts has the command of its MPI in an identification
 *           string. The string is in the program if that was linked with the archive, else in the
 *           module's file that the program will load
 * Threads   one
 * Uses      base/aq_module.h
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/aq_module.h"
#include "other/launcher/aq_launch.h"

#ifndef AQ_MPIRUN_CMD /* configure found no MPI */
#define AQ_MPIRUN_CMD "mpirun -np %N %C"
#endif

#define AQ_MPIRUN_MAX 4096 /* bytes of the command */

static char *aq_launch_mpirun_in(const char *path)
{
    static const char key[] = "$AqueductMpirun: ";
    const char *at, *end;
    char *image, *command = NULL;
    size_t size, left;

    image = aq_launch_map(path, &size);
    at = image != NULL ? memmem(image, size, key, sizeof(key) - 1) : NULL;
    if (at != NULL) {
        at += sizeof(key) - 1;
        left = (size_t)(image + size - at);
        end = memmem(at, left < AQ_MPIRUN_MAX ? left : AQ_MPIRUN_MAX, " $", 2);
        /* a launcher contains the key without a value */
        if (end != NULL && memchr(at, '\0', (size_t)(end - at)) == NULL)
            command = strndup(at, (size_t)(end - at));
    }
    if (image != NULL)
        munmap(image, size);
    return command;
}

char *aq_launch_mpirun(const struct aq_launch *lo)
{
    char path[PATH_MAX], *command = NULL;
    const char *program = lo->program != NULL ? lo->program : "/proc/self/exe";

    /* the program, or one of the words behind a wrapper */
    for (int i = 0; command == NULL && lo->argv[i] != NULL; i++) {
        const char *why;
        char *found = aq_launch_look_up(lo->argv[i], &why);

        if (found != NULL)
            command = aq_launch_mpirun_in(found);
        free(found);
    }
    for (size_t i = 0; command == NULL && aq_conduit_infos[i] != NULL; i++)
        if (aq_conduit_infos[i]->names_mpirun
            && aq_module_find(aq_conduit_infos[i]->name, getenv("AQ_MODULE_DIR"), program, path,
                              sizeof(path)))
            command = aq_launch_mpirun_in(path);
    return command != NULL ? command : strdup(AQ_MPIRUN_CMD);
}
