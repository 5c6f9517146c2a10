/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_health.c - the site's program that looks after this node
 *
 * It runs when the agent has its configuration and then every health_interval, where
 * health_node_state says so. One that fails or takes too long has the node drained; asked for once,
 * until it has been well again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spurd/agent_priv.h"
#include "spurd/link/send.h"
#include "spurd/root.h"
#include "spurd/task/hook.h"
#include "sys/log.h"
#include "sys/rng.h"

enum { TIMEOUT_DEFAULT_S = 60 };

/* The hook frees what its answer comes with. */
struct health_ctx {
    struct agent *agent;
};

static bool has_word(const struct agent *agent, const char *wanted)
{
    const Config *config = agent_common(agent);
    const char *list = config->health_node_state;
    struct span word;

    while (list && str_next(&list, ", ", &word)) {
        if (span_ieq(word, wanted))
            return true;
    }
    return false;
}

static uint64_t cpus_in_use(const struct agent *agent)
{
    uint64_t used = 0;

    map_each (entry, &agent->table.held) {
        const NodeAlloc *alloc = attempt_alloc(entry->value);
        used += alloc ? MAX(alloc->cpus, 1) : 0;
    }
    return used;
}

/* A drained node cannot be told from an idle one here: NONDRAINED_IDLE is IDLE. */
static bool state_wants_it(const struct agent *agent)
{
    const Config *config = agent_common(agent);
    const NodeSpec *spec = agent->config->spec;
    uint64_t used = cpus_in_use(agent), all = spec && spec->cpus ? spec->cpus : UINT64_MAX;
    bool named = has_word(agent, "IDLE") || has_word(agent, "NONDRAINED_IDLE") ||
                 has_word(agent, "MIXED") || has_word(agent, "ALLOC");

    if (str_is_empty(config->health_node_state) || has_word(agent, "ANY") || !named)
        return true;
    if (used == 0)
        return has_word(agent, "IDLE") || has_word(agent, "NONDRAINED_IDLE");
    return has_word(agent, used < all ? "MIXED" : "ALLOC");
}

static void on_done(void *ctx, int status, const struct err *err)
{
    struct agent *agent = ((struct health_ctx *)ctx)->agent;
    char reason[256];

    (void)status;
    agent->health = NULL;
    if (!err) {
        agent->health_failed = false;
        return;
    }
    log_warn("health.failed", "error=%s", err->text);
    if (agent->health_failed || !agent->welcomed)
        return;
    snprintf(reason, sizeof(reason), "Health check failed: %.200s", err->text);
    agent_ask_drain(agent, reason);
    agent->health_failed = true;
}

static void run(struct agent *agent)
{
    const Config *config = agent_common(agent);
    char **env = NEW_ARRAY(char *, 2);
    struct health_ctx *ctx = NEW(struct health_ctx);

    env[0] = mem_printf("SLURMD_NODENAME=%s", agent->name);
    ctx->agent = agent;
    agent->health = hook_start(
        agent->uv, config->health_program, env,
        config->health_timeout_s ? config->health_timeout_s : TIMEOUT_DEFAULT_S, on_done, ctx);
}

static void on_timer(uv_timer_t *timer)
{
    struct agent *agent = timer->data;
    const Config *config = agent_common(agent);
    bool once = has_word(agent, "START_ONLY") || has_word(agent, "REBOOT_ONLY");

    if (agent->stopping)
        return;
    if (!agent->health && state_wants_it(agent) &&
        (!has_word(agent, "REBOOT_ONLY") || agent->new_boot))
        run(agent);
    if (!once && config->health_interval_s)
        uv_timer_start(timer, on_timer, config->health_interval_s * UINT64_C(1000), 0);
}

void agent_health_config(struct agent *agent)
{
    const Config *config = agent_common(agent);
    uint64_t wait_ms = 0;

    uv_timer_stop(&agent->health_timer);
    if (!config || str_is_empty(config->health_program) || !config->health_interval_s)
        return;
    if (has_word(agent, "CYCLE")) /* not everywhere at the same moment */
        wait_ms = rng_below(config->health_interval_s * UINT64_C(1000));
    uv_timer_start(&agent->health_timer, on_timer, wait_ms, 0);
}

void agent_health_init(struct agent *agent)
{
    uv_timer_init(agent->uv, &agent->health_timer);
    agent->health_timer.data = agent;
}

void agent_health_stop(struct agent *agent)
{
    if (agent->health)
        hook_abandon(TAKE(agent->health));
}
