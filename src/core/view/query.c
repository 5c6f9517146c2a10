/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query.c - which jobs a list asks for
 */
#include "core/query.h"

#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "core/view/view.h"

struct query {
    const ListJobsRequest *request;
    struct job_ref *refs;
    size_t ref_count;
    uint32_t states; /* bits by JobState */
    struct map nodes;
    bool by_node;
    uint32_t *uids;
    size_t uid_count;
    bool changes; /* only what changed after `since` */
    uint64_t since;
    struct wanted {
        uint32_t array_id; /* 0: none yet */
        struct bitset tasks;
    } * wanted;           /* tasks of the array that is being walked */
    struct id_list *gone; /* of query_collect(), or NULL */
};

static bool read_id(const char **at, uint32_t *out)
{
    uint64_t value = 0;
    const char *begin = *at;

    for (; **at >= '0' && **at <= '9' && value <= UINT32_MAX; (*at)++)
        value = value * 10 + (uint64_t)(**at - '0');
    *out = (uint32_t)value;
    return *at > begin && value <= UINT32_MAX;
}

int job_ref_parse(const char *text, struct job_ref *out, struct err *err)
{
    const char *at = text;
    struct job_ref ref = { 0 };

    bool good = read_id(&at, &ref.id) && ref.id;
    if (good && *at == '_') {
        ref.has_tasks = true;
        ref.tasks = ++at;
        ref.tasks_len = strlen(at);
        if (*at == '*' && !at[1]) {
            ref.has_tasks = false;
        } else if (*at == '[') {
            ref.tasks++;
            ref.tasks_len = ref.tasks_len >= 2 ? ref.tasks_len - 2 : 0;
            good = at[strlen(at) - 1] == ']';
        }
        good = good && (!ref.has_tasks || (ref.tasks_len > 0 &&
                                           ref.tasks_len == strspn(ref.tasks, "0123456789,-:%")));
    } else if (good && *at == '+') {
        at++;
        ref.has_offset = true;
        good = read_id(&at, &ref.offset) && !*at;
    } else if (*at) {
        good = false;
    }
    if (!good)
        return err_set(err, ERR_INVALID_JOB_ID, "Invalid job id specified: '%.100s'", text);
    *out = ref;
    return 0;
}

static int read_refs(struct query *query, const ListJobsRequest *request, struct err *err)
{
    query->refs = NEW_ARRAY(struct job_ref, request->n_ids + 1);
    for (size_t i = 0; i < request->n_ids; i++) {
        int code = job_ref_parse(request->ids[i], &query->refs[query->ref_count++], err);
        if (code < 0)
            return code;
    }
    return 0;
}

static int read_nodes(struct query *query, const ListJobsRequest *request, struct err *err)
{
    query->by_node = request->n_nodes > 0;
    for (size_t i = 0; i < request->n_nodes; i++) {
        CLEANUP(hostlist_done) struct hostlist hosts = { 0 };
        int code = hostlist_parse(&hosts, request->nodes[i], err);
        if (code < 0)
            return code;
        if (hostlist_count(&hosts) > LIMIT_NODES)
            return err_code(err, ERR_TOO_MANY);
        hostlist_each (host, &hosts)
            map_put(&query->nodes, host.name, query);
    }
    return 0;
}

static void read_users(struct query *query, const ListJobsRequest *request)
{
    query->uids = NEW_ARRAY(uint32_t, request->n_users + 1);
    for (size_t i = 0; i < request->n_users; i++) {
        uint64_t uid;
        if (str_to_u64(request->users[i], UINT32_MAX, &uid))
            query->uids[query->uid_count++] = (uint32_t)uid;
    }
}

static uint32_t states_of(const ListJobsRequest *request)
{
    uint32_t states = 0;

    for (size_t i = 0; i < request->n_states; i++)
        states |= UINT32_C(1) << ((unsigned)request->states[i] & 31);
    if (!states && !request->has_flag_mask)
        states = 1U << JOB_PENDING | 1U << JOB_RUNNING | 1U << JOB_SUSPENDED;
    return states;
}

int query_new(const struct state *state, const ListJobsRequest *request, struct query **out,
              struct err *err)
{
    struct query *query = NEW(struct query);

