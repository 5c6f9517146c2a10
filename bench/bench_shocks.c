/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_shocks.c - what happens rarely and touches everything: how long it holds up the loop
 *
 * Each row happens as the controller does it: in commands of its size, with CmdTime while something
 * is due, and in slices of the planner of its size until nothing is left to do. What the loop cannot
 * put down is one command (core applies it, the planner is fed) and one slice: the longest of each.
 */
#include "bench_shocks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench_load.h"
#include "bench_wide.h"
#include "schema/conf.h"

#define PUT(message, field, value)     \
    do {                               \
        (message)->has_##field = true; \
        (message)->field = (value);    \
    } while (0)

enum {
    MANY = 100000,         /* jobs that something happens to at once */
    FREED = 50,            /* jobs that end before it: there is room for others */
    IDS_PER_COMMAND = 200, /* as ctl_many.c */
    PLAN_BUDGET = 512,     /* as ctl_plan.c, at most */
    GOAL_MS = 5,
};

static void die(const char *what)
{
    fprintf(stderr, "bench-sched: %s\n", what);
    exit(1);
}

/* ---- partitions, configurations, reservations, nodes ---- */

static void change_partition(struct load *load)
{
    rig_partition(load->rig, "main", INT64_C(86400) * 365);
}

static void change_partition_spec(struct load *load, PartitionSpec *spec)
{
    Command cmd = COMMAND__INIT;
    CmdPartition msg = CMD_PARTITION__INIT;

    spec->name = (char *)"main";
    msg.change = spec;
    cmd.what_case = COMMAND__WHAT_PARTITION;
    cmd.partition = &msg;
    if (rig_apply(load->rig, &cmd) != ERR_OK)
        die("the partition is not changed");
}

static void partition_qos(struct load *load)
{
    PartitionSpec spec = PARTITION_SPEC__INIT;

    spec.qos = (char *)"normal";
    change_partition_spec(load, &spec);
}

static void partition_billing(struct load *load)
{
    PartitionSpec spec = PARTITION_SPEC__INIT;

    spec.tres_billing_weights = (char *)"cpu=1.5,gres/gpu=3";
    change_partition_spec(load, &spec);
}

static void configure(struct load *load, const char *toml)
{
    CLEANUP(conf_freep) struct conf *conf = conf_read("shock", toml, strlen(toml), NULL);
    Command cmd = COMMAND__INIT;
    CmdConfig msg = CMD_CONFIG__INIT;

    if (!conf_config(conf))
        die("no configuration");
    msg.config = (Config *)(uintptr_t)conf_config(conf);
    PUT(&msg, reconfigure, true);
    cmd.what_case = COMMAND__WHAT_CONFIG;
    cmd.config = &msg;
    if (rig_apply(load->rig, &cmd) != ERR_OK)
        die("the configuration is not taken");
}

static void reconfigure(struct load *load)
{
    configure(load, str_text(&load->toml));
}

/* With these lines more at the end. */
static void configure_more(struct load *load, const char *more)
{
    str_add(&load->toml, more);
    reconfigure(load);
}

static void add_nodes(struct load *load)
{
    configure_more(load, "[[nodes]]\nnames = \"new[1-100]\"\ncpus = 64\nmemory_mb = 256000\n");
}

static void change_qos(struct load *load)
{
    configure_more(load, "[[qos]]\nname = \"extra\"\nmax_tres_per_user = \"cpu=99\"\n");
}

/* Every user may run twice as much. */
static void raise_limits(struct load *load)
{
    char *at = strstr(load->toml.data, "cpu=40000");

    if (at)
        memcpy(at, "cpu=80000", 9);
    for (at = load->toml.data; (at = strstr(at, "max_jobs = ")); at++)
        at[11] = '9';
    reconfigure(load);
}

/* What administrators do on any day. */
static void add_user(struct load *load)
{
    configure_more(load, "[[users]]\nname = \"new\"\naccount = \"a1\"\nmax_jobs = 9\n");
}

