/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_level.c - the feature level: who knows which, and when the leader raises it
 *
 * (1) The leader raises the level to the newest one that it knows itself, that every other controller has said it
 *     knows, that every node knows for which it matters, and that the pin allows.
 * (2) A command behind the one that raises the level may count on it: the log keeps their order.
 * (3) Nothing is proposed that somebody could not read: people are refused; of what nodes say, the fields that
 *     are above the level are left out.
 */
#include <stdlib.h>

#include "core/level.h"
#include "spurctld/ctl/ctl_priv.h"
#include "sys/log.h"
#include "wire/pb.h"

unsigned ctl_level(const struct ctl *ctl)
{
    return MAX(state_level(ctl->state), ctl->level_rising); /* (2) */
}

void ctl_level_changed(struct ctl *ctl)
{
    if (state_level(ctl->state) >= LEVEL_SEALS)
        log_require_seals(ctl->log);
    if (ctl->io.level)
        ctl->io.level(ctl->io.ctx, state_level(ctl->state));
}

static unsigned peers_level(const struct ctl *ctl)
{
    return ctl->io.peers_level ? ctl->io.peers_level(ctl->io.ctx) : (unsigned)LEVEL_NEWEST;
}

static bool is_away(const struct node *node)
{
    return node->state == NODE_DOWN || node->state == NODE_FUTURE;
}

/* A node that is away does not count: it is refused when it comes back with a build that is too old. */
static bool nodes_know(struct ctl *ctl, unsigned level)
{
    unsigned needed = level_for_nodes(level);

    for (size_t i = 0; needed > LEVEL_FIRST && i < state_node_count(ctl->state); i++) {
        const struct node *node = state_node_at(ctl->state, i);
        const struct agent *agent = ctl_agent(ctl, node->spec->name);
        if (!is_away(node) && (!agent || agent->level < needed))
            return false;
    }
    return true;
}

static void on_level(struct ctl *ctl, void *arg, const struct events *events, const struct err *err)
{
    const struct event *answer = events ? ctl_answer(events) : NULL;

    (void)arg;
    ctl->level_rising = 0;
    if (!err && answer->code == ERR_OK)
        log_info("ctl.level", "level=%u", state_level(ctl->state));
    else
        log_warn("ctl.level", "not raised: %s", err ? err->text : answer->text);
}

static void raise_level(struct ctl *ctl, unsigned level)
{
    CmdLevel msg = CMD_LEVEL__INIT;
    Command command = CTL_COMMAND(LEVEL, .level = &msg);

    msg.has_level = true;
    msg.level = level;
    ctl->level_rising = level;
    ctl_propose(ctl, &command, on_level, NULL);
}

/* (1) */
void ctl_look_at_level(struct ctl *ctl)
{
    unsigned now = ctl_level(ctl), pin = state_level_pin(ctl->state);
    unsigned to = LEVEL_NEWEST;

    if (!ctl->leading || ctl->level_rising || now >= to)
        return;
    to = MIN(to, peers_level(ctl));
    if (pin)
        to = MIN(to, pin);
    while (to > now && !nodes_know(ctl, to))
        to--;
    if (to > now)
        raise_level(ctl, to);
}

void ctl_set_level(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const SetLevelRequest *request = (const void *)message;
    unsigned peers = peers_level(ctl);
    CmdLevel msg = CMD_LEVEL__INIT;
    Command command = CTL_COMMAND(LEVEL, .level = &msg);
    struct err err = { 0 };

    if (!request->has_pin)
        err_set(&err, ERR_INVALID, "no level was named to pin");
    else if (peers && peers < LEVEL_LEVELS)
        err_set(&err, ERR_TRANSITION,
                "a controller is down, or its build does not know feature levels");
    if (err.code) {
        ask->ops->fail(ask, &err);
        return;
    }
    msg.has_pin = true;
    msg.pin = request->pin;
    if (!peers && request->pin) { /* nobody can tell what others know: the administrator does */
        msg.has_level = true;
        msg.level = MIN(request->pin, (unsigned)LEVEL_NEWEST);
    }
    ctl_propose_ask(ctl, ask, &command, ctl_done_reply, ask);
}

/* ---- (3) ---- */

static bool is_from_node(const Command *command)
{
    switch (command->what_case) {
    case COMMAND__WHAT_NODE_UP:
    case COMMAND__WHAT_READY:
    case COMMAND__WHAT_FINISH:
    case COMMAND__WHAT_RELEASE:
    case COMMAND__WHAT_STEPS:
        return true;
    default:
        return false;
    }
}

int ctl_fit_level(struct ctl *ctl, const Command *command, Command **fitted, struct err *err)
{
    unsigned level = ctl_level(ctl), needed = LEVEL_FIRST;
    const char *field = "";
    bool unknown = pb_has_unknown(command);
    struct str names = { 0 };

    *fitted = NULL;
    if (level < LEVEL_NEWEST)
        needed = level_needed(command, &field);
    if (!unknown && needed <= level)
        return 0;
    if (is_from_node(command)) {
        *fitted = pb_copy(command); /* without what we do not know */
        level_trim(*fitted, level, &names);
        str_done(&names);
        return 0;
    }
    if (unknown)
        return err_set(err, ERR_UNSUPPORTED,
                       "the request has a field that this controller's build does not know");
    return err_set(err, ERR_UNSUPPORTED,
                   "'%s' needs feature level %u, and the cluster has level %u: 'spur controller "
                   "list' shows which controllers hold it back",
                   field, needed, level);
}

void ctl_fit_config(struct ctl *ctl, Config *config)
{
    CLEANUP(str_done) struct str names = { 0 };

    if (ctl_level(ctl) >= LEVEL_NEWEST)
        return;
    level_trim(config, ctl_level(ctl), &names);
    if (names.len)
        log_warn("config.level",
                 "level=%u settings=%s do not act yet: all controllers must know them; then say "
                 "'scontrol reconfigure'",
                 ctl_level(ctl), str_text(&names));
}
