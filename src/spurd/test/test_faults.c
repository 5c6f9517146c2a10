/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Daemons killed at any moment, full disks, silence: every script runs once, every end is told.
 *
 * SPUR_ROUNDS and SPUR_FORKS make it longer than the short form that every build runs.
 */
#include "test/unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "spurd/test/ctl.h"
#include "sys/clock.h"
#include "sys/files.h"

enum {
    ACK = NODE_MESSAGE__WHAT_GRANT_ACK,
    STARTED = NODE_MESSAGE__WHAT_STARTED,
    ENDED = NODE_MESSAGE__WHAT_ENDED,
};

static int from_env(const char *name, int otherwise)
{
    return getenv(name) ? atoi(getenv(name)) : otherwise;
}

static void open_with_spurd(struct ctl *ctl)
{
    ctl_open(ctl);
    ctl_start_spurd(ctl);
    ctl_wait_hello(ctl, 1);
}

/* Processes whose command line has `mark` in it, this test left out; kills them if asked to. */
static int find_processes(const char *mark, int sig)
{
    DIR *dir = opendir("/proc");
    struct dirent *item;
    int count = 0;

    while ((item = readdir(dir))) {
        char path[300];
        struct str text = { 0 };
        snprintf(path, sizeof(path), "/proc/%s/cmdline", item->d_name);
        if (item->d_name[0] < '1' || item->d_name[0] > '9' || atoi(item->d_name) == getpid())
            continue;
        if (file_read(path, 65536, &text, NULL) == 0) {
            for (size_t i = 0; i < text.len; i++)
                text.data[i] = text.data[i] ? text.data[i] : ' ';
            if (strstr(str_text(&text), mark)) {
                count++;
                if (sig)
                    kill(atoi(item->d_name), sig);
            }
        }
        str_done(&text);
    }
    closedir(dir);
    return count;
}

/* F6: the agent or its zygote dies between grant, launch, start, end and report. */
static void a_script_runs_once_whoever_dies(void **state)
{
    (void)state;
    struct ctl ctl;
    int rounds = from_env("SPUR_ROUNDS", 25);
    unsigned hellos = 1, seed = (unsigned)from_env("SPUR_SEED", 1);
    char zygote[128];

    open_with_spurd(&ctl);
    snprintf(zygote, sizeof(zygote), "--zygote %s/", ctl.dir);
    for (int i = 0; i < rounds; i++) {
        struct ctl_job job = { .job = 1000 + (uint32_t)i,
                               .attempt = 1,
                               .uid = getuid(),
                               .script = "#!/bin/sh\necho x >>ran.$SLURM_JOB_ID\nexit 5\n" };
        ctl_grant(&ctl, &job);
        ctl_run(&ctl, (int)(rand_r(&seed) % 12));
        if (rand_r(&seed) % 4 == 0)
            find_processes(zygote, SIGKILL);
        ctl_run(&ctl, (int)(rand_r(&seed) % 3));
        ctl_kill_spurd(&ctl, SIGKILL);
        if (rand_r(&seed) % 3 == 0)
            ctl_run(&ctl, 30);
        ctl_start_spurd(&ctl);
        ctl_wait_hello(&ctl, ++hellos);
        ctl_run(&ctl, 5);
        ctl_grant(&ctl, &job); /* the leader does not know whether it arrived */
        ctl_launch(&ctl, &job);
        NodeMessage *message = ctl_expect(&ctl, ENDED, job.job);
        /* A supervisor is its zygote until it has its own title: it may be killed instead. */
        bool killed = message->ended->has_state && message->ended->state == JOB_NODE_FAIL;
        if (!killed)
            assert_int_equal(message->ended->exit_status, 5 << 8);
        ctl_free(message);
        ctl_ack(&ctl, job.job, 1);
        ctl_run(&ctl, 5);
        ctl_discard(&ctl, ENDED);
        char name[32];
        snprintf(name, sizeof(name), "ran.%u", job.job);
        char *ran = ctl_file(&ctl, name);
        if (strcmp(ran, "x\n") != 0 && !(killed && ran[0] == '\0'))
            fail_msg("round %d: the script of job %u ran like this: '%s'", i, job.job, ran);
        free(ran);
    }
    ctl_close(&ctl);
}