static void change_share(struct load *load)
{
    static const char *const user = "name = \"u77\"\n";
    struct str toml = { 0 };
    char *at = strstr(load->toml.data, user);

    if (!at)
        die("there is no such user");
    str_add_len(&toml, load->toml.data, (size_t)(at - load->toml.data));
    str_add(&toml, "fairshare = 7\n");
    str_add(&toml, at);
    str_done(&load->toml);
    load->toml = toml;
    reconfigure(load);
}

/* Without the sections that have one of these lines. */
static void configure_less(struct load *load, const char *line, const char *other)
{
    struct str toml = { 0 };

    for (char *at = load->toml.data, *end; *at; at = end) {
        end = strstr(at + 1, "\n[");
        end = end ? end + 1 : at + strlen(at);
        char kept = *end;
        *end = '\0';
        if (!strstr(at, line) && !strstr(at, other))
            str_add(&toml, at);
        *end = kept;
    }
    str_done(&load->toml);
    load->toml = toml;
    reconfigure(load);
}

static void remove_user(struct load *load)
{
    configure_less(load, "name = \"new\"\n", "name = \"new\"\n");
}

static void remove_account(struct load *load)
{
    configure_less(load, "name = \"a7\"\n", "account = \"a7\"\n");
}

static void remove_qos(struct load *load)
{
    configure_less(load, "name = \"extra\"\n", "name = \"extra\"\n");
}

static void change_licences(struct load *load)
{
    configure_more(load, "[licenses]\nmatlab = 10\n");
}

static void make_reservation(struct load *load)
{
    rig_reserve(load->rig, "maint", "c[1-6000],g[1-4000]", 3600, false);
}

static void change_reservation(struct load *load)
{
    rig_reserve(load->rig, "maint", "c[1-3000]", 3600, true);
}

static void reservation_begins(struct load *load)
{
    rig_wait(load->rig, 3601);
}

static void reservation_ends(struct load *load)
{
    rig_wait(load->rig, 3601);
}

static void each_node(struct rig *rig, const char *state)
{
    for (unsigned i = 1; i <= 2000; i++) {
        char name[16];
        snprintf(name, sizeof(name), "c%u", i);
        rig_node(rig, name, state);
    }
}

static void drain_nodes(struct load *load)
{
    each_node(load->rig, "DRAIN");
}

static void resume_nodes(struct load *load)
{
    each_node(load->rig, "RESUME");
}

static void node_down(struct load *load)
{
    Command cmd = COMMAND__INIT;
    CmdNodeDown msg = CMD_NODE_DOWN__INIT;

    msg.node = (char *)"c1";
    PUT(&msg, jobs_lost, true);
    cmd.what_case = COMMAND__WHAT_NODE_DOWN;
    cmd.node_down = &msg;
    rig_apply(load->rig, &cmd);
}

/* ---- priorities ---- */

static void priority_turn(struct load *load)
{
    rig_wait(load->rig, 86400);
}

/* ---- many jobs at once ---- */

static uint32_t first_waiting(const struct rig *rig, uint32_t from)
{
    const struct job *job = state_job_from(rig->state, from);

    while (job && job->state != JOB_PENDING)
        job = state_job_from(rig->state, (uint64_t)job->id + 1);
    return job ? job->id : 0;
}

static void cancel_ids(struct rig *rig, uint32_t *ids, size_t count)
{
    Command cmd = COMMAND__INIT;
    CmdCancel msg = CMD_CANCEL__INIT;
    JobSelect jobs = JOB_SELECT__INIT;

    jobs.n_job_ids = count;
    jobs.job_ids = ids;
    PUT(&jobs, alone, true);
    msg.jobs = &jobs;
    cmd.what_case = COMMAND__WHAT_CANCEL;
    cmd.cancel = &msg;
    if (rig_apply(rig, &cmd) != ERR_OK)
        die("nothing is cancelled");
}

static void cancel_many(struct load *load)
{
    uint32_t ids[IDS_PER_COMMAND], at = 1;

    for (size_t done = 0; done < MANY; done += IDS_PER_COMMAND) {
        size_t count = 0;
        while (count < IDS_PER_COMMAND && (at = first_waiting(load->rig, at)))
            ids[count++] = at++;
        if (count)
            cancel_ids(load->rig, ids, count);
    }
}

