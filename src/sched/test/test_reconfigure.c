/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_reconfigure.c - a planner that follows changes of the configuration, held against one made anew
 *
 * Limits, users, accounts, QOS, partitions and nodes change while jobs come, end and are cancelled,
 * with so small slices that what follows from a change takes many of them. After each step core and
 * planner check all their invariants, and core never refuses a start. Now and then two planners are
 * asked for all starts: the one that lived through everything, and one that knows nothing but the
 * state. They must name the same jobs.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "sched/limit/limit_counter.h"
#include "sched/plan.h"
#include "sched/sched_check.h"
#include "sched/test/rig.h"
#include "schema/conf.h"
#include "test/unit.h"

enum { USERS = 6, ACCOUNTS = 3, QOSES = 3, PARTS = 3, KINDS = 3, EXTRAS = 4 };

static uint64_t seed, first_seed;

static uint32_t dice(uint32_t sides)
{
    seed = hash_mix(seed + UINT64_C(0x9e3779b97f4a7c15));
    return (uint32_t)(seed >> 33) % sides;
}

/* ---- a configuration that changes ---- */

struct site {
    struct {
        bool gone;
        uint32_t account, jobs, cpus, share;
    } users[USERS];
    struct {
        bool gone, below; /* below the first one */
        uint32_t jobs, cpus;
    } accounts[ACCOUNTS];
    struct {
        bool gone, part_time, preempts;
        uint32_t jobs, cpus_per_user, priority;
    } qos[QOSES];
    struct {
        bool gone, down, exclusive, deny;
        uint32_t tier, hours, qos, bookings, kinds, billing;
    } parts[PARTS];
    struct {
        bool feature;
        uint32_t weight, cpus;
    } kinds[KINDS];
    uint32_t kill_wait, extra[EXTRAS]; /* nodes before, between and after the others */
    bool preempt, prio;
};

static void bound(struct str *toml, const char *format, uint32_t value)
{
    if (value) {
        str_addf(toml, format, value);
        str_add(toml, "\n");
    }
}

static void write_accounts(const struct site *site, struct str *toml)
{
    for (unsigned i = 0; i < QOSES; i++) {
        if (site->qos[i].gone)
            continue;
        str_addf(toml, "[[qos]]\nname = \"q%u\"\npriority = %u\n", i, site->qos[i].priority);
        bound(toml, "grp_jobs = %u", site->qos[i].jobs);
        bound(toml, "max_tres_per_user = \"cpu=%u\"", site->qos[i].cpus_per_user);
        if (site->qos[i].part_time)
            str_add(toml, "flags = [\"PartitionTimeLimit\"]\n");
        if (site->qos[i].preempts && i)
            str_addf(toml, "preempt = [\"%s\"]\n", "normal");
    }
    for (unsigned i = 0; i < ACCOUNTS; i++) {
        if (site->accounts[i].gone)
            continue;
        str_addf(toml, "[[accounts]]\nname = \"a%u\"\n", i);
        if (i && site->accounts[i].below && !site->accounts[0].gone)
            str_add(toml, "parent = \"a0\"\n");
        bound(toml, "grp_jobs = %u", site->accounts[i].jobs);
        bound(toml, "grp_tres = \"cpu=%u\"", site->accounts[i].cpus);
    }
    for (unsigned i = 0; i < USERS; i++) {
        if (site->users[i].gone || site->accounts[site->users[i].account].gone)
            continue;
        str_addf(toml, "[[users]]\nname = \"u%u\"\naccount = \"a%u\"\nqos = [\"normal\"", i + 1,
                 site->users[i].account);
        for (unsigned k = 0; k < QOSES; k++) {
            if (!site->qos[k].gone)
                str_addf(toml, ", \"q%u\"", k);
        }
        str_add(toml, "]\n");
        bound(toml, "max_jobs = %u", site->users[i].jobs);
        bound(toml, "grp_tres = \"cpu=%u\"", site->users[i].cpus);
        bound(toml, "fairshare = %u", site->users[i].share);
    }
}

static void write_extra(const struct site *site, struct str *toml, unsigned place)
{
    if (place < EXTRAS && site->extra[place])
        str_addf(toml, "[[nodes]]\nnames = \"x%u[1-%u]\"\ncpus = %u\nmemory_mb = 4000\n", place,
                 site->extra[place], 4 + 4 * place);
}

