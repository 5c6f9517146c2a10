/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_wide.c - jobs of many nodes: how a start names them, and what the digest makes of them
 */
#include "core/level.h"
#include "core/test/fixture.h"
#include "core/view/view.h"

enum { NODES = 100 };

static uint32_t submit(struct fix *fix, uint32_t nodes)
{
    JobSpec spec = fix_spec();

    SET(&spec, min_nodes, nodes);
    SET(&spec, max_nodes, nodes);
    SET(&spec, ntasks, nodes);
    return fix_submit(fix, &spec);
}

/* On n1 and those of `also`; with `apart` each of these has an entry of its own. */
static enum err_code start(struct fix *fix, uint32_t id, const char *also, bool apart)
{
    Command cmd = COMMAND__INIT;
    CmdStart msg = CMD_START__INIT;
    JobStart one = JOB_START__INIT, *starts[1] = { &one };
    Allocation allocation = ALLOCATION__INIT;
    NodeAlloc allocs[NODES], *list[NODES];
    CLEANUP(freep) char *names = mem_strdup(also);
    char *rest = names, *name = (char *)"n1";

    for (; name && allocation.n_nodes < NODES; name = rest ? strsep(&rest, ",") : NULL) {
        NodeAlloc *alloc = list[allocation.n_nodes] = &allocs[allocation.n_nodes];
        node_alloc__init(alloc);
        alloc->node = name;
        SET(alloc, cpus, 2);
        SET(alloc, tasks, 1);
        SET(alloc, mem_mb, 10);
        alloc->cpu_ids = (char *)"0-1";
        allocation.n_nodes++;
        if (!apart) {
            alloc->also = (char *)(uintptr_t)also;
            break;
        }
    }
    allocation.nodes = list;
    allocation.partition = (char *)"main";
    SET(&one, job_id, id);
    SET(&one, attempt, fix_get(fix, id)->attempt + 1);
    one.allocation = &allocation;
    msg.n_starts = 1;
    msg.starts = starts;
    cmd.what_case = COMMAND__WHAT_START;
    cmd.start = &msg;
    return fix_apply(fix, &cmd);
}

/* "n2,n3,…": so many. */
static char *names(unsigned count)
{
    struct str out = { 0 };

    for (unsigned i = 0; i < count; i++)
        str_addf(&out, "%sn%u", i ? "," : "", i + 2);
    return out.data;
}

static void nodes_that_have_the_same_are_named_together(void **unused)
{
    static const unsigned counts[] = { 2, 5, 64, 65, NODES };

    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        struct fix *together = fix_new(NODES), *apart = fix_new(NODES);
        uint32_t a = submit(together, counts[i]), b = submit(apart, counts[i]);
        CLEANUP(freep) char *also = names(counts[i] - 1);
        assert_int_equal(start(together, a, also, false), ERR_OK);
        assert_int_equal(start(apart, b, also, true), ERR_OK);
        assert_int_equal(fix_get(together, a)->run->count, counts[i]);
        assert_int_equal(core_digest(together->state), core_digest(apart->state));
        fix_free(together);
        fix_free(apart);
    }
}

static void names_that_are_wrong_are_refused(void **unused)
{
    static const struct {
        uint32_t nodes;
        const char *also;
        enum err_code code;
    } rows[] = {
        { 3, "n2,n3", ERR_OK },
        { 3, "n2,n3,", ERR_OK },
        { 3, "n2,n999", ERR_INVALID_NODE_NAME },
        { 3, "n2,,", ERR_INVALID_NODE_NAME },
        { 3, "n2,n2", ERR_NODES_BUSY },
        { 3, "n2,n1", ERR_NODES_BUSY },
        { 1, "", ERR_OK },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fix *fix = fix_new(5);
        uint32_t id = submit(fix, rows[i].nodes);
        assert_int_equal(start(fix, id, rows[i].also, false), rows[i].code);
        assert_int_equal(fix_get(fix, id)->state == JOB_PENDING, rows[i].code != ERR_OK);
        fix_free(fix);
    }
}