/* They were cancelled a moment ago: MinJobAge has passed for all of them. */
static void forget_many(struct load *load)
{
    rig_wait(load->rig, 10);
}

static uint32_t update(struct load *load, uint32_t id, const char *tasks, JobSpec *change, int hold)
{
    Command cmd = COMMAND__INIT;
    CmdUpdateJob msg = CMD_UPDATE_JOB__INIT;
    JobSelect jobs = JOB_SELECT__INIT;

    jobs.n_job_ids = 1;
    jobs.job_ids = &id;
    jobs.array_tasks = (char *)(uintptr_t)tasks;
    msg.jobs = &jobs;
    msg.change = change;
    PUT(&msg, by_admin, true);
    if (hold >= 0)
        PUT(&msg, hold, (uint32_t)hold);
    cmd.what_case = COMMAND__WHAT_UPDATE_JOB;
    cmd.update_job = &msg;
    if (rig_apply(load->rig, &cmd) != ERR_OK)
        die("the job is not changed");
    return id;
}

/* They are of the QOS that is added, and that is removed after. */
static void use_qos(struct load *load)
{
    JobSpec change = JOB_SPEC__INIT;
    uint32_t at = 1;

    change.qos = (char *)"extra";
    for (size_t done = 0; done < MANY / 5 && (at = first_waiting(load->rig, at)); done++)
        update(load, at++, NULL, &change, -1);
}

static uint32_t the_array;

static void array_submit(struct load *load)
{
    the_array = rig_submit(load->rig, "c=1 t=600 uid=1 array=0-99999 nice=1000");
    if (!the_array)
        die("the array is refused");
}

static void array_hold(struct load *load)
{
    update(load, the_array, NULL, NULL, 2);
}

static void array_release(struct load *load)
{
    update(load, the_array, NULL, NULL, 0);
}

static void array_update(struct load *load)
{
    JobSpec change = JOB_SPEC__INIT;

    PUT(&change, nice, 500);
    update(load, the_array, NULL, &change, -1);
}

/* Each task becomes a record: something is said about it alone. */
static void array_split(struct load *load)
{
    for (unsigned i = 0; i < MANY / 2; i += IDS_PER_COMMAND) {
        char tasks[40];
        snprintf(tasks, sizeof(tasks), "%u-%u", i, i + IDS_PER_COMMAND - 1);
        update(load, the_array, tasks, NULL, 2);
    }
}

/* As ctl_many.c does it: the array's own record first, then those of its tasks. */
static void array_cancel(struct load *load)
{
    uint32_t ids[IDS_PER_COMMAND], at = the_array + 1;

    cancel_ids(load->rig, &the_array, 1);
    for (size_t done = 0; done < MANY / 2; done += IDS_PER_COMMAND) {
        size_t count = 0;
        while (count < IDS_PER_COMMAND && (at = first_waiting(load->rig, at)))
            ids[count++] = at++;
        if (count)
            cancel_ids(load->rig, ids, count);
    }
}

static uint32_t the_first;

static void depend_submit(struct load *load)
{
    char words[80];

    the_first = rig_submit(load->rig, "c=1 t=600 uid=1 hold");
    snprintf(words, sizeof(words), "c=1 t=600 uid=1 dep=afterany:%u", the_first);
    for (unsigned i = 0; i < MANY; i++) {
        if (!rig_submit(load->rig, words))
            die("a job that depends on another is refused");
    }
}

static void depend_release(struct load *load)
{
    rig_cancel(load->rig, the_first);
}

/* With a dependency, many times; `first` is what they are named like, or NULL. */
static void submit_waiting(struct load *load, const char *name, const char *dependency, bool kill)
{
    JobSpec spec = JOB_SPEC__INIT;

    spec.name = (char *)(uintptr_t)name;
    spec.work_dir = (char *)"/";
    spec.dependency = (char *)(uintptr_t)dependency;
    PUT(&spec, batch, true);
    PUT(&spec, time_limit_s, 600);
    if (kill)
        PUT(&spec, kill_on_invalid_dep, true);
    for (unsigned i = 0; i < MANY; i++) {
        if (!rig_submit_spec(load->rig, 1, &spec))
            die("a job that depends on another is refused");
    }
}

