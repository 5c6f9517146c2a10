/* SPDX-License-Identifier: Apache-2.0 */
/*
 * level.c - the cluster's feature level, and which fields belong to which
 */
#include "core/level.h"

#include "core/record/record.h"
#include "wire/pb.h"

/* Fields that came with a level, in messages that there were before. */
static const struct row {
    const ProtobufCMessageDescriptor *message;
    unsigned field;
    unsigned level;
} rows[] = {
    { &command__descriptor, 34, LEVEL_FIRST }, /* CmdLevel: all were asked before */
    { &snapshot_head__descriptor, 16, LEVEL_LEVELS },
    { &snapshot_head__descriptor, 17, LEVEL_FIRST }, /* a pin holds the first level too */
    { &snapshot_head__descriptor, 18, LEVEL_LEVELS },
    { &cmd_node_key__descriptor, 4, LEVEL_NODE_KEYS },
    { &snapshot_head__descriptor, 19, LEVEL_ACCOUNTS },
    { &command__descriptor, 35, LEVEL_REVOKE },
    { &snapshot_record__descriptor, 11, LEVEL_REVOKE },
    { &cmd_config_change__descriptor, 6, LEVEL_ACCOUNTS },
    { &command__descriptor, 36, LEVEL_TRIGGERS },
    { &snapshot_head__descriptor, 20, LEVEL_TRIGGERS },
    { &snapshot_record__descriptor, 12, LEVEL_TRIGGERS },
    { &command__descriptor, 37, LEVEL_CRON },
    { &snapshot_record__descriptor, 13, LEVEL_CRON },
    { &cmd_requeue__descriptor, 8, LEVEL_CRON },
    { &cmd_requeue__descriptor, 9, LEVEL_CRON },
    { &job_spec__descriptor, 148, LEVEL_CRON },
    { &config__descriptor, 320, LEVEL_ACCOUNTS },
    { &config__descriptor, 321, LEVEL_ACCOUNTS },
    { &config__descriptor, 322, LEVEL_ACCOUNTS },
    { &cmd_steps__descriptor, 2, LEVEL_JOURNAL },
    { &job_spec__descriptor, 290, LEVEL_SPANK },
};

/* Levels that nodes have to know: their messages, or what they are trusted with, are others. */
static const unsigned node_levels[] = { LEVEL_FIRST };

unsigned state_level(const struct state *state)
{
    return MAX(state->level, (unsigned)LEVEL_FIRST);
}

unsigned state_level_pin(const struct state *state)
{
    return state->level_pin;
}

unsigned level_for_nodes(unsigned level)
{
    unsigned most = LEVEL_FIRST;

    for (size_t i = 0; i < ARRAY_LEN(node_levels); i++) {
        if (node_levels[i] <= level)
            most = MAX(most, node_levels[i]);
    }
    return most;
}

unsigned level_of_field(const ProtobufCMessageDescriptor *message, unsigned field)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].message == message && rows[i].field == field)
            return rows[i].level;
    }
    return 0;
}

/* ---- what a message needs ---- */

struct level_need {
    unsigned level;
    const char *field;
};

static void see_need(const ProtobufCMessage *message, void *ctx)
{
    struct level_need *need = ctx;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].message != message->descriptor || rows[i].level <= need->level)
            continue;
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(message->descriptor, rows[i].field);
        if (pb_has(message, field))
            *need = (struct level_need){ rows[i].level, field->name };
    }
    pb_each_inside(message, see_need, need);
}

unsigned level_needed(const void *message, const char **field)
{
    struct level_need need = { LEVEL_FIRST, "" };

    see_need(message, &need);
    if (field)
        *field = need.field;
    return need.level;
}

struct trim {
    unsigned level;
    struct str *names;
};

static void trim_one(const ProtobufCMessage *message, void *ctx)
{
    const struct trim *trim = ctx;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].message != message->descriptor || rows[i].level <= trim->level)
            continue;
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(message->descriptor, rows[i].field);
        if (!pb_has(message, field))
            continue;
        str_addf(trim->names, "%s%s", trim->names->len ? "," : "", field->name);
        pb_clear((void *)(uintptr_t)message, field->name);
    }
    pb_each_inside(message, trim_one, ctx);
}

void level_trim(void *message, unsigned level, struct str *names)
{
    struct trim trim = { level, names };

    trim_one(message, &trim);
}

/* ---- what a replica meets ---- */

int level_check(const struct state *state, uint64_t index, const Command *command, struct err *err)
{
    const char *what = NULL;

    if (command->what_case == COMMAND__WHAT__NOT_SET)
        what = "a command that this build does not know";
    else if (command->what_case == COMMAND__WHAT_LEVEL && command->level->level > LEVEL_NEWEST)
        what = "a feature level that this build does not know";
    else if (state_level(state) >= LEVEL_LEVELS && pb_has_unknown(command))
        what = "a field that this build does not know";
    return what ? err_set(err, ERR_NEWER_BUILD,
                          "entry %llu of the log was written by a newer build: it has %s. Start "
                          "the newer build here; the log is whole",
                          (unsigned long long)index, what)
                : 0;
}
