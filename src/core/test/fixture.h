/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixture.h - a small cluster and short ways to give it commands
 *
 * Every command is packed and unpacked on its way, as the log does. After each one every invariant
 * is checked. Nodes are n1 … nN with 4 CPUs of 2 threads each core, 4000 MB and, for even numbers,
 * two gpu:mi300x; partitions are `main` (default, all) and `small` (n1, n2; at most an hour).
 */
#ifndef CORE_TEST_FIXTURE_H
#define CORE_TEST_FIXTURE_H

#include "core/core.h"
#include "test/unit.h"
#include "wire/set.h"

struct fix {
    struct state *state;
    struct events events;
    uint64_t index;
    int64_t now;
    bool check;    /* every invariant after every command */
    uint64_t seed; /* for messages */

    /* Optional: a second state that is given the same commands and must stay the same. */
    struct state *mirror;
    struct events mirror_events;
    VEC(struct span) log; /* packed commands, kept when `record` is set */
    bool record;
};

struct fix *fix_new(unsigned nodes);
struct fix *fix_new_recorded(unsigned nodes, bool recorded);
void fix_free(struct fix *fix);
/* The configuration of fix_new(), to be changed; free with config__free_unpacked(config, NULL). */
Config *fix_config(unsigned nodes);

/*
 * The same with accounts: root > sci > (phys: alice, bob; chem: alice), QOS normal, high, tiny, part
 * (of the partition small), and limits on all of them. `enforce` may be NULL.
 */
Config *fix_config_accounts(unsigned nodes, const char *enforce);

/* Applies a copy; fills in the time. The events are those of this command alone. */
enum err_code fix_apply(struct fix *fix, Command *cmd);
/* The answer of the last command. */
const struct event *fix_answer(const struct fix *fix);
/* How many events of that kind the last command gave; the first one in *out unless NULL. */
size_t fix_events(const struct fix *fix, enum event_kind kind, const struct event **out);

/* A batch job of one task for an hour, in the owner's (uid 1000) name. */
JobSpec fix_spec(void);
uint32_t fix_submit(struct fix *fix, const JobSpec *spec); /* 0 when refused */
uint32_t fix_submit_as(struct fix *fix, uint32_t uid, const JobSpec *spec);
uint32_t fix_job(struct fix *fix); /* submits fix_spec() */

#define NO_ARRAY_TASK UINT32_MAX
/* Starts on one node with that many CPUs, as the next attempt. */
enum err_code fix_start(struct fix *fix, uint32_t id, const char *node, uint32_t cpus);
enum err_code fix_start_task(struct fix *fix, uint32_t array, uint32_t task, const char *node,
                             uint32_t cpus);
/* Two nodes, one CPU core each. */
enum err_code fix_start_two(struct fix *fix, uint32_t id, const char *first, const char *second);
enum err_code fix_ready(struct fix *fix, uint32_t id);
/* The controller's own programs for a job are done. */
enum err_code fix_site_prolog(struct fix *fix, uint32_t id);
enum err_code fix_site_epilog(struct fix *fix, uint32_t id);
/* The script ended; its first node is released with the same message unless told otherwise. */
enum err_code fix_finish(struct fix *fix, uint32_t id, uint32_t status);
enum err_code fix_finish_held(struct fix *fix, uint32_t id, uint32_t status);
enum err_code fix_release(struct fix *fix, uint32_t id, const char *node);
enum err_code fix_cancel(struct fix *fix, uint32_t id, const char *tasks);
enum err_code fix_hold(struct fix *fix, uint32_t id, unsigned hold, bool by_admin);
enum err_code fix_update(struct fix *fix, uint32_t id, const JobSpec *change, bool by_admin);
enum err_code fix_requeue(struct fix *fix, uint32_t id, bool hold);
enum err_code fix_suspend(struct fix *fix, uint32_t id, bool resume);
enum err_code fix_node_up(struct fix *fix, const char *node, const char *boot_id);
enum err_code fix_node_down(struct fix *fix, const char *node, bool jobs_lost);
enum err_code fix_node_state(struct fix *fix, const char *node, const char *word,
                             const char *reason);
enum err_code fix_time(struct fix *fix, int64_t seconds_later);
enum err_code fix_reconfigure(struct fix *fix, const Config *config, bool reconfigure);
/* The same as changes of what there is, of at most so many sections each; the first refusal. */
enum err_code fix_change(struct fix *fix, const Config *config, bool reconfigure, size_t most);

/* Applies recorded commands to a new state. */
struct state *fix_replay(const struct fix *fix);
/* Writes them to DIR/NAME.history with digests and snapshots between them: recorded/README.md. */
void fix_write_history(const struct fix *fix, const char *dir, const char *name);

const struct job *fix_get(const struct fix *fix, uint32_t id);
unsigned fix_reason(const struct fix *fix, uint32_t id);
/* Snapshot and back: the new state has the same digest and passes all checks. */
struct state *fix_copy(const struct fix *fix);

#define assert_phase(fix, id, phase)  assert_int_equal(job_phase(fix_get((fix), (id))), (phase))
#define assert_state(fix, id, wanted) assert_int_equal(fix_get((fix), (id))->state, (wanted))

#endif