static void a_killed_supervisor_is_reported(void **state)
{
    (void)state;
    struct ctl ctl;

    for (int cgroups = 0; cgroups < 2; cgroups++) {
        ctl_open(&ctl);
        ctl.no_cgroups = !cgroups;
        ctl_start_spurd(&ctl);
        ctl_wait_hello(&ctl, 1);
        const struct ctl_job job = {
            .job = 2000 + (uint32_t)cgroups,
            .attempt = 1,
            .uid = getuid(),
            .script = "#!/bin/bash\nsetsid sleep 7773 &\nsleep 7773 &\ntouch up\nwait\n"
        };
        ctl_grant(&ctl, &job);
        ctl_wait_file(&ctl, "up");
        NodeMessage *message = ctl_expect(&ctl, STARTED, job.job);
        ctl_free(message);
        char title[64];
        snprintf(title, sizeof(title), "spurstepd: [%u.batch]", job.job);
        assert_int_equal(find_processes(title, SIGKILL), 1);
        message = ctl_expect(&ctl, ENDED, job.job);
        assert_int_equal(message->ended->state, JOB_NODE_FAIL);
        assert_non_null(strstr(message->ended->text, "supervisor"));
        ctl_free(message);
        ctl_ack(&ctl, job.job, 1);
        assert_int_equal(find_processes("sleep 7773", 0), 0);
        ctl_close(&ctl);
    }
}

static void a_killed_zygote_is_replaced(void **state)
{
    (void)state;
    struct ctl ctl;
    char zygote[128];

    open_with_spurd(&ctl);
    snprintf(zygote, sizeof(zygote), "--zygote %s/", ctl.dir);
    for (uint32_t i = 0; i < 5; i++) {
        const struct ctl_job job = {
            .job = 2100 + i, .attempt = 1, .uid = getuid(), .script = "#!/bin/sh\nexit 1\n"
        };
        find_processes(zygote, SIGKILL);
        ctl_grant(&ctl, &job);
        assert_int_equal(ctl_finish(&ctl, job.job, 1), 1 << 8);
    }
    ctl_close(&ctl);
}