static void write_parts(const struct site *site, struct str *toml)
{
    static const char *const nodes[] = { "ALL", "n[1-12]", "n[7-18]", "m[1-6],n[1-3]" };

    for (unsigned i = 0; i < KINDS; i++) {
        write_extra(site, toml, i);
        str_addf(toml, "[[nodes]]\nnames = \"%s\"\ncpus = %u\nmemory_mb = 8000\nweight = %u\n",
                 i == 0   ? "n[1-10]"
                 : i == 1 ? "n[11-20]"
                          : "m[1-6]",
                 site->kinds[i].cpus, site->kinds[i].weight);
        if (site->kinds[i].feature)
            str_add(toml, "features = [\"fast\"]\n");
        if (i == 2)
            str_add(toml, "gres = [\"gpu:2\"]\n");
    }
    write_extra(site, toml, KINDS);
    for (unsigned i = 0; i < PARTS; i++) {
        if (site->parts[i].gone && i)
            continue;
        str_addf(toml,
                 "[[partitions]]\nname = \"p%u\"\nnodes = \"%s\"\npriority_tier = %u\n"
                 "max_time = \"%u:00:00\"\nstate = \"%s\"\nexclusive_user = %s\n%s",
                 i, nodes[i ? site->parts[i].kinds : 0], site->parts[i].tier, site->parts[i].hours,
                 site->parts[i].down ? "DOWN" : "UP", site->parts[i].exclusive ? "true" : "false",
                 i ? "" : "default = true\n");
        if (site->parts[i].deny)
            str_add(toml, "deny_accounts = [\"a1\"]\n");
        if (site->parts[i].qos && !site->qos[site->parts[i].qos - 1].gone)
            str_addf(toml, "qos = \"q%u\"\n", site->parts[i].qos - 1);
        bound(toml, "bookings = %u", site->parts[i].bookings);
        bound(toml, "billing_weights = \"cpu=%u\"", site->parts[i].billing);
    }
}

static void write_site(const struct site *site, struct str *toml)
{
    str_addf(toml,
             "cluster_name = \"t\"\n[scheduler]\nselect = [\"CR_Core\"]\n"
             "[jobs]\nkill_wait = %u\n[accounting]\nenforce = [\"limits\"]\n%s"
             "[priority]\nweight_age = 1000\nweight_fairshare = %u\nweight_qos = 100\n"
             "calc_period = 1\n",
             30 + site->kill_wait,
             site->preempt ? "[preemption]\ntype = \"qos\"\nmode = [\"REQUEUE\"]\n" : "",
             site->prio ? 10000 : 0);
    write_parts(site, toml);
    write_accounts(site, toml);
}

static void make_site(struct site *site)
{
    *site = (struct site){ 0 };
    for (unsigned i = 0; i < USERS; i++)
        site->users[i].account = i % ACCOUNTS;
    for (unsigned i = 0; i < PARTS; i++) {
        site->parts[i].tier = 1;
        site->parts[i].hours = 24;
        site->parts[i].kinds = i;
    }
    for (unsigned i = 0; i < KINDS; i++) {
        site->kinds[i].cpus = 4;
        site->kinds[i].weight = 1;
    }
    site->prio = dice(2);
    site->preempt = dice(3) == 0;
}

/* ---- what changes ---- */

static void change_user(struct site *site)
{
    unsigned i = dice(USERS);

    switch (dice(5)) {
    case 0:
        site->users[i].gone = !site->users[i].gone;
        break;
    case 1:
        site->users[i].account = dice(ACCOUNTS);
        break;
    case 2:
        site->users[i].share = dice(10);
        break;
    case 3:
        site->users[i].cpus = dice(2) * (4 + dice(20));
        break;
    default:
        site->users[i].jobs = dice(2) * (1 + dice(8));
        break;
    }
}

static void change_account(struct site *site)
{
    unsigned i = dice(ACCOUNTS);

    if (dice(6) == 0)
        site->accounts[i].gone = !site->accounts[i].gone;
    else if (dice(4) == 0)
        site->accounts[i].below = !site->accounts[i].below;
    else if (dice(2))
        site->accounts[i].jobs = dice(2) * (1 + dice(12));
    else
        site->accounts[i].cpus = dice(2) * (4 + dice(40));
}

static void change_qos(struct site *site)
{
    unsigned i = dice(QOSES);

    switch (dice(6)) {
    case 0:
        site->qos[i].gone = !site->qos[i].gone;
        break;
    case 1:
        site->qos[i].part_time = !site->qos[i].part_time;
        break;
    case 2:
        site->qos[i].preempts = !site->qos[i].preempts;
        break;
    case 3:
        site->qos[i].priority = dice(100);
        break;
    case 4:
        site->qos[i].jobs = dice(2) * (1 + dice(10));
        break;
    default:
        site->qos[i].cpus_per_user = dice(2) * (4 + dice(20));
        break;
    }
}

