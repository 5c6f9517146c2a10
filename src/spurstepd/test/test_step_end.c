/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to running steps: kill, limit, freeze, lease, signals, and a spurd that comes and goes. */
#include "spurstepd/test/step_case.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "sys/clock.h"

static void send_kill(int chan, unsigned wait_s, JobState why)
{
    StepOrder order = STEP_ORDER__INIT;
    StepKill kill_order = STEP_KILL__INIT;

    kill_order.has_kill_wait_s = kill_order.has_state = true;
    kill_order.kill_wait_s = wait_s;
    kill_order.state = why;
    order.what_case = STEP_ORDER__WHAT_KILL;
    order.kill = &kill_order;
    steps_order(chan, &order);
}

static void kill_is_term_then_kill(void **state)
{
    (void)state;

    for (int i = 0; i < 4; i++) {
        bool stubborn = i & 1, cgroup = i & 2;
        StepTask *task = steps_task(
            &steps, stubborn ? "#!/bin/bash\ntrap '' TERM\ntouch up\nwhile :; do sleep 0.05; done\n"
                             : "#!/bin/bash\ntrap 'echo got TERM; exit 9' TERM\ntouch up\nwhile :; "
                               "do sleep 0.05; done\n");
        char up[128];
        snprintf(up, sizeof(up), "%s/up", steps.dir);
        unlink(up);
        if (!cgroup)
            steps_set(&task->cgroup, "");
        int chan = steps_launch(&steps, task);
        wait_started(chan);
        wait_for_file(up);
        int64_t before = clock_mono_us();
        send_kill(chan, 1, JOB_CANCELLED);
        StepNews *news = steps_wait_end(chan, WAIT_MS);
        assert_non_null(news);
        int64_t took_ms = (clock_mono_us() - before) / 1000;
        assert_int_equal(news->ended->exit_status, stubborn ? 9 : 9 << 8);
        assert_true(news->ended->has_state && news->ended->state == JOB_CANCELLED);
        assert_true(stubborn ? took_ms >= 950 : took_ms < 950);
        step_news__free_unpacked(news, NULL);
        close(chan);
        char *out = steps_output(&steps, task);
        assert_has(out, "slurmstepd: error: *** JOB ");
        assert_has(out, " ON n1 CANCELLED AT 2");
        if (!stubborn)
            assert_has(out, "got TERM\n");
        free(out);
        steps_task_free(task);
    }
}

static void the_limit_warns_then_ends(void **state)
{
    (void)state;
    char *out, text[256];
    StepTask *task = steps_task(&steps, "#!/bin/bash\ntrap 'echo warned' USR1\nwhile :; do sleep "
                                        "0.05; done\n");

    task->has_time_limit_s = task->has_warn_signal = task->has_warn_before_s = true;
    task->time_limit_s = 2;
    task->warn_signal = SIGUSR1;
    task->warn_before_s = 1;
    task->has_kill_wait_s = true;
    task->kill_wait_s = 5;
    int64_t before = clock_mono_us();
    StepEnded ended = run(task, &out, text);
    int64_t took_ms = (clock_mono_us() - before) / 1000;
    assert_true(took_ms >= 1990 && took_ms < 5000);
    assert_true(ended.has_state && ended.state == JOB_TIMEOUT);
    assert_int_equal(ended.exit_status, SIGTERM);
    assert_has(out, "DUE TO TIME LIMIT ***\n");
    assert_has(out, "warned\n");
    free(out);
    steps_task_free(task);
}

static void send_freeze(int chan, FreezeCause cause, bool thaw)
{
    StepOrder order = STEP_ORDER__INIT;
    StepFreeze freeze = STEP_FREEZE__INIT;

    freeze.has_cause = freeze.has_thaw = true;
    freeze.cause = cause;
    freeze.thaw = thaw;
    order.what_case = STEP_ORDER__WHAT_FREEZE;
    order.freeze = &freeze;
    steps_order(chan, &order);
}

static off_t size_of(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 ? info.st_size : -1;
}

