/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_etcd_model.c - the etcd engine over a model of etcd and a network that a seed makes bad
 *
 * Three controllers lead in turn and append numbers, while links lose, delay and cut, controllers
 * crash and come back, depose each other, take snapshots and trim. Afterwards everything heals, and:
 * what was acknowledged is there once, what was refused is not there, all replicas agree.
 */
#include "log/etcd.h"
#include "log/etcd_model.h"
#include "log/memory.h"
#include "log/test/recorder.h"
#include "sys/rng.h"

enum { CONTROLLERS = 3, SEEDS = 100, BAD_MS = 20000, GOOD_MS = 12000, NUMBERS = 20000 };
enum fate { FATE_UNKNOWN, FATE_ACKNOWLEDGED, FATE_REFUSED };

struct world;

struct controller {
    struct world *world;
    char name[8];
    struct etcd_client *client;
    struct memory_disk *disk;
    struct log *log;
    VEC(uint64_t) seen;
    VEC(uint64_t) sent; /* appended and not yet answered, oldest first */
    struct str snapshot;
    struct log_point snapshot_at;
    uint64_t wanted; /* a snapshot from a peer */
    uint32_t had;    /* entries of a batch that it has taken a part of */
    bool leads, failed;
    bool forges; /* has access to etcd and no key */
};

struct world {
    struct etcd_model *model;
    struct controller controllers[CONTROLLERS];
    enum fate fates[NUMBERS];
    uint64_t next;
    bool sealed; /* all entries must be */
    unsigned leads, crashes, restores, trims;
    uint64_t acknowledged, refused, unknown;
    unsigned parts[2]; /* batches that were not applied at once: of others, our own */
};

static int on_restore(void *ctx, struct snapshot_reader *snapshot, struct err *err)
{
    struct controller *self = ctx;
    uint64_t number;

    vec_clear(&self->seen);
    self->had = 0;
    while (snapshot_read(snapshot, &number, sizeof(number), err) == sizeof(number))
        vec_push(&self->seen, number);
    self->world->restores++;
    return 0;
}

static int on_apply(void *ctx, const struct log_batch *batch, struct err *err)
{
    struct controller *self = ctx;
    struct log_walk walk;
    struct log_entry entry;
    uint64_t number;

    (void)err;
    for (log_walk_init(&walk, batch); log_walk_next(&walk, &entry);) {
        if (walk.done <= self->had)
            continue;
        if (walk.done > 1 && rng_below(4) == 0) { /* enough for now */
            self->had = walk.done - 1;
            self->world->parts[batch->own]++;
            return LOG_APPLY_MORE;
        }
        assert_int_equal(entry.index, self->seen.len + 1);
        memcpy(&number, entry.command.ptr, sizeof(number));
        vec_push(&self->seen, number);
        if (batch->own) {
            assert_true(self->sent.len > 0);
            assert_int_equal(self->sent.items[0], number);
            vec_remove(&self->sent, 0);
            assert_int_equal(self->world->fates[number], FATE_UNKNOWN);
            self->world->fates[number] = FATE_ACKNOWLEDGED;
            self->world->acknowledged++;
        }
    }
    self->had = 0;
    return 0;
}

static void on_refused(void *ctx, uint32_t count, const struct err *why)
{
    struct controller *self = ctx;

    for (; count; count--) {
        assert_true(self->sent.len > 0);
        if (why->code == ERR_CONNECTION_LOST) { /* nobody can tell */
            self->world->unknown++;
            vec_remove(&self->sent, 0);
            continue;
        }
        assert_int_equal(self->world->fates[self->sent.items[0]], FATE_UNKNOWN);
        self->world->fates[self->sent.items[0]] = FATE_REFUSED;
        self->world->refused++;
        vec_remove(&self->sent, 0);
    }
}

static void on_role(void *ctx, enum log_role role, const char *leader)
{
    struct controller *self = ctx;

    (void)leader;
    self->leads = role == LOG_LEADS;
    self->world->leads += self->leads;
}

static void on_failed(void *ctx, const struct err *why)
{
    struct controller *self = ctx;

    if (!strstr(why->text, "has no seal"))
        print_message("%s failed: %s\n", self->name, why->text);
    self->failed = true;
}

static bool on_live(void *ctx, const uint8_t digest[LOG_DIGEST_BYTES])
{
    (void)ctx, (void)digest;
    return true;
}

static void poll_log(void *arg)
{
    struct controller *self = arg;

    if (self->log)
        log_poll(self->log);
}

