/* SPDX-License-Identifier: Apache-2.0 */
/* Real scripts under the real supervisor: what they see, whom they run as, what they leave. */
#include "spurstepd/test/step_case.h"

#include <errno.h>
#include <sys/mount.h>
#include <sys/stat.h>

/* The report stays for who launched it, the lock does not; nothing else is left. */
static void remove_dir(const StepTask *task)
{
    static const char *const files[] = { "batch.end", "slurm_script" };
    char path[512];

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", task->dir, files[i]);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(task->dir), 0);
}

static void exit_codes_are_as_wait_gives_them(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        unsigned status;
    } cases[] = {
        { "#!/bin/sh\ntrue\n", 0 },
        { "#!/bin/sh\nexit 3\n", 3 << 8 },
        { "#!/bin/sh\nkill -9 $$\n", 9 },
        { "#!/bin/bash\nexit 255\n", 255 << 8 },
        { "#!/usr/bin/env python3\nimport sys\nsys.exit(7)\n", 7 << 8 },
        { "#!/no/such/interpreter\n", ENOENT << 8 },
        { "no interpreter\n", ENOEXEC << 8 },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        StepTask *task = steps_task(&steps, cases[i].script);
        char text[256];
        StepEnded ended = run(task, NULL, text);
        assert_int_equal(ended.exit_status, cases[i].status);
        assert_false(ended.has_state);
        assert_false(ended.launch_failed);
        remove_dir(task);
        steps_task_free(task);
    }
}