    query->request = request;
    map_init(&query->nodes);
    query->states = states_of(request);
    query->wanted = NEW(struct wanted);
    query->since = request->changed_since;
    query->changes = request->has_changed_since && changes_reach(state, query->since);
    read_users(query, request);
    int code = read_refs(query, request, err);
    if (code == 0)
        code = read_nodes(query, request, err);
    if (code < 0) {
        query_free(query);
        return code;
    }
    *out = query;
    return 0;
}

void query_free(struct query *query)
{
    if (!query)
        return;
    free(query->refs);
    free(query->uids);
    if (query->wanted)
        bitset_done(&query->wanted->tasks);
    free(query->wanted);
    map_done(&query->nodes);
    free(query);
}

static bool in_texts(char **texts, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq(texts[i], text))
            return true;
    }
    return count == 0;
}

static bool match_user(const struct query *query, const struct job *job)
{
    if (query->request->n_users == 0)
        return true;
    for (size_t i = 0; i < query->uid_count; i++) {
        if (query->uids[i] == job->owner->uid)
            return true;
    }
    return in_texts(query->request->users, query->request->n_users, job->owner->user);
}

static bool match_name(const ListJobsRequest *request, const struct job *job)
{
    struct span name = job_name(job);

    for (size_t i = 0; i < request->n_names; i++) {
        if (span_eq(name, request->names[i]))
            return true;
    }
    return request->n_names == 0;
}

static bool match_partition(const ListJobsRequest *request, const struct job *job)
{
    if (request->n_partitions == 0)
        return true;
    if (job->run)
        return in_texts(request->partitions, request->n_partitions, job->run->partition);
    for (size_t i = 0; i < job->shape->partition_count; i++) {
        if (in_texts(request->partitions, request->n_partitions, job->shape->partitions[i]))
            return true;
    }
    return false;
}

static bool match_licence(const ListJobsRequest *request, const struct job *job)
{
    for (size_t i = 0; i < job->shape->licence_count; i++) {
        if (in_texts(request->licenses, request->n_licenses, job->shape->licences[i].name))
            return true;
    }
    return request->n_licenses == 0;
}

static bool match_node(const struct query *query, const struct job *job)
{
    if (!query->by_node)
        return true;
    for (unsigned i = 0; job->run && i < job->run->count; i++) {
        if (!job->run->parts[i].left && map_has(&query->nodes, job->run->parts[i].name))
            return true;
    }
    return false;
}

static bool match_state(const struct query *query, const struct job *job)
{
    const ListJobsRequest *request = query->request;

    if (request->all_states || query->states >> job->state & 1)
        return true;
    if (job->flags & request->flag_mask)
        return true;
    /* Without a choice, what is still completing is shown too. */
    return request->n_states == 0 && !request->has_flag_mask && job->flags & JOB_FLAG_COMPLETING;
}

static bool is_hidden(const struct state *state, const struct job *job)
{
    const char *name = job->run ? job->run->partition : job->shape->partitions[0];
    const struct partition *partition = state_partition(state, name);

    return partition && partition->spec->hidden;
}

/* The tasks of the array that were named; worked out once while its records are walked. */
static const struct bitset *wanted_tasks(const struct query *query, const struct array *array)
{
    struct wanted *wanted = query->wanted;

    if (wanted->array_id == array->id)
        return &wanted->tasks;
    bitset_done(&wanted->tasks);
    bitset_init(&wanted->tasks, array->count);
    wanted->array_id = array->id;
    for (size_t i = 0; i < query->ref_count; i++) {
        const struct job_ref *ref = &query->refs[i];
        struct bitset set;
        if (ref->id != array->id || ref->has_offset)
            continue;
        if (!ref->has_tasks) {
            bitset_fill(&wanted->tasks);
        } else if (array_select(array, ref->tasks, ref->tasks_len, &set, NULL) == 0) {
            bitset_or(&wanted->tasks, &set);
            bitset_done(&set);
        }
    }
    return &wanted->tasks;
}

/* One of the tasks that were named, or the record of some that wait. */
static bool match_tasks(const struct query *query, const struct job *job)
{
    const struct bitset *tasks = wanted_tasks(query, job->array);
    uint32_t number;

    if (job->is_task)
        return array_find(job->array, job->array_task_id, &number) && bitset_has(tasks, number);
    uint32_t waiting = array_next_waiting(job->array, 0);
    while (waiting < job->array->count && !bitset_has(tasks, waiting))
        waiting = array_next_waiting(job->array, (uint32_t)bitset_next(tasks, waiting));
    return waiting < job->array->count;
}

