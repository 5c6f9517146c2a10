/* SPDX-License-Identifier: Apache-2.0 */
/*
 * people.c - who submits, cancels, drains, …, and asks again
 *
 * Every submission is called r<number>, so that a job in the state, a script on a node and the
 * request are known to belong together, and a second job of the same request is noticed.
 *
 * (1) A request keeps its id through all its tries.
 * (2) Whoever gets no answer asks again for PATIENCE_S, less than the controllers remember ids.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/reasons.h"
#include "sim/world.h"

enum { PATIENCE_S = 480, HOPS_MAX = 16 };

static void try_now(struct world *world, const struct happening *what);

struct request *people_request(struct world *world, uint32_t number)
{
    return number && number <= world->requests.len ? world->requests.items[number - 1] : NULL;
}

struct request *people_ask(struct world *world, enum request_kind kind)
{
    struct request *request = NEW(struct request);

    vec_push(&world->requests, request);
    request->number = (uint32_t)world->requests.len;
    request->kind = kind;
    request->uid = kind >= ASK_SUSPEND ? 0 : 1000 + (uint32_t)rand_below(&world->rand, 3);
    for (int i = 0; i < 16; i++)
        request->id[i] = (uint8_t)rand_u64(&world->rand);
    request->first_us = world->now_us;
    world_later(world, 0, try_now, request->number, 0, 0);
    return request;
}

/* ---- asking ---- */

/*
 * A stopped controller lets it wait. Who is told by a follower to ask another does so, unless that
 * try was given up meanwhile; its bytes may still be taken by the one that they lay at.
 */
static void arrive(struct world *world, const struct happening *what)
{
    struct host *host = &world->hosts[what->b];
    unsigned hops = what->c % HOPS_MAX, try = (unsigned)(what->c / HOPS_MAX);
    const struct request *request = people_request(world, (uint32_t)what->a);

    if (host_is_stopped(host))
        world_later(world, host->stopped_until_us - world->now_us, arrive, what->a, what->b,
                    what->c);
    else if (!ask_arrive(host, request->number) && hops < world->host_count &&
             request->tries == try && !request->done && !request->gave_up)
        world_later(world, rand_skewed(&world->rand, 50, 5 * MS), arrive, what->a,
                    (what->b + 1) % world->host_count, what->c + 1);
}

static void try_now(struct world *world, const struct happening *what)
{
    struct request *request = people_request(world, (uint32_t)what->a);

    if (request->done || request->gave_up || request->tries != what->b)
        return;
    if (request->kind == ASK_WATCH && request->open) { /* it is being told */
        world_later(world, 5 * SEC, try_now, what->a, what->b, 0);
        return;
    }
    if (request->kind != ASK_WATCH &&
        world->now_us - request->first_us > PATIENCE_S * SEC) { /* (2) */
        request->gave_up = true;
        return;
    }
    request->tries++;
    if (request->tries > 1) {
        world_count(world, COUNT_RETRIES);
        if (world->options.mutation == MUTATE_NEW_REQUEST_ID)
            request->id[0]++; /* against (1) */
    }
    bool lost = fault_on(world, FAULT_CLIENT) && rand_chance(&world->rand, 100);
    int64_t delay = rand_skewed(&world->rand, 50, 5 * MS);
    if (fault_on(world, FAULT_CLIENT) && rand_chance(&world->rand, 50))
        delay = rand_skewed(&world->rand, MS, 60 * SEC);
    if (!lost)
        world_later(world, delay, arrive, request->number,
                    rand_below(&world->rand, world->host_count), request->tries * HOPS_MAX + 1);
    world_later(world, rand_between(&world->rand, 3 * SEC, 15 * SEC), try_now, request->number,
                request->tries, 0);
}

static bool try_later(enum err_code code)
{
    return code == ERR_NOT_LEADER || code == ERR_DISK_FULL || code == ERR_SHUTTING_DOWN ||
           code == ERR_TOO_MANY || code == ERR_UNREACHABLE || code == ERR_IO;
}

static void answer_comes(struct world *world, const struct happening *what)
{
    struct request *request = people_request(world, (uint32_t)what->a);

    if (request->done || try_later((enum err_code)what->b))
        return;
    request->done = true;
    request->code = (enum err_code)what->b;
}

