/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_recorded.c - histories that earlier builds wrote lead to the same states
 *
 * recorded/README.md says what is in the files and how to add one.
 */
#include <dirent.h>

#include "base/lz.h"
#include "core/level.h"
#include "core/test/fixture.h"
#include "core/view/view.h"

struct history {
    struct state *state;
    struct events events;
    uint64_t index;
    unsigned digests, snapshots;
    const char *name;
};

static void read_file(const char *name, struct str *out)
{
    CLEANUP(str_done) struct str bytes = { 0 };
    char path[512], buffer[65536];
    size_t got, len = 0;

    snprintf(path, sizeof(path), "%s/%s", CORE_RECORDED, name);
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("%s cannot be read", path);
    while ((got = fread(buffer, 1, sizeof(buffer), file)) > 0)
        str_add_len(&bytes, buffer, got);
    fclose(file);
    assert_true(bytes.len > 4);
    for (unsigned i = 0; i < 4; i++)
        len |= (size_t)(uint8_t)bytes.data[i] << 8 * i;
    assert_true(lz_expand(bytes.data + 4, bytes.len - 4, len, out));
}

static void take_command(struct history *history, const uint8_t *bytes, size_t len)
{
    Command *command = command__unpack(NULL, len, bytes);
    struct err err = { 0 };

    assert_non_null(command);
    history->index++;
    if (level_check(history->state, history->index, command, &err) < 0)
        fail_msg("%s: %s", history->name, err.text);
    events_clear(&history->events);
    core_apply(history->state, history->index, command, &history->events);
    command__free_unpacked(command, NULL);
}

static void take_digest(struct history *history, const uint8_t *bytes)
{
    uint64_t digest = 0;

    for (unsigned i = 0; i < 8; i++)
        digest |= (uint64_t)bytes[i] << 8 * i;
    if (core_digest(history->state) != digest)
        fail_msg("%s: the state after entry %llu is another", history->name,
                 (unsigned long long)history->index);
    history->digests++;
}

/* The snapshot is read by this build, and goes on as the state that was replayed. */
static void take_snapshot(struct history *history, const uint8_t *bytes, size_t len)
{
    struct restore *restore = core_restore_begin();
    struct err err = { 0 };

    core_restore_feed(restore, bytes, len, &err);
    struct state *state = core_restore_end(restore, &err);
    if (!state)
        fail_msg("%s: snapshot at %llu: %s", history->name, (unsigned long long)history->index,
                 err.text);
    assert_int_equal(core_digest(state), core_digest(history->state));
    state->notify_most = history->state->notify_most;
    state_free(history->state);
    history->state = state;
    history->snapshots++;
}

static void replay(const char *name)
{
    struct history history = { .state = state_new(), .name = name };
    struct str text = { 0 };
    struct err err = { 0 };

    events_init(&history.events);
    read_file(name, &text);
    for (size_t at = 0; at < text.len;) {
        const uint8_t *record = (const uint8_t *)text.data + at;
        size_t len = (size_t)record[1] | (size_t)record[2] << 8 | (size_t)record[3] << 16 |
                     (size_t)record[4] << 24;
        at += 5 + len;
        assert_true(at <= text.len);
        if (record[0] == 'T')
            history.state->notify_most = record[5];
        else if (record[0] == 'C')
            take_command(&history, record + 5, len);
        else if (record[0] == 'D')
            take_digest(&history, record + 5);
        else if (record[0] == 'S')
            take_snapshot(&history, record + 5, len);
        else
            fail_msg("%s: a record of kind %d", name, record[0]);
    }
    assert_true(history.digests > 0 && history.snapshots > 0);
    if (core_check(history.state, &err) < 0)
        fail_msg("%s: %s", name, err.text);
    events_done(&history.events);
    state_free(history.state);
    str_done(&text);
}

static void recorded_histories_lead_to_the_same_states(void **unused)
{
    DIR *dir = opendir(CORE_RECORDED);
    const struct dirent *entry;
    unsigned count = 0;

    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        const char *dot = strrchr(entry->d_name, '.');
        if (dot && strcmp(dot, ".history") == 0) {
            replay(entry->d_name);
            count++;
        }
    }
    closedir(dir);
    assert_true(count >= 9);
}

UNIT_MAIN(UNIT(recorded_histories_lead_to_the_same_states))
