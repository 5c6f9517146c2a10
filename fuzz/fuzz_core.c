/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_core.c - whatever the log holds, the state stays whole and can be written and read back
 *
 * The bytes are commands, each behind its length (two bytes, low first), given to a small cluster.
 * The same bytes are also read as a snapshot.
 */
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "core/msg.h"
#include "fuzz/fuzz.h"
#include "wire/set.h"

static uint64_t index_of_log;

static void give(struct state *state, struct events *events, Command *cmd)
{
    SET(cmd, time_us, INT64_C(1700000000000000));
    events_clear(events);
    core_apply(state, ++index_of_log, cmd, events);
}

/* Four nodes with two GPUs each, two partitions. */
static void make_cluster(struct state *state, struct events *events)
{
    Command cmd = COMMAND__INIT;
    CmdConfig msg = CMD_CONFIG__INIT;
    Config config = CONFIG__INIT;
    NodeSpec nodes = NODE_SPEC__INIT, *list[1] = { &nodes };
    GresInventory gpu = GRES_INVENTORY__INIT, *gpus[1] = { &gpu };
    PartitionSpec parts[2] = { PARTITION_SPEC__INIT, PARTITION_SPEC__INIT };
    PartitionSpec *both[2] = { &parts[0], &parts[1] };
    char *features[1] = { (char *)"odd" };

    gpu.name = (char *)"gpu";
    gpu.type = (char *)"mi300x";
    SET(&gpu, count, 2);
    nodes.name = (char *)"n[1-4]";
    nodes.n_gres = nodes.n_features = 1;
    nodes.gres = gpus;
    nodes.features = features;
    SET(&nodes, cpus, 4);
    SET(&nodes, threads_per_core, 2);
    SET(&nodes, memory_mb, 4000);
    parts[0].name = (char *)"main";
    parts[0].nodes = (char *)"ALL";
    SET(&parts[0], is_default, true);
    parts[1].name = (char *)"small";
    parts[1].nodes = (char *)"n[1-2]";
    config.n_nodes = 1;
    config.nodes = list;
    config.n_partitions = 2;
    config.partitions = both;
    SET(&config, config_overrides, true);
    SET(&config, max_array_size, 1000);
    SET(&config, max_job_count, 3000);
    config.licenses = (char *)"matlab:2";
    msg.config = &config;
    cmd.what_case = COMMAND__WHAT_CONFIG;
    cmd.config = &msg;
    give(state, events, &cmd);
    for (int i = 1; i <= 4; i++) {
        Command up = COMMAND__INIT;
        CmdNodeUp node = CMD_NODE_UP__INIT;
        char name[4] = { 'n', (char)('0' + i), '\0' };
        node.node = name;
        up.what_case = COMMAND__WHAT_NODE_UP;
        up.node_up = &node;
        give(state, events, &up);
    }
}

static int collect(void *to, const void *bytes, size_t len)
{
    str_add_len(to, bytes, len);
    return 0;
}

static void comes_back(const struct state *state)
{
    FUZZ_TEXT bytes = { 0 };
    struct err err = { 0 };
    struct restore *restore = core_restore_begin();

    core_snapshot_write(state, collect, &bytes);
    CHECK(core_restore_feed(restore, bytes.data, bytes.len, &err) == 0);
    struct state *again = core_restore_end(restore, &err);
    CHECK(again);
    CHECK(core_digest(again) == core_digest(state));
    CHECK(core_check(again, &err) == 0);
    CHECK(core_next_due(again) == core_next_due(state));
    state_free(again);
}

static void can_be_shown(const struct state *state)
{
    FUZZ_TEXT bytes = { 0 };

    for (const struct job *job = state_job_from(state, 0); job;
         job = state_job_from(state, (uint64_t)job->id + 1)) {
        str_clear(&bytes);
        job_pack(state, job, JOB_PACK_BRIEF, NULL, &bytes);
        Job *shown = job__unpack(NULL, bytes.len, (const uint8_t *)str_text(&bytes));
        CHECK(shown && shown->id == job->id);
        job__free_unpacked(shown, NULL);
    }
}

static void as_commands(const uint8_t *data, size_t size)
{
    struct state *state = state_new();
    struct events events;
    struct err err = { 0 };

    index_of_log = 0;
    events_init(&events);
    make_cluster(state, &events);
    while (size >= 2) {
        size_t len = data[0] | (size_t)data[1] << 8;
        data += 2;
        size -= 2;
        len = len < size ? len : size;
        Command *cmd = command__unpack(NULL, len, data);
        data += len;
        size -= len;
        if (!cmd)
            continue;
        events_clear(&events);
        core_apply(state, ++index_of_log, cmd, &events);
        CHECK(events.list.len && events.list.items[events.list.len - 1].kind == EVENT_ANSWER);
        if (index_of_log % 16 == 0)
            CHECK(core_check(state, &err) == 0);
        command__free_unpacked(cmd, NULL);
    }
    CHECK(core_check(state, &err) == 0);
    comes_back(state);
    can_be_shown(state);
    events_done(&events);
    state_free(state);
}

static void as_snapshot(const uint8_t *data, size_t size)
{
    struct restore *restore = core_restore_begin();
    struct err err = { 0 };

    core_restore_feed(restore, data, size, &err);
    struct state *state = core_restore_end(restore, &err);
    if (state)
        CHECK(core_check(state, &err) == 0);
    else
        CHECK(err.code != ERR_OK);
    state_free(state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    as_commands(data, size);
    as_snapshot(data, size);
    return 0;
}
