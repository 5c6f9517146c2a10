/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rig.c - a cluster and its planner on made-up time, for tests and figures
 */
#include "sched/test/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/config_change.h"
#include "sched/sched_check.h"
#include "schema/conf.h"
#include "wire/pb.h"
#include "wire/set.h"

#define FIRST_US INT64_C(1700000000000000)
static void die(const char *what, const char *why)
{
    fprintf(stderr, "rig: %s: %s\n", what, why);
    abort();
}

static double now_ms(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

enum err_code rig_apply(struct rig *rig, Command *cmd)
{
    struct err err = { 0 };
    if (rig->turn)
        rig->turn();
    double begin = now_ms(CLOCK_MONOTONIC);
    double busy = rig->watch ? now_ms(CLOCK_THREAD_CPUTIME_ID) : 0;

    rig->now_us += 1;
    SET(cmd, time_us, rig->now_us);
    events_clear(&rig->events);
    core_apply(rig->state, ++rig->index, cmd, &rig->events);
    double applied = now_ms(CLOCK_MONOTONIC);
    double cpu = rig->watch ? now_ms(CLOCK_THREAD_CPUTIME_ID) : 0;
    double took_core = cpu - busy + rig->unpack_ms;
    rig->applied_ms = MAX(rig->applied_ms, took_core);
    if (rig->sched)
        sched_feed_all(rig->sched, &rig->events);
    double took = rig->watch ? now_ms(CLOCK_THREAD_CPUTIME_ID) - cpu : 0;
    rig->core_ms += applied - begin;
    rig->feed_ms += now_ms(CLOCK_MONOTONIC) - applied;
    rig->fed_ms = MAX(rig->fed_ms, took);
    rig->turn_ms =
        MAX(rig->turn_ms, took_core > RIG_LONG_MS ? MAX(took_core, took) : took_core + took);
    if (rig->check && core_check(rig->state, &err) < 0)
        die("core", err.text);
    if (rig->check && rig->sched && sched_check(rig->sched, &err) < 0)
        die("planner", err.text);
    events_each(event, &rig->events)
    {
        if (event->kind == EVENT_JOB_STARTED && rig->on_start)
            rig->on_start(rig, event->job);
    }
    return rig->events.list.items[rig->events.list.len - 1].code;
}

static int node_up(void *ctx, const NodeSpec *spec)
{
    struct rig *rig = ctx;
    NodeInventory found = NODE_INVENTORY__INIT;

    SET(&found, cpus, spec->cpus);
    SET(&found, memory_mb, spec->memory_mb);
    SET(&found, sockets, spec->sockets);
    SET(&found, cores_per_socket, spec->cores_per_socket);
    SET(&found, threads_per_core, spec->threads_per_core);
    found.n_gres = spec->n_gres;
    found.gres = spec->gres;
    rig_inventory(rig, spec->name, &found);
    return 0;
}

void rig_inventory(struct rig *rig, const char *name, NodeInventory *found)
{
    Command cmd = COMMAND__INIT;
    CmdNodeUp up = CMD_NODE_UP__INIT;

    up.node = (char *)(uintptr_t)name;
    up.found = found;
    cmd.what_case = COMMAND__WHAT_NODE_UP;
    cmd.node_up = &up;
    if (rig_apply(rig, &cmd) != ERR_OK)
        die(name, "does not come up");
}

struct rig *rig_new_config(const Config *config)
{
    struct rig *rig = NEW(struct rig);
    Command cmd = COMMAND__INIT;
    CmdConfig msg = CMD_CONFIG__INIT;

    rig->state = state_new();
    rig->now_us = FIRST_US;
    rig->budget = 2000;
    events_init(&rig->events);
    msg.config = (Config *)(uintptr_t)config;
    cmd.what_case = COMMAND__WHAT_CONFIG;
    cmd.config = &msg;
    if (rig_apply(rig, &cmd) != ERR_OK)
        die("configuration", rig->events.list.items[rig->events.list.len - 1].text);
    conf_each_node(config, node_up, rig, NULL);
    rig->sched = sched_new(rig->state);
    rig->check = true;
    rig->core_ms = rig->feed_ms = 0;
    return rig;
}

struct rig *rig_new(const char *toml)
{
    CLEANUP(conf_freep) struct conf *conf = conf_read("rig", toml, strlen(toml), NULL);
    struct err err = { 0 };

    if (conf_verdict(conf, &err) < 0)
        die("configuration", err.text);
    return rig_new_config(conf_config(conf));
}

/* What comes from the log is unpacked in the same turn. */
static enum err_code apply_packed(struct rig *rig, const Command *cmd)
{
    struct arena arena;

    arena_init(&arena);
    struct span bytes = pb_pack(cmd, &arena);
    ProtobufCAllocator allocator = pb_arena(&arena);
    double begin = now_ms(CLOCK_THREAD_CPUTIME_ID);
    Command *copy = command__unpack(&allocator, bytes.len, (const uint8_t *)bytes.ptr);
    rig->unpack_ms = now_ms(CLOCK_THREAD_CPUTIME_ID) - begin;
    enum err_code code = rig_apply(rig, copy);
    rig->unpack_ms = 0;
    arena_done(&arena);
    return code;
}

enum err_code rig_configure(struct rig *rig, const Config *config, bool reconfigure, size_t most)
{
    struct config_base base;
    struct config_changes changes;
    enum err_code code = ERR_OK;

    config_base_take(rig->state, &base);
    config_changes_make(&changes, &base, config, reconfigure, most);
    for (size_t i = 0; code == ERR_OK && i < changes.list.len; i++) {
        Command cmd = COMMAND__INIT;
        cmd.what_case = COMMAND__WHAT_CONFIG_CHANGE;
        cmd.config_change = changes.list.items[i];
        code = apply_packed(rig, &cmd);
    }
    config_changes_done(&changes);
    config_base_done(&base);
    return code;
}

void rig_free(struct rig *rig)
{
    sched_free(rig->sched);
    events_done(&rig->events);
    state_free(rig->state);
    free(rig);
}

/* ---- jobs ---- */

enum { COMPONENTS = 8 };

static uint32_t submit_specs(struct rig *rig, uint32_t uid, const JobSpec *const *specs,
                             size_t count)
{
    Command cmd = COMMAND__INIT;
    CmdSubmit submit = CMD_SUBMIT__INIT;
    JobOwner owner = JOB_OWNER__INIT;
    PackedComponent list[COMPONENTS], *components[COMPONENTS];
    uint8_t digest[32] = { 0 };
    uint8_t bytes[COMPONENTS][4096];
    char user[24];

    memcpy(digest, &rig->index, sizeof(rig->index));
    for (size_t i = 0; i < count; i++) {
        size_t len = job_spec__get_packed_size(specs[i]);
        if (len > sizeof(bytes[i]))
            die("job", "too long");
        job_spec__pack(specs[i], bytes[i]);
        components[i] = &list[i];
        packed_component__init(&list[i]);
        SET(&list[i], spec, ((ProtobufCBinaryData){ len, bytes[i] }));
        if (i == 0)
            SET(&list[i], payload_digest, ((ProtobufCBinaryData){ sizeof(digest), digest }));
    }
    SET(&owner, uid, uid);
    SET(&owner, gid, 100);
    snprintf(user, sizeof(user), "u%u", uid);
    owner.user = user;
    owner.group = (char *)"users";
    submit.owner = &owner;
    submit.n_components = count;
    submit.components = components;
    cmd.what_case = COMMAND__WHAT_SUBMIT;
    cmd.submit = &submit;
    if (rig_apply(rig, &cmd) != ERR_OK)
        return 0;
    return rig->events.list.items[rig->events.list.len - 1].job_id;
}

uint32_t rig_submit_spec(struct rig *rig, uint32_t uid, const JobSpec *spec)
{
    return submit_specs(rig, uid, &spec, 1);
}

struct words {
    JobSpec spec;
    uint32_t uid;
    GresRequest gres[4], *list[4];
};

static void read_gres(struct words *words, char *value, GresScope scope)
{
    GresRequest *gres = &words->gres[words->spec.n_gres];
    char *last = strrchr(value, ':');

    gres_request__init(gres);
    SET(gres, count, last ? strtoull(last + 1, NULL, 10) : 1);
    if (last)
        *last = '\0';
    char *type = strchr(value, ':');
    if (type)
        *type++ = '\0';
    gres->name = value;
    gres->type = type;
    SET(gres, scope, scope);
    words->list[words->spec.n_gres++] = gres;
    words->spec.gres = words->list;
}

static const struct {
    const char *word;
    size_t has, field; /* of a uint32 */
} numbers[] = {
#define NUMBER(word, name)                                           \
    {                                                                \
        word, offsetof(JobSpec, has_##name), offsetof(JobSpec, name) \
    }
    NUMBER("n", ntasks),
    NUMBER("c", cpus_per_task),
    NUMBER("tpn", ntasks_per_node),
    NUMBER("tps", ntasks_per_socket),
    NUMBER("tpc", ntasks_per_core),
    NUMBER("prio", priority),
    NUMBER("cpg", cpus_per_gpu),
    NUMBER("mincpus", min_cpus_per_node),
    NUMBER("switches", switches),
    NUMBER("swait", switches_wait_s),
    NUMBER("segment", segment),
    NUMBER("spare", spare_nodes),
    NUMBER("spn", sockets_per_node),
    NUMBER("corespec", core_spec),
    NUMBER("threadspec", thread_spec),
    NUMBER("tpg", ntasks_per_gpu),
#undef NUMBER
};

static const struct {
    const char *word;
    size_t field; /* of a text */
} texts[] = {
    { "p", offsetof(JobSpec, partition) },     { "w", offsetof(JobSpec, nodelist) },
    { "x", offsetof(JobSpec, exclude) },       { "C", offsetof(JobSpec, features) },
    { "prefer", offsetof(JobSpec, prefer) },   { "array", offsetof(JobSpec, array) },
    { "lic", offsetof(JobSpec, licenses) },    { "resv", offsetof(JobSpec, reservation) },
    { "hint", offsetof(JobSpec, hint) },       { "name", offsetof(JobSpec, name) },
    { "dep", offsetof(JobSpec, dependency) },  { "qos", offsetof(JobSpec, qos) },
    { "account", offsetof(JobSpec, account) }, { "tres", offsetof(JobSpec, tres_per_task) },
    { "mcs", offsetof(JobSpec, mcs_label) },
};

static bool read_flag(JobSpec *spec, const char *word)
{
    if (strcmp(word, "ex") == 0)
        SET(spec, exclusive, EXCLUSIVE_NODE);
    else if (strcmp(word, "exuser") == 0)
        SET(spec, exclusive, EXCLUSIVE_USER);
    else if (strcmp(word, "exmcs") == 0)
        SET(spec, exclusive, EXCLUSIVE_MCS);
    else if (strcmp(word, "extopo") == 0)
        SET(spec, exclusive, EXCLUSIVE_TOPO);
    else if (strcmp(word, "bound") == 0)
        SET(spec, enforce_binding, true);
    else if (strcmp(word, "spreadseg") == 0)
        SET(spec, spread_segments, true);
    else if (strcmp(word, "fewnodes") == 0)
        SET(spec, use_min_nodes, true);
    else if (strcmp(word, "share") == 0)
        SET(spec, oversubscribe, true);
    else if (strcmp(word, "contig") == 0)
        SET(spec, contiguous, true);
    else if (strcmp(word, "spread") == 0)
        SET(spec, spread_job, true);
    else if (strcmp(word, "over") == 0)
        SET(spec, overcommit, true);
    else if (strcmp(word, "hold") == 0)
        SET(spec, hold, true);
    else
        return false;
    return true;
}

static bool read_text(JobSpec *spec, const char *word, char *value)
{
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (strcmp(texts[i].word, word) == 0) {
            *(char **)((char *)spec + texts[i].field) = value;
            return true;
        }
    }
    return false;
}

static bool read_number(JobSpec *spec, const char *word, const char *value)
{
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        if (strcmp(numbers[i].word, word) == 0) {
            *(protobuf_c_boolean *)((char *)spec + numbers[i].has) = true;
            *(uint32_t *)((char *)spec + numbers[i].field) = (uint32_t)strtoul(value, NULL, 10);
            return true;
        }
    }
    return false;
}

