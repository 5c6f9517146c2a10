/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_load.c - a full cluster and a long queue
 */
#include "bench_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "schema/conf.h"
#include "sys/heap.h"

static uint64_t seed = 1;

static uint32_t dice(uint32_t sides)
{
    seed = hash_mix(seed + UINT64_C(0x9e3779b97f4a7c15));
    return (uint32_t)((seed >> 33) % sides);
}

/* ---- what ends when ---- */

static void heap_push(struct load *load, struct ending item)
{
    vec_push(&load->heap, item);
    size_t at = load->heap.len - 1;
    for (; at > 0 && item.us < load->heap.items[(at - 1) / 2].us; at = (at - 1) / 2)
        load->heap.items[at] = load->heap.items[(at - 1) / 2];
    load->heap.items[at] = item;
}

struct ending load_pop(struct load *load)
{
    struct ending first = load->heap.items[0], last = load->heap.items[--load->heap.len];
    size_t at = 0;

    for (;;) {
        size_t child = at * 2 + 1;
        if (child + 1 < load->heap.len &&
            load->heap.items[child + 1].us < load->heap.items[child].us)
            child++;
        if (child >= load->heap.len || last.us <= load->heap.items[child].us)
            break;
        load->heap.items[at] = load->heap.items[child];
        at = child;
    }
    load->heap.items[at] = last;
    return first;
}

static void on_start(struct rig *rig, const struct job *job)
{
    struct load *load = rig->ctx;
    int64_t limit = job->time_limit_s > 0 ? job->time_limit_s : 3600;

    /* Most jobs end long before their limit. */
    heap_push(load,
              (struct ending){ rig->now_us + (1 + dice((uint32_t)limit)) * US_PER_S, job->id });
}

/* ---- cluster and jobs ---- */

/* Every user is in one of 50 accounts, with limits of his own, the account's and a QOS'. */
static void add_accounts(struct str *toml, unsigned users)
{
    str_add(toml, "[accounting]\nenforce = [\"limits\"]\n"
                  "[priority]\nweight_age = 1000\nweight_fairshare = 100000\nweight_qos = 1000\n"
                  "calc_period = \"1-0\"\n" /* its cost is not that of placements */
                  "[[qos]]\nname = \"normal\"\nmax_tres_per_user = \"cpu=40000\"\n"
                  "[[accounts]]\nname = \"all\"\ngrp_tres = \"cpu=600000\"\n");
    for (unsigned i = 0; i < 50; i++)
        str_addf(toml, "[[accounts]]\nname = \"a%u\"\nparent = \"all\"\ngrp_tres = \"cpu=%u\"\n", i,
                 4000 + dice(16000));
    for (unsigned i = 1; i <= users; i++)
        str_addf(toml, "[[users]]\nname = \"u%u\"\naccount = \"a%u\"\nmax_jobs = %u\n", i, i % 50,
                 4 + dice(60));
}

static void add_switches(struct str *toml, unsigned nodes)
{
    enum { LEAF = 18, SPINE = 24 };
    unsigned leaves = 0, spines = 0;

    str_add(toml, "[topology]\nplugin = \"tree\"\n");
    for (unsigned kind = 0; kind < 2; kind++) {
        unsigned count = kind ? nodes - nodes * 6 / 10 : nodes * 6 / 10;
        for (unsigned i = 1; i <= count; i += LEAF)
            str_addf(toml, "[[switches]]\nname = \"l%u\"\nnodes = \"%c[%u-%u]\"\n", ++leaves,
                     kind ? 'g' : 'c', i, i + LEAF - 1 < count ? i + LEAF - 1 : count);
    }
    for (unsigned i = 1; i <= leaves; i += SPINE)
        str_addf(toml, "[[switches]]\nname = \"s%u\"\nswitches = \"l[%u-%u]\"\n", ++spines, i,
                 i + SPINE - 1 < leaves ? i + SPINE - 1 : leaves);
    str_addf(toml, "[[switches]]\nname = \"top\"\nswitches = \"s[1-%u]\"\n", spines);
}

static void add_blocks(struct str *toml, unsigned nodes)
{
    enum { BLOCK = 16 };
    unsigned blocks = 0;

    str_add(toml, "[topology]\nplugin = \"block\"\n");
    for (unsigned kind = 0; kind < 2; kind++) {
        unsigned count = kind ? nodes - nodes * 6 / 10 : nodes * 6 / 10;
        for (unsigned i = 1; i <= count; i += BLOCK)
            str_addf(toml, "[[blocks]]\nname = \"b%u\"\nnodes = \"%c[%u-%u]\"\n", ++blocks,
                     kind ? 'g' : 'c', i, i + BLOCK - 1 < count ? i + BLOCK - 1 : count);
    }
}

/* Nodes of one kind; where features are wanted, ten parts with ten of them each. */
static void add_nodes(struct load *load, const char *name, unsigned count, const char *has)
{
    struct str *toml = &load->toml;
    unsigned parts = load->of->wide ? 10 : 1;

    for (unsigned i = 0; i < parts; i++) {
        str_addf(
            toml,
            "[[nodes]]\nnames = \"%s[%u-%u]\"\ncpus = 64\nsockets = 2\ncores_per_socket = 32\n%s",
            name, count / parts * i + 1, i + 1 == parts ? count : count / parts * (i + 1), has);
        for (unsigned k = 0; load->of->wide && k < 10; k++)
            str_addf(toml, "%s\"%s%u\"%s", k ? ", " : "features = [", name, i * 10 + k,
                     k == 9 ? "]\n" : "");
    }
}

