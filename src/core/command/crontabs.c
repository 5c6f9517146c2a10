/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crontabs.c - what scrontab keeps: the text of each user, and the jobs that were made of it
 *
 * (1) A new text replaces the old one with its jobs in one command: those that wait are cancelled, those that run are
 *     left alone and not put back into the queue.
 * (2) All jobs are admitted before anything changes.
 */
#include <stdlib.h>
#include <string.h>

#include "core/command/command.h"
#include "core/crontab.h"
#include "wire/pb.h"

struct crontab {
    Crontab *msg;
    uint64_t hash;
};

static size_t find(const struct state *state, uint32_t uid)
{
    size_t at = 0;

    while (at < state->crontabs.len && state->crontabs.items[at]->msg->uid != uid)
        at++;
    return at;
}

const Crontab *state_crontab(const struct state *state, uint32_t uid)
{
    size_t at = find(state, uid);

    return at < state->crontabs.len ? state->crontabs.items[at]->msg : NULL;
}

size_t state_crontab_count(const struct state *state)
{
    return state->crontabs.len;
}

const Crontab *state_crontab_at(const struct state *state, size_t number)
{
    return state->crontabs.items[number]->msg;
}

static size_t place_of(const Crontab *msg, uint32_t id)
{
    size_t i = 0;

    while (msg && i < msg->n_job_ids && msg->job_ids[i] != id)
        i++;
    return msg ? i : 0;
}

bool state_is_cron_job(const struct state *state, const struct job *job)
{
    const Crontab *msg = state->crontabs.len ? state_crontab(state, job->owner->uid) : NULL;

    return msg && place_of(msg, job->id) < msg->n_job_ids;
}

void crontab_free(struct crontab *crontab)
{
    pb_free(crontab->msg);
    free(crontab);
}

static void take_out(struct state *state, size_t at)
{
    state->digest -= state->crontabs.items[at]->hash;
    crontab_free(state->crontabs.items[at]);
    vec_remove(&state->crontabs, at);
}

uint64_t crontab_hash(const struct crontab *crontab)
{
    return message_hash(&crontab->msg->base, 77);
}

uint64_t crontab_kept_hash(const struct crontab *crontab)
{
    return crontab->hash;
}

void crontab_put(struct state *state, const Crontab *msg)
{
    size_t at = find(state, msg->uid);
    struct crontab *crontab = NEW(struct crontab);

    crontab->msg = pb_copy(msg);
    crontab->hash = crontab_hash(crontab);
    state->digest += crontab->hash;
    if (at < state->crontabs.len) {
        state->digest -= state->crontabs.items[at]->hash;
        crontab_free(state->crontabs.items[at]);
        state->crontabs.items[at] = crontab;
    } else {
        vec_push(&state->crontabs, crontab);
    }
}

/* ---- the command ---- */

/* (1) */
static void drop_jobs(struct state *state, const Crontab *old, struct events *out)
{
    for (size_t i = 0; old && i < old->n_job_ids; i++) {
        struct job *job = job_at(state, old->job_ids[i]);
        if (job && job_phase(job) == PHASE_PENDING)
            job_end(state, job, JOB_CANCELLED, REASON_NONE, state->time_us, NULL, out);
    }
}

/* (2) */
static int check(struct state *state, const CmdCrontab *cmd, struct err *err)
{
    ProtobufCAllocator allocator = pb_arena(&state->scratch);

    if (cmd->n_jobs > LIMIT_CRON_JOBS || cmd->n_lines != cmd->n_jobs || !cmd->owner)
        return err_set(err, ERR_TOO_MANY, "a crontab has at most %d jobs", (int)LIMIT_CRON_JOBS);
    if (cmd->text && strlen(cmd->text) > LIMIT_CRONTAB_BYTES)
        return err_set(err, ERR_TOO_LARGE, "a crontab has at most %d bytes",
                       (int)LIMIT_CRONTAB_BYTES);
    for (size_t i = 0; i < cmd->n_jobs; i++) {
        const PackedComponent *from = cmd->jobs[i];
        const JobSpec *spec = job_spec__unpack(&allocator, from->spec.len, from->spec.data);
        if (!spec || !spec->batch || str_is_empty(spec->cron) ||
            from->payload_digest.len != PAYLOAD_DIGEST_BYTES || !str_is_empty(spec->array))
            return err_code(err, ERR_BAD_MESSAGE);
        int code = core_admit_submit(state, cmd->owner, &spec, 1, state->time_us, err);
        if (code < 0)
            return code;
    }
    return 0;
}

/* The line becomes a comment: nobody wonders why it does not run. */
static char *without_line(const char *text, uint32_t line)
{
    struct str out = { 0 };
    uint32_t number = 1;

    for (const char *at = text; *at; number++) {
        size_t len = strcspn(at, "\n");
        if (number == line)
            str_add(&out, "#DISABLED: ");
        str_add_len(&out, at, len + (at[len] == '\n'));
        at += len + (at[len] == '\n');
    }
    return str_take(&out);
}

static enum err_code disable(struct state *state, const CmdCrontab *cmd)
{
    const struct job *job = job_at(state, cmd->disable);
    const Crontab *old = job ? state_crontab(state, job->owner->uid) : NULL;
    size_t at = place_of(old, cmd->disable);

    if (!old || at >= old->n_job_ids || at >= old->n_lines)
        return ERR_NOT_FOUND;
    Crontab *changed = pb_copy(old);
    char *text = without_line(old->text, old->lines[at]);
    free(changed->text);
    changed->text = text;
    changed->n_job_ids--;
    changed->n_lines--;
    for (size_t i = at; i < changed->n_job_ids; i++) {
        changed->job_ids[i] = changed->job_ids[i + 1];
        changed->lines[i] = changed->lines[i + 1];
    }
    crontab_put(state, changed);
    pb_free(changed);
    return ERR_OK;
}

enum err_code apply_crontab(struct state *state, const CmdCrontab *cmd, struct err *err,
                            struct events *out)
{
    Crontab fresh = CRONTAB__INIT;
    uint32_t ids[LIMIT_CRON_JOBS], lines[LIMIT_CRON_JOBS];

    if (cmd->has_disable)
        return disable(state, cmd);
    int code = check(state, cmd, err);
    if (code < 0)
        return (enum err_code) - code;
    size_t at = find(state, cmd->owner->uid);
    if (at == state->crontabs.len && str_is_empty(cmd->text))
        return ERR_NOT_FOUND;
    if (at < state->crontabs.len) {
        drop_jobs(state, state->crontabs.items[at]->msg, out);
        take_out(state, at);
    }
    if (str_is_empty(cmd->text))
        return ERR_OK;
    fresh.has_uid = true;
    fresh.uid = cmd->owner->uid;
    fresh.text = cmd->text;
    fresh.job_ids = ids;
    fresh.lines = lines;
    for (size_t i = 0; i < cmd->n_jobs; i++) {
        CmdSubmit submit = CMD_SUBMIT__INIT;
        uint32_t id = 0;
        submit.owner = cmd->owner;
        submit.n_components = 1;
        submit.components = &cmd->jobs[i];
        if (apply_submit(state, &submit, &id, err, out) != ERR_OK)
            continue; /* jobs of the same text reached a limit */
        ids[fresh.n_job_ids++] = id;
        lines[fresh.n_lines++] = cmd->lines[i];
    }
    crontab_put(state, &fresh);
    return ERR_OK;
}
