/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gasnetrun.c - start a job: gasnetrun -n 4 ./prog args. Installed as gasnetrun, gasnetrun_smp, ...
 * Owns      the choice of the spawner
 * Threads   one
 * Promise   the exit status is the job's; no process or file is left behind, whatever ends it
 * See       docs/launching.md
 */
#include <stdlib.h>
#include <string.h>

#include "other/launcher/aq_agent.h"
#include "other/launcher/aq_launch.h"
#include "other/launcher/aq_launch_self.h"

static void aq_launch_export(const struct aq_launch *lo)
{
    char name[64];
    size_t len = 0;

    for (const char *at = "GASNET_"; *at != '\0'; at++)
        name[len++] = *at;
    for (const char *c = lo->conduit; *c != '\0'; c++)
        name[len++] = (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    strcpy(name + len, "_SPAWNER");
    /* agents start the ranks of workers that have connected, as with ssh */
    setenv(name,
           aq_launch_spawner_name(lo->spawner == AQ_SPAWNER_CUSTOM ? AQ_SPAWNER_SSH : lo->spawner),
           1);
    if (lo->conduit_given)
        setenv("GASNET_CONDUIT", lo->conduit, 1);
    if (lo->verbose >= 1 || lo->dry)
        setenv("GASNET_VERBOSEENV", "1", 0);
    if (lo->verbose >= 2)
        setenv("GASNET_SPAWN_VERBOSE", "1", 1);
}

int main(int argc, char **argv)
{
    static struct aq_launch lo;
    int code;

    aq_supervise_standard_fds();
    if (argc > 1 && strcmp(argv[1], AQ_AGENT_WORD) == 0)
        return aq_agent_main();
    if (argc > 2 && strcmp(argv[1], AQ_WORKER_WORD) == 0)
        return aq_worker_main(argv[2]);
    if (argc > 3 && strcmp(argv[1], AQ_TUNNEL_WORD) == 0)
        return aq_tunnel_main(argc, argv);
    aq_launch_parse(&lo, argc, argv);
    if (lo.program != NULL)
        aq_launch_check(&lo);
    aq_launch_export(&lo);
    if (lo.spawner == AQ_SPAWNER_MPI || lo.spawner == AQ_SPAWNER_PMI)
        aq_launch_exec(&lo);
    if (lo.spawner == AQ_SPAWNER_SSH)
        code = aq_launch_hosts(&lo);
    else if (lo.spawner == AQ_SPAWNER_CUSTOM)
        code = aq_launch_custom(&lo);
    else
        code = aq_launch_fork(&lo);
    if (aq_amudprun_is(&lo))
        aq_supervise_end_console(code, lo.signal);
    return code;
}