static void change_part(struct site *site)
{
    unsigned i = dice(PARTS);

    switch (dice(9)) {
    case 0:
        site->parts[i].down = i && !site->parts[i].down;
        break;
    case 1:
        site->parts[i].tier = 1 + dice(3);
        break;
    case 2:
        site->parts[i].hours = 1 + dice(24);
        break;
    case 3:
        site->parts[i].qos = dice(QOSES + 1);
        break;
    case 4:
        site->parts[i].bookings = dice(4);
        break;
    case 5:
        site->parts[i].kinds = dice(4);
        break;
    case 6:
        site->parts[i].exclusive = dice(4) == 0;
        break;
    case 7:
        site->parts[i].billing = dice(3);
        break;
    default:
        site->parts[i].deny = !site->parts[i].deny;
        break;
    }
}

static void change_site(struct site *site)
{
    uint32_t what = dice(100);

    if (what < 25)
        change_user(site);
    else if (what < 40)
        change_account(site);
    else if (what < 55)
        change_qos(site);
    else if (what < 72)
        change_part(site);
    else if (what < 75)
        site->kinds[dice(KINDS)].weight = 1 + dice(5);
    else if (what < 78)
        site->kinds[dice(KINDS)].feature = dice(2);
    else if (what < 81)
        site->kinds[dice(KINDS)].cpus = 4 + dice(3) * 2;
    else if (what < 83)
        site->kill_wait = dice(20);
    else if (what < 98)
        site->extra[dice(EXTRAS)] = dice(4);
    else
        site->parts[1 + dice(PARTS - 1)].gone = dice(2);
}

/* Nodes that came say hello. */
static void extras_up(struct rig *rig)
{
    for (size_t i = 0; i < state_node_count(rig->state); i++) {
        const struct node *node = state_node_at(rig->state, i);
        NodeInventory found = NODE_INVENTORY__INIT;
        if (node->spec->name[0] != 'x' || node->found)
            continue;
        found.has_cpus = found.has_memory_mb = true;
        found.cpus = node->spec->cpus;
        found.memory_mb = node->spec->memory_mb;
        rig_inventory(rig, node->spec->name, &found);
    }
}

static void configure(struct rig *rig, const struct site *site)
{
    CLEANUP(str_done) struct str toml = { 0 };
    struct err err = { 0 };
    Command cmd = COMMAND__INIT;
    CmdConfig msg = CMD_CONFIG__INIT;

    write_site(site, &toml);
    CLEANUP(conf_freep)
    struct conf *conf = conf_read("site", str_text(&toml), strlen(str_text(&toml)), NULL);
    if (conf_verdict(conf, &err) < 0)
        fail_msg("seed %llu: %s\n%s", (unsigned long long)first_seed, err.text, str_text(&toml));
    msg.has_reconfigure = true;
    msg.reconfigure = dice(2);
    if (dice(2)) { /* as the controller does it, with every node on its own */
        Config *config = NULL;
        assert_int_equal(conf_expand(conf, &config, &err), 0);
        rig_configure(rig, config, msg.reconfigure, 1 + dice(20));
        config__free_unpacked(config, NULL);
        return;
    }
    msg.config = (Config *)(uintptr_t)conf_config(conf);
    cmd.what_case = COMMAND__WHAT_CONFIG;
    cmd.config = &msg;
    rig_apply(rig, &cmd); /* some are refused: an account that jobs are charged to */
}

/* ---- what else happens ---- */

static const char *const words[] = {
    "c=1 t=600",         "c=2 t=3600",      "c=4 t=7200", "N=3 tpn=2 n=6 t=600",
    "gres=gpu:1 t=1800", "p=p1 c=3",        "p=p2 c=2",   "N=6 ex t=300",
    "p=p0,p1 c=4 t=600", "array=0-3%2 c=2", "C=fast c=1", "p=p2,p1,p0 c=1 t=40000",
};

static void submit(struct rig *rig)
{
    char text[100];
    uint32_t qos = dice(2 * QOSES);

    snprintf(text, sizeof(text), "%s uid=%u", words[dice(ARRAY_LEN(words))], 1 + dice(USERS));
    if (qos < QOSES)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), " qos=q%u", qos);
    rig_submit(rig, text); /* who may not is refused */
}

static uint32_t random_running(const struct rig *rig)
{
    uint32_t found = 0, count = 0;

    for (const struct job *job = state_job_from(rig->state, 1); job;
         job = state_job_from(rig->state, (uint64_t)job->id + 1)) {
        if (job->state == JOB_RUNNING && dice(++count) == 0)
            found = job->id;
    }
    return found;
}