/* The controller has answered; the answer may be lost on its way, but from now on it counts. */
void people_answered(struct world *world, uint32_t number, enum err_code code, uint32_t job_id)
{
    struct request *request = people_request(world, number);

    TRACE(world, "request %u answered: %s job %u", number, code ? err_name(code) : "done", job_id);
    if (request->kind == ASK_SUBMIT && code == ERR_OK) {
        if (!request->job_id)
            world_count(world, COUNT_ACKED);
        if (request->job_id && request->job_id != job_id)
            world_violation(world, "request %u was told job %u and then job %u", number,
                            request->job_id, job_id);
        request->job_id = job_id;
    }
    bool lost = fault_on(world, FAULT_CLIENT) && rand_chance(&world->rand, 100);
    world_later(world, rand_skewed(&world->rand, 50, 5 * MS), answer_comes, number,
                lost ? ERR_UNREACHABLE : code, 0);
}

bool people_waiting(const struct world *world)
{
    vec_each (struct request *, item, &world->requests) {
        if (!(*item)->done && !(*item)->gave_up)
            return true;
    }
    return false;
}

/* ---- submissions ---- */

/* A submission that was acknowledged; NULL when there is none yet. */
static struct request *some_job(struct world *world)
{
    for (unsigned i = 0; i < 8 && world->requests.len; i++) {
        struct request *request =
            world->requests.items[rand_below(&world->rand, world->requests.len)];
        if (request->kind == ASK_SUBMIT && request->job_id)
            return request;
    }
    return NULL;
}

static char *some_dependency(struct world *world)
{
    static const char *const kinds[] = { "afterok", "afterany", "after", "afternotok",
                                         "aftercorr" };
    const struct request *first = some_job(world), *second = some_job(world);
    const char *kind = kinds[rand_below(&world->rand, ARRAY_LEN(kinds))];

    if (rand_chance(&world->rand, 100))
        return mem_strdup("singleton");
    if (!first)
        return NULL;
    if (!second || rand_chance(&world->rand, 700))
        return mem_printf("%s:%u", kind, first->job_id);
    return mem_printf("%s:%u%cafterany:%u", kind, first->job_id,
                      rand_chance(&world->rand, 500) ? ',' : '?', second->job_id);
}

static void some_array(struct world *world, struct request *request)
{
    static const struct {
        const char *text;
        uint32_t tasks;
    } arrays[] = { { "0-3", 4 }, { "1-9%2", 9 }, { "0-10:5", 3 }, { "7", 1 }, { "1,3,5-6%1", 4 } };
    size_t which = rand_below(&world->rand, ARRAY_LEN(arrays));

    request->spec->array = mem_strdup(arrays[which].text);
    request->tasks = arrays[which].tasks;
}

static void how_much(struct world *world, JobSpec *spec)
{
    struct rand *rand = &world->rand;

    spec->has_ntasks = true;
    spec->ntasks = (uint32_t)rand_skewed(rand, 1, 4);
    if (rand_chance(rand, 250) && world->machine_count > 1) {
        uint32_t most = MIN(world->machine_count, 4);
        spec->has_min_nodes = true;
        spec->min_nodes = (uint32_t)rand_between(rand, 2, most);
        spec->ntasks = MAX(spec->ntasks, spec->min_nodes);
    }
    if (rand_chance(rand, 300)) {
        spec->has_cpus_per_task = true;
        spec->cpus_per_task = (uint32_t)rand_skewed(rand, 1, 3);
    }
    if (rand_chance(rand, 500)) {
        spec->has_mem_per_cpu_mb = true;
        spec->mem_per_cpu_mb = (uint64_t)rand_skewed(rand, 1, 900);
    }
    if (rand_chance(rand, 60)) {
        spec->has_exclusive = true;
        spec->exclusive = EXCLUSIVE_NODE;
    }
}

static void when(struct world *world, JobSpec *spec)
{
    struct rand *rand = &world->rand;

    if (rand_chance(rand, 800)) {
        spec->has_time_limit_s = true;
        spec->time_limit_s = 60 * rand_skewed(rand, 1, 30);
    }
    if (rand_chance(rand, 100)) {
        spec->has_begin_us = true;
        spec->begin_us = host_wall(&world->hosts[0]) + rand_skewed(rand, 0, 200 * SEC);
    }
    if (rand_chance(rand, 80))
        spec->has_hold = spec->hold = true;
    if (rand_chance(rand, 200))
        spec->dependency = some_dependency(world);
    if (rand_chance(rand, 300))
        spec->has_kill_on_invalid_dep = spec->kill_on_invalid_dep = true;
    if (rand_chance(rand, 200)) {
        spec->has_nice = true;
        spec->nice = (int32_t)rand_between(rand, -100, 100);
    }
    if (rand_chance(rand, 300)) {
        spec->has_requeue = true;
        spec->requeue = rand_chance(rand, 500);
    }
}

