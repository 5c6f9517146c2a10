/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_log.c - durable commands a second, by how many travel together
 *
 * A submission is a command of 250 bytes with a payload of 3.3 KB that nobody sent before; the
 * other figure is without payload (an end of a job). One batch is in flight while the next fills.
 * The floor writes the same bytes to a file and calls fdatasync, before and after in the same run.
 *
 *     bench-log [directory] [seconds per figure]
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/vec.h"
#include "bench/bench.h"
#include "log/log.h"
#include "log/snapshot.h"
#include "log/sqlite.h"
#include "sys/clock.h"
#include "sys/digest.h"
#include "sys/files.h"
#include "sys/log.h"
#include "sys/rng.h"

enum { COMMAND_BYTES = 250, PAYLOAD_BYTES = 3300 };

struct owner {
    uint64_t applied;
    int64_t sent_us[65536]; /* by number of the command, for latencies */
    VEC(int32_t) waits;
    uint32_t watch; /* every so many commands are timed */
    int wake[2];
};

static int restore(void *ctx, struct snapshot_reader *snapshot, struct err *err)
{
    (void)ctx, (void)snapshot, (void)err;
    return 0;
}

static int apply(void *ctx, const struct log_batch *batch, struct err *err)
{
    struct owner *owner = ctx;
    int64_t now = clock_mono_us();

    (void)err;
    for (uint32_t i = 0; i < batch->count; i++, owner->applied++) {
        if (owner->applied % owner->watch == 0)
            vec_push(&owner->waits, (int32_t)(now - owner->sent_us[owner->applied % 65536]));
    }
    return 0;
}

static void refused(void *ctx, uint32_t count, const struct err *why)
{
    (void)ctx;
    if (why->code == ERR_SHUTTING_DOWN)
        return; /* the time is over */
    fprintf(stderr, "bench-log: %u refused: %s\n", count, why->text);
    exit(1);
}

static void role(void *ctx, enum log_role now, const char *leader)
{
    (void)ctx, (void)now, (void)leader;
}

static void failed(void *ctx, const struct err *why)
{
    (void)ctx;
    fprintf(stderr, "bench-log: %s\n", why->text);
    exit(1);
}

static bool live(void *ctx, const uint8_t digest[LOG_DIGEST_BYTES])
{
    (void)ctx;
    return digest[0] < 64; /* a quarter of the jobs still waits when its row is trimmed */
}

static void wake(void *ctx)
{
    struct owner *owner = ctx;

    if (write(owner->wake[1], "", 1) < 0)
        return;
}

static const struct log_owner callbacks = {
    restore, apply, refused, role, failed, live, wake,
};

static void quiet(void *ctx, enum log_level level, const char *event, const char *text)
{
    (void)ctx, (void)level, (void)event, (void)text;
}

static int compare(const void *a, const void *b)
{
    return *(const int32_t *)a - *(const int32_t *)b;
}

static int32_t percentile(struct owner *owner, double share)
{
    if (owner->waits.len == 0)
        return 0;
    qsort(owner->waits.items, owner->waits.len, sizeof(int32_t), compare);
    return owner->waits.items[(size_t)((double)(owner->waits.len - 1) * share)];
}

static void append(struct log *log, struct owner *owner, uint64_t number, bool with_payload)
{
    static char command[COMMAND_BYTES], bytes[PAYLOAD_BYTES];
    static uint8_t digest[LOG_DIGEST_BYTES];
    struct log_payload payload = { digest, { bytes, PAYLOAD_BYTES } };
    struct err err;

    memcpy(command, &number, sizeof(number));
    memcpy(bytes, &number, sizeof(number));
    if (with_payload)
        digest_sha256(bytes, sizeof(bytes), digest);
    owner->sent_us[number % 65536] = clock_mono_us();
    if (log_append(log, (struct span){ command, sizeof(command) }, &payload, with_payload, &err) <
        0)
        failed(NULL, &err);
}

static void snapshot_if_wanted(struct log *log)
{
    static uint64_t asked;
    struct snapshot_writer *writer;
    struct log_point point = log_point(log);
    struct err err;

    if (!log_wants_snapshot(log) || asked == point.index)
        return;
    asked = point.index;
    if (snapshot_create(log_dir(log), point, &writer, &err) < 0 ||
        snapshot_finish(writer, &err) < 0 || log_snapshot_taken(log, point, &err) < 0)
        failed(NULL, &err);
}