/* The size of a file that has stopped growing; a busy machine may take its time to freeze. */
static off_t settled(const char *path)
{
    off_t size = size_of(path);

    for (int same = 0, i = 0; same < 5 && i < 200; i++) {
        usleep(50000);
        off_t now = size_of(path);
        same = now == size ? same + 1 : 0;
        size = now;
    }
    return size;
}

static void wait_growth(const char *path, off_t size)
{
    for (int i = 0; i < 1000 && size_of(path) <= size; i++)
        usleep(10000);
    assert_true(size_of(path) > size);
}

static void frozen_steps_stand_still(void **state)
{
    (void)state;

    for (int cgroup = 0; cgroup < 2; cgroup++) {
        StepTask *task =
            steps_task(&steps, "#!/bin/bash\n(while :; do echo x; sleep 0.01; done) &\nwait\n");
        if (!cgroup)
            steps_set(&task->cgroup, "");
        task->has_time_limit_s = true;
        task->time_limit_s = 1;
        int chan = steps_launch(&steps, task);
        wait_started(chan);
        wait_for_file(task->std_out);
        send_freeze(chan, FREEZE_ASKED, false);
        send_freeze(chan, FREEZE_LEASE, false);
        off_t frozen = settled(task->std_out);
        usleep(1100000);                       /* longer than the limit, which does not count now */
        send_freeze(chan, FREEZE_LEASE, true); /* somebody else still wants it frozen */
        usleep(100000);
        assert_int_equal(size_of(task->std_out), frozen);
        send_freeze(chan, FREEZE_ASKED, true);
        StepNews *news = steps_wait_end(chan, WAIT_MS);
        assert_non_null(news);
        assert_int_equal(news->ended->state, JOB_TIMEOUT);
        assert_true(size_of(task->std_out) > frozen);
        step_news__free_unpacked(news, NULL);
        close(chan);
        steps_task_free(task);
    }
}

static void put_lease(const char *path, int64_t heard_us, uint32_t lease_ms)
{
    StepLease lease = STEP_LEASE__INIT;
    uint8_t bytes[64];

    lease.has_heard_us = lease.has_lease_ms = true;
    lease.heard_us = heard_us;
    lease.lease_ms = lease_ms;
    file_write_quick(path, bytes, step_lease__pack(&lease, bytes), 0600, NULL);
}

/* Nobody tells it to: the supervisor itself sees that no controller was heard. */
static void a_lease_that_ends_freezes(void **state)
{
    (void)state;
    char path[128];
    StepTask *task = steps_task(&steps, "#!/bin/bash\nwhile :; do echo x; sleep 0.01; done\n");

    snprintf(path, sizeof(path), "%s/lease", steps.dir);
    put_lease(path, clock_boot_us(), 300);
    task->lease_file = strdup(path);
    int chan = steps_launch(&steps, task);
    wait_started(chan);
    usleep(100000);
    put_lease(path, clock_boot_us(), 300); /* heard again: 300 ms from now */
    StepNews *news = steps_news(chan, WAIT_MS);
    assert_non_null(news);
    assert_int_equal(news->frozen, FREEZE_LEASE);
    step_news__free_unpacked(news, NULL);
    off_t frozen = settled(task->std_out);
    assert_true(frozen > 2); /* it did run until then */
    put_lease(path, clock_boot_us(),
              10000); /* contact alone does not thaw: the attempt may be old */
    usleep(100000);
    assert_int_equal(size_of(task->std_out), frozen);
    send_freeze(chan, FREEZE_LEASE, true);
    wait_growth(task->std_out, frozen);
    put_lease(path, clock_boot_us() - 20000000, 10000);
    StepOrder order = STEP_ORDER__INIT;
    StepLeaseChanged changed = STEP_LEASE_CHANGED__INIT;
    order.what_case = STEP_ORDER__WHAT_LEASE;
    order.lease = &changed;
    steps_order(chan, &order);
    frozen = settled(task->std_out);
    /* Killed while its lease is over: not one instruction more, whatever the grace. */
    send_kill(chan, 30, JOB_CANCELLED);
    news = steps_wait_end(chan, 5000);
    assert_non_null(news);
    assert_int_equal(news->ended->exit_status, SIGKILL);
    char *out = steps_output(&steps, task);
    assert_int_equal(strspn(out, "x\n"), frozen);
    free(out);
    step_news__free_unpacked(news, NULL);
    close(chan);
    steps_task_free(task);
}

