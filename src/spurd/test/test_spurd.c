/* SPDX-License-Identifier: Apache-2.0 */
/* A real spurd and its supervisors under a fake controller: from the hello to the tombstone. */
#include "test/unit.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spurd/test/ctl.h"
#include "sys/files.h"

enum {
    ACK = NODE_MESSAGE__WHAT_GRANT_ACK,
    STARTED = NODE_MESSAGE__WHAT_STARTED,
    ENDED = NODE_MESSAGE__WHAT_ENDED,
    RELEASED = NODE_MESSAGE__WHAT_RELEASED,
};

static void open_with_spurd(struct ctl *ctl)
{
    ctl_open(ctl);
    ctl_start_spurd(ctl);
    ctl_wait_hello(ctl, 1);
}

static void assert_file(struct ctl *ctl, const char *name, const char *want)
{
    char *text = ctl_file(ctl, name);

    assert_string_equal(text, want);
    free(text);
}

static void a_job_from_grant_to_release(void **state)
{
    (void)state;
    struct ctl ctl;

    open_with_spurd(&ctl);
    assert_string_equal(ctl.hello->node, "n1");
    assert_true(ctl.hello->found->cpus > 0);
    assert_true(strlen(ctl.hello->found->boot_id) > 30);
    assert_true(ctl.hello->found->port > 0);
    assert_int_equal(ctl.hello->n_held, 0);
    const struct ctl_job job = { .job = 7,
                                 .attempt = 1,
                                 .uid = getuid(),
                                 .script =
                                     "#!/bin/sh\necho $SLURM_JOB_ID $FROM; sleep 0.2; exit 3\n" };
    ctl_grant(&ctl, &job);
    NodeMessage *message = ctl_expect(&ctl, ACK, 7);
    assert_false(message->grant_ack->refused);
    ctl_free(message);
    message = ctl_expect(&ctl, STARTED, 7);
    assert_true(message->started->pid > 1);
    ctl_free(message);
    message = ctl_expect(&ctl, ENDED, 7);
    assert_int_equal(message->ended->exit_status, 3 << 8);
    assert_true(message->ended->released);
    assert_true(message->ended->usage->max_rss_bytes > 0);
    ctl_free(message);
    ctl_ack(&ctl, 7, 1);
    assert_file(&ctl, "7.out", "7 submit\n");
    message = ctl_take(&ctl, NODE_MESSAGE__WHAT_HEARTBEAT, 2000);
    assert_non_null(message);
    ctl_free(message);
    ctl_drop_stream(&ctl);
    ctl_wait_hello(&ctl, 2);
    assert_int_equal(ctl.hello->n_held, 0);
    char *path = mem_printf("%s/run/7.1", ctl.dir);
    assert_int_equal(access(path, F_OK), -1);
    free(path);
    ctl_close(&ctl);
}

/* F9 and F6: whatever comes again is answered, not repeated. */
static void repeated_messages_change_nothing(void **state)
{
    (void)state;
    struct ctl ctl;

    open_with_spurd(&ctl);
    const struct ctl_job job = {
        .job = 8, .attempt = 2, .uid = getuid(), .script = "#!/bin/sh\necho x >>count; sleep 0.4\n"
    };
    for (int i = 0; i < 5; i++)
        ctl_grant(&ctl, &job);
    ctl_launch(&ctl, &job);
    ctl_free(ctl_expect(&ctl, STARTED, 8));
    ctl_grant(&ctl, &job);
    ctl_free(ctl_expect(&ctl, STARTED, 8)); /* said again */
    ctl_free(ctl_expect(&ctl, ENDED, 8));
    ctl_grant(&ctl, &job); /* the report is not acknowledged yet: it comes again */
    ctl_free(ctl_expect(&ctl, ENDED, 8));
    ctl_drop_stream(&ctl);
    ctl_wait_hello(&ctl, 2);
    assert_int_equal(ctl.hello->n_held, 1);
    assert_true(ctl.hello->held[0]->launched && !ctl.hello->held[0]->running);
    ctl_free(ctl_expect(&ctl, ENDED, 8)); /* and after a new connection */
    ctl_ack(&ctl, 8, 2);
    ctl_ack(&ctl, 8, 2);
    ctl_run(&ctl, 100);
    /* The attempt is over: a grant that was under way, and an older attempt, are refused. */
    struct ctl_job late = job;
    for (uint32_t attempt = 2; attempt >= 1; attempt--) {
        late.attempt = attempt;
        ctl_discard(&ctl, ACK);
        ctl_grant(&ctl, &late);
        NodeMessage *message = ctl_expect(&ctl, ACK, 8);
        assert_true(message->grant_ack->refused);
        assert_int_equal(message->grant_ack->code, ERR_CREDENTIAL_REVOKED);
        ctl_free(message);
    }
    assert_file(&ctl, "count", "x\n");
    late.attempt = 3; /* requeued */
    ctl_grant(&ctl, &late);
    assert_int_equal(ctl_finish(&ctl, 8, 3), 0);
    assert_file(&ctl, "count", "x\nx\n");
    ctl_close(&ctl);
}