static void read_word(struct words *words, char *word)
{
    char *value = strchr(word, '=');
    JobSpec *spec = &words->spec;

    if (!value) {
        if (!read_flag(spec, word))
            die("job", word);
        return;
    }
    *value++ = '\0';
    if (strcmp(word, "N") == 0) {
        char *end;
        SET(spec, min_nodes, (uint32_t)strtoul(value, &end, 10));
        SET(spec, max_nodes, *end == '-' ? (uint32_t)strtoul(end + 1, NULL, 10) : spec->min_nodes);
        if (!spec->max_nodes)
            spec->has_max_nodes = false;
    } else if (strcmp(word, "t") == 0) {
        SET(spec, time_limit_s, strcmp(value, "inf") == 0 ? -1 : strtoll(value, NULL, 10));
    } else if (strcmp(word, "mem") == 0) {
        SET(spec, mem_per_node_mb, strtoull(value, NULL, 10));
    } else if (strcmp(word, "mpc") == 0) {
        SET(spec, mem_per_cpu_mb, strtoull(value, NULL, 10));
    } else if (strcmp(word, "nice") == 0) {
        SET(spec, nice, (int32_t)strtol(value, NULL, 10));
    } else if (strcmp(word, "uid") == 0) {
        words->uid = (uint32_t)strtoul(value, NULL, 10);
    } else if (strcmp(word, "gres") == 0) {
        read_gres(words, value, GRES_PER_NODE);
    } else if (strcmp(word, "gpt") == 0) {
        read_gres(words, value, GRES_PER_TASK);
    } else if (strcmp(word, "gps") == 0) {
        read_gres(words, value, GRES_PER_SOCKET);
    } else if (strcmp(word, "gpus") == 0) {
        read_gres(words, value, GRES_PER_JOB);
    } else if (!read_text(spec, word, value) && !read_number(spec, word, value)) {
        die("job", word);
    }
}

