/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_daemon.c - going to the background, and telling systemd
 */
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/daemon.h"
#include "sys/files.h"
#include "test/unit.h"

/* What a shell sees of a program that detaches and then ends up ready or not. */
static int status_of(bool becomes_ready)
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        if (daemon_detach(NULL) < 0)
            _exit(99);
        if (!becomes_ready)
            _exit(7);
        daemon_ready();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status);
}

static void the_starter_learns_the_verdict(void **state)
{
    (void)state;
    assert_int_equal(status_of(true), 0);
    assert_int_equal(status_of(false), 7);
}

static void systemd_hears_us(void **state)
{
    char dir[] = "/tmp/test-daemon.XXXXXX", text[128];
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    CLEANUP(file_close) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    (void)state;
    unsetenv("NOTIFY_SOCKET");
    assert_false(daemon_notify("READY=1"));
    assert_non_null(mkdtemp(dir));
    snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/notify", dir);
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    setenv("NOTIFY_SOCKET", addr.sun_path, 1);
    assert_true(daemon_notify("STATUS=%d jobs", 3));
    ssize_t got = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);
    assert_int_equal(got, 13);
    text[got] = '\0';
    assert_string_equal(text, "STATUS=3 jobs");
    unsetenv("NOTIFY_SOCKET");
    assert_int_equal(file_remove_tree(dir, NULL), 0);
}

static void the_watchdog_is_ours_only_when_meant(void **state)
{
    (void)state;
    unsetenv("WATCHDOG_USEC");
    assert_int_equal(daemon_watchdog_us(), 0);
    setenv("WATCHDOG_USEC", "3000000", 1);
    assert_int_equal(daemon_watchdog_us(), 1500000);
    setenv("WATCHDOG_PID", "1", 1);
    assert_int_equal(daemon_watchdog_us(), 0);
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

UNIT_MAIN(UNIT(the_starter_learns_the_verdict), UNIT(systemd_hears_us),
          UNIT(the_watchdog_is_ours_only_when_meant))
