/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_triggers.c - strigger: programs that the leader runs when something has happened
 *
 * That one is due is in the state (core/trigger.h). The leader proposes that it runs the program, and runs it when that
 * is agreed, so nobody else does.
 *
 * (1) A program runs as who set the trigger. A controller that is not root can run programs only as itself, so it takes
 *     triggers from its own user alone, as Slurm does.
 */
#include <stdlib.h>
#include <string.h>

#include "core/trigger.h"
#include "schema/trigger.h"
#include "spurctld/ctl/ctl_priv.h"
#include "sys/log.h"
#include "wire/pb.h"

enum { PROGRAM_TIMEOUT_S = 300, WORDS_MOST = 64 };

/* ---- running ---- */

struct trigger_run {
    struct arena arena;
    const TriggerSpec *spec;
};

static void run_free(struct trigger_run *run)
{
    arena_done(&run->arena);
    free(run);
}

/* The words of the program, then what has happened. */
static char **words_of(struct trigger_run *run, const char *argument)
{
    char **argv = ARENA_ARRAY(&run->arena, char *, WORDS_MOST + 2);
    const char *at = run->spec->program;
    struct span word;
    size_t count = 0;

    while (count < WORDS_MOST && str_next(&at, " ", &word)) {
        if (word.len)
            argv[count++] = arena_printf(&run->arena, "%.*s", (int)word.len, word.ptr);
    }
    argv[count] = arena_strdup(&run->arena, argument);
    return argv;
}