static void an_attempt_starts_once(void **state)
{
    (void)state;
    StepTask *task = steps_task(&steps, "#!/bin/sh\necho x >>count; sleep 0.3\n");
    int first = steps_launch(&steps, task), second = steps_launch(&steps, task);
    StepNews *news = steps_wait_end(second, WAIT_MS);
    char path[128];

    assert_non_null(news);
    assert_true(news->already);
    step_news__free_unpacked(news, NULL);
    news = steps_wait_end(first, WAIT_MS);
    assert_non_null(news);
    assert_non_null(news->ended);
    step_news__free_unpacked(news, NULL);
    close(second);
    second = steps_launch(&steps, task); /* ended, but not yet acknowledged */
    news = steps_wait_end(second, WAIT_MS);
    assert_true(news && news->already);
    step_news__free_unpacked(news, NULL);
    close(second);
    close(first);
    snprintf(path, sizeof(path), "%s/count", steps.dir);
    char *count = steps_read(path);
    assert_string_equal(count, "x\n");
    free(count);
    steps_task_free(task);
}

static int reconnect(const StepTask *task)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/batch.sock", task->dir);
    for (int i = 0; i < 300; i++) {
        if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
            return fd;
        usleep(10000);
    }
    fail_msg("no supervisor at %s", addr.sun_path);
    return -1;
}

static void a_new_spurd_finds_its_steps(void **state)
{
    (void)state;
    StepTask *task = steps_task(&steps, "#!/bin/sh\nsleep 0.6; exit 5\n");
    int chan = steps_launch(&steps, task);

    wait_started(chan);
    for (int i = 0; i < 3; i++) { /* killed three times */
        close(chan);
        chan = reconnect(task);
        wait_started(chan);
    }
    StepNews *news = steps_wait_end(chan, WAIT_MS);
    assert_non_null(news);
    assert_int_equal(news->ended->exit_status, 5 << 8);
    assert_true(news->ended->started_us > 0 && news->ended->ended_us > news->ended->started_us);
    step_news__free_unpacked(news, NULL);
    close(chan);
    steps_task_free(task);
}

static void a_report_nobody_takes_stays_on_disk(void **state)
{
    (void)state;
    StepTask *task = steps_task(&steps, "#!/bin/sh\nsleep 0.2; exit 6\n");
    int chan = steps_launch(&steps, task);
    char path[256];

    wait_started(chan);
    close(chan);
    snprintf(path, sizeof(path), "%s/batch.end", task->dir);
    wait_for_file(path);
    wait_for_file(task->keep_file);
    struct str bytes = { 0 };
    assert_int_equal(file_read(task->keep_file, 65536, &bytes, NULL), 0);
    StepEnded *ended = step_ended__unpack(NULL, bytes.len, (const uint8_t *)str_text(&bytes));
    assert_non_null(ended);
    assert_int_equal(ended->exit_status, 6 << 8);
    assert_int_equal(ended->id->job_id, task->id->job_id);
    step_ended__free_unpacked(ended, NULL);
    str_done(&bytes);
    steps_task_free(task);
}

static void signals_reach_whom_they_should(void **state)
{
    (void)state;
    static const char script[] =
        "#!/bin/bash\ntrap 'echo script' USR1\n(trap 'echo child' USR1; touch up2; while :; do "
        "sleep 0.02; done) &\nwhile :; do sleep 0.02; done\n";

    for (int only = 0; only < 2; only++) {
        StepTask *task = steps_task(&steps, script);
        char up[128];
        snprintf(up, sizeof(up), "%s/up2", steps.dir);
        unlink(up);
        int chan = steps_launch(&steps, task);
        wait_started(chan);
        wait_for_file(up);
        usleep(50000);
        StepOrder order = STEP_ORDER__INIT;
        StepSignal sent = STEP_SIGNAL__INIT;
        sent.has_signal = sent.has_script_only = true;
        sent.signal = SIGUSR1;
        sent.script_only = only;
        order.what_case = STEP_ORDER__WHAT_SIGNAL;
        order.signal = &sent;
        steps_order(chan, &order);
        usleep(300000);
        send_kill(chan, 0, JOB_CANCELLED);
        StepNews *news = steps_wait_end(chan, WAIT_MS);
        assert_non_null(news);
        step_news__free_unpacked(news, NULL);
        close(chan);
        char *out = steps_output(&steps, task);
        assert_has(out, "script\n");
        assert_int_equal(strstr(out, "child\n") == NULL, only);
        free(out);
        steps_task_free(task);
    }
}