/* With every node on its own, as the controller proposes it. */
static struct rig *new_rig(const char *toml)
{
    CLEANUP(conf_freep) struct conf *conf = conf_read("bench", toml, strlen(toml), NULL);
    struct err err = { 0 };
    Config *config = NULL;

    if (conf_verdict(conf, &err) < 0 || conf_expand(conf, &config, &err) < 0) {
        fprintf(stderr, "configuration: %s\n", err.text);
        exit(1);
    }
    struct rig *rig = rig_new_config(config);
    config__free_unpacked(config, NULL);
    return rig;
}

/* The controller's heap is in huge pages, which workers fill while it grows (sys/heap.h). */
static void turn_as_spurctld(void)
{
    struct heap_range grown;

    mem_settle();
    if (heap_ahead(&grown))
        heap_fill(grown, NULL);
}

void load_begin(struct load *load, const struct setting *of)
{
    struct str *toml = &load->toml;
    unsigned nodes = of->nodes;

    *load = (struct load){ .of = of };
    str_addf(
        toml,
        "cluster_name = \"bench\"\n[scheduler]\nselect = [\"CR_Core_Memory\"]\nbookings = %u\n"
        "[jobs]\nmax_job_count = 3000000\nmax_array_size = 200000\ndef_mem_per_cpu = 1000\nmin_job_age = 2\n"
        "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n",
        of->bookings);
    add_nodes(load, "c", nodes * 6 / 10, "memory_mb = 256000\n");
    add_nodes(load, "g", nodes - nodes * 6 / 10, "memory_mb = 512000\ngres = [\"gpu:h100:8\"]\n");
    if (of->limits)
        add_accounts(toml, of->users);
    if (of->switches)
        add_switches(toml, nodes);
    if (of->blocks)
        add_blocks(toml, nodes);
    if (of->preempts)
        str_add(toml, "[[partitions]]\nname = \"high\"\nnodes = \"ALL\"\npriority_tier = 5\n"
                      "[[partitions]]\nname = \"first\"\nnodes = \"ALL\"\npriority_tier = 1\n"
                      "[preemption]\ntype = \"partition_prio\"\nmode = \"CANCEL\"\n");
    load->rig = new_rig(str_text(toml));
    load->rig->budget = PLAN_BUDGET;
    load->rig->turn = turn_as_spurctld;
    load->rig->check = false;
}

void load_done(struct load *load)
{
    vec_done(&load->heap);
    str_done(&load->toml);
    rig_free(load->rig);
}

/* The shape follows from its number alone: one in ten is wide, four in ten want GPUs. */
static void job_words(const struct load *load, char *words, size_t size)
{
    const struct setting *of = load->of;
    unsigned shape = dice(of->shapes), one = shape % 10, two = shape / 10;
    unsigned limit = 60 * (1 + 7200 / of->times * dice(of->times));
    unsigned user = 1 + dice(of->users);
    unsigned wide = MIN(2 + two % 15, of->nodes / 2);

    if (one == 0)
        snprintf(words, size, "N=%u tpn=%u n=%u t=%u uid=%u", wide, 1 + two % 8,
                 wide * (1 + two % 8), limit, user);
    else if (one < 5)
        snprintf(words, size, "c=%u gres=gpu:h100:%u t=%u uid=%u", one * 2 + two % 3,
                 1U << (two % 4), limit, user);
    else
        snprintf(words, size, "c=%u mem=%u t=%u uid=%u", 1 + (one - 5) * 3 + two % 2,
                 1000 * (1 + two), limit, user);
}

void load_submit(struct load *load)
{
    char words[160];

    job_words(load, words, sizeof(words));
    if (!rig_submit(load->rig, words)) {
        fprintf(stderr, "refused: %s\n", words);
        exit(1);
    }
}

/* Filling the cluster left more in the queue than is to be there: of all that wait so many stay. */
static void trim(struct load *load)
{
    struct rig *rig = load->rig;
    size_t left = state_counts(rig->state).pending, keep = load->of->jobs;
    const struct job *job = state_job_from(rig->state, 1);

    while (job && left > keep) {
        uint32_t id = job->id;
        if (job->state == JOB_PENDING) {
            if (dice((uint32_t)left--) < keep)
                keep--;
            else
                rig_cancel(rig, id);
        }
        job = state_job_from(rig->state, (uint64_t)id + 1);
    }
}

void load_fill(struct load *load)
{
    struct rig *rig = load->rig;
    unsigned nodes = load->of->nodes;

    seed = 1;
    rig->ctx = load;
    rig->on_start = on_start;
    for (bool full = false; !full;) {
        uint64_t before = rig->started;
        for (unsigned i = 0; i < nodes; i++)
            load_submit(load);
        rig_plan(rig);
        full = rig->started - before < nodes / 100 + 1;
    }
    while (state_counts(rig->state).pending < load->of->jobs)
        load_submit(load);
    trim(load);
}