static void blank_words(struct words *words)
{
    *words = (struct words){ .spec = JOB_SPEC__INIT, .uid = 1000 };
    words->spec.name = (char *)"job";
    words->spec.work_dir = (char *)"/";
    SET(&words->spec, batch, true);
    SET(&words->spec, time_limit_s, 3600);
}

/* Reads the components; how many. `copy` holds their texts. */
static size_t read_job(struct words *words, const JobSpec **specs, char *copy)
{
    char *save = NULL;
    size_t last = 0;

    blank_words(&words[0]);
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        if (strcmp(word, ":") != 0) {
            read_word(&words[last], word);
            continue;
        }
        if (++last == COMPONENTS)
            die("job", "too many components");
        blank_words(&words[last]);
        SET(&words[last].spec, batch, false);
    }
    for (size_t i = 0; i <= last; i++)
        specs[i] = &words[i].spec;
    return last + 1;
}

uint32_t rig_submit(struct rig *rig, const char *text)
{
    struct words words[COMPONENTS];
    const JobSpec *specs[COMPONENTS];
    char *copy = mem_strdup(text);
    size_t count = read_job(words, specs, copy);
    uint32_t id = submit_specs(rig, words[0].uid, specs, count);

    free(copy);
    return id;
}

enum err_code rig_admit(struct rig *rig, const char *text)
{
    struct words words[COMPONENTS];
    const JobSpec *specs[COMPONENTS];
    char *copy = mem_strdup(text);
    size_t count = read_job(words, specs, copy);
    JobOwner owner = JOB_OWNER__INIT;
    struct err err = { 0 };

