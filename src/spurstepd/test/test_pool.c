/* SPDX-License-Identifier: Apache-2.0 */
/* Supervisors that have had a step before: what runs under them sees nothing of it. */
#include "spurstepd/test/step_case.h"

#include <errno.h>
#include <signal.h>

/* Whether the process waits for a step. */
static bool is_idle(int pid)
{
    char path[64];
    struct str read = { 0 };

    snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
    bool idle = file_read(path, 4096, &read, NULL) == 0 && strstr(str_text(&read), "idle");
    str_done(&read);
    return idle;
}

static void wait_idle(int pid)
{
    for (int i = 0; i < 2000 && !is_idle(pid); i++)
        usleep(10000);
    assert_true(is_idle(pid));
}

/* Its supervisor, and what the script said besides. */
static int run_under(StepTask *task, char **said)
{
    char *out, text[256];
    int pid = 0, at = 0;

    StepEnded ended = run(task, &out, text);
    assert_int_equal(ended.exit_status, 0);
    assert_int_equal(sscanf(out, "%d %n", &pid, &at), 1);
    if (said)
        *said = strdup(out + at);
    free(out);
    steps_task_free(task);
    return pid;
}

/* Runs steps until one has a supervisor that has had another; zygote and test may cross. */
static StepTask *reuse(StepTask *(*make)(void), int *before)
{
    StepTask *task = make();

    *before = run_under(task, NULL);
    wait_idle(*before);
    usleep(20000);
    return make();
}

static StepTask *make_plain(void)
{
    return steps_task(
        &steps, "#!/bin/bash\necho $PPID $(ls /proc/$PPID/fd | wc -l) ${LEFT-none} $(umask) $(pwd) "
                "$(ulimit -c) $(cat /proc/$PPID/status | grep -E 'SigBlk|SigIgn|Uid|Groups' "
                "| tr -d '\\n')\n");
}

static StepTask *make_odd(void)
{
    StepTask *task = steps_task(&steps, "#!/bin/bash\necho $PPID\ntrap '' TERM\nsleep 7755 &\n"
                                        "setsid sleep 7755 &\nexit 0\n");

    task->env = realloc(task->env, (task->n_env + 1) * sizeof(char *));
    task->env[task->n_env++] = strdup("LEFT=1");
    task->has_umask = true;
    task->umask = 077;
    steps_set(&task->work_dir, "/usr");
    return task;
}

static void a_step_sees_nothing_of_the_one_before(void **state)
{
    (void)state;
    char *first, *said = NULL, *first_rest, *said_rest;
    int pid = 0, before = 0;

    run_under(make_plain(), &first);
    for (int i = 0; i < 50 && (!said || pid != before); i++) {
        free(said);
        before = run_under(make_odd(), NULL);
        wait_idle(before);
        pid = run_under(make_plain(), &said);
    }
    assert_int_equal(pid, before);
    /* A new one may have descriptors of who runs this test; a used one has closed them. */
    assert_true(strtoul(said, &said_rest, 10) <= strtoul(first, &first_rest, 10));
    assert_string_equal(said_rest, first_rest);
    assert_int_equal(count_marked("sleep 7755"), 0);
    free(first);
    free(said);
}

static void who_is_killed_while_it_waits_is_replaced(void **state)
{
    (void)state;

    for (int i = 0; i < 5; i++) {
        int before;
        StepTask *task = reuse(make_plain, &before);
        for (int tries = 0; kill(before, SIGKILL) == 0 && tries < 2000; tries++)
            usleep(10000); /* until it has gone */
        assert_int_not_equal(run_under(task, NULL), before);
    }
}

static void an_attempt_starts_once_under_a_used_one_too(void **state)
{
    (void)state;
    int before;
    StepTask *task = reuse(make_plain, &before);
    int chan = steps_launch(&steps, task), again = steps_launch(&steps, task);
    StepNews *news = steps_wait_end(chan, WAIT_MS);

    assert_non_null(news);
    assert_int_equal(news->ended->exit_status, 0);
    step_news__free_unpacked(news, NULL);
    news = steps_news(again, WAIT_MS);
    assert_non_null(news);
    assert_true(news->already);
    step_news__free_unpacked(news, NULL);
    close(chan);
    close(again);
    steps_task_free(task);
}

static void who_waits_ends_with_the_zygote(void **state)
{
    (void)state;
    int before;
    StepTask *task = reuse(make_plain, &before);

    steps_task_free(task);
    steps_close(&steps);
    for (int i = 0; i < 2000 && is_idle(before); i++)
        usleep(10000);
    assert_false(is_idle(before));
    steps_open(&steps);
}

static StepTask *make_short(void)
{
    return steps_task(&steps, "#!/bin/bash\necho $PPID\n");
}

/* More than one supervisor has in its life: none is lost when it is replaced. */
static void every_step_runs_when_supervisors_are_worn_out(void **state)
{
    (void)state;

    for (int i = 0; i < 600; i++)
        run_under(make_short(), NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(a_step_sees_nothing_of_the_one_before),
        UNIT(who_is_killed_while_it_waits_is_replaced),
        UNIT(an_attempt_starts_once_under_a_used_one_too),
        UNIT(who_waits_ends_with_the_zygote),
        UNIT(every_step_runs_when_supervisors_are_worn_out),
    };

    return cmocka_run_group_tests(tests, open_steps, close_steps);
}
