/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_spawn.c - starting a program exactly as said
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/clock.h"
#include "sys/files.h"
#include "sys/spawn.h"
#include "test/unit.h"

static int shell(struct spawn spec, const char *script, int timeout_ms, struct str *out,
                 size_t out_max, struct spawn_result *result, struct err *err)
{
    char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, mem_strdup(script), NULL };

    spec.path = "/bin/sh";
    spec.argv = argv;
    int rc = spawn_run(&spec, (struct span){ NULL, 0 }, timeout_ms, out, out_max, result, err);
    free(argv[2]);
    return rc;
}

static void assert_prints(struct spawn spec, const char *script, const char *want)
{
    CLEANUP(str_done) struct str out = { 0 };
    struct spawn_result result;
    struct err err = { 0 };

    if (shell(spec, script, 10000, &out, 4096, &result, &err) < 0)
        fail_msg("%s: %s", script, err.text);
    assert_int_equal(result.status, 0);
    assert_string_equal(str_text(&out), want);
}

static void the_child_is_as_said(void **state)
{
    char *env[] = { (char[]){ "A=1" }, (char[]){ "B=x y" }, NULL };
    struct spawn_limit limit = { RLIMIT_NOFILE, { 77, 77 } };

    (void)state;
    signal(SIGPIPE, SIG_IGN);
    assert_prints((struct spawn){ .env = env }, "echo $A $B", "1 x y\n");
    assert_prints((struct spawn){ .cwd = "/usr" }, "pwd", "/usr\n");
    assert_prints((struct spawn){ .set_umask = true, .umask = 027 }, "umask", "0027\n");
    assert_prints((struct spawn){ .limits = &limit, .limit_count = 1 }, "ulimit -n", "77\n");
    char nice[16]; /* more than ours, which a runner of tests may have set */
    snprintf(nice, sizeof(nice), "%d\n", MIN(getpriority(PRIO_PROCESS, 0) + 3, 19));
    assert_prints((struct spawn){ .nice = 3 }, "nice 2>/dev/null || /usr/bin/nice", nice);
    /* Ignored and blocked signals of ours do not reach it; no descriptor above 2 does either. */
    assert_prints((struct spawn){ 0 }, "/usr/bin/grep -E 'Sig(Blk|Ign)' /proc/self/status",
                  "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    assert_prints((struct spawn){ 0 },
                  "for i in 2 3 4 5 6 7 8 9; do [ -e /proc/$$/fd/$i ] && echo $i; done; true",
                  "2\n");
    assert_prints((struct spawn){ .no_new_privs = true },
                  "/usr/bin/grep NoNewPrivs /proc/self/status", "NoNewPrivs:\t1\n");
}