/* By id: the job itself, or tasks of an array. */
static bool match_ref(const struct query *query, const struct job_ref *ref, const struct job *job)
{
    if (ref->has_offset)
        return job->more && job->more->het_job_id == ref->id &&
               job->more->het_offset == ref->offset;
    if (job->id != ref->id && !(job->array && job->array->id == ref->id) &&
        !(job->more && job->more->het_count && job->more->het_job_id == ref->id))
        return false;
    if (!ref->has_tasks)
        return true;
    return job->array && job->array->id == ref->id && match_tasks(query, job);
}

static bool match_id(const struct query *query, const struct job *job)
{
    for (size_t i = 0; i < query->ref_count; i++) {
        if (match_ref(query, &query->refs[i], job))
            return true;
    }
    return query->ref_count == 0;
}

bool query_match(const struct query *query, const struct state *state, const struct job *job)
{
    const ListJobsRequest *request = query->request;

    return match_state(query, job) && match_user(query, job) &&
           in_texts(request->accounts, request->n_accounts, job->account) &&
           in_texts(request->qos, request->n_qos, job->qos) &&
           in_texts(request->reservations, request->n_reservations, job->shape->reservation) &&
           match_partition(request, job) && match_name(request, job) &&
           match_licence(request, job) && match_node(query, job) &&
           (request->hidden_too || !is_hidden(state, job)) && match_id(query, job);
}

/* Ids that are named one by one need no walk over all jobs, unless they stand for several. */
static uint64_t first_id(const struct query *query)
{
    uint64_t first = query->ref_count ? UINT64_MAX : 0;

    for (size_t i = 0; i < query->ref_count; i++)
        first = MIN(first, query->refs[i].id);
    return first;
}

static bool only_single(const struct query *query, const struct state *state)
{
    if (query->ref_count != 1 || query->refs[0].has_offset)
        return false;
    const struct job *job = state_job(state, query->refs[0].id);
    return job && !job->array && !(job->more && job->more->het_count);
}

void query_collect(struct query *query, struct id_list *out)
{
    query->gone = query->changes ? out : NULL;
}

bool query_since(const struct query *query, uint64_t *since)
{
    *since = query->since;
    return query->changes;
}

/* Is this waiting task of the array one of those that were named? */
static bool wants_task(const struct query *query, const struct job *job, uint32_t number)
{
    return query->ref_count == 0 || bitset_has(wanted_tasks(query, job->array), number);
}

const struct job *query_next(const struct query *query, const struct state *state,
                             struct query_cursor *cursor, unsigned *budget, uint32_t *task)
{
    *task = NO_TASK;
    uint64_t begin = MAX(cursor->job, first_id(query));
    for (const struct job *job = state_job_from(state, begin); job;
         job = state_job_from(state, (uint64_t)job->id + 1)) {
        if (budget) {
            if (*budget == 0)
                return NULL;
            --*budget;
        }
        if (cursor->job != job->id) {
            cursor->job = job->id;
            cursor->task = 0;
        }
        bool fresh = !query->changes || job->changed > query->since;
        bool match = fresh && query_match(query, state, job);
        if (fresh && !match && query->gone)
            vec_push(&query->gone->ids, job->id);
        if (match) {
            if (!query->request->array_expand || !job_is_meta(job)) {
                cursor->job =
                    only_single(query, state) ? (uint64_t)UINT32_MAX + 1 : (uint64_t)job->id + 1;
                return job;
            }
            uint32_t number = array_next_waiting(job->array, cursor->task);
            while (number < job->array->count && !wants_task(query, job, number))
                number = array_next_waiting(job->array, number + 1);
            if (number < job->array->count) {
                cursor->task = number + 1;
                *task = array_task_id(job->array, number);
                return job;
            }
        }
        cursor->job = (uint64_t)job->id + 1;
        cursor->task = 0;
    }
    cursor->job = (uint64_t)UINT32_MAX + 1;
    return NULL;
}

bool query_gone(const struct query *query, const struct state *state, struct id_list *out)
{
    const struct changes *changes = &state->changes;
    uint64_t since;

    if (!query_since(query, &since))
        return false;
    for (size_t i = 0; i < changes->count; i++) {
        const struct forgotten *gone = &changes->gone[(changes->first + i) % CHANGES_GONE];
        if (gone->index > since)
            vec_push(&out->ids, gone->id);
    }
    return true;
}
