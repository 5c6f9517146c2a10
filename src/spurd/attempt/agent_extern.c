/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_extern.c - a cgroup of the job for what is none of its steps: Contain and RunInJob of prolog_flags
 *
 * It is there on every node of the job from before the prolog until the job has gone: the site may put
 * processes into it (a login on the node), which end with the job, before the epilog. With RunInJob prolog
 * and epilog run in it. With Contain a file says whose job it is and where its cgroup: RUN/extern/JOB.ATTEMPT, for root
 * alone. pam_spur (src/pam) reads it when somebody logs in.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spurd/attempt/life.h"
#include "spurd/node/cgroups.h"
#include "spurd/root.h"
#include "spurd/task/hook.h"
#include "sys/files.h"
#include "sys/log.h"

bool agent_prolog_flag(const struct agent *agent, const char *flag)
{
    const Config *config = agent_common(agent);
    const char *list = config ? config->prolog_flags : NULL;
    struct span word;

    while (list && str_next(&list, ", ", &word)) {
        if (span_ieq(word, flag))
            return true;
    }
    return false;
}

/* As steps have theirs: below the job's where there are controllers. */
static char *dir_of(const struct agent *agent, const struct attempt *held)
{
    return mem_printf("%s/%u.%u%cextern", agent->cgroup, held->job, held->attempt,
                      agent->has_controllers ? '/' : '.');
}

static char *login_file(const struct agent *agent, const struct attempt *held)
{
    return mem_printf("%s/extern/%u.%u", agent->run_dir, held->job, held->attempt);
}

static void write_login(struct agent *agent, const struct attempt *held)
{
    CLEANUP(freep) char *folder = mem_printf("%s/extern", agent->run_dir);
    CLEANUP(freep) char *path = login_file(agent, held);
    CLEANUP(freep) char *dir = agent->cgroup ? dir_of(agent, held) : mem_strdup("-");
    struct err err = { 0 };

    if (!held->grant || !held->grant->owner)
        return;
    CLEANUP(freep)
    char *line = mem_printf("%u %u %lld %s\n", held->grant->owner->uid, held->job,
                            (long long)held->grant->start_us, dir);
    if (file_make_dirs(folder, 0700, &err) < 0 ||
        file_write_quick(path, line, strlen(line), 0600, &err) < 0)
        log_warn("extern.login", "job=%u error=%s", held->job, err.text);
}

void agent_extern_open(struct agent *agent, struct attempt *held)
{
    if (agent_prolog_flag(agent, "Contain"))
        write_login(agent, held);
    if (!agent->cgroup ||
        !(agent_prolog_flag(agent, "Contain") || agent_prolog_flag(agent, "RunInJob")))
        return;
    CLEANUP(freep) char *dir = dir_of(agent, held);
    CLEANUP(freep) char *job = mem_printf("%s/%u.%u", agent->cgroup, held->job, held->attempt);
    if (agent->has_controllers)
        mkdir(job, 0755);
    if (mkdir(dir, 0755) < 0 && errno != EEXIST)
        log_warn("extern.cgroup", "job=%u dir=%s errno=%d", held->job, dir, errno);
}

void agent_extern_kill(struct agent *agent, struct attempt *held)
{
    CLEANUP(freep) char *dir = agent->cgroup ? dir_of(agent, held) : NULL;

    if (dir)
        cgroups_kill(dir);
}

void agent_extern_close(struct agent *agent, struct attempt *held)
{
    CLEANUP(freep) char *dir = agent->cgroup ? dir_of(agent, held) : NULL;
    CLEANUP(freep) char *login = login_file(agent, held);
    struct stat info;

    if (agent_prolog_flag(agent, "Contain"))
        unlink(login); /* before the cgroup: nobody comes in while it ends */

    if (dir && stat(dir, &info) == 0)
        cgroups_end(dir);
}

void agent_extern_run(struct agent *agent, struct attempt *held, struct hook *hook)
{
    if (!agent->cgroup || !agent_prolog_flag(agent, "RunInJob"))
        return;
    CLEANUP(freep) char *dir = dir_of(agent, held);
    hook_in_cgroup(hook, open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}
