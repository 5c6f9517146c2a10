// SPDX-License-Identifier: Apache-2.0
/*
 * srun_out.c - what tasks write: labels, lines, files
 *
 * Bytes of one task stay in order. With several tasks a line is written whole, so that lines of
 * different tasks do not mix; a line that does not end waits, up to SRUN_PARTIAL_BYTES, unless
 * --unbuffered. One task's bytes are written as they come.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/srun.h"
#include "schema/pattern.h"
#include "sys/files.h"
#include "sys/users.h"

/* A file that was made at the start keeps what is in it. */
static int open_file(const struct srun *srun, const char *path, bool made, struct err *err)
{
    const JobSpec *spec = srun->request.spec;
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_APPEND;
    CLEANUP(freep)
    char *full = path[0] == '/' ? mem_strdup(path) : mem_printf("%s/%s", spec->work_dir, path);

    if (!made && !(spec->has_open_append && spec->open_append))
        flags |= O_TRUNC;
    int fd = open(full, flags, 0666);
    return fd < 0 ? err_set(err, ERR_IO, "%s", strerror(errno)) : fd;
}

/* Has the name one of these letters after its %? */
static bool has_letter(const char *name, const char *letters)
{
    for (const char *at = name; (at = strchr(at, '%')); at++) {
        size_t digits = strspn(at + 1, "0123456789");
        char letter = at[1 + digits];
        if (letter && strchr(letters, letter))
            return true;
        if (letter == '%')
            at++;
    }
    return false;
}

/* Inside a job its names count, which its environment has; the step's own when --job-name gives one. */
static void name_job(struct srun *srun, struct pattern_job *job)
{
    const char *name = getenv("SLURM_JOB_NAME"), *array = getenv("SLURM_ARRAY_JOB_ID");
    const char *number = getenv("SLURM_ARRAY_TASK_ID");
    uint64_t id, task;

    job->name = srun->name;
    if (srun->own || alloc_given(&srun->request, "jobid", NULL))
        return;
    if (!str_is_empty(name) && !alloc_given(&srun->request, "job-name", NULL))
        job->name = name;
    if (array && number && str_to_u64(array, UINT32_MAX, &id) &&
        str_to_u64(number, UINT32_MAX, &task)) {
        job->array_job_id = (uint32_t)id;
        job->array_task_id = (uint32_t)task;
    }
}

int srun_expand(struct srun *srun, const char *pattern, uint32_t task, struct str *out,
                struct err *err)
{
    uint32_t index = srun->tasks[task].node;
    const struct srun_node *node = &srun->nodes[index];
    const struct srun *part = node->of ? node->of : srun;
    char step[16];

    if (!srun->user && has_letter(pattern, "u"))
        users_by_uid(getuid(), &srun->user, NULL);
    snprintf(step, sizeof(step), "%u", part->layout->id->step);
    struct pattern_job job = { .job_id = part->job_id,
                               .step = step,
                               .user = srun->user ? srun->user->name : getenv("USER"),
                               .host = node->node ? node->node->name : "",
                               .node_index = index,
                               .task = task };
    name_job(srun, &job);
    return pattern_expand(pattern, &job, out, err);
}

bool srun_differs(const char *name)
{
    return has_letter(name, "tnN");
}

/* A task that writes nothing has a file too, and it is not the one of an earlier run. */
static int make_files(struct srun *srun, const struct srun *part, const char *pattern,
                      struct err *err)
{
    for (uint32_t task = part->first_task; task < part->first_task + part->layout->ntasks; task++) {
        CLEANUP(str_done) struct str path = { 0 };
        CLEANUP(file_close) int fd = -1;
        if (srun_expand(srun, pattern, task, &path, err) < 0 ||
            (fd = open_file(part, str_text(&path), false, err)) < 0)
            return -(int)err->code;
    }
    return 0;
}

static int open_sink(struct srun *srun, struct srun *part, bool error, const char *name)
{
    struct srun_sink *sink = &part->sinks[error];
    int standard = error ? STDERR_FILENO : STDOUT_FILENO;
    CLEANUP(str_done) struct str path = { 0 };
    struct err err = { 0 };
    uint64_t number;

    *sink = (struct srun_sink){ .fd = standard };
    if (str_is_empty(name) || strcmp(name, "all") == 0)
        return 0;
    if (strcmp(name, "none") == 0) {
        *sink = (struct srun_sink){ .fd = -1, .none = true };
        return 0;
    }
    if (str_to_u64(name, UINT32_MAX, &number)) {
        sink->has_only = true;
        sink->only = (uint32_t)number;
        return 0;
    }
    if (srun_differs(name)) { /* between tasks */
        *sink = (struct srun_sink){ .fd = -1, .pattern = name };
        make_files(srun, part, name, &err);
    } else if (srun_expand(srun, name, part->first_task, &path, &err) == 0) {
        sink->fd = open_file(part, str_text(&path), false, &err);
    }
    if (err.code) {
        cli_error(&srun->cli, "Could not open %s file: %s", error ? "stderr" : "stdout", err.text);
        return 1;
    }
    return 0;
}

static int open_part(struct srun *srun, struct srun *part)
{
    const JobSpec *spec = part->request.spec;
    bool joined = !str_is_empty(spec->std_out) && str_is_empty(spec->std_err);

    if (open_sink(srun, part, false, spec->std_out))
        return 1;
    if (joined && strcmp(spec->std_out, "none") != 0 && part->sinks[0].fd != STDOUT_FILENO) {
        part->sinks[1] = part->sinks[0];
        return 0;
    }
    return open_sink(srun, part, true, spec->std_err);
}