struct figure {
    double commits, commands; /* a second */
    double cpu_us;            /* of this process per command */
    int32_t p50_us, p99_us;
};

static double cpu_now(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static struct figure run_log(const char *dir, uint32_t batch, bool with_payload, double seconds)
{
    static struct owner owner;
    struct log_config config = {
        .dir = dir, .name = "bench", .owner = &callbacks, .owner_ctx = &owner
    };
    struct log *log = log_sqlite_new(&config);
    uint64_t sent = 0;
    struct log_status status;
    struct err err;
    char drain[256];

    owner = (struct owner){ .watch = batch };
    if (pipe(owner.wake) < 0 || log_start(log, &err) < 0)
        failed(NULL, &err);
    int64_t start = clock_mono_us(), end = start + (int64_t)(seconds * 1e6);
    double cpu = cpu_now();
    while (clock_mono_us() < end) {
        /* With one at a time there is nothing to overlap: that is the latency of one client. */
        uint64_t ahead = batch == 1 ? 1 : (uint64_t)batch * 2;
        while (sent - owner.applied < ahead) {
            for (uint32_t i = 0; i < batch; i++)
                append(log, &owner, sent++, with_payload);
            log_flush(log);
        }
        if (read(owner.wake[0], drain, sizeof(drain)) < 0)
            break;
        log_poll(log);
        snapshot_if_wanted(log);
    }
    double took = (double)(clock_mono_us() - start) / 1e6;
    log_status(log, &status);
    cpu = cpu_now() - cpu;
    struct figure figure = { (double)status.commits / took, (double)status.commands / took,
                             cpu / (double)status.commands, percentile(&owner, 0.5),
                             percentile(&owner, 0.99) };
    log_free(log);
    vec_done(&owner.waits);
    close(owner.wake[0]);
    close(owner.wake[1]);
    return figure;
}

/* Commits a second of plain appends of as many bytes. */
static double run_floor(const char *dir, size_t bytes, double seconds)
{
    CLEANUP(freep) char *path = mem_printf("%s/floor", dir);
    CLEANUP(freep) char *block = mem_new(bytes);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    int64_t start = clock_mono_us(), end = start + (int64_t)(seconds * 1e6);
    unsigned count = 0;

    rng_bytes(block, bytes);
    while (fd >= 0 && clock_mono_us() < end) {
        if (write(fd, block, bytes) != (ssize_t)bytes || fdatasync(fd) < 0)
            break;
        count++;
    }
    double took = (double)(clock_mono_us() - start) / 1e6;
    close(fd);
    unlink(path);
    return count / took;
}

static void one_figure(const char *root, uint32_t batch, bool with_payload, double seconds)
{
    CLEANUP(freep) char *dir = mem_printf("%s/%u-%d", root, batch, with_payload);
    size_t bytes = (size_t)batch * (COMMAND_BYTES + 8u + (with_payload ? PAYLOAD_BYTES + 36u : 0u));
    char name[64];
    struct err err;

    if (file_make_dirs(dir, 0700, &err) < 0)
        failed(NULL, &err);
    double before = run_floor(dir, bytes, seconds / 4);
    struct figure figure = run_log(dir, batch, with_payload, seconds);
    double floor = (before + run_floor(dir, bytes, seconds / 4)) / 2;
    snprintf(name, sizeof(name), "log.commits.%s.%u", with_payload ? "submit" : "plain", batch);
    bench_print(name, figure.commits, "1/s", floor);
    snprintf(name, sizeof(name), "log.commands.%s.%u", with_payload ? "submit" : "plain", batch);
    bench_print(name, figure.commands, "1/s", floor * batch);
    printf("  a batch waits p50 %d us, p99 %d us (floor %.0f us); %.1f us of CPU per command\n",
           figure.p50_us, figure.p99_us, 1e6 / floor, figure.cpu_us);
    file_remove_tree(dir, NULL);
}

int main(int argc, char **argv)
{
    static const uint32_t sizes[] = { 1, 16, 64, 256 };
    double seconds = argc > 2 ? atof(argv[2]) : 2.0;
    CLEANUP(freep) char *root = mem_printf("%s/bench-log.XXXXXX", argc > 1 ? argv[1] : "/var/tmp");

    log_use(quiet, NULL);
    if (!mkdtemp(root)) {
        perror(root);
        return 1;
    }
    for (int with_payload = 1; with_payload >= 0; with_payload--) {
        for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
            one_figure(root, sizes[i], with_payload, seconds);
    }
    file_remove_tree(root, NULL);
    return 0;
}