static void killed_submit(struct load *load)
{
    char dependency[40];

    the_first = rig_submit(load->rig, "c=1 t=600 uid=1 hold");
    snprintf(dependency, sizeof(dependency), "afterok:%u", the_first);
    submit_waiting(load, "killed", dependency, true);
}

static void singleton_submit(struct load *load)
{
    submit_waiting(load, "alone", "singleton", false);
    the_first = (uint32_t)(state_head(load->rig->state).next_job_id - MANY);
}

/* The next one may start now, and so on; these wait for nobody else. */
static void singleton_release(struct load *load)
{
    for (unsigned i = 0; i < 100; i++)
        rig_cancel(load->rig, the_first + i);
}

/* Each waits for the one before. */
static void chain_submit(struct load *load)
{
    char words[80];
    uint32_t id = rig_submit(load->rig, "c=1 t=600 uid=1 hold");

    for (unsigned i = 0; i < 3 * MANY; i++) {
        snprintf(words, sizeof(words), "c=1 t=600 uid=1 dep=afterok:%u", id);
        id = rig_submit(load->rig, words);
        if (!id)
            die("a job that depends on another is refused");
    }
}

static void twins_submit(struct load *load)
{
    char words[80];

    the_first = rig_submit(load->rig, "c=1 t=600 uid=1 array=0-99999 hold");
    snprintf(words, sizeof(words), "c=1 t=600 uid=1 array=0-99999 dep=aftercorr:%u", the_first);
    if (!rig_submit(load->rig, words))
        die("an array that depends on another is refused");
}

static void begin_submit(struct load *load)
{
    JobSpec spec = JOB_SPEC__INIT;

    spec.name = (char *)"later";
    spec.work_dir = (char *)"/";
    PUT(&spec, batch, true);
    PUT(&spec, time_limit_s, 600);
    PUT(&spec, begin_us, load->rig->now_us + 60 * US_PER_S);
    for (unsigned i = 0; i < MANY; i++) {
        if (!rig_submit_spec(load->rig, 1, &spec))
            die("a job that begins later is refused");
    }
}

static void begin_now(struct load *load)
{
    rig_wait(load->rig, 120);
}

/* ---- preemption ---- */

static void preempt_one(struct load *load)
{
    rig_submit(load->rig, "p=high c=16 gres=gpu:h100:4 t=600 uid=1");
}

static void preempt_wide(struct load *load)
{
    rig_submit(load->rig, "p=high N=200 ex t=600 uid=1");
}

/* All components at once, on other nodes each. */
static void preempt_het(struct load *load)
{
    rig_submit(load->rig,
               "p=high N=100 ex t=600 uid=1 : p=high N=100 ex gres=gpu:h100:8 t=600 uid=1");
}

/* They must wait behind nobody; when they can start is worked out over all nodes. */
static void book_het(struct load *load)
{
    rig_submit(load->rig,
               "p=first N=2000 ex t=600 uid=1 : p=first N=1000 ex gres=gpu:h100:8 t=600 uid=1");
}

/* ---- the table ---- */

enum { PLAIN = 1, LIMITED = 2, PREEMPTS = 4, WIDE = 8, TREE = 16, BOTH = PLAIN | LIMITED };
enum { ROOM = 32 }; /* some jobs have just ended: how soon do others start in their place? */

