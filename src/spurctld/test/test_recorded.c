/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_recorded.c - the state directory of an earlier build is read, and nothing of it is lost
 *
 * recorded/levelN-state.tar.gz is what a controller of that level left behind: log, watermark and a snapshot of the
 * end. The log alone and the snapshot alone lead to the digest that `spur controller list` printed then.
 */
#include <unistd.h>

#include "core/core.h"
#include "core/level.h"
#include "log/snapshot.h"
#include "log/sqlite.h"
#include "test/unit.h"

static const struct {
    const char *file;
    uint64_t index, digest;
} recorded[] = {
    { "level1-state.tar.gz", 57, UINT64_C(0xbdb785e00e04e0eb) },
};

struct reader {
    struct state *state;
    struct events events;
    bool restored;
    unsigned applied;
};

static int on_restore(void *ctx, struct snapshot_reader *snapshot, struct err *err)
{
    struct reader *owner = ctx;
    struct restore *restore = core_restore_begin();
    uint8_t bytes[65536];
    ssize_t got;

    while ((got = snapshot_read(snapshot, bytes, sizeof(bytes), err)) > 0)
        core_restore_feed(restore, bytes, (size_t)got, err);
    state_free(owner->state);
    owner->state = core_restore_end(restore, err);
    owner->restored = true;
    return owner->state ? 0 : -(int)err->code;
}

static int on_apply(void *ctx, const struct log_batch *batch, struct err *err)
{
    struct reader *owner = ctx;
    struct log_walk walk;
    struct log_entry entry;
    int code = 0;

    for (log_walk_init(&walk, batch); code == 0 && log_walk_next(&walk, &entry);) {
        Command *command =
            command__unpack(NULL, entry.command.len, (const uint8_t *)entry.command.ptr);
        assert_non_null(command);
        events_clear(&owner->events);
        code = level_check(owner->state, entry.index, command, err);
        if (code == 0)
            core_apply(owner->state, entry.index, command, &owner->events);
        owner->applied++;
        command__free_unpacked(command, NULL);
    }
    return code;
}

static void on_refused(void *ctx, uint32_t count, const struct err *why)
{
    (void)ctx, (void)count, (void)why;
}

static void on_role(void *ctx, enum log_role role, const char *leader)
{
    (void)ctx, (void)role, (void)leader;
}

static void on_failed(void *ctx, const struct err *why)
{
    (void)ctx;
    fail_msg("%s", why->text);
}

static bool on_live(void *ctx, const uint8_t digest[LOG_DIGEST_BYTES])
{
    return state_has_payload(((struct reader *)ctx)->state, digest);
}

static void on_wake(void *ctx)
{
    (void)ctx;
}

static const struct log_owner callbacks = {
    .restore = on_restore,
    .apply = on_apply,
    .refused = on_refused,
    .role = on_role,
    .failed = on_failed,
    .payload_live = on_live,
    .wake = on_wake,
};

static void read_directory(const char *file, uint64_t index, uint64_t digest, bool snapshot)
{
    char dir[] = "/tmp/spur-recorded-XXXXXX", command[512];
    struct reader owner = { .state = state_new() };
    struct err err = { 0 };

    assert_non_null(mkdtemp(dir));
    snprintf(command, sizeof(command), "tar -xzf '%s/%s' -C %s %s", CTL_RECORDED, file, dir,
             snapshot ? "" : "--exclude 'snapshot-*'");
    assert_int_equal(system(command), 0);
    events_init(&owner.events);
    struct log_config config = {
        .dir = dir, .name = "ctl1", .owner = &callbacks, .owner_ctx = &owner
    };
    struct log *log = log_sqlite_new(&config);
    if (log_start(log, &err) < 0)
        fail_msg("%s: %s", file, err.text);
    assert_int_equal(owner.restored, snapshot);
    assert_int_equal(owner.applied, snapshot ? 0 : index);
    assert_int_equal(state_head(owner.state).index, index);
    assert_int_equal(core_digest(owner.state), digest);
    if (core_check(owner.state, &err) < 0)
        fail_msg("%s: %s", file, err.text);
    /* what its jobs were submitted with is there too */
    struct str payload = { 0 };
    unsigned payloads = 0;
    for (const struct job *job = state_job_from(owner.state, 0); job;
         job = state_job_from(owner.state, (uint64_t)job->id + 1)) {
        str_clear(&payload);
        if (job->payload && log_payload_get(log, job->payload->digest, &payload, &err) < 0)
            fail_msg("%s: job %u: %s", file, job->id, err.text);
        payloads += job->payload != NULL;
    }
    assert_true(payloads > 5);
    str_done(&payload);
    log_free(log);
    state_free(owner.state);
    events_done(&owner.events);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}

static void directories_of_earlier_builds_are_read(void **unused)
{
    for (size_t i = 0; i < ARRAY_LEN(recorded); i++) {
        read_directory(recorded[i].file, recorded[i].index, recorded[i].digest, true);
        read_directory(recorded[i].file, recorded[i].index, recorded[i].digest, false);
    }
}

static void append_level(struct log *log, unsigned level)
{
    Command command = COMMAND__INIT;
    CmdLevel msg = CMD_LEVEL__INIT;
    uint8_t bytes[64];
    struct err err = { 0 };

    msg.has_level = true;
    msg.level = level;
    command.what_case = COMMAND__WHAT_LEVEL;
    command.level = &msg;
    size_t len = command__pack(&command, bytes);
    assert_int_equal(log_append(log, (struct span){ (char *)bytes, len }, NULL, 0, &err), 0);
    log_flush(log);
    for (unsigned i = 0; i < 10000 && log_point(log).index == 0; i++) {
        usleep(1000);
        log_poll(log);
    }
    assert_int_equal(log_point(log).index, 1);
}

static int ignore_apply(void *ctx, const struct log_batch *batch, struct err *err)
{
    (void)ctx, (void)batch, (void)err;
    return 0;
}

/* It stops before the entry, changes nothing, and does not offer to give the entry up. */
static void what_a_newer_build_wrote_is_kept(void **unused)
{
    char dir[] = "/tmp/spur-recorded-XXXXXX", command[128];
    struct log_owner writes = callbacks;
    struct reader owner = { .state = state_new() };
    struct err err = { 0 };

    assert_non_null(mkdtemp(dir));
    events_init(&owner.events);
    writes.apply = ignore_apply;
    struct log_config config = { .dir = dir, .name = "c1", .owner = &writes, .owner_ctx = &owner };
    struct log *log = log_sqlite_new(&config);
    assert_int_equal(log_start(log, &err), 0);
    append_level(log, LEVEL_NEWEST + 1);
    log_free(log);
    config.owner = &callbacks;
    for (unsigned accept = 0; accept < 2; accept++) {
        config.accept_loss = accept;
        log = log_sqlite_new(&config);
        assert_int_equal(log_start(log, &err), -(int)ERR_NEWER_BUILD);
        assert_non_null(strstr(err.text, "entry 1 of the log was written by a newer build"));
        assert_null(strstr(err.text, "accept-loss"));
        log_free(log);
    }
    config.owner = &writes;
    config.accept_loss = 0;
    log = log_sqlite_new(&config);
    assert_int_equal(log_start(log, &err), 0);
    assert_int_equal(log_point(log).index, 1);
    log_free(log);
    state_free(owner.state);
    events_done(&owner.events);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}

UNIT_MAIN(UNIT(what_a_newer_build_wrote_is_kept), UNIT(directories_of_earlier_builds_are_read))