/* F7: killed while a job runs, found again, exit code kept; also when it ended meanwhile. */
static void jobs_outlive_the_agent(void **state)
{
    (void)state;
    struct ctl ctl;

    open_with_spurd(&ctl);
    const struct ctl_job first = { .job = 20,
                                   .attempt = 1,
                                   .uid = getuid(),
                                   .script = "#!/bin/sh\necho x >>count; sleep 1.2; exit 4\n" };
    const struct ctl_job second = { .job = 21,
                                    .attempt = 1,
                                    .uid = getuid(),
                                    .script = "#!/bin/sh\necho x >>count; sleep 0.1; exit 5\n" };
    ctl_grant(&ctl, &first);
    ctl_grant(&ctl, &second);
    ctl_free(ctl_expect(&ctl, STARTED, 20));
    ctl_free(ctl_expect(&ctl, STARTED, 21));
    for (unsigned i = 1; i <= 3; i++) {
        ctl_kill_spurd(&ctl, SIGKILL);
        ctl_run(&ctl, 150);
        ctl_start_spurd(&ctl);
        ctl_wait_hello(&ctl, 1 + i);
        assert_int_equal(ctl.hello->n_held, 2);
        assert_true(ctl.hello->held[0]->launched);
    }
    assert_int_equal(ctl_finish(&ctl, 21, 1), 5 << 8);
    assert_int_equal(ctl_finish(&ctl, 20, 1), 4 << 8);
    ctl_run(&ctl, 200);
    ctl_kill_spurd(&ctl, SIGKILL);
    ctl_start_spurd(&ctl);
    ctl_wait_hello(&ctl, 5);
    assert_int_equal(ctl.hello->n_held, 0);
    ctl_grant(&ctl, &first); /* the tombstones are on disk */
    NodeMessage *message = ctl_expect(&ctl, ACK, 20);
    while (!message->grant_ack->refused) { /* those of before */
        ctl_free(message);
        message = ctl_expect(&ctl, ACK, 20);
    }
    ctl_free(message);
    assert_file(&ctl, "count", "x\nx\n");
    ctl_close(&ctl);
}

static void a_long_absence_loses_no_report(void **state)
{
    (void)state;
    struct ctl ctl;

    open_with_spurd(&ctl);
    const struct ctl_job job = {
        .job = 30, .attempt = 1, .uid = getuid(), .script = "#!/bin/sh\nsleep 0.1; exit 6\n"
    };
    ctl_grant(&ctl, &job);
    ctl_free(ctl_expect(&ctl, STARTED, 30));
    ctl_kill_spurd(&ctl, SIGKILL);
    ctl_wait_file(&ctl, "spool/ended/30.1.batch"); /* synced; the supervisor has gone */
    ctl_start_spurd(&ctl);
    ctl_wait_hello(&ctl, 2);
    assert_int_equal(ctl_finish(&ctl, 30, 1), 6 << 8);
    ctl_run(&ctl, 200);
    char *path = mem_printf("%s/spool/ended/30.1.batch", ctl.dir);
    assert_int_equal(access(path, F_OK), -1);
    free(path);
    ctl_close(&ctl);
}