static void change_partition(struct rig *rig)
{
    char name[8];

    snprintf(name, sizeof(name), "p%u", dice(PARTS));
    if (state_partition(rig->state, name))
        rig_partition(rig, name, 3600 * (1 + dice(24)));
}

static void happen(struct rig *rig, struct site *site)
{
    static const char *const nodes[] = { "n1", "n12", "m3" };
    uint32_t id, what = dice(100);

    if (what < 40)
        submit(rig);
    else if (what < 60 && (id = random_running(rig)))
        rig_end(rig, id);
    else if (what < 66)
        rig_cancel(rig, 1 + dice((uint32_t)state_head(rig->state).next_job_id));
    else if (what < 70)
        rig_node(rig, nodes[dice(3)], dice(2) ? "DRAIN" : "RESUME");
    else if (what < 74)
        rig_wait(rig, dice(100));
    else if (what < 78) {
        change_partition(rig);
    } else {
        change_site(site);
        configure(rig, site);
        if (dice(2))
            extras_up(rig);
    }
}

/* ---- the judge ---- */

typedef VEC(uint64_t) start_list;

static int by_number(const void *a, const void *b)
{
    const uint64_t *one = a, *other = b;

    return (*one > *other) - (*one < *other);
}

/* All that it would start now; a job of an array as often as tasks of it would. */
static void all_starts(struct sched *sched, int64_t now_us, start_list *out)
{
    const struct plan *plan;

    do {
        plan = sched_plan(sched, now_us, 2000);
        for (size_t i = 0; i < plan->count; i++) {
            for (size_t k = 0; k < plan->starts[i]->n_starts; k++)
                vec_push(out, plan->starts[i]->starts[k]->job_id);
        }
    } while (plan->more);
    if (out->len)
        qsort(out->items, out->len, sizeof(*out->items), by_number);
}

static void print(const char *who, const start_list *list)
{
    fprintf(stderr, "%s:", who);
    vec_each (uint64_t, id, list)
        fprintf(stderr, " %llu", (unsigned long long)*id);
    fprintf(stderr, "\n");
}

/*
 * Everything that can start has. Promises are given up, for they are kept as they were made and need not
 * be those that would be made now; then both are asked.
 */
static void assert_nothing_forgotten(struct rig *rig, int step)
{
    start_list mine = { 0 }, its = { 0 };

    rig_plan(rig);
    struct sched *fresh = sched_new(rig->state);
    while (rig->sched->book->list.len)
        book_drop(rig->sched, rig->sched->book->list.items[0].job_id);
    all_starts(fresh, rig->now_us, &its);
    all_starts(rig->sched, rig->now_us, &mine);
    bool same = mine.len == its.len &&
                (!mine.len || memcmp(mine.items, its.items, mine.len * sizeof(uint64_t)) == 0);
    if (!same) {
        print("followed", &mine);
        print("made anew", &its);
        fail_msg("seed %llu, step %d: other jobs are started", (unsigned long long)first_seed,
                 step);
    }
    sched_abandon_all(rig->sched);
    vec_done(&mine);
    vec_done(&its);
    sched_free(fresh);
}

static void live(uint64_t from)
{
    CLEANUP(str_done) struct str toml = { 0 };
    struct site site;
    bool more;

    seed = first_seed = from;
    make_site(&site);
    write_site(&site, &toml);
    struct rig *rig = rig_new(str_text(&toml));
    for (int i = 0; i < 120; i++)
        submit(rig);
    rig_plan(rig);
    for (int step = 0; step < 250; step++) {
        happen(rig, &site);
        rig->budget = 1 + dice(100);
        if (dice(3))
            rig_slice(rig, &more);
        if (step % 10 == 9) {
            rig->budget = 2000;
            if (site.preempt) /* room is held for some until others have gone */
                rig_plan(rig);
            else
                assert_nothing_forgotten(rig, step);
        }
    }
    if (rig->refused)
        fail_msg("seed %llu: core refused %llu starts", (unsigned long long)from,
                 (unsigned long long)rig->refused);
    assert_true(rig->started > 20);
    rig_free(rig);
}

static void follows_as_if_made_anew(void **state)
{
    const char *one = getenv("SPUR_TEST_SEED"), *more = getenv("SPUR_TEST_SEEDS");
    uint64_t last = more ? strtoull(more, NULL, 10) : 12;

    (void)state;
    if (one) {
        live(strtoull(one, NULL, 10));
        return;
    }
    for (uint64_t from = 1; from <= last; from++)
        live(from);
}

