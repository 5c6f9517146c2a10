/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sim.c - traces: what is read, what is refused; figures of small ones that are known by hand
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "client/conf_file.h"
#include "test/unit.h"
#include "trace-sim/sim.h"

/* A file with that content; its name is valid until the next call. */
static const char *file(const char *suffix, const char *bytes, size_t len)
{
    static char path[64];

    if (*path)
        unlink(path);
    snprintf(path, sizeof(path), "/tmp/test-sim-XXXXXX%s", suffix);
    int fd = mkstemps(path, (int)strlen(suffix));
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), (ssize_t)len);
    close(fd);
    return path;
}

static int read_text(struct sim_trace *trace, const char *suffix, const char *text,
                     const char *only, struct err *err)
{
    sim_trace_init(trace);
    return sim_trace_read(trace, file(suffix, text, strlen(text)), only, err);
}

#define TABLE "submit_s\tduration_s\tgpus\tuser\n"
#define SWF18 "1 0 -1 100 4 -1 -1 8 200 -1 1 3 1 7 1 1 -1 -1\n"

static const struct {
    const char *suffix, *text, *only, *wrong; /* what the message says */
} bad[] = {
    { ".tsv", "", NULL, "no job" },
    { ".tsv", "\n\n", NULL, "no job" },
    { ".tsv", "a\tb\n1\t2\n", NULL, ":1: the first line names the columns" },
    { ".tsv", TABLE "1\t2\t3\n", NULL, ":2: there are 3 columns where the first line has 4" },
    { ".tsv", TABLE "1\t2\t3\tu\tv\n", NULL, ":2: there are 5 columns" },
    { ".tsv", TABLE "x\t2\t3\tu\n", NULL, ":2: submit_s is 'x'" },
    { ".tsv", TABLE "1\t2\t3\tu\n-5\t2\t3\tu\n", NULL, ":3: submit_s is '-5'" },
    { ".tsv", TABLE "1\t99999999999999999999\t3\tu\n", NULL, ":2: duration_s is" },
    { ".tsv", TABLE "1\t2\t3 \tu\n", NULL, ":2: gpus is '3 '" },
    { ".tsv", TABLE "1\t2\t\033[2J\tu\n", NULL, "gpus is '\\x1b[2J'" },
    { ".tsv", TABLE "1\t2\t3\tu\n", "nosuch=1", "no column is called 'nosuch'" },
    { ".tsv", TABLE "1\t2\t3\tu\n", "user", "COLUMN=VALUE" },
    { ".tsv", TABLE "1\t2\t3\tu\n", "user=w", "no job in it with user=w" },
    { ".tsv", "trace\tsubmit_s\tduration_s\na\t1\t2\nb\t1\t2\n", NULL, "several traces" },
    { ".swf", "1 2 3\n", NULL, ":1: a line of SWF has 18 numbers; here are 3" },
    { ".swf", "; x\n1 0 -1 100 4 x\n", NULL, ":2: field 6 is no number" },
    { ".swf", "1 0 -1 1e300 4\n", NULL, "field 4 is no number" },
    { ".swf", "1 0 -1 nan 4\n", NULL, "field 4 is no number" },
    { ".swf", "1 -7 -1 100 4\n", NULL, "out of range" },
    { ".swf", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19\n", NULL, "more than 18" },
    { ".swf", SWF18, "user=u3", "--only is for tables" },
    { ".gz", "\x1f\x8b\x08\x00 broken", NULL, "" },
};

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct sim_trace trace;
        struct err err = { 0 };
        if (read_text(&trace, bad[i].suffix, bad[i].text, bad[i].only, &err) >= 0)
            fail_msg("accepted: %s", bad[i].text);
        if (!strstr(err.text, bad[i].wrong))
            fail_msg("case %zu says: %s", i, err.text);
        sim_trace_done(&trace);
    }
}

static void long_lines_and_nul_are_refused(void **state)
{
    struct sim_trace trace;
    struct err err = { 0 };
    size_t len = LIMIT_TRACE_LINE * 2;
    char *text = malloc(len);

    (void)state;
    memset(text, 'a', len);
    sim_trace_init(&trace);
    assert_true(sim_trace_read(&trace, file(".tsv", text, len), NULL, &err) < 0);
    assert_non_null(strstr(err.text, "longer than"));
    sim_trace_done(&trace);
    static const char nul[] = TABLE "1\t2\0\t3\tu\n1\t2\t3\tu\n";
    sim_trace_init(&trace);
    assert_true(sim_trace_read(&trace, file(".tsv", nul, sizeof(nul) - 1), NULL, &err) < 0);
    sim_trace_done(&trace);
    free(text);
}

/* Any bytes at all: an error or jobs, never a crash. */
static void random_bytes(void **state)
{
    uint64_t seed = 1;

    (void)state;
    for (int round = 0; round < 300; round++) {
        char bytes[600];
        struct sim_trace trace;
        struct err err = { 0 };
        size_t head = (size_t)snprintf(bytes, sizeof(bytes), round % 2 ? TABLE : SWF18);
        for (size_t i = head; i < sizeof(bytes); i++) {
            static const char likely[] = "0123456789\t\n -.;eE";
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            bytes[i] = round % 3 ? likely[(seed >> 33) % (sizeof(likely) - 1)] : (char)(seed >> 40);
        }
        sim_trace_init(&trace);
        sim_trace_read(&trace, file(round % 2 ? ".tsv" : ".swf", bytes, sizeof(bytes)), NULL, &err);
        sim_trace_done(&trace);
    }
}