static void revoked_jobs_end_and_leave_a_tombstone(void **state)
{
    (void)state;
    struct ctl ctl;

    open_with_spurd(&ctl);
    const struct ctl_job job = {
        .job = 40,
        .attempt = 1,
        .uid = getuid(),
        .script = "#!/bin/bash\ntrap '' TERM\necho x >>count\nwhile :; do sleep 0.1; done\n"
    };
    ctl_grant(&ctl, &job);
    ctl_wait_file(&ctl, "count");
    ctl_revoke(&ctl, 40, 1, 1);
    NodeMessage *message = ctl_expect(&ctl, ENDED, 40);
    assert_int_equal(message->ended->exit_status, SIGKILL);
    assert_int_equal(message->ended->state, JOB_CANCELLED);
    assert_true(message->ended->released);
    ctl_free(message);
    ctl_ack(&ctl, 40, 1);
    ctl_launch(&ctl, &job);
    while ((message = ctl_expect(&ctl, ACK, 40)) && !message->grant_ack->refused)
        ctl_free(message);
    assert_int_equal(message->grant_ack->code, ERR_CREDENTIAL_REVOKED);
    ctl_free(message);

    /* A revocation that overtakes its grant. */
    ctl_revoke(&ctl, 41, 3, 0);
    ctl_free(ctl_expect(&ctl, RELEASED, 41));
    struct ctl_job late = job;
    late.job = 41;
    late.attempt = 3;
    ctl_grant(&ctl, &late);
    message = ctl_expect(&ctl, ACK, 41);
    assert_true(message->grant_ack->refused);
    ctl_free(message);
    assert_file(&ctl, "count", "x\n");
    ctl_close(&ctl);
}

/* F10: the boot id tells. */
static void a_reboot_is_noticed(void **state)
{
    (void)state;
    struct ctl ctl;
    char root[128];

    ctl_open(&ctl);
    snprintf(root, sizeof(root), "%s/root", ctl.dir);
    ctl.sysroot = root;
    char *dir = mem_printf("%s/proc/sys/kernel/random", root);
    assert_int_equal(file_make_dirs(dir, 0755, NULL), 0);
    free(dir);
    dir = mem_printf("%s/sys/devices/system/cpu", root);
    assert_int_equal(file_make_dirs(dir, 0755, NULL), 0);
    free(dir);
    ctl_put(&ctl, "root/proc/sys/kernel/random/boot_id", "boot-one\n", 0644);
    ctl_put(&ctl, "root/sys/devices/system/cpu/online", "0-1\n", 0644);
    ctl_start_spurd(&ctl);
    ctl_wait_hello(&ctl, 1);
    assert_string_equal(ctl.hello->found->boot_id, "boot-one");
    const struct ctl_job job = { .job = 50,
                                 .attempt = 1,
                                 .uid = getuid(),
                                 .script = "#!/bin/sh\necho x >>count; exec sleep 1000\n" };
    const struct ctl_job ended = {
        .job = 51, .attempt = 1, .uid = getuid(), .script = "#!/bin/sh\nexit 2\n"
    };
    ctl_grant(&ctl, &job);
    ctl_grant(&ctl, &ended);
    ctl_wait_file(&ctl, "count");
    ctl_wait_file(&ctl, "spool/ended/51.1.batch"); /* not acknowledged */
    NodeMessage *message = ctl_expect(&ctl, STARTED, 50);
    pid_t pid = (pid_t)message->started->pid;
    ctl_free(message);
    ctl_kill_spurd(&ctl, SIGKILL);
    kill(pid, SIGKILL); /* a reboot takes the processes and what was in memory */
    ctl_run(&ctl, 300);
    char *run_dir = mem_printf("%s/run", ctl.dir);
    file_remove_tree(run_dir, NULL);
    free(run_dir);
    ctl_put(&ctl, "root/proc/sys/kernel/random/boot_id", "boot-two\n", 0644);
    ctl_start_spurd(&ctl);
    ctl_wait_hello(&ctl, 2);
    assert_string_equal(ctl.hello->found->boot_id, "boot-two");
    assert_int_equal(ctl.hello->n_held, 1); /* the report only */
    assert_int_equal(ctl.hello->held[0]->job_id, 51);
    assert_int_equal(ctl_finish(&ctl, 51, 1), 2 << 8);
    ctl_grant(&ctl, &job);
    while ((message = ctl_expect(&ctl, ACK, 50)) && !message->grant_ack->refused)
        ctl_free(message);
    ctl_free(message);
    assert_file(&ctl, "count", "x\n");
    ctl_close(&ctl);
}

