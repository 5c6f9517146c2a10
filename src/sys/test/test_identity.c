/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_identity.c - a thread of root that opens files as somebody else
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/securebits.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/files.h"
#include "sys/identity.h"
#include "test/unit.h"

enum { SOMEBODY = 20001 };

static int open_error(const char *path, int flags)
{
    int fd = identity_open(AT_FDCWD, path, flags | O_CLOEXEC, 0600);

    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

static void *in_thread(void *arg)
{
    char root[64];
    int *wrong = arg;
    const gid_t groups[] = { 20003, 20002 };

    snprintf(root, sizeof(root), "/proc/%d/root/etc/passwd", (int)getppid());
    if (identity_take(SOMEBODY, SOMEBODY, groups, ARRAY_LEN(groups)) != 0)
        *wrong = 1;
    else if (open_error("/etc/shadow", O_RDONLY) != EACCES)
        *wrong = 2;
    else if (open_error("/proc/sys/kernel/hostname", O_WRONLY) != EACCES)
        *wrong = 3;
    else if (open_error("/proc/self/cwd", O_PATH) != ELOOP)
        *wrong = 4;
    else if (openat(AT_FDCWD, root, O_RDONLY | O_CLOEXEC) >= 0) /* also without openat2 */
        *wrong = 5;
    else if (open_error("/dev/null", O_RDWR) != 0)
        *wrong = 6;
    errno = E2BIG;
    identity_return(0, NULL, 0);
    if (errno != E2BIG || geteuid() != 0 || getegid() != 0 || getgroups(0, NULL) != 0)
        *wrong = 7;
    if (!*wrong && open_error("/etc/shadow", O_RDONLY) != 0)
        *wrong = 8;
    return NULL;
}

static void a_thread_opens_as_the_user_and_returns(void **state)
{
    pthread_t thread;
    int wrong = 0;

    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(pthread_create(&thread, NULL, in_thread, &wrong), 0);
    pthread_join(thread, NULL);
    assert_int_equal(wrong, 0);
    assert_int_equal(geteuid(), 0);
}

/* A process that keeps capabilities across a change of uid is not good enough. */
static void capabilities_that_stay_are_found(void **state)
{
    int status;

    (void)state;
    if (geteuid() != 0)
        skip();
    pid_t pid = fork();
    if (pid == 0) {
        if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) < 0)
            _exit(77);
        _exit(identity_take(SOMEBODY, SOMEBODY, NULL, 0) == EPERM ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_thread_that_cannot_return_ends_the_process(void **state)
{
    int status;

    (void)state;
    if (geteuid() != 0)
        skip();
    pid_t pid = fork();
    if (pid == 0) {
        if (setresuid(SOMEBODY, SOMEBODY, SOMEBODY) == 0)
            identity_return(0, NULL, 0);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_opens_as_the_user_and_returns),
        cmocka_unit_test(capabilities_that_stay_are_found),
        cmocka_unit_test(a_thread_that_cannot_return_ends_the_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