static void on_wake(void *ctx)
{
    struct controller *self = ctx;

    etcd_model_at(self->world->model, (unsigned)rng_below(rng_below(20) ? 2 : 30), poll_log, self);
}

static void bring_snapshot(void *arg)
{
    struct controller *self = arg, *best = NULL;

    if (!self->log || !self->wanted)
        return;
    for (int i = 0; i < CONTROLLERS; i++) {
        struct controller *peer = &self->world->controllers[i];
        if (peer != self && peer->snapshot_at.index >= self->wanted &&
            (!best || peer->snapshot_at.index > best->snapshot_at.index))
            best = peer;
    }
    assert_non_null(best); /* trimmed means that a majority holds one */
    self->wanted = 0;
    str_clear(&self->snapshot);
    str_add_len(&self->snapshot, best->snapshot.data, best->snapshot.len);
    self->snapshot_at = best->snapshot_at;
    memory_disk_snapshot(self->disk, best->snapshot_at,
                         (struct span){ best->snapshot.data, best->snapshot.len });
    assert_int_equal(log_snapshot_fetched(self->log, best->snapshot_at.index, NULL), 0);
}

static void on_need_snapshot(void *ctx, uint64_t index)
{
    struct controller *self = ctx;

    self->wanted = index;
    etcd_model_at(self->world->model, 30, bring_snapshot, self);
}

static const struct log_owner owner = {
    .restore = on_restore,
    .apply = on_apply,
    .refused = on_refused,
    .role = on_role,
    .failed = on_failed,
    .payload_live = on_live,
    .wake = on_wake,
    .need_snapshot = on_need_snapshot,
};

static void start_controller(struct controller *self)
{
    struct log_config config = {
        .dir = "/nowhere", .name = self->name, .owner = &owner, .owner_ctx = self
    };
    static const uint8_t seal_key[ETCD_SEAL_KEY_BYTES] = "secret", cluster_id[16] = "cluster";
    struct etcd_options options = { .io = &etcd_model_io,
                                    .seal_key = self->forges ? NULL : seal_key,
                                    .cluster_id = cluster_id,
                                    .io_ctx = self->client,
                                    .prefix = "/spur/test",
                                    .controllers = CONTROLLERS,
                                    .disk = self->disk };

    vec_clear(&self->seen);
    vec_clear(&self->sent);
    self->leads = false;
    self->wanted = self->had = 0;
    self->log = log_etcd_new(&config, &options, NULL);
    assert_non_null(self->log);
    if (self->world->sealed)
        log_require_seals(self->log);
    assert_int_equal(log_start(self->log, NULL), 0);
}

static void crash(struct controller *self)
{
    /* What it sent and never heard of may be in the log or not: its fate stays unknown. */
    log_free(TAKE(self->log));
    vec_clear(&self->sent);
    self->leads = false;
    self->world->crashes++;
}

static void append_some(struct world *world, struct controller *self)
{
    for (uint64_t i = 1 + rng_below(5); i && world->next < NUMBERS; i--) {
        if (append_number(self->log, world->next, rng_below(2) ? 40 : 0, NULL) == 0)
            vec_push(&self->sent, world->next++);
    }
    log_flush(self->log);
}

static void snapshot(struct controller *self)
{
    struct log_point point = log_point(self->log);
    struct log_status status;

    log_status(self->log, &status);
    if (point.index <= status.snapshot || self->wanted || self->had)
        return;
    str_clear(&self->snapshot);
    struct snapshot_writer *writer = snapshot_create_memory(point, &self->snapshot);
    snapshot_write(writer, self->seen.items, self->seen.len * sizeof(uint64_t), NULL);
    assert_int_equal(snapshot_finish(writer, NULL), 0);
    self->snapshot_at = point;
    memory_disk_snapshot(self->disk, point,
                         (struct span){ self->snapshot.data, self->snapshot.len });
    assert_int_equal(log_snapshot_taken(self->log, point, NULL), 0);
}

static void worsen(struct controller *self)
{
    struct etcd_link *link = etcd_model_link(self->client);

    link->max_ms = 1 + (unsigned)rng_below(30);
    link->lose_request = rng_below(3) ? 0 : (unsigned)rng_below(300);
    link->lose_reply = rng_below(3) ? 0 : (unsigned)rng_below(300);
    link->cut = rng_below(5) == 0;
}

