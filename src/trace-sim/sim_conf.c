/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_conf.c - the cluster and the policy of a simulation
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/timefmt.h"
#include "client/conf_file.h"
#include "trace-sim/sim.h"

const char *const sim_policies =
    "fifo, backfill, conservative, sjf, predict, preempt, predict:PATIENCE:LATE";

enum { CPUS_PER_SHARED_GPU = 32 };

/* Where jobs ask for parts of GPUs, GPUs can be given in thousandths. */
static struct conf *made_up(uint32_t nodes, uint32_t cpus, uint32_t gpus, bool parts,
                            struct err *err)
{
    struct str text = { 0 };

    str_addf(&text,
             "cluster_name = \"sim\"\n[[nodes]]\nnames = \"n[1-%u]\"\ncpus = %u\n"
             "memory_mb = 1000000000\n",
             nodes, cpus);
    if (gpus && parts)
        str_addf(&text, "gres = [\"gpu:%u\", \"shard:%u\"]\n", gpus, gpus * SIM_MILLI);
    else if (gpus)
        str_addf(&text, "gres = [\"gpu:%u\"]\n", gpus);
    str_add(&text, "[[partitions]]\nname = \"all\"\nnodes = \"ALL\"\ndefault = true\n");
    struct conf *conf = conf_read("simulated cluster", str_text(&text), text.len, NULL);
    str_done(&text);
    if (conf_verdict(conf, err) < 0) {
        conf_free(conf);
        return NULL;
    }
    return conf;
}

struct conf *sim_conf_read(const struct sim_args *args, const struct sim_trace *trace,
                           struct err *err)
{
    bool sized = args->nodes || args->cpus || args->gpus;

    if (args->config && sized) {
        err_set(err, ERR_SYNTAX,
                "--config says what nodes there are: --nodes, --cpus and --gpus "
                "do not go with it");
        return NULL;
    }
    if (args->config)
        return conf_file_load(args->config, err);
    uint32_t nodes = args->nodes, cpus = args->cpus;
    if (!sized && trace->max_procs) {
        nodes = trace->max_nodes ? trace->max_nodes : 1;
        cpus = (trace->max_procs + nodes - 1) / nodes;
    }
    if (!nodes || (!cpus && !args->gpus)) {
        err_set(err, ERR_SYNTAX,
                "which cluster? Say --config FILE, or --nodes N with --gpus or "
                "--cpus of each");
        return NULL;
    }
    if (nodes > LIMIT_NODES || cpus > LIMIT_CPUS_PER_NODE || args->gpus > LIMIT_GRES_PER_NODE) {
        err_set(err, ERR_RANGE, "at most %d nodes of %d CPUs and %d GPUs can be simulated",
                LIMIT_NODES, LIMIT_CPUS_PER_NODE, LIMIT_GRES_PER_NODE);
        return NULL;
    }
    if (!cpus && trace->parts) /* each of the many jobs on a GPU needs one */
        cpus = MIN(args->gpus * CPUS_PER_SHARED_GPU, LIMIT_CPUS_PER_NODE);
    return made_up(nodes, MAX(cpus, MAX(args->gpus, 1)), args->gpus, trace->parts, err);
}

static const struct {
    const char *name, *plugin, *backfill, *order, *preempt;
} policies[] = {
    { "fifo", "builtin", "easy", "priority" },
    { "backfill", "backfill", "easy", "priority" },
    { "conservative", "backfill", "conservative", "priority" },
    { "sjf", "backfill", "easy", "sjf" },
    { "predict", "backfill", "easy", "predict" },
    { "preempt", "backfill", "easy", "predict", "size" },
};

/* ":PATIENCE[:LATE]" */
static bool read_numbers(Config *config, const char *text)
{
    const char *colon = strchr(text, ':');
    char patience[16];
    int64_t value;

    snprintf(patience, sizeof(patience), "%.*s",
             (int)(colon ? (size_t)(colon - text) : strlen(text)), text);
    if (!str_to_i64(patience, 0, 1000, &value))
        return false;
    config->has_order_patience = true;
    config->order_patience = (uint32_t)value;
    if (!colon)
        return true;
    if (!str_to_i64(colon + 1, 0, 1000, &value))
        return false;
    config->has_order_late = true;
    config->order_late = (uint32_t)value;
    return true;
}

int sim_conf_policy(Config *config, const char *policy, struct err *err)
{
    for (size_t i = 0; policy && i < ARRAY_LEN(policies); i++) {
        size_t len = strlen(policies[i].name);
        if (strncmp(policies[i].name, policy, len) != 0)
            continue;
        bool numbers = policy[len] == ':' && strcmp(policies[i].order, "predict") == 0;
        if (policy[len] && !numbers)
            continue;
        if (numbers && !read_numbers(config, policy + len + 1))
            break;
        config->scheduler_plugin = (char *)(uintptr_t)policies[i].plugin;
        config->backfill = (char *)(uintptr_t)policies[i].backfill;
        config->scheduler_order = (char *)(uintptr_t)policies[i].order;
        if (policies[i].preempt) {
            config->preempt_type = (char *)(uintptr_t)policies[i].preempt;
            config->preempt_mode = (char *)(uintptr_t) "REQUEUE";
        }
        return 0;
    }
    return err_set(err, ERR_SYNTAX, "there is no policy '%s'; there are %s", policy ? policy : "",
                   sim_policies);
}