static void some_payload(struct world *world, struct request *request)
{
    JobPayload payload = JOB_PAYLOAD__INIT;
    char script[256];
    int len = snprintf(script, sizeof(script), "#!/bin/sh\n# request %u\nsleep %lld; exit %u\n",
                       request->number, (long long)request->work_us, request->exit_code);

    /* Some scripts are the same: their bytes are kept once. */
    if (rand_chance(&world->rand, 100))
        len = snprintf(script, sizeof(script), "#!/bin/sh\n# everybody's\n");
    payload.has_script = true;
    payload.script = (ProtobufCBinaryData){ (size_t)len, (uint8_t *)script };
    size_t size = job_payload__get_packed_size(&payload);
    str_reserve(&request->payload, size);
    job_payload__pack(&payload, (uint8_t *)request->payload.data);
    request->payload.len = size;
}

/* Somebody waits for all jobs of this user to be cancelled: that may catch new ones too. */
static bool is_cancelling(const struct world *world, uint32_t uid)
{
    vec_each (struct request *, item, &world->requests) {
        if ((*item)->kind == ASK_CANCEL_MINE && (*item)->uid == uid && !(*item)->done)
            return true;
    }
    return false;
}

static void cancel_mine(struct world *world)
{
    const struct request *request = people_ask(world, ASK_CANCEL_MINE);

    vec_each (struct request *, item, &world->requests) {
        if ((*item)->kind == ASK_SUBMIT && (*item)->uid == request->uid)
            (*item)->cancel_asked = true;
    }
}

static void submit_one(struct world *world)
{
    struct request *request = people_ask(world, ASK_SUBMIT);
    struct rand *rand = &world->rand;
    JobSpec *spec = request->spec = NEW(JobSpec);

    world_count(world, COUNT_SUBMITTED);
    request->cancel_asked = is_cancelling(world, request->uid);
    job_spec__init(spec);
    spec->name = mem_printf("r%u", request->number);
    spec->has_batch = spec->batch = true;
    spec->work_dir = mem_strdup("/home/user");
    if (rand_chance(rand, 300))
        spec->partition = mem_strdup(rand_chance(rand, 500) ? "half" : "half,all");
    request->tasks = 1;
    if (rand_chance(rand, 150))
        some_array(world, request);
    how_much(world, spec);
    when(world, spec);
    request->work_us = rand_skewed(rand, MS, 300 * SEC);
    request->exit_code = rand_chance(rand, 150) ? 1 + (unsigned)rand_below(rand, 3) : 0;
    request->stubborn = rand_chance(rand, 50);
    some_payload(world, request);
}

/* ---- about jobs that are there ---- */

static const enum request_kind about_jobs[] = { ASK_CANCEL,  ASK_CANCEL,  ASK_HOLD,    ASK_RELEASE,
                                                ASK_RELEASE, ASK_REQUEUE, ASK_SUSPEND, ASK_RESUME,
                                                ASK_LIMIT,   ASK_WATCH,   ASK_EXPLAIN };

static struct request *about(struct world *world, enum request_kind kind, struct request *job)
{
    struct request *request = people_ask(world, kind);

    request->about = job->number;
    request->uid = kind == ASK_SUSPEND || kind == ASK_RESUME ? 0 : job->uid;
    snprintf(request->target, sizeof(request->target), "%u", job->job_id);
    if (kind == ASK_CANCEL)
        job->cancel_asked = true;
    if (kind == ASK_REQUEUE)
        job->requeues_asked++;
    if (kind == ASK_SUSPEND)
        job->suspend_asked = true;
    return request;
}

static void about_some_job(struct world *world)
{
    struct request *job = some_job(world);
    enum request_kind kind = about_jobs[rand_below(&world->rand, ARRAY_LEN(about_jobs))];

    if (!job)
        return;
    struct request *request = about(world, kind, job);
    request->value = 60 * rand_skewed(&world->rand, 1, 30);
    if (job->tasks > 1 && rand_chance(&world->rand, 500) && kind != ASK_WATCH)
        snprintf(request->target, sizeof(request->target), "%u_%u", job->job_id,
                 (unsigned)rand_below(&world->rand, 10));
    if ((kind == ASK_HOLD || kind == ASK_LIMIT) && rand_chance(&world->rand, 200)) {
        request->by_name = true;
        snprintf(request->target, sizeof(request->target), "%s", job->spec->name);
    }
    if (kind == ASK_REQUEUE)
        world_count(world, COUNT_REQUEUES);
    if (kind == ASK_SUSPEND)
        world_count(world, COUNT_SUSPENDS);
}