/* In this order: some go on from what happened before them. */
static const struct {
    const char *name;
    void (*happen)(struct load *load);
    unsigned in;
} shocks[] = {
    { "slices.partition", change_partition, BOTH | ROOM },
    { "slices.part_qos", partition_qos, BOTH | ROOM },
    { "slices.part_billing", partition_billing, BOTH | ROOM },
    { "slices.reconfigure", reconfigure, BOTH | ROOM },
    { "slices.nodes_added", add_nodes, BOTH | ROOM },
    { "slices.qos_added", change_qos, BOTH | ROOM },
    { "slices.limits_raised", raise_limits, LIMITED | ROOM },
    { "slices.qos_used", use_qos, LIMITED },
    { "slices.qos_removed", remove_qos, LIMITED | ROOM },
    { "slices.user_added", add_user, LIMITED | ROOM },
    { "slices.user_removed", remove_user, LIMITED | ROOM },
    { "slices.share_changed", change_share, LIMITED | ROOM },
    { "slices.acct_removed", remove_account, LIMITED | ROOM },
    { "slices.licences", change_licences, BOTH | ROOM },
    { "slices.priority_turn", priority_turn, LIMITED },
    { "slices.resv_create", make_reservation, BOTH },
    { "slices.resv_change", change_reservation, BOTH },
    { "slices.resv_begins", reservation_begins, BOTH },
    { "slices.resv_ends", reservation_ends, BOTH },
    { "slices.drain_2000", drain_nodes, BOTH },
    { "slices.resume_2000", resume_nodes, BOTH },
    { "slices.node_down", node_down, BOTH },
    { "slices.cancel_1e5", cancel_many, BOTH },
    { "slices.forget_1e5", forget_many, BOTH },
    { "slices.array_submit", array_submit, PLAIN },
    { "slices.array_hold", array_hold, PLAIN },
    { "slices.array_release", array_release, PLAIN },
    { "slices.array_update", array_update, PLAIN },
    { "slices.array_split", array_split, PLAIN },
    { "slices.array_cancel", array_cancel, PLAIN },
    { "slices.depend_submit", depend_submit, PLAIN },
    { "slices.depend_1e5", depend_release, PLAIN },
    { "slices.killed_submit", killed_submit, PLAIN },
    { "slices.killed_1e5", depend_release, PLAIN },
    { "slices.single_submit", singleton_submit, PLAIN },
    { "slices.single_100", singleton_release, PLAIN },
    { "slices.twins_submit", twins_submit, PLAIN },
    { "slices.twins_1e5", depend_release, PLAIN },
    { "slices.begin_submit", begin_submit, PLAIN },
    { "slices.begin_1e5", begin_now, PLAIN },
    { "slices.chain_submit", chain_submit, PLAIN },
    { "slices.preempt_1", preempt_one, PREEMPTS },
    { "slices.preempt_200", preempt_wide, PREEMPTS },
    { "slices.preempt_het", preempt_het, PREEMPTS },
    { "slices.book_het", book_het, PREEMPTS },
    { "slices.wide_before", wide_before, WIDE },
    { "slices.wide_het3", wide_het3, WIDE },
    { "slices.wide_all", wide_all, WIDE },
    { "slices.wide_uneven", wide_uneven, WIDE },
    { "slices.wide_contig", wide_contig, WIDE },
    { "slices.wide_named", wide_named, WIDE },
    { "slices.wide_either", wide_either, WIDE },
    { "slices.wide_features", wide_features, WIDE },
    { "slices.wide_explain", wide_explain, WIDE },
    { "slices.wide_start", wide_start, WIDE },
    { "slices.wide_test", wide_test, WIDE },
    { "slices.tree_before", wide_before, TREE },
    { "slices.tree_switch", wide_switch, TREE },
    { "slices.tree_leaves", wide_leaves, TREE },
    { "slices.tree_het3", wide_het3, TREE },
    { "slices.tree_explain", wide_explain, TREE },
    { "slices.tree_start", wide_start, TREE },
    { "slices.tree_test", wide_test, TREE },
};

/* As the controller: what is due, then a slice, until there is neither. */
static unsigned go_on(struct rig *rig, double *first_ms)
{
    uint64_t preempts = rig->preempts, started = rig->started;
    unsigned slices = 0;
    bool more = true, due = true;

    for (; more || due || rig->preempts != preempts; slices++) {
        preempts = rig->preempts;
        due = core_next_due(rig->state) <= rig->now_us;
        if (due)
            rig_wait(rig, 0);
        rig_slice(rig, &more);
        if (*first_ms < 0 && rig->started != started)
            *first_ms = rig->core_ms + rig->feed_ms + rig->plan_ms;
    }
    return slices;
}

