/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sqlite_power.c - a power cut loses nothing that was acknowledged
 *
 * The log lies on an ext4 file system in a file. While a child writes, it is stopped and the file
 * copied: what is only in the kernel's memory is not in the copy. The copy is mounted, recovered and
 * compared with what the child had told, and the next child goes on there.
 *
 * Needs root and a loop device; a mount namespace of its own leaves nothing behind.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "log/test/recorder.h"
#include "sys/rng.h"
#include "sys/spawn.h"

enum { SKIPPED = 77 };

static char image[96], copy[96], mounted[96], state_dir[128];

/* SPUR_ROUNDS=N asks for more. */
static uint64_t rounds(void)
{
    const char *text = getenv("SPUR_ROUNDS");
    uint64_t count = 3;

    if (text)
        assert_true(str_to_u64(text, 100000, &count));
    return count;
}

static bool run(const char *program, const char *a, const char *b, const char *c, const char *d)
{
    char *argv[] = { (char *)(uintptr_t)program, (char *)(uintptr_t)a, (char *)(uintptr_t)b,
                     (char *)(uintptr_t)c,       (char *)(uintptr_t)d, NULL };
    struct spawn spec = { .path = program, .argv = argv };
    struct spawn_result result;
    CLEANUP(str_done) struct str out = { 0 };

    return spawn_run(&spec, (struct span){ NULL, 0 }, 30000, &out, 4096, &result, NULL) == 0 &&
           result.status == 0;
}

static bool make_image(void)
{
    int fd = open(image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && ftruncate(fd, 64 << 20) == 0;

    if (fd >= 0)
        close(fd);
    return ok && run("/sbin/mkfs.ext4", "-q", "-F", image, NULL);
}

static bool mount_image(void)
{
    return run("/bin/mount", "-o", "loop", image, mounted);
}

static void child_main(int pipe_fd, uint64_t seed)
{
    struct recorder rec;
    struct err err;
    uint64_t told = 0;

    rng_seed(seed);
    recorder_init(&rec);
    struct log *log = open_log(state_dir, &rec, 0);
    if (log_start(log, &err) < 0)
        _exit(3);
    for (uint64_t next = rec.seen.len + 1;;) {
        for (uint64_t burst = 1 + rng_below(10); burst; burst--)
            append_number(log, next++, 200 + rng_below(2000), &err);
        settle(log, &rec, next - 1);
        if (rec.failed || rec.refused)
            _exit(4);
        told = rec.seen.len;
        if (write(pipe_fd, &told, sizeof(told)) != sizeof(told))
            _exit(0);
        if (rng_below(20) == 0)
            take_snapshot(log, &rec);
    }
}

/* Writes, is stopped, photographed and killed; what it had told by then. */
static uint64_t run_and_cut(uint64_t seed)
{
    uint64_t acknowledged = 0, told;
    int ends[2], status;

    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        child_main(ends[1], seed);
    }
    close(ends[1]);
    usleep(50000 + (useconds_t)rng_below(150000));
    kill(pid, SIGSTOP);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    assert_true(run("/bin/cp", "--sparse=always", image, copy, NULL));
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    while (read(ends[0], &told, sizeof(told)) == sizeof(told))
        acknowledged = told;
    close(ends[0]);
    return acknowledged;
}

static int in_own_mounts(void)
{
    uint64_t before = 0, count = rounds();
    struct recorder rec;
    struct err err;

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return SKIPPED;
    if (!make_image() || !mount_image())
        return SKIPPED;
    mkdir(state_dir, 0700);
    sync();
    rng_seed(2);
    for (uint64_t round = 0; round < count; round++) {
        uint64_t acknowledged = run_and_cut(round);
        assert_int_equal(umount2(mounted, MNT_DETACH), 0);
        assert_int_equal(rename(copy, image), 0);
        assert_true(mount_image());
        mkdir(state_dir, 0700); /* the cut may have come before anything */
        recorder_init(&rec);
        struct log *log = open_log(state_dir, &rec, 0);
        if (log_start(log, &err) < 0)
            fail_msg("round %d: %s", (int)round, err.text);
        if (rec.seen.len < MAX(acknowledged, before))
            fail_msg("round %d: %zu are there, %llu were told", (int)round, rec.seen.len,
                     (unsigned long long)MAX(acknowledged, before));
        assert_counts_from_one(&rec, rec.seen.len);
        before = rec.seen.len;
        log_free(log);
        recorder_done(&rec);
    }
    umount2(mounted, MNT_DETACH);
    print_message("%llu power cuts, %llu commands, lost 0\n", (unsigned long long)count,
                  (unsigned long long)before);
    return before > 0 ? 0 : 1;
}

static void nothing_acknowledged_is_lost(void **state)
{
    int status;

    (void)state;
    if (geteuid() != 0 || access("/dev/loop-control", R_OK | W_OK) != 0) {
        print_message("not root, or no loop device: not tried\n");
        skip();
    }
    snprintf(image, sizeof(image), "%s/image", test_dir);
    snprintf(copy, sizeof(copy), "%s/copy", test_dir);
    snprintf(mounted, sizeof(mounted), "%s/mounted", test_dir);
    snprintf(state_dir, sizeof(state_dir), "%s/state", mounted);
    assert_int_equal(mkdir(mounted, 0700), 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(in_own_mounts());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
        print_message("mounting is not possible here: not tried\n");
        skip();
    }
    assert_int_equal(status, 0);
}

UNIT_MAIN(cmocka_unit_test_setup_teardown(nothing_acknowledged_is_lost, make_dir, remove_dir))