/* F17 */
static void a_full_spool_refuses_and_asks_to_be_drained(void **state)
{
    (void)state;
    struct ctl ctl;
    char spool[128], filler[160];

    ctl_open(&ctl);
    snprintf(spool, sizeof(spool), "%s/small", ctl.dir);
    mkdir(spool, 0755);
    if (mount("none", spool, "tmpfs", 0, "size=16m,mode=755") < 0) {
        ctl_close(&ctl);
        skip();
    }
    ctl.spool = spool;
    ctl_start_spurd(&ctl);
    ctl_wait_hello(&ctl, 1);
    struct ctl_job job = {
        .job = 2200, .attempt = 1, .uid = getuid(), .script = "#!/bin/sh\nexit 0\n"
    };
    ctl_grant(&ctl, &job);
    assert_int_equal(ctl_finish(&ctl, 2200, 1), 0);
    ctl_discard(&ctl, ACK);
    snprintf(filler, sizeof(filler), "%s/filler", spool);
    int fd = open(filler, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(posix_fallocate(fd, 0, 12 << 20), 0);
    close(fd);
    job.job = 2201;
    ctl_grant(&ctl, &job);
    NodeMessage *message = ctl_expect(&ctl, ACK, 2201);
    assert_true(message->grant_ack->refused && message->grant_ack->drain);
    assert_int_equal(message->grant_ack->code, ERR_DISK_FULL);
    assert_non_null(strstr(message->grant_ack->text, "full"));
    ctl_free(message);
    unlink(filler); /* and it goes on without a restart */
    job.job = 2202;
    ctl_grant(&ctl, &job);
    assert_int_equal(ctl_finish(&ctl, 2202, 1), 0);
    ctl_kill_spurd(&ctl, SIGTERM);
    umount2(spool, MNT_DETACH);
    ctl_close(&ctl);
}

/* F19 */
static void forks_that_ignore_term_are_all_ended(void **state)
{
    (void)state;
    struct ctl ctl;
    int forks = from_env("SPUR_FORKS", 400);
    char *script = mem_printf("#!/usr/bin/python3\nimport os, signal, time\n"
                              "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                              "for i in range(%d):\n"
                              "    if os.fork() == 0:\n"
                              "        if i %% 2: os.setsid()\n"
                              "        while True: time.sleep(1000)\n"
                              "open('forked', 'w').close()\n"
                              "while True: time.sleep(1000)\n",
                              forks);

    open_with_spurd(&ctl);
    ctl.patience = 1 + forks / 1000;
    const struct ctl_job job = { .job = 2300, .attempt = 1, .uid = getuid(), .script = script };
    ctl_grant(&ctl, &job);
    ctl_wait_file(&ctl, "forked");
    assert_true(find_processes("2300.1/slurm_script", 0) > forks);
    int64_t before = clock_mono_us();
    ctl_revoke(&ctl, 2300, 1, 1);
    NodeMessage *message = ctl_expect(&ctl, ENDED, 2300);
    int64_t took_ms = (clock_mono_us() - before) / 1000;
    assert_int_equal(message->ended->exit_status, SIGKILL);
    ctl_free(message);
    ctl_ack(&ctl, 2300, 1);
    assert_int_equal(find_processes("2300.1/slurm_script", 0), 0);
    print_message("F19 %d processes that ignore TERM: ended %lld ms after the revocation "
                  "(kill wait 1000 ms), left behind 0\n",
                  forks, (long long)took_ms);
    free(script);
    ctl_close(&ctl);
}

static off_t size_of(struct ctl *ctl, const char *name)
{
    struct stat info;
    char *path = mem_printf("%s/%s", ctl->dir, name);
    off_t size = stat(path, &info) == 0 ? info.st_size : -1;

    free(path);
    return size;
}

/* F8: silence freezes what may run again elsewhere; contact thaws what is current, ends the rest. */
static void silence_freezes_and_contact_thaws(void **state)
{
    (void)state;
    struct ctl ctl;

    ctl_open(&ctl);
    ctl.lease_ms = 600;
    ctl_start_spurd(&ctl);
    ctl_wait_hello(&ctl, 1);
    struct ctl_job job = { .job = 2400,
                           .attempt = 1,
                           .uid = getuid(),
                           .script = "#!/bin/bash\nwhile :; do echo x; sleep 0.02; done\n" };
    ctl_grant(&ctl, &job);
    job.job = 2401;
    job.no_requeue = true;
    ctl_grant(&ctl, &job);
    ctl_free(ctl_expect(&ctl, STARTED, 2400));
    ctl_free(ctl_expect(&ctl, STARTED, 2401));
    ctl.silent = true;
    ctl_drop_stream(&ctl);
    ctl_kill_spurd(&ctl, SIGKILL); /* nobody but the supervisor is left to notice */
    ctl_run(&ctl, 900);
    off_t frozen = size_of(&ctl, "2400.out"), other = size_of(&ctl, "2401.out");
    ctl_run(&ctl, 300);
    assert_int_equal(size_of(&ctl, "2400.out"), frozen);
    assert_true(size_of(&ctl, "2401.out") > other); /* it may not be requeued: it goes on */
    ctl.silent = false;
    ctl_start_spurd(&ctl);
    ctl_wait_hello(&ctl, 2);
    ctl_run(&ctl, 300);
    assert_true(size_of(&ctl, "2400.out") > frozen); /* kept by the welcome: thawed */
    ctl_revoke(&ctl, 2401, 1, 0);
    ctl_finish(&ctl, 2401, 1);
    ctl_run(&ctl, 1000); /* heartbeats are no contact: only what the leader says is */
    frozen = size_of(&ctl, "2400.out");
    ctl_run(&ctl, 200);
    assert_int_equal(size_of(&ctl, "2400.out"), frozen);
    ctl.keep_none = true;
    ctl_drop_stream(&ctl);
    ctl_wait_hello(&ctl, 3);
    assert_int_equal(ctl_finish(&ctl, 2400, 1), SIGKILL); /* not one instruction more */
    ctl_close(&ctl);
}

/* A connection that is silent for the lease and then goes on: what is current is asked for anew. */
static void a_silence_without_a_break_thaws(void **state)
{
    (void)state;
    struct ctl ctl;

    ctl_open(&ctl);
    ctl.lease_ms = 800;
    ctl.answer_beats = true;
    ctl_start_spurd(&ctl);
    ctl_wait_hello(&ctl, 1);
    const struct ctl_job job = { .job = 2500,
                                 .attempt = 1,
                                 .uid = getuid(),
                                 .script = "#!/bin/bash\nwhile :; do echo x; sleep 0.02; done\n" };
    ctl_grant(&ctl, &job);
    ctl_free(ctl_expect(&ctl, STARTED, 2500));
    ctl.answer_beats = false;
    ctl_run(&ctl, 1300);
    off_t frozen = size_of(&ctl, "2500.out");
    ctl_run(&ctl, 300);
    assert_int_equal(size_of(&ctl, "2500.out"), frozen);
    assert_int_equal(ctl.hellos, 1);
    ctl.answer_beats = true;
    ctl_wait_hello(&ctl, 2);
    for (int i = 0; i < 100 && size_of(&ctl, "2500.out") == frozen; i++)
        ctl_run(&ctl, 100);
    assert_true(size_of(&ctl, "2500.out") > frozen);
    ctl_revoke(&ctl, 2500, 1, 0);
    ctl_finish(&ctl, 2500, 1);
    ctl_close(&ctl);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(a_script_runs_once_whoever_dies),
        UNIT(a_killed_supervisor_is_reported),
        UNIT(a_killed_zygote_is_replaced),
        UNIT(a_full_spool_refuses_and_asks_to_be_drained),
        UNIT(forks_that_ignore_term_are_all_ended),
        UNIT(silence_freezes_and_contact_thaws),
        UNIT(a_silence_without_a_break_thaws),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
