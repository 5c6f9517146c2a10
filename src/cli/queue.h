/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.h - the parts of squeue
 */
#ifndef CLI_QUEUE_H
#define CLI_QUEUE_H

#include "base/err.h"
#include "base/vec.h"
#include "proto/controller.pb-c.h"
#include "schema/field.h"

typedef VEC(const Job *) queue_jobs;

/*
 * Sorts by letters of -o, each with '+' or '-' before it ("P,t,-p"). Equal jobs stay in the order of
 * their ids. ERR_INVALID names the first letter that is none.
 */
int queue_sort(queue_jobs *jobs, const char *spec, const struct field_ctx *ctx, struct err *err);

/* Words of --states as filters; "all" sets all_states. ERR_INVALID names the word that is none. */
struct queue_states {
    bool all;
    uint32_t states; /* bit by JobState */
    uint32_t flags;  /* JobFlag */
};
int queue_read_states(const char *text, struct queue_states *out, struct err *err);
bool queue_state_matches(const struct queue_states *states, const Job *job);
/* Whether a list of ids as people write them ("12,13_[1-5:2],14+1") names the job. */
bool queue_id_matches(const char *ids, const Job *job);

/* What is shown when no state is asked for: jobs that are not over. */
extern const struct queue_states queue_states_default;

/* A row of squeue --steps: a step of srun, or (info NULL) the batch script of a job. */
struct queue_step {
    const Job *job;
    const StepInfo *info;
};
extern const struct field_table step_fields; /* of struct queue_step */
uint32_t queue_step_number(const struct queue_step *row);
struct jsonw;
void steps_add_json(struct jsonw *json, const struct queue_step *row, const struct field_ctx *ctx);

#endif