static void misfortune(struct world *world)
{
    struct controller *self = &world->controllers[rng_below(CONTROLLERS)];

    switch (rng_below(12)) {
    case 0:
        if (self->log)
            crash(self);
        break;
    case 1:
    case 2:
        if (!self->log)
            start_controller(self);
        break;
    case 3:
    case 4:
        worsen(self);
        break;
    case 5:
        etcd_model_set_quorum(world->model, rng_below(3) != 0);
        break;
    case 6:
        if (self->log && rng_below(4) == 0)
            log_depose(self->log, log_leader(self->log).term);
        break;
    case 7:
        if (self->log && rng_below(4) == 0)
            log_resign(self->log);
        break;
    case 8:
        etcd_model_set_full(world->model, rng_below(6) == 0);
        break;
    default:
        if (self->log && rng_below(3) == 0)
            snapshot(self);
    }
}

static void run_until(struct world *world, int64_t end_ms, bool bad)
{
    int64_t next_trouble = 0, next_work = 0;

    while (etcd_model_now(world->model) < end_ms && etcd_model_step(world->model)) {
        int64_t now = etcd_model_now(world->model);
        if (bad && now >= next_trouble) {
            misfortune(world);
            next_trouble = now + (int64_t)rng_below(300);
        }
        for (int i = 0; i < CONTROLLERS && now >= next_work; i++) {
            struct controller *self = &world->controllers[i];
            assert_false(self->failed);
            if (self->log && self->leads)
                append_some(world, self);
        }
        if (now >= next_work)
            next_work = now + (int64_t)rng_below(20);
    }
}

static void heal(struct world *world)
{
    etcd_model_set_quorum(world->model, true);
    etcd_model_set_full(world->model, false);
    for (int i = 0; i < CONTROLLERS; i++) {
        *etcd_model_link(world->controllers[i].client) =
            (struct etcd_link){ .min_ms = 1, .max_ms = 2 };
        if (!world->controllers[i].log)
            start_controller(&world->controllers[i]);
    }
}

static void check(struct world *world, uint64_t seed)
{
    const struct controller *first = &world->controllers[0];
    unsigned leaders = 0;
    static unsigned count[NUMBERS];

    memset(count, 0, sizeof(count));
    for (int i = 0; i < CONTROLLERS; i++) {
        const struct controller *self = &world->controllers[i];
        leaders += self->leads;
        if (self->sent.len != 0)
            fail_msg("seed %llu: %zu unanswered", (unsigned long long)seed, self->sent.len);
        assert_int_equal(log_point(self->log).crc, log_point(first->log).crc);
        assert_int_equal(self->seen.len, first->seen.len);
        for (size_t j = 0; j < self->seen.len; j++)
            assert_int_equal(self->seen.items[j], first->seen.items[j]);
    }
    if (leaders != 1)
        fail_msg("seed %llu: %u leaders", (unsigned long long)seed, leaders);
    for (size_t j = 0; j < first->seen.len; j++)
        count[first->seen.items[j]]++;
    for (uint64_t n = 0; n < world->next; n++) {
        if (count[n] > 1 || (world->fates[n] == FATE_ACKNOWLEDGED && count[n] != 1) ||
            (world->fates[n] == FATE_REFUSED && count[n] != 0))
            fail_msg("seed %llu: number %llu, fate %d, is there %u times", (unsigned long long)seed,
                     (unsigned long long)n, world->fates[n], count[n]);
    }
}

/* Appends nothing any more and lets what is under way end. */
static void settle_world(struct world *world)
{
    int64_t end = etcd_model_now(world->model) + 10000;

    while (etcd_model_now(world->model) < end && etcd_model_step(world->model))
        ;
}

static struct etcd_model *shown;
static void loud(void *ctx, enum log_level level, const char *event, const char *text)
{
    (void)ctx, (void)level;
    print_message("%8lld %s %s\n", (long long)etcd_model_now(shown), event, text);
}