static void swf_fields(void **state)
{
    struct sim_trace trace;
    struct err err = { 0 };

    (void)state;
    assert_int_equal(read_text(&trace, ".swf",
                               ";\tMaxNodes: 4\n; MaxProcs: 64\n\n" SWF18
                               "2 50 -1 0 4 -1 -1 8 200 -1 0 3 1 7 1 1 -1 -1\n"
                               "3 20 -1 10.7 4 -1 -1 -1 -1 -1 1 -1 1 -1 1 1 -1 -1\n",
                               NULL, &err),
                     0);
    assert_int_equal(trace.max_nodes, 4);
    assert_int_equal(trace.max_procs, 64);
    assert_int_equal(trace.jobs.len, 2);
    assert_int_equal(trace.skipped, 1);
    assert_int_equal(trace.jobs.items[0].cpus, 8);
    assert_int_equal(trace.jobs.items[0].limit_s, 200);
    assert_string_equal(trace.users.items[trace.jobs.items[0].user], "u3");
    assert_int_equal(trace.jobs.items[1].cpus, 4);
    assert_int_equal(trace.jobs.items[1].run_s, 10);
    assert_int_equal(trace.jobs.items[1].limit_s, -1);
    assert_int_equal(sim_trace_limits(&trace, "x2.5", &err), 0);
    assert_int_equal(trace.jobs.items[1].limit_s, 25);
    assert_int_equal(trace.jobs.items[0].limit_s, 250);
    assert_true(sim_trace_limits(&trace, "x0.5", &err) < 0);
    assert_true(sim_trace_limits(&trace, "often", &err) < 0);
    assert_int_equal(sim_trace_limits(&trace, "none", &err), 0);
    assert_int_equal(trace.jobs.items[0].limit_s, -1);
    sim_trace_done(&trace);
}

/*
 * One node of 8 GPUs. Job 1 takes half of it until 100; job 2 needs all of it and waits; job 3 is
 * short and fits beside job 1; job 4 is not and must not go before job 2.
 */
static const char by_hand[] =
    "job_id\tsubmit_s\tduration_s\tgpus\tuser\n1\t0\t100\t4\ta\n2\t10\t50\t8"
    "\tb\n3\t20\t30\t4\ta\n4\t30\t200\t4\tb\n";
static const struct {
    const char *policy;
    int64_t start[4];
} known[] = {
    { "fifo", { 0, 100, 150, 150 } },     { "backfill", { 0, 100, 20, 150 } },
    { "sjf", { 0, 100, 20, 150 } },       { "predict", { 0, 100, 20, 150 } },
    { "predict:0", { 0, 100, 20, 150 } },
};

static void run_by_hand(const char *policy, const int64_t start[4])
{
    struct sim_args args = { .nodes = 1, .gpus = 8 };
    struct sim_trace trace;
    struct sim_run run;
    struct sim_figures figures;
    struct str svg = { 0 };
    struct err err = { 0 };

    assert_int_equal(read_text(&trace, ".tsv", by_hand, NULL, &err), 0);
    assert_int_equal(sim_trace_limits(&trace, NULL, &err), 0);
    struct conf *conf = sim_conf_read(&args, &trace, &err);
    assert_non_null(conf);
    Config config = *conf_config(conf);
    assert_int_equal(sim_conf_policy(&config, policy, &err), 0);
    struct sim_how how = { .config = &config, .bars = true };
    assert_int_equal(sim_run(&run, &how, &trace, &err), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(trace.jobs.items[i].start_s, start[i]);
        assert_int_equal(trace.jobs.items[i].end_s, start[i] + trace.jobs.items[i].run_s);
    }
    sim_measure(&run, &figures);
    assert_int_equal(figures.jobs, 4);
    assert_int_equal(figures.makespan_s, 350);
    /* 4 x 100 + 8 x 50 + 4 x 30 + 4 x 200 of 8 x 350 */
    assert_true(figures.used > 0.6142 && figures.used < 0.6143);
    assert_int_equal(figures.wait.most, MAX(start[2] - 20, 120));
    assert_int_equal(sim_svg(&run, "a <b>", &svg, &err), 0);
    assert_non_null(strstr(str_text(&svg), "a &lt;b&gt;"));
    assert_non_null(strstr(str_text(&svg), "job 4 of b: waited 2:00, ran 3:20"));
    str_done(&svg);
    sim_figures_done(&figures);
    sim_run_done(&run);
    sim_trace_done(&trace);
    conf_free(conf);
}

static void schedules_known_by_hand(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        run_by_hand(known[i].policy, known[i].start);
}

static void policies_have_names(void **state)
{
    static const char *const wrong[] = { "",           "fif",          "fifo:1",
                                         "predict:",   "predict:x",    "predict:5:never",
                                         "predict:-1", "backfill,sjf", "predict:5:1-0:7:" };
    Config config = CONFIG__INIT;
    struct err err = { 0 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        if (sim_conf_policy(&config, wrong[i], &err) >= 0)
            fail_msg("accepted: %s", wrong[i]);
    }
    assert_int_equal(sim_conf_policy(&config, "predict:70:2", &err), 0);
    assert_int_equal(config.order_patience, 70);
    assert_int_equal(config.order_late, 2);
    assert_null(config.preempt_type);
    assert_int_equal(sim_conf_policy(&config, "preempt:80", &err), 0);
    assert_string_equal(config.preempt_type, "size");
    assert_int_equal(config.order_patience, 80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(long_lines_and_nul_are_refused),
        cmocka_unit_test(random_bytes),
        cmocka_unit_test(swf_fields),
        cmocka_unit_test(schedules_known_by_hand),
        cmocka_unit_test(policies_have_names),
    };
    int code = cmocka_run_group_tests(tests, NULL, NULL);

    unlink(file("", "", 0));
    return code;
}
