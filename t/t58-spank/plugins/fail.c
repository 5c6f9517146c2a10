/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fail.c - fails, or crashes, in the callback that its arguments name: fail=CALLBACK or crash=CALLBACK
 */
#include <signal.h>

#include "record.h"

SPANK_PLUGIN(fail, 1)

static int maybe(spank_t spank, const char *callback, int ac, char *av[])
{
    (void)spank;
    for (int i = 0; i < ac; i++) {
        const char *equals = strchr(av[i], '=');
        if (!equals || strcmp(equals + 1, callback) != 0)
            continue;
        if (strncmp(av[i], "crash", 5) == 0)
            raise(SIGSEGV);
        else if (strncmp(av[i], "fail", 4) == 0)
            return -7;
    }
    return 0;
}

#define MAYBE(callback, wanted)                                   \
    int slurm_spank_##callback(spank_t spank, int ac, char *av[]) \
    {                                                             \
        return spank_context() == (wanted) ? maybe(spank, #callback, ac, av) : 0; \
    }

MAYBE(init, S_CTX_REMOTE)
MAYBE(init_post_opt, S_CTX_ALLOCATOR)
MAYBE(local_user_init, S_CTX_LOCAL)
MAYBE(user_init, S_CTX_REMOTE)
MAYBE(task_init_privileged, S_CTX_REMOTE)
MAYBE(task_init, S_CTX_REMOTE)
MAYBE(task_post_fork, S_CTX_REMOTE)
MAYBE(task_exit, S_CTX_REMOTE)
MAYBE(job_prolog, S_CTX_JOB_SCRIPT)
MAYBE(job_epilog, S_CTX_JOB_SCRIPT)