static void descriptors_change_places(void **state)
{
    CLEANUP(str_done) struct str text = { 0 };
    char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" },
                     (char[]){ "echo out; echo err >&2; echo seven >&7" }, NULL };
    int one[2], two[2], status;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe2(one, O_CLOEXEC) | pipe2(two, O_CLOEXEC), 0);
    /* The ends land on each other's numbers. */
    struct spawn_fd fds[] = { { one[1], 1 }, { two[1], 2 }, { one[1], 7 } };
    struct spawn spec = { .path = "/bin/sh", .argv = argv, .fds = fds, .fd_count = 3 };
    assert_int_equal(spawn_start(&spec, &pid, NULL, NULL), 0);
    close(one[1]);
    close(two[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(file_read_fd(one[0], 100, &text, NULL), 0);
    assert_string_equal(text.data, "out\nseven\n");
    str_clear(&text);
    assert_int_equal(file_read_fd(two[0], 100, &text, NULL), 0);
    assert_string_equal(text.data, "err\n");
    close(one[0]);
    close(two[0]);
}

static void a_failing_step_is_named(void **state)
{
    struct spawn_result result;
    struct err err;
    char *argv[] = { (char[]){ "x" }, NULL };
    struct spawn spec = { .path = "/no/such/program", .argv = argv };
    pid_t pid;

    (void)state;
    assert_int_equal(spawn_start(&spec, &pid, NULL, &err), -(int)ERR_NOT_FOUND);
    assert_string_equal(err.text, "spawn /no/such/program: execve: No such file or directory");
    assert_true(shell((struct spawn){ .cwd = "/no/dir" }, "true", 1000, NULL, 0, &result, &err) <
                0);
    assert_non_null(strstr(err.text, "chdir"));
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
}

static void a_helper_ends_in_time_with_bounded_output(void **state)
{
    CLEANUP(str_done) struct str out = { 0 };
    struct spawn_result result;
    int64_t before = clock_mono_us();

    (void)state;
    assert_int_equal(shell((struct spawn){ 0 }, "echo begun; /bin/sleep 30 & /bin/sleep 30", 100,
                           &out, 100, &result, NULL),
                     0);
    assert_true(result.timed_out);
    assert_true(WIFSIGNALED(result.status));
    assert_string_equal(out.data, "begun\n");
    str_clear(&out);
    /* What it left in the background neither holds us up nor survives. */
    assert_int_equal(shell((struct spawn){ 0 }, "/bin/sleep 30 & echo done; exit 3", -1, &out, 100,
                           &result, NULL),
                     0);
    assert_false(result.timed_out);
    assert_int_equal(WEXITSTATUS(result.status), 3);
    assert_string_equal(out.data, "done\n");
    assert_true(clock_mono_us() - before < 5000000);
    str_clear(&out);
    assert_int_equal(
        shell((struct spawn){ 0 }, "yes | head -c 200000", 5000, &out, 10, &result, NULL), 0);
    assert_true(result.truncated);
    assert_int_equal(out.len, 10);
    assert_int_equal(result.status, 0);
}

static void input_reaches_the_helper(void **state)
{
    CLEANUP(str_done) struct str out = { 0 };
    struct spawn_result result;
    char *argv[] = { (char[]){ "wc" }, (char[]){ "-c" }, NULL };
    struct spawn spec = { .path = "/usr/bin/wc", .argv = argv };
    char *big = NEW_ARRAY(char, 300000);

    (void)state;
    assert_int_equal(spawn_run(&spec, (struct span){ big, 300000 }, 5000, &out, 100, &result, NULL),
                     0);
    assert_string_equal(out.data, "300000\n");
    free(big);
}

static void the_user_is_dropped_to_for_good(void **state)
{
    gid_t groups[] = { 50, 60 };
    struct spawn_user user = { 1234, 2345, groups, 2 };

    (void)state;
    if (getuid() != 0) {
        print_message("not root: dropping privileges is not tried\n");
        skip();
    }
    assert_prints((struct spawn){ .user = &user },
                  "/usr/bin/grep -E '^(Uid|Gid|Groups)' /proc/self/status",
                  "Uid:\t1234\t1234\t1234\t1234\nGid:\t2345\t2345\t2345\t2345\nGroups:\t50 60 \n");
    pid_t pid = fork();
    if (pid == 0)
        _exit(spawn_become(&user, NULL) == 0 && setuid(0) < 0 && getgid() == 2345 ? 0 : 1);
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void a_child_starts_inside_its_cgroup(void **state)
{
    static const char *const roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
    char path[128], want[64];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
        snprintf(path, sizeof(path), "%s/cgroup.procs", roots[i]);
        if (access(path, W_OK) != 0)
            continue;
        snprintf(want, sizeof(want), "0::/test-spawn-%ld\n", (long)getpid());
        snprintf(path, sizeof(path), "%s/test-spawn-%ld", roots[i], (long)getpid());
        if (mkdir(path, 0755) < 0)
            continue;
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_prints((struct spawn){ .cgroup_fd = fd }, "/usr/bin/grep 0:: /proc/self/cgroup",
                      want);
        int kill_fd = openat(fd, "cgroup.kill", O_WRONLY | O_CLOEXEC); /* Linux 5.14 */
        if (kill_fd >= 0) {
            assert_int_equal(write(kill_fd, "1", 1), 1);
            close(kill_fd);
            assert_prints((struct spawn){ .cgroup_fd = fd }, "/usr/bin/grep 0:: /proc/self/cgroup",
                          want);
        }
        close(fd);
        for (int tries = 0; rmdir(path) < 0 && tries < 100; tries++)
            usleep(10000);
        return;
    }
    print_message("no writable cgroup v2 tree: not tried\n");
    skip();
}

static void a_pidfd_tells_the_end(void **state)
{
    char *argv[] = { (char[]){ "true" }, NULL };
    struct spawn spec = { .path = "/bin/true", .argv = argv };
    siginfo_t info = { 0 };
    int pidfd = -1;
    pid_t pid;

    (void)state;
    assert_int_equal(spawn_start(&spec, &pid, &pidfd, NULL), 0);
    assert_int_equal(fcntl(pidfd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED), 0);
    assert_int_equal(info.si_pid, pid);
    assert_int_equal(info.si_status, 0);
    close(pidfd);
}

static void statuses_in_words(void **state)
{
    CLEANUP(str_done) struct str out = { 0 };

    (void)state;
    spawn_describe(0x0300, &out);
    str_add_char(&out, ' ');
    spawn_describe(SIGKILL, &out);
    assert_string_equal(out.data, "exit 3 signal 9 (KILL)");
}

UNIT_MAIN(UNIT(the_child_is_as_said), UNIT(descriptors_change_places),
          UNIT(a_failing_step_is_named), UNIT(a_helper_ends_in_time_with_bounded_output),
          UNIT(input_reaches_the_helper), UNIT(the_user_is_dropped_to_for_good),
          UNIT(a_child_starts_inside_its_cgroup), UNIT(a_pidfd_tells_the_end),
          UNIT(statuses_in_words))