    SET(&owner, uid, words[0].uid);
    owner.user = (char *)"u";
    int code = core_admit_submit(rig->state, &owner, specs, count, rig->now_us, &err);
    free(copy);
    return (enum err_code) - code;
}

int64_t rig_test(struct rig *rig, const char *text)
{
    struct words words[COMPONENTS];
    const JobSpec *specs[COMPONENTS];
    char *copy = mem_strdup(text);
    size_t count = read_job(words, specs, copy);
    JobOwner owner = JOB_OWNER__INIT;
    struct explanation about;
    struct arena arena;
    struct err err = { 0 };

    SET(&owner, uid, words[0].uid);
    owner.user = (char *)"u";
    for (size_t i = 0; i < count; i++) {
        if (!words[i].spec.partition)
            words[i].spec.partition = state_default_partition(rig->state)->spec->name;
    }
    arena_init(&arena);
    if (sched_test(rig->sched, &owner, specs, count, rig->now_us, &arena, &about, &err) < 0)
        die("test", err.text);
    arena_done(&arena);
    free(copy);
    return about.never ? INT64_MAX : about.planned_start_us;
}

/* ---- planning ---- */

size_t rig_slice(struct rig *rig, bool *more)
{
    VEC(CmdStart *) starts = { 0 };
    if (rig->turn)
        rig->turn();
    double cpu = now_ms(CLOCK_THREAD_CPUTIME_ID), begin = now_ms(CLOCK_MONOTONIC);
    const struct plan *plan = sched_plan(rig->sched, rig->now_us, rig->budget);
    rig->plan_ms += now_ms(CLOCK_MONOTONIC) - begin;
    double took = now_ms(CLOCK_THREAD_CPUTIME_ID) - cpu;
    size_t count = plan->count;

    rig->slice_ms = took > rig->slice_ms ? took : rig->slice_ms;
    *more = plan->more;
    for (size_t i = 0; i < count; i++)
        vec_push(&starts, plan->starts[i]);
    for (size_t i = 0; i < count; i++) {
        Command cmd = COMMAND__INIT;
        cmd.what_case = COMMAND__WHAT_START;
        cmd.start = starts.items[i];
        if ((rig->watch ? apply_packed(rig, &cmd) : rig_apply(rig, &cmd)) == ERR_OK)
            rig->started += starts.items[i]->n_starts;
        else
            rig->refused++;
    }
    vec_done(&starts);
    for (size_t i = 0; i < plan->preempt_count; i++) {
        Command cmd = COMMAND__INIT;
        cmd.what_case = COMMAND__WHAT_PREEMPT;
        cmd.preempt = plan->preempts[i];
        if (rig_apply(rig, &cmd) == ERR_OK)
            rig->preempts++;
        else
            rig->refused++;
    }
    return count;
}