static void the_script_sees_what_was_asked_for(void **state)
{
    (void)state;
    char *out, text[256];
    StepTask *task = steps_task(&steps, "#!/bin/sh\necho $# \"$2\"; umask; pwd; ulimit -n; "
                                        "basename $0; echo pid $SLURM_TASK_PID $$; cat; "
                                        "echo fds; ls /proc/self/fd | wc -l; echo oops >&2\n");
    char *args[] = { strdup("one"), strdup("t w o") };
    char in[128];
    Rlimit *limit = malloc(sizeof(*limit));

    rlimit__init(limit);
    limit->name = strdup("NOFILE");
    limit->has_soft = limit->has_hard = true;
    limit->soft = 100;
    limit->hard = 200;
    task->n_rlimits = 1;
    task->rlimits = malloc(sizeof(Rlimit *));
    task->rlimits[0] = limit;
    task->n_args = 2;
    task->args = malloc(sizeof(args));
    memcpy(task->args, args, sizeof(args));
    task->umask = 027;
    snprintf(in, sizeof(in), "%s/in", steps.dir);
    file_write_quick(in, "from a file\n", 12, 0644, NULL);
    task->std_in = strdup(in);
    StepEnded ended = run(task, &out, text);
    assert_int_equal(ended.exit_status, 0);
    int a = 0, b = 1;
    assert_has(out, "2 t w o\n0027\n");
    assert_has(out, steps.dir);
    assert_has(out, "\n100\nslurm_script\n");
    assert_int_equal(sscanf(strstr(out, "pid "), "pid %d %d", &a, &b), 2);
    assert_int_equal(a, b);
    assert_has(out, "from a file\nfds\n4\noops\n"); /* 0, 1, 2 and the directory ls reads */
    struct stat info;
    assert_int_equal(stat(task->std_out, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    free(out);
    steps_task_free(task);
}

static void error_file_append_and_truncate(void **state)
{
    (void)state;
    char err_path[128], text[256];

    snprintf(err_path, sizeof(err_path), "%s/err", steps.dir);
    file_write_quick(err_path, "before\n", 7, 0644, NULL);
    for (int append = 0; append < 2; append++) {
        StepTask *task = steps_task(&steps, "#!/bin/sh\necho out; echo err >&2\n");
        task->std_err = strdup(err_path);
        task->has_open_append = true;
        task->open_append = append;
        run(task, NULL, text);
        char *err = steps_read(err_path), *out = steps_output(&steps, task);
        assert_string_equal(err, append ? "err\nerr\n" : "err\n");
        assert_string_equal(out, "out\n");
        free(err);
        free(out);
        steps_task_free(task);
    }
}

static void a_missing_directory_leads_to_tmp(void **state)
{
    (void)state;
    char *out, text[256];
    StepTask *task = steps_task(&steps, "#!/bin/sh\npwd\n");

    steps_set(&task->work_dir, "/no/such/dir");
    StepEnded ended = run(task, &out, text);
    assert_int_equal(ended.exit_status, 0);
    assert_string_equal(out, "slurmstepd: error: couldn't chdir to `/no/such/dir': No such file or "
                             "directory: going to /tmp instead\n/tmp\n");
    free(out);
    steps_task_free(task);
}

static void files_that_cannot_be_opened_are_0_53(void **state)
{
    (void)state;
    char text[256], fifo[128];

    snprintf(fifo, sizeof(fifo), "%s/nodir/x", steps.dir);
    for (int i = 0; i < 3; i++) {
        StepTask *task = steps_task(&steps, "#!/bin/sh\ntouch ran\n");
        if (i == 0)
            steps_set(&task->std_out, fifo);
        else if (i == 1)
            task->std_err = strdup(fifo);
        else
            task->std_in = strdup(fifo);
        StepEnded ended = run(task, NULL, text);
        assert_int_equal(ended.exit_status, 53);
        assert_false(ended.launch_failed);
        assert_has(text, i == 0 ? "stdout" : i == 1 ? "stderr" : "stdin");
        assert_has(text, "No such file or directory");
        steps_task_free(task);
    }
    snprintf(fifo, sizeof(fifo), "%s/ran", steps.dir);
    assert_int_equal(access(fifo, F_OK), -1);
}

static StepTask *other_users_task(const char *script)
{
    StepTask *task = steps_task(&steps, script);

    task->owner->uid = OTHER_UID;
    task->owner->gid = OTHER_GID;
    task->owner->n_gids = 2;
    task->owner->gids = malloc(2 * sizeof(uint32_t));
    task->owner->gids[0] = OTHER_GID;
    task->owner->gids[1] = 20003;
    return task;
}

static void another_user_is_that_user_wholly(void **state)
{
    (void)state;
    char *out, text[256];
    struct stat info;

    if (!as_root())
        skip();
    StepTask *task = other_users_task(
        "#!/bin/sh\nid -u; id -ru; id -g; id -G; grep -E 'Cap(Eff|Prm)' /proc/self/status; "
        "head -1 $0; ls "
        "/proc/$PPID/fd >/dev/null 2>&1 || echo closed\n");
    StepEnded ended = run(task, &out, text);
    assert_int_equal(ended.exit_status, 0);
    assert_has(out, "20001\n20001\n20002\n20002 20003\n");
    assert_has(out, "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n#!/bin/sh\nclosed\n");
    assert_int_equal(stat(task->std_out, &info), 0);
    assert_int_equal(info.st_uid, OTHER_UID);
    assert_int_equal(info.st_gid, OTHER_GID);
    free(out);
    steps_task_free(task);
}

/* A user's link to a file of root's, and a directory only root may write to. */
static void a_users_link_does_not_lead_root(void **state)
{
    (void)state;
    char secret[128], link[128], closed[128], text[256];

    if (!as_root())
        skip();
    snprintf(secret, sizeof(secret), "%s/secret", steps.dir);
    snprintf(link, sizeof(link), "%s/link", steps.dir);
    snprintf(closed, sizeof(closed), "%s/closed", steps.dir);
    file_write_quick(secret, "secret\n", 7, 0600, NULL);
    assert_int_equal(symlink(secret, link), 0);
    assert_int_equal(lchown(link, OTHER_UID, OTHER_GID), 0);
    assert_int_equal(mkdir(closed, 0700), 0);
    strcat(closed, "/out");
    const char *const paths[] = { link, closed, "/etc/passwd" };
    for (int i = 0; i < 6; i++) {
        StepTask *task = other_users_task("#!/bin/sh\necho mine\n");
        if (i < 3)
            steps_set(&task->std_out, paths[i]);
        else if (i < 5)
            task->std_err = strdup(paths[i - 3]);
        else
            task->std_in = strdup(link);
        StepEnded ended = run(task, NULL, text);
        assert_int_equal(ended.exit_status, 53);
        assert_has(text, "Permission denied");
        steps_task_free(task);
    }
    char *still = steps_read(secret);
    assert_string_equal(still, "secret\n");
    assert_int_equal(access(closed, F_OK), -1);
    free(still);
}

/* Background, own session, double fork, TERM ignored: all are gone when the script ends. */
static void nothing_is_left_behind(void **state)
{
    (void)state;
    char text[256];

    for (int cgroup = 0; cgroup < 2; cgroup++) {
        StepTask *task = steps_task(
            &steps, "#!/bin/bash\nsleep 7771 &\nsetsid sleep 7771 &\n(setsid sh -c 'trap \"\" TERM "
                    "HUP; (sleep 7771 & sleep 7771)' &) &\nsleep 0.1\nexit 4\n");
        if (!cgroup)
            steps_set(&task->cgroup, "");
        StepEnded ended = run(task, NULL, text);
        assert_int_equal(ended.exit_status, 4 << 8);
        assert_int_equal(count_marked("sleep 7771"), 0);
        steps_task_free(task);
    }
}

static void a_long_script_travels_in_a_file(void **state)
{
    (void)state;
    struct str script = { 0 };
    char text[256], *out;

    str_add(&script, "#!/bin/sh\n");
    while (script.len < 3000000)
        str_add(&script, "# a long comment that does nothing but be long, again and again\n");
    str_add(&script, "echo end\n");
    StepTask *task = steps_task(&steps, str_text(&script));
    StepEnded ended = run(task, &out, text);
    assert_int_equal(ended.exit_status, 0);
    assert_string_equal(out, "end\n");
    free(out);
    str_done(&script);
    steps_task_free(task);
}

static void scripts_run_where_files_may_not_execute(void **state)
{
    (void)state;
    char mount_dir[128], path[160], text[256], *out;
    StepTask *task = steps_task(&steps, "#! /bin/sh -e \necho $1 $-; false; echo not here\n");

    snprintf(mount_dir, sizeof(mount_dir), "%s/noexec", steps.dir);
    mkdir(mount_dir, 0755);
    if (mount("none", mount_dir, "tmpfs", MS_NOEXEC, "mode=755") < 0) {
        steps_task_free(task);
        skip();
    }
    snprintf(path, sizeof(path), "%s/job", mount_dir);
    steps_set(&task->dir, path);
    task->n_args = 1;
    task->args = malloc(sizeof(char *));
    task->args[0] = strdup("first");
    StepEnded ended = run(task, &out, text);
    umount2(mount_dir, MNT_DETACH);
    assert_int_equal(ended.exit_status, 1 << 8);
    assert_string_equal(out, "first e\n");
    free(out);
    steps_task_free(task);
}

static void the_login_environment_lies_under_ours(void **state)
{
    (void)state;
    char home[128], path[160], text[256], *out;
    static const char profile[] = "echo noise\nexport FROM_LOGIN=yes OURS=theirs\n";
    StepTask *task = steps_task(&steps, "#!/bin/sh\necho $FROM_LOGIN $OURS\n");

    snprintf(home, sizeof(home), "HOME=%s", steps.dir);
    snprintf(path, sizeof(path), "%s/.profile", steps.dir);
    file_write_quick(path, profile, sizeof(profile) - 1, 0644, NULL);
    task->env = realloc(task->env, 3 * sizeof(char *));
    task->env[1] = strdup(home);
    task->env[2] = strdup("OURS=ours");
    task->n_env = 3;
    task->login_shell = strdup("/bin/sh");
    StepEnded ended = run(task, &out, text);
    assert_int_equal(ended.exit_status, 0);
    assert_string_equal(out, "yes ours\n");
    free(out);
    steps_set(&task->login_shell, "/bin/false");
    snprintf(path, sizeof(path), "%s/again", steps.dir);
    steps_set(&task->dir, path);
    ended = run(task, &out, text);
    assert_has(out, "Unable to get user's local environment");
    assert_has(out, "ours\n");
    free(out);
    steps_task_free(task);
}

static void usage_is_counted(void **state)
{
    (void)state;
    StepTask *task =
        steps_task(&steps, "#!/bin/bash\nfor ((i=0;i<200000;i++)); do :; done &\nwait\nexit 0\n");
    StepNews *news = steps_finish(&steps, task, WAIT_MS);

    assert_non_null(news);
    assert_true(news->ended->usage->user_us > 20000);
    assert_true(news->ended->usage->max_rss_bytes > 1000000);
    step_news__free_unpacked(news, NULL);
    steps_task_free(task);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(exit_codes_are_as_wait_gives_them),     UNIT(the_script_sees_what_was_asked_for),
        UNIT(error_file_append_and_truncate),        UNIT(a_missing_directory_leads_to_tmp),
        UNIT(files_that_cannot_be_opened_are_0_53),  UNIT(another_user_is_that_user_wholly),
        UNIT(a_users_link_does_not_lead_root),       UNIT(nothing_is_left_behind),
        UNIT(a_long_script_travels_in_a_file),       UNIT(scripts_run_where_files_may_not_execute),
        UNIT(the_login_environment_lies_under_ours), UNIT(usage_is_counted),
    };

    return cmocka_run_group_tests(tests, open_steps, close_steps);
}