static void old_leaders_are_refused(void **state)
{
    (void)state;
    struct ctl ctl;

    ctl_open(&ctl);
    ctl.epoch = 7;
    ctl_start_spurd(&ctl);
    ctl_wait_hello(&ctl, 1);
    const struct ctl_job job = {
        .job = 60, .attempt = 1, .uid = getuid(), .script = "#!/bin/sh\necho x >>count\n"
    };
    ctl_run(&ctl, 100);
    ctl.epoch = 6;
    ctl_grant(&ctl, &job);
    NodeMessage *message = ctl_expect(&ctl, ACK, 60);
    assert_true(message->grant_ack->refused);
    assert_int_equal(message->grant_ack->code, ERR_STALE_EPOCH);
    ctl_free(message);
    ctl_wait_hello(&ctl, 3); /* it leaves, and does not take the old leader's welcome either */
    assert_int_equal(ctl.hello->epoch, 7);
    ctl_kill_spurd(&ctl, SIGKILL);
    ctl_start_spurd(&ctl);
    ctl_wait_hello(&ctl, 4);
    assert_int_equal(ctl.hello->epoch, 7); /* it is on disk */
    ctl_run(&ctl, 100);
    assert_file(&ctl, "count", "");
    ctl_close(&ctl);
}

static void what_the_leader_does_not_keep_ends(void **state)
{
    (void)state;
    struct ctl ctl;

    open_with_spurd(&ctl);
    const struct ctl_job job = {
        .job = 70, .attempt = 1, .uid = getuid(), .script = "#!/bin/sh\nexec sleep 1000\n"
    };
    ctl_grant(&ctl, &job);
    ctl_free(ctl_expect(&ctl, STARTED, 70));
    ctl.keep_none = true;
    ctl_drop_stream(&ctl);
    ctl_wait_hello(&ctl, 2);
    assert_true(ctl.hello->held[0]->running);
    assert_int_equal(ctl_finish(&ctl, 70, 1), SIGTERM);
    ctl_close(&ctl);
}

static void several_nodes_wait_for_launch_and_revoke(void **state)
{
    (void)state;
    struct ctl ctl;
    static const char *const nodes[] = { "n1", "n2", "n3" };

    open_with_spurd(&ctl);
    const struct ctl_job job = { .job = 80,
                                 .attempt = 1,
                                 .uid = getuid(),
                                 .nodes = nodes,
                                 .node_count = 3,
                                 .script = "#!/bin/sh\necho $SLURM_JOB_NODELIST "
                                           "$SLURM_JOB_CPUS_PER_NODE\n" };
    ctl_grant(&ctl, &job);
    ctl_free(ctl_expect(&ctl, ACK, 80));
    ctl_kill_spurd(&ctl, SIGKILL); /* a grant without a script is held too */
    ctl_start_spurd(&ctl);
    ctl_wait_hello(&ctl, 2);
    assert_int_equal(ctl.hello->n_held, 1);
    assert_true(ctl.hello->held[0]->ready && !ctl.hello->held[0]->launched);
    ctl_launch(&ctl, &job);
    assert_int_equal(ctl_finish(&ctl, 80, 1), 0);
    ctl_expect_none(&ctl, RELEASED, 200);
    ctl_revoke(&ctl, 80, 1, 1);
    ctl_free(ctl_expect(&ctl, RELEASED, 80));
    assert_file(&ctl, "80.out", "n[1-3] 1(x3)\n");
    ctl_close(&ctl);
}

