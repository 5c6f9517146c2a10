// SPDX-License-Identifier: Apache-2.0
/*
 * pattern.c - what stands behind a percent sign in a file name
 */
#include "schema/pattern.h"

#include <ctype.h>
#include <string.h>

#include "base/limits.h"

enum { NO_TASK = 0xfffffffe, PAD_MAX = 10 };

static void add_number(struct str *out, uint64_t value, unsigned pad)
{
    str_addf(out, "%0*llu", (int)pad, (unsigned long long)value);
}

static bool add_letter(struct str *out, char letter, unsigned pad, const struct pattern_job *job)
{
    const char *step = job->step ? job->step : "batch";
    bool task = job->array_job_id != 0;

    switch (letter) {
    case '%':
        str_add_char(out, '%');
        return true;
    case 'A':
        add_number(out, task ? job->array_job_id : job->job_id, pad);
        return true;
    case 'a':
        add_number(out, task ? job->array_task_id : NO_TASK, pad);
        return true;
    case 'b':
        add_number(out, (task ? job->array_task_id : NO_TASK) % 10, pad);
        return true;
    case 'j':
        add_number(out, job->job_id, pad);
        return true;
    case 'J':
        add_number(out, job->job_id, pad);
        if (isdigit((unsigned char)step[0]))
            str_addf(out, ".%s", step);
        return true;
    case 'N':
        str_add_len(out, job->host ? job->host : "", job->host ? strcspn(job->host, ".") : 0);
        return true;
    case 'n':
        add_number(out, job->node_index, pad);
        return true;
    case 'r':
        add_number(out, job->restarts, pad);
        return true;
    case 's':
        str_add(out, step);
        return true;
    case 't':
        add_number(out, job->task, pad);
        return true;
    case 'u':
        str_add(out, job->user ? job->user : "");
        return true;
    case 'x':
        str_add(out, job->name ? job->name : "");
        return true;
    default:
        return false;
    }
}

int pattern_expand(const char *text, const struct pattern_job *job, struct str *out,
                   struct err *err)
{
    size_t start = out->len;
    bool plain = strchr(text, '\\') != NULL;

    for (const char *at = text; *at; at++) {
        const char *letter = at + 1;
        unsigned pad = 0;

        if (out->len - start > LIMIT_PATH_BYTES)
            break;
        if (plain || *at != '%') {
            if (*at != '\\')
                str_add_char(out, *at);
            continue;
        }
        while (isdigit((unsigned char)*letter)) {
            pad = MIN(pad * 10 + (unsigned)(*letter - '0'), 1000);
            letter++;
        }
        if (add_letter(out, *letter, MIN(pad, PAD_MAX), job))
            at = letter;
        else
            str_add_char(out, '%');
    }
    if (out->len - start > LIMIT_PATH_BYTES) {
        str_truncate(out, start);
        return err_set(err, ERR_TOO_LARGE, "file name is longer than %d bytes", LIMIT_PATH_BYTES);
    }
    return 0;
}

void pattern_of_job(struct pattern_job *pattern, const Job *job)
{
    const JobStatus *status = job->status;
    const Allocation *given = status ? status->allocation : NULL;

    *pattern = (struct pattern_job){
        .job_id = job->id,
        .name = job->spec ? job->spec->name : NULL,
        .user = job->owner ? job->owner->user : NULL,
        .host = given && given->n_nodes ? given->nodes[0]->node : NULL,
    };
    if (!status)
        return;
    pattern->restarts = status->restarts;
    if (status->has_array_job_id) {
        pattern->array_job_id = status->array_job_id;
        pattern->array_task_id = status->has_array_task_id ? status->array_task_id : NO_TASK;
    }
}

int pattern_output_path(const Job *job, bool error, struct str *out, struct err *err)
{
    struct pattern_job pattern;
    const char *text = job->spec ? job->spec->std_out : NULL;
    const char *dir = job->spec ? job->spec->work_dir : NULL;

    pattern_of_job(&pattern, job);
    if (error && job->spec && job->spec->std_err)
        text = job->spec->std_err;
    if (str_is_empty(text))
        text = pattern.array_job_id ? "slurm-%A_%a.out" : "slurm-%j.out";
    if (text[0] != '/' && dir)
        str_addf(out, "%s/", dir);
    return pattern_expand(text, &pattern, out, err);
}