static void end_some(struct rig *rig)
{
    const struct job *job = state_job_from(rig->state, 1);

    for (unsigned ended = 0; job && ended < FREED;
         job = state_job_from(rig->state, (uint64_t)job->id + 1)) {
        if (job->state != JOB_RUNNING)
            continue;
        rig_end(rig, job->id);
        ended++;
    }
}

static bool print_one(struct load *load, size_t i)
{
    struct rig *rig = load->rig;
    const struct setting *of = load->of;
    char first[24] = "-";
    double first_ms = -1;

    if (shocks[i].in & ROOM)
        end_some(rig);
    rig->slice_ms = rig->fed_ms = rig->applied_ms = rig->core_ms = rig->plan_ms = rig->feed_ms = 0;
    shocks[i].happen(load);
    unsigned slices = go_on(rig, &first_ms);
    if (shocks[i].in & ROOM && first_ms >= 0)
        snprintf(first, sizeof(first), "%.1f", first_ms);
    /* A question about so many nodes is answered by a copy of the controller: ctl_aside.c. */
    bool aside = shocks[i].happen == wide_explain || shocks[i].happen == wide_test;
    bool over = !aside && (rig->applied_ms + rig->fed_ms > GOAL_MS || rig->slice_ms > GOAL_MS);
    printf("%-20s %8u %6u %10.2f %8.2f %8.2f %8u %8s %9.0f %9.0f%s%s\n", shocks[i].name, of->jobs,
           of->nodes, rig->applied_ms, rig->fed_ms, rig->slice_ms, slices, first,
           rig->plan_ms + rig->feed_ms, rig->core_ms, of->limits ? "  limits" : "",
           over    ? "  OVER 5 ms"
           : aside ? "  by a copy, not in the loop"
                   : "");
    fflush(stdout);
    return over;
}

static unsigned is_in(const struct setting *of)
{
    if (of->wide)
        return of->switches ? TREE : WIDE;
    return of->limits ? LIMITED : of->preempts ? PREEMPTS : PLAIN;
}

static unsigned run_shocks(const struct setting *of, const char *only)
{
    unsigned in = is_in(of), over = 0, rows = 0;
    struct load load;

    for (size_t i = 0; i < ARRAY_LEN(shocks); i++)
        rows += (shocks[i].in & in) && strncmp(shocks[i].name, only, strlen(only)) == 0;
    if (!rows)
        return 0;
    load_begin(&load, of);
    load_fill(&load);
    load.rig->budget = PLAN_BUDGET;
    rig_plan(load.rig);
    load.rig->watch = true;
    for (size_t i = 0; i < ARRAY_LEN(shocks); i++) {
        if ((shocks[i].in & in) && strncmp(shocks[i].name, only, strlen(only)) == 0)
            over += print_one(&load, i);
    }
    load_done(&load);
    return over;
}

static const struct setting shocked[] = {
    { "slices", 1000000, 10000, 100, 100, 8 },
    { "slices", 1000000, 10000, 100, 2000, 200, .limits = true },
    { "slices", 1000000, 10000, 100, 100, 8, .preempts = true },
    { "slices", 1000000, 10000, 100, 100, 8, .bookings = 80, .wide = true },
    { "slices", 1000000, 10000, 100, 100, 8, .bookings = 80, .wide = true, .switches = true },
};

unsigned shocks_print(const char *only, unsigned jobs)
{
    const char *users = getenv("SHOCK_USERS"); /* with limits */
    unsigned over = 0;

    printf("%-20s %8s %6s %10s %8s %8s %8s %8s %9s %9s\n", "sched", "jobs", "nodes", "command ms",
           "feed ms", "slice ms", "slices", "first ms", "all ms", "core ms");
    for (size_t i = 0; i < ARRAY_LEN(shocked); i++) {
        struct setting of = shocked[i];
        if (jobs)
            of.jobs = jobs;
        if (users && of.limits)
            of.users = (unsigned)atoi(users);
        over += run_shocks(&of, only);
    }
    return over;
}