static void prolog_and_epilog_frame_the_job(void **state)
{
    (void)state;
    struct ctl ctl;
    char prolog[128], epilog[128], text[1024];

    ctl_open(&ctl);
    snprintf(prolog, sizeof(prolog), "%s/prolog", ctl.dir);
    snprintf(epilog, sizeof(epilog), "%s/epilog", ctl.dir);
    snprintf(text, sizeof(text),
             "#!/bin/sh\ncd %s; echo prolog $SLURM_JOB_ID $SLURM_SCRIPT_CONTEXT >>order\n"
             "[ $SLURM_JOB_ID = 91 ] && exit 3\n[ $SLURM_JOB_ID = 92 ] && sleep 1000\nexit 0\n",
             ctl.dir);
    ctl_put(&ctl, "prolog", text, 0755);
    snprintf(text, sizeof(text),
             "#!/bin/sh\ncd %s; echo epilog $SLURM_JOB_ID $SLURM_JOB_EXIT_CODE2 >>order\n",
             ctl.dir);
    ctl_put(&ctl, "epilog", text, 0755);
    ctl.common.prolog = prolog;
    ctl.common.epilog = epilog;
    ctl.common.has_prolog_epilog_timeout_s = true;
    ctl.common.prolog_epilog_timeout_s = 300;
    ctl.common.has_prolog_timeout_s = true;
    ctl.common.prolog_timeout_s = 1; /* of the two, the prolog's own counts */
    ctl_start_spurd(&ctl);
    ctl_wait_hello(&ctl, 1);
    struct ctl_job job = {
        .job = 90, .attempt = 1, .uid = getuid(), .script = "#!/bin/sh\necho job >>order; exit 7\n"
    };
    ctl_grant(&ctl, &job);
    NodeMessage *message = ctl_expect(&ctl, ENDED, 90);
    assert_false(message->ended->released);
    ctl_free(message);
    ctl_ack(&ctl, 90, 1);
    message = ctl_expect(&ctl, RELEASED, 90);
    assert_false(message->released->epilog_failed);
    ctl_free(message);
    assert_file(&ctl, "order", "prolog 90 prolog_slurmd\njob\nepilog 90 7:0\n");
    for (uint32_t id = 91; id <= 92; id++) { /* F18: fails, hangs */
        job.job = id;
        ctl_grant(&ctl, &job);
        message = ctl_expect(&ctl, ACK, id);
        assert_true(message->grant_ack->refused && message->grant_ack->drain);
        assert_int_equal(message->grant_ack->code, ERR_PROLOG_FAILED);
        assert_non_null(strstr(message->grant_ack->text, id == 91 ? "exit 3" : "longer than 1 s"));
        ctl_free(message);
    }
    char *order = ctl_file(&ctl, "order");
    assert_null(strstr(order, "epilog 91"));
    assert_int_equal(strlen(strstr(order, "prolog 91")),
                     strlen("prolog 91 prolog_slurmd\nprolog 92 prolog_slurmd\n"));
    free(order);
    ctl_close(&ctl);
}