/* The sum follows each of them; the fixture compares it with one that is worked out anew. */
static void nodes_are_given_back_one_by_one(void **unused)
{
    struct fix *fix = fix_new_recorded(NODES, true);
    CLEANUP(freep) char *also = names(NODES - 1);
    uint32_t id = submit(fix, NODES);

    assert_int_equal(start(fix, id, also, false), ERR_OK);
    assert_int_equal(fix_ready(fix, id), ERR_OK);
    uint64_t before = fix_get(fix, id)->run->parts_hash;
    assert_true(before);
    assert_int_equal(fix_finish_held(fix, id, 0), ERR_OK);
    for (unsigned i = NODES; i > 0; i--) {
        char name[16];
        snprintf(name, sizeof(name), "n%u", i);
        assert_int_equal(fix_release(fix, id, name), ERR_OK);
        uint64_t now = fix_get(fix, id)->run->parts_hash;
        assert_true(now != before);
        before = now;
        if (i % 25 == 1)
            state_free(fix_copy(fix));
    }
    assert_int_equal(state_node(fix->state, "n50")->cpus_used, 0);
    if (getenv("CORE_RECORD")) { /* recorded/README.md */
        char name[32];
        snprintf(name, sizeof(name), "level%u-wide", (unsigned)LEVEL_NEWEST);
        fix_write_history(fix, getenv("CORE_RECORD"), name);
    }
    fix_free(fix);
}

static int collect(void *to, const void *bytes, size_t len)
{
    str_add_len(to, bytes, len);
    return 0;
}

/* The same snapshot with another digest in its head. */
static struct state *read_with(const struct str *bytes, uint64_t digest, bool level)
{
    size_t len = 0, was;
    struct err err = { 0 };

    for (unsigned i = 0; i < 4; i++)
        len |= (size_t)(uint8_t)bytes->data[i] << 8 * i;
    was = len + 4;
    SnapshotRecord *head = snapshot_record__unpack(NULL, len, (uint8_t *)bytes->data + 4);
    head->head->digest = digest;
    head->head->has_feature_level = level;
    len = snapshot_record__get_packed_size(head);
    uint8_t *fresh = mem_new(len + 4);
    for (unsigned i = 0; i < 4; i++)
        fresh[i] = (uint8_t)(len >> 8 * i);
    snapshot_record__pack(head, fresh + 4);
    snapshot_record__free_unpacked(head, NULL);
    struct restore *restore = core_restore_begin();
    core_restore_feed(restore, fresh, len + 4, &err);
    core_restore_feed(restore, bytes->data + was, bytes->len - was, &err);
    free(fresh);
    return core_restore_end(restore, &err);
}

/* What a build wrote that hashed one node after the other is still believed, and still compared. */
static void snapshots_of_before_are_read(void **unused)
{
    struct fix *fix = fix_new(NODES);
    CLEANUP(freep) char *also = names(NODES - 1);
    struct str bytes = { 0 };

    assert_int_equal(start(fix, submit(fix, NODES), also, false), ERR_OK);
    core_snapshot_write(fix->state, collect, &bytes);
    uint64_t now = core_digest(fix->state), before = core_digest_level(fix->state, 0);
    assert_true(now != before);
    struct state *state = read_with(&bytes, before, false);
    assert_non_null(state);
    assert_int_equal(core_digest(state), now);
    state_free(state);
    state = read_with(&bytes, now, true);
    assert_non_null(state);
    state_free(state);
    assert_null(read_with(&bytes, now, false));
    assert_null(read_with(&bytes, before, true));
    str_done(&bytes);
    fix_free(fix);
}

UNIT_MAIN(UNIT(nodes_that_have_the_same_are_named_together), UNIT(names_that_are_wrong_are_refused),
          UNIT(nodes_are_given_back_one_by_one), UNIT(snapshots_of_before_are_read))
