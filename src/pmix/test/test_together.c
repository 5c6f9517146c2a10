/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes do together ends on all of them with the same bytes, in whatever order messages come. */
#include "test/unit.h"

#include "base/str.h"
#include "pmix/coll.h"

enum { NODES = 3, MESSAGES_MAX = 64 };

struct message {
    uint32_t from, to;
    uint8_t bytes[256];
    size_t len;
};

/* Three nodes and what is on its way between them. */
struct world {
    struct colls nodes[NODES];
    struct message messages[MESSAGES_MAX];
    size_t count;
    struct str heard[NODES]; /* "token:data;" of what ended there */
};

struct node {
    struct world *world;
    uint32_t number;
};
static struct node refs[NODES];

static void on_send(void *ctx, const struct bitset *to, PmixTalk *talk)
{
    struct node *node = ctx;

    bitset_each (other, to) {
        if (other == node->number)
            continue;
        assert_true(node->world->count < MESSAGES_MAX);
        struct message *message = &node->world->messages[node->world->count++];
        assert_true(pmix_talk__get_packed_size(talk) <= sizeof(message->bytes));
        message->from = node->number;
        message->to = (uint32_t)other;
        message->len = pmix_talk__pack(talk, message->bytes);
    }
}

static void on_done(void *ctx, void *token, bool ok, const ProtobufCBinaryData *data,
                    uint64_t number)
{
    struct node *node = ctx;

    str_addf(&node->world->heard[node->number], "%s:%s%.*s/%u;", (const char *)token,
             ok ? "" : "failed", (int)data->len, data->data ? (const char *)data->data : "",
             (unsigned)number);
}

static void world_init(struct world *world)
{
    *world = (struct world){ 0 };
    for (uint32_t i = 0; i < NODES; i++) {
        refs[i] = (struct node){ .world = world, .number = i };
        colls_init(&world->nodes[i], i, NODES);
        world->nodes[i].ctx = &refs[i];
        world->nodes[i].send = on_send;
        world->nodes[i].done = on_done;
    }
}

static void world_done(struct world *world)
{
    for (uint32_t i = 0; i < NODES; i++) {
        colls_done(&world->nodes[i]);
        str_done(&world->heard[i]);
    }
}

static bool deliver(struct world *world, size_t index)
{
    struct message message = world->messages[index];
    struct colls *to = &world->nodes[message.to];
    bool ok = false;

    memmove(&world->messages[index], &world->messages[index + 1],
            (--world->count - index) * sizeof(message));
    PmixTalk *talk = pmix_talk__unpack(NULL, message.len, message.bytes);
    assert_non_null(talk);
    if (talk->what_case == PMIX_TALK__WHAT_PART)
        ok = coll_take_part(to, message.from, talk->part);
    else if (talk->what_case == PMIX_TALK__WHAT_WHOLE)
        ok = coll_take_whole(to, talk->whole);
    pmix_talk__free_unpacked(talk, NULL);
    return ok;
}

static void begin(struct world *world, uint32_t node, const char *key, const char *nodes,
                  const char *data, const char *token)
{
    struct bitset among;

    bitset_init(&among, NODES);
    assert_true(bitset_parse(&among, nodes));
    coll_begin(&world->nodes[node], key, &among, data, strlen(data), (void *)token);
    bitset_done(&among);
}

static void heard(struct world *world, uint32_t node, const char *text)
{
    assert_string_equal(str_text(&world->heard[node]), text);
}

static void test_all(void **state)
{
    /* Which node begins when, and whether messages come first or last first. */
    for (unsigned round = 0; round < 12; round++) {
        struct world world;
        world_init(&world);
        for (uint32_t i = 0; i < NODES; i++) {
            uint32_t node = (round + i * (round % 2 ? 1 : 2)) % NODES;
            const char *data[] = { "a", "b", "c" };
            begin(&world, node, "F0-5", "0-2", data[node], "t");
        }
        while (world.count)
            assert_true(deliver(&world, round > 5 ? world.count - 1 : 0));
        for (uint32_t i = 0; i < NODES; i++)
            heard(&world, i, "t:abc/1;");
        world_done(&world);
    }
}

