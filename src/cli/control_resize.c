/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control_resize.c - files that bring a shell up to date after its job was made smaller
 *
 * As Slurm does: inside a job, scontrol writes slurm_job_ID_resize.sh and .csh into the working
 * directory. They set the variables that the shell has to what they are now, and unset those whose
 * number of tasks was for the former size.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/alloc.h"
#include "cli/control.h"
#include "sys/files.h"

static const char *const changed[] = { "SLURM_JOB_NODELIST", "SLURM_NODELIST",
                                       "SLURM_JOB_NUM_NODES", "SLURM_NNODES",
                                       "SLURM_JOB_CPUS_PER_NODE" };
static const char *const stale[] = { "SLURM_NPROCS", "SLURM_NTASKS", "SLURM_TASKS_PER_NODE" };

static const struct shell {
    const char *ending, *set, *unset;
} shells[] = {
    { "sh", "export %s=\"%s\"\n", "unset %s\n" },
    { "csh", "setenv %s \"%s\"\n", "unsetenv %s\n" },
};

/* Of a component of a heterogeneous job: "_HET_GROUP_1"; the first has the plain names too. */
struct names {
    char group[24];
    bool plain;
};

static void add_lines(const struct shell *shell, const char *group, struct str *text)
{
    for (size_t i = 0; i < ARRAY_LEN(changed); i++) {
        CLEANUP(freep) char *name = mem_printf("%s%s", changed[i], group);
        if (getenv(name)) /* what it is now is under the plain name */
            str_addf(text, shell->set, name, getenv(changed[i]));
    }
    for (size_t i = 0; i < ARRAY_LEN(stale); i++) {
        CLEANUP(freep) char *name = mem_printf("%s%s", stale[i], group);
        str_addf(text, shell->unset, name);
    }
}

static int write_one(const struct shell *shell, const char *id, const struct names *names,
                     struct err *err)
{
    CLEANUP(str_done) struct str text = { 0 };
    CLEANUP(freep) char *path = mem_printf("slurm_job_%s_resize.%s", id, shell->ending);

    if (names->plain)
        add_lines(shell, "", &text);
    if (names->group[0])
        add_lines(shell, names->group, &text);
    unlink(path); /* never through a link that another left there */
    CLEANUP(file_close) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    if (fd < 0)
        return err_errno(err, errno, "%s", path);
    return file_write_all(fd, str_text(&text), text.len, err);
}

int control_write_resize(struct control *control, const char *id)
{
    GetJobRequest request = GET_JOB_REQUEST__INIT;
    GetJobReply *reply;
    struct err err = { 0 };
    struct names names = { .plain = true };

    if (!getenv("SLURM_JOB_ID"))
        return 0; /* there is no environment that would be wrong now */
    request.id = (char *)id;
    if (cli_call(&control->cli, "GetJob", &request.base, &get_job_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) < 0) {
        cli_error(&control->cli, "%s", err.text);
        return 1;
    }
    const JobStatus *status = reply->n_jobs == 1 ? reply->jobs[0]->status : NULL;
    if (!status || !status->allocation || !status->allocation->n_nodes)
        return 0;
    if (status->has_het_job_id) {
        names.plain = status->het_offset == 0;
        snprintf(names.group, sizeof(names.group), "_HET_GROUP_%u", status->het_offset);
    }
    alloc_put_nodes(status->allocation);
    for (size_t i = 0; i < ARRAY_LEN(shells); i++) {
        if (write_one(&shells[i], id, &names, &err) < 0) {
            cli_error(&control->cli, "%s", err.text);
            return 1;
        }
    }
    printf("To reset Slurm environment variables, execute\n"
           "  For bash or sh shells:  . ./slurm_job_%s_resize.sh\n"
           "  For csh shells:         source ./slurm_job_%s_resize.csh\n",
           id, id);
    return 0;
}