size_t rig_plan(struct rig *rig)
{
    size_t total = 0;
    bool more;

    for (;;) {
        uint64_t preempts = rig->preempts;
        size_t count = rig_slice(rig, &more);
        total += count;
        if (!count && !more && rig->preempts == preempts)
            return total;
    }
}

void rig_end(struct rig *rig, uint32_t job_id)
{
    const struct job *job = state_job(rig->state, job_id);
    Command cmd = COMMAND__INIT;
    CmdFinish msg = CMD_FINISH__INIT;

    if (!job || !job->run)
        die("end", "the job does not run");
    char **names = NEW_ARRAY(char *, job->run->count);
    for (unsigned i = 0; i < job->run->count; i++)
        names[i] = (char *)(uintptr_t)job->run->parts[i].name;
    SET(&msg, job_id, job_id);
    SET(&msg, attempt, job->attempt);
    SET(&msg, exit_status, 0);
    msg.n_released = job->run->count;
    msg.released = names;
    cmd.what_case = COMMAND__WHAT_FINISH;
    cmd.finish = &msg;
    enum err_code code = rig_apply(rig, &cmd);
    free(names);
    if (code != ERR_OK)
        die("end", err_text(code));
}

void rig_release(struct rig *rig, uint32_t job_id)
{
    const struct job *job = state_job(rig->state, job_id);
    Command cmd = COMMAND__INIT;
    CmdRelease msg = CMD_RELEASE__INIT;

    if (!job || !job->run)
        die("release", "the job holds nothing");
    char **names = NEW_ARRAY(char *, job->run->count);
    for (unsigned i = 0; i < job->run->count; i++)
        names[i] = (char *)(uintptr_t)job->run->parts[i].name;
    SET(&msg, job_id, job_id);
    SET(&msg, attempt, job->attempt);
    msg.n_nodes = job->run->count;
    msg.nodes = names;
    cmd.what_case = COMMAND__WHAT_RELEASE;
    cmd.release = &msg;
    enum err_code code = rig_apply(rig, &cmd);
    free(names);
    if (code != ERR_OK)
        die("release", err_text(code));
}

void rig_release_all(struct rig *rig)
{
    for (size_t n = 0; n < state_node_count(rig->state); n++) {
        const struct node *node = state_node_at(rig->state, n);
        for (size_t i = 0; i < node->jobs.len;) {
            const struct job *job = node->jobs.items[i];
            bool ends = job_has_ended(job) || job->flags & JOB_FLAG_COMPLETING;
            if (ends)
                rig_release(rig, job->id);
            i = ends ? 0 : i + 1;
        }
    }
}