static void many_children_that_ignore_term(void **state)
{
    (void)state;

    for (int cgroup = 0; cgroup < 2; cgroup++) {
        char up[128], mark[32], script[256];
        snprintf(mark, sizeof(mark), "spur-fork-%d", (int)getpid());
        snprintf(script, sizeof(script),
                 "#!/bin/bash\ntrap '' TERM\nfor ((i=0;i<300;i++)); do (trap '' TERM; exec -a %s "
                 "sleep 1000) & done\ntouch up3\nwait\n",
                 mark);
        StepTask *task = steps_task(&steps, script);
        snprintf(up, sizeof(up), "%s/up3", steps.dir);
        unlink(up);
        if (!cgroup)
            steps_set(&task->cgroup, "");
        int chan = steps_launch(&steps, task);
        wait_started(chan);
        wait_for_file(up);
        send_kill(chan, 0, JOB_CANCELLED);
        StepNews *news = steps_wait_end(chan, WAIT_MS);
        assert_non_null(news);
        assert_false(news->unkillable);
        step_news__free_unpacked(news, NULL);
        assert_int_equal(count_marked(mark), 0);
        close(chan);
        steps_task_free(task);
    }
}

/* A traced process stays, as a zombie, until its tracer looks: the script outlives SIGKILL. */
static void a_script_that_cannot_be_killed(void **state)
{
    (void)state;

    for (int cgroup = 0; cgroup < 2; cgroup++) {
        StepTask *task = steps_task(&steps, "#!/bin/bash\ntouch up\nsleep 300\n");
        char up[128];
        snprintf(up, sizeof(up), "%s/up", steps.dir);
        unlink(up);
        if (!cgroup)
            steps_set(&task->cgroup, "");
        task->has_unkillable_s = true;
        task->unkillable_s = 1;
        int chan = steps_launch(&steps, task);
        StepNews *news = steps_news(chan, WAIT_MS);
        assert_non_null(news);
        pid_t script = (pid_t)news->started->pid;
        step_news__free_unpacked(news, NULL);
        wait_for_file(up);
        if (ptrace(PTRACE_SEIZE, script, NULL, NULL) < 0)
            skip();
        send_kill(chan, 0, JOB_CANCELLED);
        news = steps_wait_end(chan, WAIT_MS);
        assert_non_null(news);
        assert_true(news->unkillable);
        assert_string_equal(news->ended->text, "Kill task failed");
        assert_int_equal(news->ended->exit_status, SIGKILL);
        assert_int_equal(news->ended->state, JOB_CANCELLED);
        step_news__free_unpacked(news, NULL);
        int status;
        assert_int_equal(waitpid(script, &status, 0), script);
        close(chan);
        steps_task_free(task);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(kill_is_term_then_kill),
        UNIT(the_limit_warns_then_ends),
        UNIT(frozen_steps_stand_still),
        UNIT(a_lease_that_ends_freezes),
        UNIT(an_attempt_starts_once),
        UNIT(a_new_spurd_finds_its_steps),
        UNIT(a_report_nobody_takes_stays_on_disk),
        UNIT(signals_reach_whom_they_should),
        UNIT(many_children_that_ignore_term),
        UNIT(a_script_that_cannot_be_killed),
    };

    /* They wait more than they work, so each runs beside the others with a zygote of its own. */
    bool failed = false;
    int status;
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
        pid_t pid = fork();
        if (pid == 0) {
            const struct CMUnitTest one[] = { tests[i] };
            exit(cmocka_run_group_tests(one, open_steps, close_steps) ? 1 : 0);
        }
        failed = failed || pid < 0;
    }
    while (wait(&status) > 0)
        failed = failed || status != 0;
    return failed;
}
