/* SPDX-License-Identifier: Apache-2.0 */
/* test_must.c - an assertion that fails ends the program and says where, what and at which log entry */
#include "base/must.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/unit.h"

/* Runs MUST(value == 1) in a child; its exit status, and what it wrote. */
static int run_child(int value, uint64_t entry, char *text, size_t size)
{
    int ends[2], status = 0;

    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        must_set_entry(entry);
        MUST(value == 1);
        _exit(0);
    }
    close(ends[1]);
    size_t len = 0;
    for (ssize_t got; len + 1 < size && (got = read(ends[0], text + len, size - 1 - len)) > 0;)
        len += (size_t)got;
    text[len] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void what_holds_goes_on(void **ctx)
{
    char text[512];

    (void)ctx;
    int status = run_child(1, 7, text, sizeof(text));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_string_equal(text, "");
}

static void what_does_not_hold_aborts(void **ctx)
{
    char text[512];

    (void)ctx;
    int status = run_child(2, 0, text, sizeof(text));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(text, "test_must.c:"));
    assert_non_null(strstr(text, "'value == 1' does not hold"));
    assert_null(strstr(text, "log entry"));
}

static void the_log_entry_is_named(void **ctx)
{
    char text[512];

    (void)ctx;
    int status = run_child(2, 4711, text, sizeof(text));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(text, "while log entry 4711 is applied"));
}

UNIT_MAIN(UNIT(what_holds_goes_on), UNIT(what_does_not_hold_aborts), UNIT(the_log_entry_is_named))