void rig_cancel(struct rig *rig, uint32_t job_id)
{
    Command cmd = COMMAND__INIT;
    CmdCancel msg = CMD_CANCEL__INIT;
    JobSelect jobs = JOB_SELECT__INIT;

    jobs.n_job_ids = 1;
    jobs.job_ids = &job_id;
    msg.jobs = &jobs;
    cmd.what_case = COMMAND__WHAT_CANCEL;
    cmd.cancel = &msg;
    rig_apply(rig, &cmd);
}

void rig_node(struct rig *rig, const char *name, const char *state)
{
    Command cmd = COMMAND__INIT;
    CmdUpdateNode msg = CMD_UPDATE_NODE__INIT;
    char *names[1] = { (char *)(uintptr_t)name };

    msg.n_nodes = 1;
    msg.nodes = names;
    msg.state = (char *)(uintptr_t)state;
    msg.reason = (char *)"test";
    cmd.what_case = COMMAND__WHAT_UPDATE_NODE;
    cmd.update_node = &msg;
    if (rig_apply(rig, &cmd) != ERR_OK)
        die(name, state);
}

void rig_partition(struct rig *rig, const char *name, int64_t max_time_s)
{
    Command cmd = COMMAND__INIT;
    CmdPartition msg = CMD_PARTITION__INIT;
    PartitionSpec spec = PARTITION_SPEC__INIT;

    spec.name = (char *)(uintptr_t)name;
    SET(&spec, max_time_s, max_time_s);
    msg.change = &spec;
    cmd.what_case = COMMAND__WHAT_PARTITION;
    cmd.partition = &msg;
    if (rig_apply(rig, &cmd) != ERR_OK)
        die(name, "is not changed");
}

void rig_reserve(struct rig *rig, const char *name, const char *nodes, int64_t in_s, bool change)
{
    Command cmd = COMMAND__INIT;
    CmdReservation msg = CMD_RESERVATION__INIT;
    ReservationSpec spec = RESERVATION_SPEC__INIT;
    char *users[1] = { (char *)"u1" }, *flags[1] = { (char *)"IGNORE_JOBS" };

    spec.name = (char *)(uintptr_t)name;
    spec.nodes = (char *)(uintptr_t)nodes;
    spec.users = users;
    spec.n_users = 1;
    spec.flags = flags;
    spec.n_flags = 1;
    SET(&spec, start_us, rig->now_us + in_s * 1000000);
    SET(&spec, duration_s, 3600);
    msg.change = &spec;
    SET(&msg, create, !change);
    cmd.what_case = COMMAND__WHAT_RESERVATION;
    cmd.reservation = &msg;
    if (rig_apply(rig, &cmd) != ERR_OK)
        die(name, rig->events.list.items[rig->events.list.len - 1].text);
}

void rig_wait(struct rig *rig, int64_t seconds)
{
    Command cmd = COMMAND__INIT;
    CmdTime msg = CMD_TIME__INIT;

    rig->now_us += seconds * 1000000;
    cmd.what_case = COMMAND__WHAT_TIME;
    cmd.time = &msg;
    rig_apply(rig, &cmd);
}

const struct job *rig_job(const struct rig *rig, uint32_t id)
{
    return state_job(rig->state, id);
}

bool rig_runs(const struct rig *rig, uint32_t id)
{
    const struct job *job = state_job(rig->state, id);

    return job && job->state == JOB_RUNNING;
}

const char *rig_where(const struct rig *rig, uint32_t id)
{
    static struct str text;
    const struct job *job = state_job(rig->state, id);

    str_clear(&text);
    for (unsigned i = 0; job && job->run && i < job->run->count; i++) {
        const struct job_part *part = &job->run->parts[i];
        str_addf(&text, "%s%s:", i ? ";" : "", part->name);
        bitset_format(&part->cpu_ids, &text);
        for (size_t g = 0; g < part->gres_count; g++) {
            str_addf(&text, " %s=", part->gres[g].name);
            if (part->gres[g].index.words)
                bitset_format(&part->gres[g].index, &text);
            else
                str_addf(&text, "%llu", (unsigned long long)part->gres[g].count);
        }
    }
    return str_text(&text);
}