static void test_turns(void **state)
{
    struct world world;

    world_init(&world);
    /* The second node is in its second turn before the first began its first. */
    begin(&world, 1, "F2,4", "1-2", "x", "one");
    begin(&world, 2, "F2,4", "1-2", "y", "one");
    while (world.count)
        assert_true(deliver(&world, 0));
    begin(&world, 2, "F2,4", "1-2", "v", "two");
    begin(&world, 2, "G2,4 friends", "1-2", "g", "group");
    assert_true(deliver(&world, 1));
    assert_true(deliver(&world, 0));
    begin(&world, 1, "G2,4 friends", "1-2", "h", "group");
    begin(&world, 1, "F2,4", "1-2", "u", "two");
    while (world.count)
        assert_true(deliver(&world, 0));
    heard(&world, 1, "one:xy/1;group:hg/2;two:uv/3;");
    heard(&world, 2, "one:xy/1;group:hg/2;two:uv/3;");
    heard(&world, 0, "");
    world_done(&world);
}

static void test_alone(void **state)
{
    struct world world;

    world_init(&world);
    begin(&world, 1, "F3", "1", "mine", "t");
    heard(&world, 1, "t:mine/1;");
    assert_int_equal(world.count, 0);
    world_done(&world);
}

static void test_gone(void **state)
{
    struct world world;

    world_init(&world);
    begin(&world, 0, "F0-5", "0-2", "a", "t");
    begin(&world, 1, "F0-5", "0-2", "b", "t");
    assert_true(deliver(&world, 0));
    coll_take_gone(&world.nodes[0], 2); /* the first tells the others */
    heard(&world, 0, "t:failed/0;");
    while (world.count) {
        bool to_gone = world.messages[0].to == 2;
        assert_int_equal(deliver(&world, 0), !to_gone);
    }
    heard(&world, 1, "t:failed/0;");
    begin(&world, 0, "F0-5", "0-2", "a",
          "u"); /* and what begins later, when all others are in it */
    heard(&world, 0, "t:failed/0;");
    begin(&world, 1, "F0-5", "0-2", "b", "u");
    while (world.count) {
        bool to_gone = world.messages[0].to == 2;
        assert_int_equal(deliver(&world, 0), !to_gone);
    }
    heard(&world, 0, "t:failed/0;u:failed/0;");
    heard(&world, 1, "t:failed/0;u:failed/0;");
    begin(&world, 1, "D0-3", "0-1", "a", "v"); /* the first itself goes */
    coll_take_gone(&world.nodes[1], 0);
    heard(&world, 1, "t:failed/0;u:failed/0;v:failed/0;");
    begin(&world, 1, "D0-3", "0-1", "a", "w");
    heard(&world, 1, "t:failed/0;u:failed/0;v:failed/0;w:failed/0;");
    world_done(&world);
}

static void test_nonsense(void **state)
{
    struct world world;
    PmixPart part = PMIX_PART__INIT;
    PmixWhole whole = PMIX_WHOLE__INIT;
    char key[] = "F0-5";

    world_init(&world);
    assert_false(coll_take_part(&world.nodes[0], 1, &part));
    assert_false(coll_take_whole(&world.nodes[0], &whole));
    part.key = whole.key = key;
    whole.turn = 1;
    assert_false(coll_take_part(&world.nodes[0], 1, &part)); /* there is no turn 0 */
    part.turn = 1000000;
    assert_false(coll_take_part(&world.nodes[0], 1, &part));
    part.turn = 1;
    assert_false(coll_take_part(&world.nodes[0], NODES, &part));
    assert_true(coll_take_part(&world.nodes[0], 1, &part));
    assert_false(coll_take_part(&world.nodes[0], 1, &part)); /* twice */
    assert_false(coll_take_whole(&world.nodes[0], &whole));  /* not begun */
    coll_take_gone(&world.nodes[0], NODES);
    world_done(&world);
}

UNIT_MAIN(UNIT(test_all), UNIT(test_turns), UNIT(test_alone), UNIT(test_gone), UNIT(test_nonsense))