/* ---- about the cluster ---- */

static void ask_node(struct world *world, const char *names, const char *state)
{
    struct request *request = people_ask(world, ASK_NODE);

    snprintf(request->target, sizeof(request->target), "%s", names);
    snprintf(request->word, sizeof(request->word), "%s", state);
}

static void ask_partition(struct world *world, const char *name, PartitionState state)
{
    struct request *request = people_ask(world, ASK_PARTITION);

    snprintf(request->target, sizeof(request->target), "%s", name);
    request->value = state;
}

static void operate(struct world *world)
{
    struct rand *rand = &world->rand;
    const struct machine *machine = &world->machines[rand_below(rand, world->machine_count)];

    switch (rand_below(rand, 8)) {
    case 0:
        ask_node(world, machine->name, "DRAIN");
        break;
    case 1:
    case 2:
        ask_node(world, machine->name, "RESUME");
        break;
    case 3:
        ask_partition(world, "half", rand_chance(rand, 400) ? PARTITION_DOWN : PARTITION_UP);
        break;
    case 4:
        people_ask(world, ASK_RECONFIGURE);
        break;
    default:
        people_ask(world, ASK_LIST);
        world_count(world, COUNT_LISTS);
        break;
    }
}

static void act(struct world *world, const struct happening *what)
{
    if (world->now_us >= world->work_until_us)
        return;
    unsigned dice = (unsigned)rand_below(&world->rand, 100);
    if (dice < 55)
        submit_one(world);
    else if (dice < 84)
        about_some_job(world);
    else if (dice < 85 && rand_chance(&world->rand, 300))
        cancel_mine(world);
    else
        operate(world);
    /* A burst now and then: many requests share a batch. */
    int64_t next = rand_chance(&world->rand, 400) ? rand_skewed(&world->rand, 0, 2 * MS)
                                                  : rand_skewed(&world->rand, MS, (int64_t)what->a);
    world_later(world, next, act, what->a, 0, 0);
}

void people_begin(struct world *world)
{
    world_later(world, 100 * MS, act, (uint64_t)rand_between(&world->rand, 20 * SEC, 120 * SEC), 0,
                0);
}

/* ---- the end ---- */

static void let_job_go(struct world *world, const struct state *state, const struct job *job)
{
    const struct known_job *known = map_get_num(&world->truth.jobs, job->id);
    struct request *submission = people_request(world, known->request);
    struct request *request = NULL;

    if (job->state == JOB_SUSPENDED)
        request = about(world, ASK_RESUME, submission);
    else if (job->state == JOB_PENDING && job->hold)
        request = about(world, ASK_RELEASE, submission);
    else if (job->state == JOB_PENDING && core_job_reason(state, job) == REASON_DEP_INVALID)
        request = about(world, ASK_CANCEL, submission);
    if (!request)
        return;
    request->uid = 0;
    snprintf(request->target, sizeof(request->target), "%u", job->id);
}

void people_let_go(struct world *world)
{
    const struct host *leader = world_leader(world);
    const struct state *state;

    if (!leader)
        return;
    state = ctl_state(leader->ctl);
    for (const struct job *job = state_job_from(state, 1); job;
         job = state_job_from(state, (uint64_t)job->id + 1))
        let_job_go(world, state, job);
    for (size_t i = 0; i < state_node_count(state); i++) {
        const struct node *node = state_node_at(state, i);
        if (!node_is_usable(node))
            ask_node(world, node->spec->name, "RESUME");
    }
    for (size_t i = 0; i < state_partition_count(state); i++) {
        const struct partition *partition = state_partition_at(state, i);
        if (partition_state(partition) != PARTITION_UP)
            ask_partition(world, partition->spec->name, PARTITION_UP);
    }
}

void people_done(struct world *world)
{
    vec_each (struct request *, item, &world->requests) {
        struct request *request = *item;
        if (request->spec)
            job_spec__free_unpacked(request->spec, NULL);
        str_done(&request->payload);
        free(request);
    }
    vec_done(&world->requests);
}