/* What the first component has; files that differ between tasks are made for those of this one. */
static int share_sink(struct srun *srun, struct srun *part, bool error)
{
    const char *pattern = srun->sinks[error].pattern;
    struct err err = { 0 };

    part->sinks[error] = srun->sinks[error];
    if (!pattern || (error && pattern == part->sinks[0].pattern) ||
        make_files(srun, part, pattern, &err) == 0)
        return 0;
    cli_error(&srun->cli, "Could not open %s file: %s", error ? "stderr" : "stdout", err.text);
    return 1;
}

/* Each component writes where its own options say, else where the first one writes. */
int srun_open_sinks(struct srun *srun)
{
    char digits[16];

    srun->label_width = snprintf(digits, sizeof(digits), "%u", srun->ntasks - 1);
    if (open_part(srun, srun))
        return 1;
    for (size_t i = 1; i < srun->part_count; i++) {
        struct srun *part = srun->parts[i];
        const JobSpec *spec = part->request.spec;

        if (!str_is_empty(spec->std_out)) {
            if (open_part(srun, part))
                return 1;
            continue;
        }
        if (share_sink(srun, part, false) ||
            (str_is_empty(spec->std_err) ? share_sink(srun, part, true)
                                         : open_sink(srun, part, true, spec->std_err)))
            return 1;
    }
    return 0;
}

/* Of the component that the task is of. */
static struct srun_sink *sink_of(struct srun *srun, uint32_t task, bool error)
{
    const struct srun_node *node = &srun->nodes[srun->tasks[task].node];

    return &(node->of ? node->of : srun)->sinks[error];
}

/* The file of one task, opened when it is first written to. */
static int task_file(struct srun *srun, uint32_t task, bool error)
{
    int *fd = &srun->tasks[task].files[error];
    const struct srun_sink *sink = sink_of(srun, task, error);
    struct err err = { 0 };

    if (*fd >= 0)
        return *fd;
    if (error && sink_of(srun, task, false)->pattern == sink->pattern)
        return task_file(srun, task, false);
    CLEANUP(str_done) struct str path = { 0 };
    if (srun_expand(srun, sink->pattern, task, &path, &err) == 0)
        *fd = open_file(srun->nodes[srun->tasks[task].node].of, str_text(&path), true, &err);
    if (err.code) {
        cli_error(&srun->cli, "Could not open %s file: %s", error ? "stderr" : "stdout", err.text);
        srun->failed = true;
    }
    return *fd;
}

static void write_bytes(struct srun *srun, uint32_t task, bool error, const void *bytes, size_t len)
{
    const struct srun_sink *sink = sink_of(srun, task, error);
    struct err err = { 0 };
    int fd = sink->pattern ? task_file(srun, task, error) : sink->fd;

    if (!len || fd < 0 || (sink->has_only && sink->only != task))
        return;
    if (file_write_all(fd, bytes, len, &err) < 0 && errno != EPIPE && !srun->output_lost) {
        cli_error(&srun->cli, "output of task %u is lost: %s", task, err.text);
        srun->output_lost = srun->failed = true;
    }
}

/* Whole lines, each with its label. */
static void write_lines(struct srun *srun, uint32_t task, bool error, const char *bytes, size_t len)
{
    struct str out = { 0 };

    if (!srun->request.label) {
        write_bytes(srun, task, error, bytes, len);
        return;
    }
    while (len > 0) {
        const char *end = memchr(bytes, '\n', len);
        size_t part = end ? (size_t)(end - bytes) + 1 : len;
        str_addf(&out, "%*u: ", srun->label_width, task);
        str_add_len(&out, bytes, part);
        if (!end)
            str_add_char(&out, '\n');
        bytes += part;
        len -= part;
    }
    write_bytes(srun, task, error, str_text(&out), out.len);
    str_done(&out);
}

void srun_output(struct srun *srun, const StepData *data)
{
    bool error = data->stream == STEP_STREAM_ERR, label = srun->request.label;
    if (data->task >= srun->ntasks || !data->data.len)
        return;
    bool as_it_comes = !label && (srun->request.unbuffered || srun->ntasks == 1 ||
                                  sink_of(srun, data->task, error)->pattern);
    if (as_it_comes) {
        write_bytes(srun, data->task, error, data->data.data, data->data.len);
        return;
    }
    struct str *partial = &srun->tasks[data->task].partial[error];
    const char *bytes = (const char *)data->data.data;
    const char *last = memrchr(bytes, '\n', data->data.len);
    size_t whole = last ? (size_t)(last - bytes) + 1 : 0;
    if (whole) {
        str_add_len(partial, bytes, whole);
        write_lines(srun, data->task, error, str_text(partial), partial->len);
        str_clear(partial);
    }
    str_add_len(partial, bytes + whole, data->data.len - whole);
    if (partial->len >= SRUN_PARTIAL_BYTES) {
        write_lines(srun, data->task, error, str_text(partial), partial->len);
        str_clear(partial);
    }
}

void srun_flush_task(struct srun *srun, uint32_t task)
{
    for (int error = 0; error < 2; error++) {
        struct str *partial = &srun->tasks[task].partial[error];
        if (partial->len)
            write_lines(srun, task, error, str_text(partial), partial->len);
        str_clear(partial);
    }
}

void srun_close_sinks(struct srun *srun)
{
    for (uint32_t i = 0; srun->tasks && i < srun->ntasks; i++) {
        srun_flush_task(srun, i);
        for (int k = 0; k < 2; k++) {
            str_done(&srun->tasks[i].partial[k]);
            file_close(&srun->tasks[i].files[k]);
        }
    }
}