static void start_program(struct ctl *ctl, struct trigger_run *run, const char *argument)
{
    const TriggerSpec *spec = run->spec;
    const Config *config = state_config(ctl->state);
    char *env[] = { (char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                    arena_printf(&run->arena, "SLURM_CLUSTER_NAME=%s", config->cluster_name),
                    arena_printf(&run->arena, "USER=%s", spec->user ? spec->user : ""), NULL };
    struct ctl_hook_user user = { spec->uid, spec->gid, spec->gids, spec->n_gids };
    struct ctl_hook hook = { .what = "trigger",
                             .argv = words_of(run, argument),
                             .env = env,
                             .timeout_s = PROGRAM_TIMEOUT_S,
                             .must_run = true,
                             .user = &user };

    log_info("trigger.run", "trigger=%u uid=%u program=%s argument=%s", spec->id, spec->uid,
             spec->program, argument);
    if (hook.argv[0])
        ctl->io.hook(ctl->io.ctx, &hook);
}

static void agreed(struct ctl *ctl, void *arg, const struct events *events, const struct err *err)
{
    struct trigger_run *run = arg;
    const struct event *answer = events ? ctl_answer(events) : NULL;

    map_del_num(&ctl->site.triggers, run->spec->id);
    if (!err && answer && answer->code == ERR_OK) {
        events_each(event, events)
        {
            if (event->kind == EVENT_TRIGGER_RUN)
                start_program(ctl, run, event->text);
        }
    }
    run_free(run);
}

static void propose_run(struct ctl *ctl, const struct trigger *trigger)
{
    struct trigger_run *run = NEW(struct trigger_run);
    CmdTrigger msg = CMD_TRIGGER__INIT;
    Command command = CTL_COMMAND(TRIGGER, .trigger = &msg);
    size_t len = trigger_spec__get_packed_size(trigger->spec);

    arena_init(&run->arena);
    ProtobufCAllocator allocator = pb_arena(&run->arena);
    uint8_t *packed = arena_alloc(&run->arena, len + 1);
    trigger_spec__pack(trigger->spec, packed);
    run->spec = trigger_spec__unpack(&allocator, len, packed);
    msg.has_run = true;
    msg.run = trigger->spec->id;
    map_put_num(&ctl->site.triggers, trigger->spec->id, run);
    ctl_propose_own(ctl, &command, agreed, run);
}

void ctl_triggers_look(struct ctl *ctl)
{
    for (size_t i = 0; i < state_trigger_count(ctl->state); i++) {
        const struct trigger *trigger = state_trigger_at(ctl->state, i);
        if (trigger_is_due(ctl->state, trigger) &&
            !map_get_num(&ctl->site.triggers, trigger->spec->id))
            propose_run(ctl, trigger);
    }
}

void ctl_happened(struct ctl *ctl, unsigned types)
{
    CmdTrigger msg = CMD_TRIGGER__INIT;
    Command command = CTL_COMMAND(TRIGGER, .trigger = &msg);
    unsigned wanted = 0;

    for (size_t i = 0; ctl->leading && i < state_trigger_count(ctl->state); i++)
        wanted |= state_trigger_at(ctl->state, i)->spec->types & types;
    if (!wanted)
        return;
    msg.has_happened = true;
    msg.happened = wanted;
    ctl_propose(ctl, &command, NULL, NULL);
}

/* ---- what people ask ---- */

/* (1) */
static int may_set(const struct ctl *ctl, const struct ctl_who *who, struct err *err)
{
    if (!who->is_admin)
        return err_set(err, ERR_PERMISSION,
                       "only administrators (SlurmUser, root) set triggers: their programs run on "
                       "the controller's host");
    if (ctl->site.uid != 0 && who->uid != ctl->site.uid)
        return err_set(err, ERR_PERMISSION,
                       "the controller runs as uid %u and can run programs only as that user: set "
                       "the trigger as that user",
                       ctl->site.uid);
    return 0;
}

void ctl_set_trigger(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const SetTriggerRequest *request = (const void *)message;
    const struct ctl_who *who = ask->who;
    CmdTrigger msg = CMD_TRIGGER__INIT;
    Command command = CTL_COMMAND(TRIGGER, .trigger = &msg);
    struct err err = { 0 };

    if (!request->trigger)
        err_set(&err, ERR_INVALID, "no trigger was named");
    else if (may_set(ctl, who, &err) == 0 &&
             (!request->trigger->program || request->trigger->program[0] != '/'))
        err_set(&err, ERR_INVALID, "the program must be an absolute path");
    if (err.code) {
        ask->ops->fail(ask, &err);
        return;
    }
    TriggerSpec spec = *request->trigger;
    spec.has_id = false;
    spec.has_uid = spec.has_gid = true;
    spec.uid = who->uid;
    spec.gid = who->gid;
    spec.user = (char *)(uintptr_t)who->user;
    spec.gids = (uint32_t *)(uintptr_t)who->gids;
    spec.n_gids = who->gid_count;
    msg.set = &spec;
    ctl_propose_ask(ctl, ask, &command, ctl_done_reply, ask);
}

void ctl_clear_triggers(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const ClearTriggersRequest *request = (const void *)message;
    CmdTrigger msg = CMD_TRIGGER__INIT;
    Command command = CTL_COMMAND(TRIGGER, .trigger = &msg);
    struct err err = { 0 };

    msg.has_clear_id = request->has_id;
    msg.clear_id = request->id;
    msg.has_clear_job_id = request->has_job_id;
    msg.clear_job_id = request->job_id;
    msg.has_clear_uid = request->has_uid;
    msg.clear_uid = request->uid;
    if (!ask->who->is_admin) {
        if (request->has_uid && request->uid != ask->who->uid) {
            err_code(&err, ERR_PERMISSION);
            ask->ops->fail(ask, &err);
            return;
        }
        msg.has_clear_uid = true;
        msg.clear_uid = ask->who->uid;
    }
    ctl_propose_ask(ctl, ask, &command, ctl_done_reply, ask);
}

/* One that was pulled is not shown any more. */
void ctl_list_triggers(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    size_t count = state_trigger_count(ctl->state);
    ListTriggersReply reply = LIST_TRIGGERS_REPLY__INIT;

    (void)message;
    reply.triggers = ARENA_ARRAY(ask->arena, TriggerSpec *, count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct trigger *trigger = state_trigger_at(ctl->state, i);
        if (!trigger->pulled_us || trigger->spec->permanent)
            reply.triggers[reply.n_triggers++] = trigger->spec;
    }
    ask->ops->reply(ask, &reply.base);
}