/* Starts are under way while nodes before, between and below them come and go. */
static void starts_go_on_when_nodes_have_other_numbers(void **state)
{
#define NODES(names) "[[nodes]]\nnames = \"" names "\"\ncpus = 4\nmemory_mb = 4000\n"
#define MAIN \
    "cluster_name = \"t\"\n[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n"
    static const char *const after = MAIN NODES("a[1-3]") NODES("n[1-2]") NODES("b1") NODES("n4");
    struct rig *rig = rig_new(MAIN NODES("n1") NODES("n2") NODES("n3") NODES("n4"));
    Config *config = NULL;
    CLEANUP(conf_freep) struct conf *conf = conf_read("t", after, strlen(after), NULL);
    uint32_t ids[4];
    VEC(CmdStart *) starts = { 0 };

    (void)state;
    for (unsigned i = 0; i < 4; i++)
        ids[i] = rig_submit(rig, "c=4 t=600");
    const struct plan *plan = sched_plan(rig->sched, rig->now_us, 2000);
    for (size_t i = 0; i < plan->count; i++) {
        size_t len = cmd_start__get_packed_size(plan->starts[i]);
        uint8_t *bytes = mem_new(len + 1);
        cmd_start__pack(plan->starts[i], bytes);
        vec_push(&starts, cmd_start__unpack(NULL, len, bytes));
        free(bytes);
    }
    assert_true(starts.len > 0);
    assert_int_equal(conf_expand(conf, &config, NULL), 0);
    assert_int_equal(rig_configure(rig, config, true, 2), ERR_OK);
    config__free_unpacked(config, NULL);
    assert_int_equal(map_len(&rig->sched->limit->inflights), 3); /* all but what was on n3 */
    vec_each (CmdStart *, at, &starts) {
        Command cmd = COMMAND__INIT;
        cmd.what_case = COMMAND__WHAT_START;
        cmd.start = *at;
        rig_apply(rig, &cmd);
        cmd_start__free_unpacked(*at, NULL);
    }
    vec_done(&starts);
    rig_plan(rig);
    rig_wait(rig, 2); /* what was refused is tried again */
    rig_plan(rig);
    unsigned running = 0;
    for (unsigned i = 0; i < 4; i++)
        running += rig_runs(rig, ids[i]);
    assert_int_equal(running, 3); /* n3 is no more, new nodes have not said hello */
    rig_free(rig);
}

static void set_state(struct rig *rig, PartitionState to)
{
    Command cmd = COMMAND__INIT;
    CmdPartition msg = CMD_PARTITION__INIT;
    PartitionSpec spec = PARTITION_SPEC__INIT;

    spec.name = (char *)"main";
    spec.has_state = true;
    spec.state = to;
    msg.change = &spec;
    cmd.what_case = COMMAND__WHAT_PARTITION;
    cmd.partition = &msg;
    assert_int_equal(rig_apply(rig, &cmd), ERR_OK);
}

/* Others were submitted before it and are looked at before it, but it is the first in the order. */
static void the_first_goes_first_when_a_partition_opens(void **state)
{
    enum { JOBS = 600, BUDGET = 64 };
    struct rig *rig = rig_new(MAIN NODES("n[1-4]"));
    uint32_t ids[JOBS];
    unsigned idle = 0, slices = 0;

    (void)state;
    rig->check = false;
    for (unsigned i = 0; i < JOBS; i++)
        ids[i] = rig_submit(rig, "c=1 t=600");
    rig_plan(rig);
    uint32_t first = rig_submit(rig, "N=4 ex t=3600 prio=4294967000");
    rig_plan(rig);
    set_state(rig, PARTITION_DOWN);
    rig_plan(rig);
    for (unsigned i = 0; i < JOBS; i++) {
        if (rig_runs(rig, ids[i]))
            rig_end(rig, ids[i]);
    }
    rig_plan(rig);
    set_state(rig, PARTITION_UP);
    rig->budget = BUDGET;
    for (bool more = true; more && !rig_slice(rig, &more); slices++)
        idle += !rig->sched->plan->plan.works; /* after many of these the controller waits */
    assert_in_range(slices, 4, 1000);
    assert_in_range(idle, 0, 2);
    rig_plan(rig);
    assert_true(rig_runs(rig, first));
    rig_free(rig);
}

UNIT_MAIN(UNIT(follows_as_if_made_anew), UNIT(the_first_goes_first_when_a_partition_opens),
          UNIT(starts_go_on_when_nodes_have_other_numbers))