static void users_are_checked(void **state)
{
    (void)state;
    struct ctl ctl;
    NodeMessage *message;

    ctl_open(&ctl);
    ctl.common.disable_root_jobs = true;
    ctl_start_spurd(&ctl);
    ctl_wait_hello(&ctl, 1);
    struct ctl_job job = {
        .job = 100, .attempt = 1, .uid = 0, .script = "#!/bin/sh\nid -u; id -g\n"
    };
    assert_int_equal(ctl.hello->found->can_change_user, getuid() == 0);
    ctl_grant(&ctl, &job);
    message = ctl_expect(&ctl, ACK, 100);
    assert_true(message->grant_ack->refused);
    assert_non_null(strstr(message->grant_ack->text, getuid() ? "that user only" : "root"));
    ctl_free(message);
    job.job = 101;
    job.uid = getuid() == 0 ? 20001 : getuid();
    ctl_grant(&ctl, &job);
    assert_int_equal(ctl_finish(&ctl, 101, 1), 0);
    char *out = ctl_file(&ctl, "101.out"), want[64];
    snprintf(want, sizeof(want), "%u\n", (unsigned)job.uid);
    assert_int_equal(strncmp(out, want, strlen(want)), 0);
    free(out);
    ctl_close(&ctl);
}

/* An agent that is not root runs its own user's jobs, and says so. */
static void without_root_only_its_own_user(void **state)
{
    (void)state;
    struct ctl ctl;

    if (getuid() != 0)
        skip();
    ctl_open(&ctl);
    ctl.as_uid = 20005;
    ctl_start_spurd(&ctl);
    ctl_wait_hello(&ctl, 1);
    assert_false(ctl.hello->found->can_change_user);
    assert_int_equal(ctl.hello->found->uid, 20005);
    struct ctl_job job = { .job = 110, .attempt = 1, .uid = 20001, .script = "#!/bin/sh\nid -u\n" };
    ctl_grant(&ctl, &job);
    NodeMessage *message = ctl_expect(&ctl, ACK, 110);
    assert_true(message->grant_ack->refused);
    ctl_free(message);
    job.job = 111;
    job.uid = 20005;
    ctl_grant(&ctl, &job);
    assert_int_equal(ctl_finish(&ctl, 111, 1), 0);
    assert_file(&ctl, "111.out", "20005\n");
    ctl_close(&ctl);
}

/* The health program runs again and again; when it fails, the node asks to be drained, once. */
static void a_sick_node_asks_to_be_drained(void **state)
{
    (void)state;
    struct ctl ctl;
    char text[512], program[128];

    ctl_open(&ctl);
    snprintf(program, sizeof(program), "%s/health", ctl.dir);
    snprintf(text, sizeof(text), "#!/bin/sh\ncd %s; echo $SLURMD_NODENAME >>ran; test ! -e sick\n",
             ctl.dir);
    ctl_put(&ctl, "health", text, 0755);
    ctl.common.health_program = program;
    ctl.common.has_health_interval_s = true;
    ctl.common.health_interval_s = 1;
    ctl_start_spurd(&ctl);
    ctl_wait_hello(&ctl, 1);
    ctl_wait_file(&ctl, "ran");
    ctl_expect_none(&ctl, NODE_MESSAGE__WHAT_DRAIN, 500);
    ctl_put(&ctl, "sick", "", 0644);
    NodeMessage *message = ctl_expect(&ctl, NODE_MESSAGE__WHAT_DRAIN, 0);
    assert_non_null(strstr(message->drain->reason, "Health check failed"));
    ctl_free(message);
    ctl_expect_none(&ctl, NODE_MESSAGE__WHAT_DRAIN, 1500);
    char *ran = ctl_file(&ctl, "ran");
    assert_true(strncmp(ran, "n1\nn1\n", 6) == 0);
    free(ran);
    ctl_close(&ctl);
}

UNIT_MAIN(UNIT(a_job_from_grant_to_release), UNIT(a_sick_node_asks_to_be_drained),
          UNIT(repeated_messages_change_nothing), UNIT(jobs_outlive_the_agent),
          UNIT(a_long_absence_loses_no_report), UNIT(revoked_jobs_end_and_leave_a_tombstone),
          UNIT(a_reboot_is_noticed), UNIT(old_leaders_are_refused),
          UNIT(what_the_leader_does_not_keep_ends), UNIT(several_nodes_wait_for_launch_and_revoke),
          UNIT(prolog_and_epilog_frame_the_job), UNIT(users_are_checked),
          UNIT(without_root_only_its_own_user))