static void one_seed(uint64_t seed, struct world *totals)
{
    struct world *world = NEW(struct world);

    rng_seed(seed);
    world->model = shown = etcd_model_new(seed);
    world->sealed = seed % 2;
    for (int i = 0; i < CONTROLLERS; i++) {
        struct controller *self = &world->controllers[i];
        self->world = world;
        snprintf(self->name, sizeof(self->name), "c%d", i + 1);
        self->client = etcd_model_client(world->model);
        self->disk = memory_disk_new();
        start_controller(self);
    }
    run_until(world, BAD_MS, true);
    heal(world);
    run_until(world, BAD_MS + GOOD_MS, false);
    settle_world(world);
    check(world, seed);
    totals->leads += world->leads;
    totals->crashes += world->crashes;
    totals->restores += world->restores;
    for (int i = 0; i < 2; i++)
        totals->parts[i] += world->parts[i];
    totals->acknowledged += world->acknowledged;
    totals->refused += world->refused;
    totals->unknown += world->unknown;
    for (int i = 0; i < CONTROLLERS; i++) {
        struct controller *self = &world->controllers[i];
        log_free(self->log);
        memory_disk_free(self->disk);
        vec_done(&self->seen);
        vec_done(&self->sent);
        str_done(&self->snapshot);
    }
    etcd_model_free(world->model);
    free(world);
}

/* SPUR_SEEDS=N runs that many, SPUR_SEED=N only that one, and tells its story. */
static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    uint64_t number = otherwise;

    if (text)
        assert_true(str_to_u64(text, UINT32_MAX, &number));
    return number;
}

static const uint64_t found_something[] = {
    636,  /* appended while the page of a read was being applied */
    1112, /* another's entry applied while the fate of our own was unknown */
};

static void every_seed_ends_in_agreement(void **state)
{
    static struct world totals;
    uint64_t one = number_from("SPUR_SEED", 0), seeds = number_from("SPUR_SEEDS", SEEDS);

    (void)state;
    log_use(one ? loud : quiet, NULL);
    for (uint64_t seed = one ? one : 1; seed <= (one ? one : seeds); seed++)
        one_seed(seed, &totals);
    for (size_t i = 0; i < ARRAY_LEN(found_something) && !one; i++)
        one_seed(found_something[i], &totals);
    print_message(
        "acknowledged %llu, refused %llu, untold %llu, leaders %u, crashes %u, restores %u; lost 0\n",
        (unsigned long long)totals.acknowledged, (unsigned long long)totals.refused,
        (unsigned long long)totals.unknown, totals.leads, totals.crashes, totals.restores);
    assert_true(totals.acknowledged > 0 && totals.parts[0] > 0 && totals.parts[1] > 0 &&
                (one || totals.restores > 0));
}

static void append_one(struct controller *self, uint64_t number)
{
    struct world *world = self->world;

    for (unsigned i = 0; i < 100000 && !self->leads && etcd_model_step(world->model); i++)
        continue;
    assert_true(self->leads);
    size_t before = self->seen.len;
    vec_push(&self->sent, number);
    assert_int_equal(
        log_append(self->log, (struct span){ (char *)&number, sizeof(number) }, NULL, 0, NULL), 0);
    log_flush(self->log);
    for (unsigned i = 0; i < 100000 && self->seen.len == before && etcd_model_step(world->model);
         i++)
        continue;
    assert_int_equal(self->seen.len, before + 1);
}

/* Somebody who can write to etcd and has no key of the controllers leads and appends. */
static void an_entry_that_no_controller_wrote_is_not_applied(void **state)
{
    struct world *world = NEW(struct world);
    struct controller *honest = &world->controllers[0], *forger = &world->controllers[1];

    (void)state;
    log_use(quiet, NULL);
    rng_seed(1);
    world->model = shown = etcd_model_new(1);
    world->sealed = true;
    for (int i = 0; i < 2; i++) {
        struct controller *self = &world->controllers[i];
        self->world = world;
        snprintf(self->name, sizeof(self->name), "c%d", i + 1);
        self->client = etcd_model_client(world->model);
        self->disk = memory_disk_new();
    }
    start_controller(honest);
    append_one(honest, 1);
    append_one(honest, 2);
    crash(honest);
    forger->forges = true;
    start_controller(forger);
    append_one(forger, 3);
    crash(forger);
    start_controller(honest);
    for (unsigned i = 0; i < 100000 && !honest->failed && etcd_model_step(world->model); i++)
        continue;
    assert_true(honest->failed);
    assert_int_equal(honest->seen.len, 2);
    for (int i = 0; i < 2; i++) {
        struct controller *self = &world->controllers[i];
        log_free(self->log);
        memory_disk_free(self->disk);
        vec_done(&self->seen);
        vec_done(&self->sent);
    }
    etcd_model_free(world->model);
    free(world);
}

UNIT_MAIN(UNIT(an_entry_that_no_controller_wrote_is_not_applied),
          UNIT(every_seed_ends_in_agreement))
