// SPDX-License-Identifier: Apache-2.0
/*
 * test_options.c - options mean and complain as Slurm's do, wherever they are written
 */
#include <time.h>

#include "base/limits.h"
#include "schema/script.h"
#include "test/unit.h"

#define NOW_US INT64_C(1794768163000000) /* 2026-11-15T18:42:43 UTC, a Sunday */

enum { WORDS_MAX = 64 };

/* Splits a line at blanks; "" is an empty word. */
static int split(char *line, char **words)
{
    int count = 0;
    char *save = NULL;

    for (char *word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        if (strcmp(word, "\"\"") == 0)
            word[0] = '\0';
        words[count++] = word;
    }
    return count;
}

static struct option_ctx no_env(void)
{
    static char *none[] = { NULL };

    return (struct option_ctx){ .now_us = NOW_US, .env = none };
}

/* Reads a command line of sbatch and finishes; the line must live as long as the request. */
static int read_line(struct job_request *request, char *line, char **operands, int *left,
                     struct err *err)
{
    struct option_ctx ctx = no_env();
    char *argv[WORDS_MAX];
    int argc = split(line, argv);

    job_request_init(request);
    *err = (struct err){ 0 };
    if (option_read_argv(&sbatch_options, &ctx, request, argc, argv, OPTION_STOP, operands, left,
                         err) < 0)
        return -1;
    return job_request_finish(request, err);
}

static void test_bad_values_have_slurms_words(void **state)
{
    static const struct {
        const char *line;
        enum err_code code;
        const char *text;
    } cases[] = {
        { "sbatch --bogus", ERR_UNKNOWN_OPTION, "unrecognized option '--bogus'" },
        { "sbatch --bogus=1", ERR_UNKNOWN_OPTION, "unrecognized option '--bogus=1'" },
        { "sbatch -@", ERR_UNKNOWN_OPTION, "invalid option -- '@'" },
        { "sbatch -s=1", ERR_UNKNOWN_OPTION, "invalid option -- '='" },
        { "sbatch --time", ERR_UNKNOWN_OPTION, "option '--time' requires an argument" },
        { "sbatch -t", ERR_UNKNOWN_OPTION, "option requires an argument -- 't'" },
        { "sbatch --hold=1", ERR_UNKNOWN_OPTION, "option '--hold' doesn't allow an argument" },
        { "sbatch --par x", ERR_UNKNOWN_OPTION,
          "option '--par' is ambiguous; possibilities: '--parsable' '--partition'" },
        { "sbatch -t abc", ERR_INVALID, "Invalid --time specification" },
        { "sbatch --begin=yesterdayish", ERR_INVALID,
          "Invalid time specification (pos=0): yesterdayish" },
        { "sbatch -S x", ERR_RANGE, "Invalid numeric value \"x\" for --core-spec." },
        { "sbatch -c abc", ERR_RANGE, "Invalid numeric value \"abc\" for --cpus-per-task." },
        { "sbatch -c 0", ERR_RANGE, "Invalid numeric value \"0\" for --cpus-per-task." },
        { "sbatch -n x", ERR_RANGE, "Invalid numeric value \"x\" for --ntasks." },
        { "sbatch -n 0", ERR_RANGE, "Invalid numeric value \"0\" for --ntasks." },
        { "sbatch --threads-per-core=0", ERR_RANGE,
          "Invalid numeric value \"0\" for --threads-per-core." },
        { "sbatch -m nope", ERR_INVALID, "Invalid --distribution specification" },
        { "sbatch --exclusive=nope", ERR_INVALID, "Invalid --exclusive specification" },
        { "sbatch --gpu-bind=nope", ERR_INVALID, "Invalid --gpu-bind argument: nope" },
        { "sbatch --hint=nope", ERR_RANGE,
          "unrecognized --hint argument \"nope\", see --hint=help" },
        { "sbatch --kill-on-invalid-dep=maybe", ERR_INVALID,
          "Invalid --kill-on-invalid-dep specification" },
        { "sbatch --mail-type=NOPE", ERR_INVALID, "Invalid --mail-type specification" },
        { "sbatch --mem=10 --mem-per-cpu=10", ERR_SYNTAX,
          "--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive." },
        { "sbatch --mem-per-cpu=x", ERR_INVALID, "Invalid --mem-per-cpu specification" },
        { "sbatch --mem=lots", ERR_INVALID, "Invalid --mem specification" },
        { "sbatch --mem=5Q", ERR_INVALID, "Invalid --mem specification" },
        { "sbatch --nice=99999999999", ERR_INVALID,
          "Invalid --nice value, out of range (+/- 2147483645)" },
        { "sbatch -w node[1-", ERR_SYNTAX, "Invalid node list specified" },
        { "sbatch -N 4-2", ERR_INVALID, "Maximum node count 2 is less than minimum node count 4" },
        { "sbatch -N x", ERR_INVALID, "\"x\" is not a valid node count" },
        { "sbatch --open-mode=x", ERR_INVALID, "Invalid --open-mode specification" },
        { "sbatch --signal=FOO@x", ERR_INVALID, "Invalid --signal specification" },
        { "sbatch --tmp=x", ERR_INVALID, "Invalid --tmp specification" },
        { "sbatch --propagate=FOO", ERR_INVALID, "--propagate=FOO is not valid." },
        { "sbatch --runtime=x", ERR_UNSUPPORTED,
          "--runtime is not supported yet: there is one container runtime, our own" },
        { "sbatch --bb=x", ERR_UNSUPPORTED,
          "--bb is not supported yet: there are no burst buffers" },
        { "sbatch --gres=gpu:a:b:1", ERR_RANGE,
          "Invalid generic resource (gres) specification: gpu" },
        { "sbatch --gres=:1", ERR_RANGE, "Invalid generic resource (gres) specification: " },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *line = mem_strdup(cases[i].line), *operands[WORDS_MAX];
        struct job_request request;
        struct err err;
        int left;

        if (read_line(&request, line, operands, &left, &err) >= 0)
            fail_msg("accepted: %s", cases[i].line);
        assert_int_equal(err.code, cases[i].code);
        if (strncmp(err.text, cases[i].text, strlen(cases[i].text)) != 0)
            fail_msg("%s: \"%s\", not \"%s\"", cases[i].line, err.text, cases[i].text);
        job_request_done(&request);
        free(line);
    }
}

/* What a command line sets, told as field=value of the packed message's text. */
static void test_good_values_reach_their_field(void **state)
{
    struct job_request request;
    struct err err;
    char *operands[WORDS_MAX];
    int left;
    char line[] = "sbatch -J name -pdebug,batch --part=gpu -A acc -q high -t 1-2:30 --time-min 30 "
                  "-N 2-4 -n8 -c 2 --ntasks-per-node=4 --mem=4GB --tmp=2G -C a&b -w n[1-2] -x n3 "
                  "--exclusive -HO --nice --mail-type=BEGIN,end --signal=B:USR1@90 script.sh -n 5";
    const JobSpec *spec;

    assert_int_equal(read_line(&request, line, operands, &left, &err), 0);
    spec = request.spec;
    assert_string_equal(spec->name, "name");
    assert_string_equal(spec->partition, "gpu");
    assert_string_equal(spec->account, "acc");
    assert_string_equal(spec->qos, "high");
    assert_int_equal(spec->time_limit_s, 26 * 3600 + 1800);
    assert_int_equal(spec->time_min_s, 1800);
    assert_true(spec->min_nodes == 2 && spec->max_nodes == 4 && spec->ntasks == 8);
    assert_true(spec->cpus_per_task == 2 && spec->ntasks_per_node == 4);
    assert_true(spec->has_mem_per_node_mb && spec->mem_per_node_mb == 4096);
    assert_int_equal(spec->tmp_disk_mb, 2048);
    assert_string_equal(spec->features, "a&b");
    assert_string_equal(spec->nodelist, "n[1-2]");
    assert_string_equal(spec->exclude, "n3");
    assert_int_equal(spec->exclusive, EXCLUSIVE_NODE);
    assert_true(spec->hold && spec->overcommit && spec->nice == 100);
    assert_int_equal(spec->mail_type, MAIL_BEGIN | MAIL_END);
    assert_true(spec->signal == 10 && spec->signal_before_s == 90 && spec->signal_batch_only);
    assert_false(spec->has_mem_per_cpu_mb || spec->has_begin_us || spec->dependency);
    assert_int_equal(left, 3); /* options of the script stay with it */
    assert_string_equal(operands[0], "script.sh");
    assert_string_equal(operands[1], "-n");
    job_request_done(&request);
}

static void test_times_and_sizes(void **state)
{
    static const struct {
        const char *line;
        int64_t limit_s, begin_us;
        uint64_t mem_mb;
    } cases[] = {
        { "sbatch -t 30", 1800, 0, 0 },
        { "sbatch -t 0:3600", 3600, 0, 0 },
        { "sbatch -t 30:01", 1860, 0, 0 }, /* seconds round up to a minute */
        { "sbatch -t 2-12", 216000, 0, 0 },
        { "sbatch -t UNLIMITED", -1, 0, 0 },
        { "sbatch --mem 500", 0, 0, 500 },
        { "sbatch --mem 4g", 0, 0, 4096 },
        { "sbatch --mem 1T", 0, 0, 1048576 },
        { "sbatch --mem 100K", 0, 0, 1 },
        { "sbatch --begin now+1hour", 0, NOW_US + INT64_C(3600000000), 0 },
        { "sbatch --begin 2026-11-16T10:00:00", 0, INT64_C(1794823200000000), 0 },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *line = mem_strdup(cases[i].line), *operands[WORDS_MAX];
        struct job_request request;
        struct err err;
        int left;

        assert_int_equal(read_line(&request, line, operands, &left, &err), 0);
        assert_int_equal(request.spec->time_limit_s, cases[i].limit_s);
        assert_int_equal(request.spec->begin_us, cases[i].begin_us);
        assert_int_equal(request.spec->mem_per_node_mb, cases[i].mem_mb);
        job_request_done(&request);
        free(line);
    }
}

static void test_gpus_in_every_form(void **state)
{
    static const struct {
        const char *line, *name, *type;
        uint64_t count;
        GresScope scope;
    } cases[] = {
        { "sbatch --gres=gpu", "gpu", NULL, 1, GRES_PER_NODE },
        { "sbatch --gres=gpu:2", "gpu", NULL, 2, GRES_PER_NODE },
        { "sbatch --gres=gpu:mi300x:8", "gpu", "mi300x", 8, GRES_PER_NODE },
        { "sbatch --gres=gres/gpu:1", "gpu", NULL, 1, GRES_PER_NODE },
        { "sbatch --gres=shard:2k", "shard", NULL, 2048, GRES_PER_NODE },
        { "sbatch -G 4", "gpu", NULL, 4, GRES_PER_JOB },
        { "sbatch -G a100:4", "gpu", "a100", 4, GRES_PER_JOB },
        { "sbatch -G x", "gpu", "x", 1, GRES_PER_JOB },
        { "sbatch --gpus-per-node=2", "gpu", NULL, 2, GRES_PER_NODE },
        { "sbatch --gpus-per-task=h100:1", "gpu", "h100", 1, GRES_PER_TASK },
        { "sbatch --gpus-per-socket=3", "gpu", NULL, 3, GRES_PER_SOCKET },
    };
    char none[] = "sbatch --gres=gpu:2 --gres=none";
    char *operands[WORDS_MAX];
    struct job_request request;
    struct err err;
    int left;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *line = mem_strdup(cases[i].line);

        assert_int_equal(read_line(&request, line, operands, &left, &err), 0);
        assert_int_equal(request.spec->n_gres, 1);
        assert_string_equal(request.spec->gres[0]->name, cases[i].name);
        assert_true(str_eq(request.spec->gres[0]->type, cases[i].type));
        assert_int_equal(request.spec->gres[0]->count, cases[i].count);
        assert_int_equal(request.spec->gres[0]->scope, cases[i].scope);
        job_request_done(&request);
        free(line);
    }
    assert_int_equal(read_line(&request, none, operands, &left, &err), 0);
    assert_int_equal(request.spec->n_gres, 0);
    job_request_done(&request);
}

static const char script[] = "#!/bin/bash\n"
                             "# a comment\n"
                             "#SBATCH --job-name='two words' --mem=1G\n"
                             "   \n"
                             "#SBATCH -t 10 # minutes\n"
                             "#SBATCH --comment=\"say \\\"hi\\\" $(id)\"   --partition=script\n"
                             "#SBATCHX --bogus\n"
                             "##SBATCH --bogus\n"
                             "#SBATCH --output=a\\ b\n"
                             "#SBATCH hetjob\n"
                             "#SBATCH -n 7\n"
                             "echo start\n"
                             "#SBATCH --bogus\n";

static void test_script_environment_and_command_line_in_this_order(void **state)
{
    char *env[] = { mem_strdup("SBATCH_PARTITION=env"), mem_strdup("SBATCH_MEM_PER_CPU=100"),
                    mem_strdup("SALLOC_PARTITION=no"), NULL };
    struct option_ctx ctx = { .now_us = NOW_US, .env = env };
    char *argv[] = { mem_strdup("sbatch"), mem_strdup("-t"), mem_strdup("20"), NULL }, *operands[4];
    struct job_request request;
    struct err err = { 0 };
    unsigned components;
    int left;

    job_request_init(&request);
    assert_int_equal(script_read_options(&sbatch_options, &ctx, &request, script,
                                         sizeof(script) - 1, 0, &components, &err),
                     0);
    assert_int_equal(components, 2);
    assert_string_equal(request.spec->name, "two words");
    assert_string_equal(request.spec->comment, "say \"hi\" $(id)");
    assert_string_equal(request.spec->std_out, "a b");
    assert_string_equal(request.spec->partition, "script");
    assert_int_equal(request.spec->time_limit_s, 600);
    assert_int_equal(request.spec->mem_per_node_mb, 1024);
    assert_int_equal(option_read_env(&sbatch_options, &ctx, &request, &err), 0);
    assert_int_equal(option_read_argv(&sbatch_options, &ctx, &request, 3, argv, OPTION_STOP,
                                      operands, &left, &err),
                     0);
    assert_int_equal(job_request_finish(&request, &err), 0);
    assert_string_equal(request.spec->partition, "env");
    assert_int_equal(request.spec->time_limit_s, 1200);
    assert_false(request.spec->has_mem_per_node_mb); /* replaced by SBATCH_MEM_PER_CPU */
    assert_int_equal(request.spec->mem_per_cpu_mb, 100);
    assert_false(request.spec->has_ntasks);
    job_request_done(&request);

    job_request_init(&request);
    assert_int_equal(script_read_options(&sbatch_options, &ctx, &request, script,
                                         sizeof(script) - 1, 1, NULL, &err),
                     0);
    assert_int_equal(request.spec->ntasks, 7);
    assert_null(request.spec->name);
    job_request_done(&request);
    for (int i = 0; i < 3; i++) {
        free(env[i]);
        free(argv[i]);
    }
}

static int read_script(struct job_request *request, const char *text, struct err *err)
{
    struct option_ctx ctx = no_env();

    *err = (struct err){ 0 };
    job_request_init(request);
    if (script_read_options(&sbatch_options, &ctx, request, text, strlen(text), 0, NULL, err) < 0)
        return -1;
    return job_request_finish(request, err);
}

static void test_bad_script_lines(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "#!/bin/sh\n#SBATCH --bogus=1\n", "unrecognized option '--bogus=1'" },
        { "#!/bin/sh\n#SBATCH -t zzz\n", "Invalid --time specification" },
        { "#!/bin/sh\n#SBATCH --comment=\"x\n", "line 2: Unmatched `\"` in [ --comment=\"x]" },
        { "#!/bin/sh\n#SBATCH stray\n", "Invalid directive found in batch script: stray" },
        { "#!/bin/sh\n#PBS -Q x\n", "invalid option -- 'Q'" },
        { "#!/bin/sh\n#PBS -l frobs=3\n", "unknown #PBS -l resource: frobs" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct job_request request;
        struct err err;

        assert_true(read_script(&request, cases[i].text, &err) < 0);
        assert_string_equal(err.text, cases[i].message);
        job_request_done(&request);
    }
}

static void test_pbs_lines_are_translated(void **state)
{
    struct job_request request;
    struct err err;
    const JobSpec *spec;

    assert_int_equal(read_script(&request,
                                 "#!/bin/sh\n"
                                 "#PBS -N nm -q long@server -A acct -o host:/tmp/o -j oe -V\n"
                                 "#PBS -l nodes=2:ppn=4,walltime=1:30:00,mem=500mb\n"
                                 "#PBS -m abe -M a@b -r n -p 5 -h -t 1-3%2\n"
                                 "#PBS -W depend=afterok:12.srv:13.srv,afterany:14,umask=027\n",
                                 &err),
                     0);
    spec = request.spec;
    assert_string_equal(spec->name, "nm");
    assert_string_equal(spec->partition, "long");
    assert_string_equal(spec->account, "acct");
    assert_string_equal(spec->std_out, "/tmp/o");
    assert_true(spec->min_nodes == 2 && spec->ntasks_per_node == 4);
    assert_int_equal(spec->time_limit_s, 5400);
    assert_int_equal(spec->mem_per_node_mb, 500);
    assert_int_equal(spec->mail_type, MAIL_BEGIN | MAIL_END | MAIL_FAIL);
    assert_string_equal(spec->mail_user, "a@b");
    assert_true(spec->has_requeue && !spec->requeue && spec->nice == -5 && spec->hold);
    assert_string_equal(spec->array, "1-3%2");
    assert_string_equal(request.export, "ALL");
    assert_string_equal(spec->dependency, "afterok:12:13,afterany:14");
    assert_int_equal(spec->umask, 027);
    job_request_done(&request);

    assert_int_equal(read_script(&request,
                                 "#PBS -l select=2:ncpus=8:mpiprocs=4:mem=4gb:ngpus=1\n"
                                 "#PBS -l walltime=90 -W umask=027\n#PBS -a 202611161000\n",
                                 &err),
                     0);
    spec = request.spec;
    assert_true(spec->min_nodes == 2 && spec->ntasks_per_node == 4 && spec->cpus_per_task == 2);
    assert_int_equal(spec->mem_per_node_mb, 4096);
    assert_int_equal(spec->time_limit_s, 120);
    assert_int_equal(spec->umask, 027);
    assert_int_equal(spec->begin_us, INT64_C(1794823200000000));
    assert_int_equal(spec->n_gres, 1);
    job_request_done(&request);
}

static void test_script_files_that_slurm_refuses(void **state)
{
    struct err err = { 0 };

    assert_int_equal(script_check("#!/bin/sh\ntrue\n", 15, &err), 0);
    assert_int_equal(script_check("#!/bin/sh\ntrue", 14, &err), 0);
    assert_true(script_check("", 0, &err) < 0);
    assert_string_equal(err.text, "Batch script is empty!");
    assert_true(script_check("echo\n", 5, &err) < 0);
    assert_true(str_starts(err.text, "This does not look like a batch script."));
    assert_true(script_check("#!/bin/sh\r\ntrue\r\n", 17, &err) < 0);
    assert_true(str_starts(err.text, "Batch script contains DOS line breaks"));
    assert_true(script_check("#!/bin/sh\n\0x", 12, &err) < 0);
}

static void test_long_and_hostile_lines_are_bounded(void **state)
{
    struct job_request request;
    struct err err;
    struct str text = { 0 };

    str_add(&text, "#!/bin/sh\n#SBATCH --comment=");
    str_add_fill(&text, 'x', LIMIT_COMMENT_BYTES);
    assert_true(read_script(&request, str_text(&text), &err) < 0);
    job_request_done(&request);

    str_clear(&text);
    str_add(&text, "#!/bin/sh\n");
    for (int i = 0; i < LIMIT_HET_COMPONENTS + 1; i++)
        str_add(&text, "#SBATCH hetjob\n");
    assert_true(read_script(&request, str_text(&text), &err) < 0);
    job_request_done(&request);

    str_clear(&text);
    str_add(&text, "#!/bin/sh\n#SBATCH --job-name=\x1b[31m$(touch$IFS/tmp/x)`id`\n");
    assert_int_equal(read_script(&request, str_text(&text), &err), 0);
    assert_string_equal(request.spec->name, "\x1b[31m$(touch$IFS/tmp/x)`id`");
    job_request_done(&request);
    str_done(&text);
}

/* Options may follow operands where the command wants it: scancel ID --signal USR2. */
struct toy {
    bool all;
    const char *name;
    uint32_t verbose;
};
static const struct option toy_rows[] = {
    { .name = "all", .key = 'a', .read = option_flag, .into = OPTION_BOOL(struct toy, all) },
    { .name = "name",
      .key = 'n',
      .arg = "NAME",
      .env = { "TOY_NAME" },
      .read = option_text,
      .into = OPTION_TEXT(struct toy, name) },
    { .name = "verbose",
      .key = 'v',
      .read = option_increase,
      .into = OPTION_U32(struct toy, verbose) },
};
static const struct option_set toy_options = { .command = "toy",
                                               .usage = "[OPTIONS]",
                                               .about = "A toy.",
                                               .bit = 1,
                                               .rows = toy_rows,
                                               .count = ARRAY_LEN(toy_rows) };

static void test_options_may_follow_operands(void **state)
{
    struct option_ctx ctx = no_env();
    char line[] = "toy 12 --name USR2 -va 13 -- -v", *argv[WORDS_MAX], *operands[WORDS_MAX];
    struct toy toy = { 0 };
    struct err err = { 0 };
    int argc = split(line, argv), left;

    assert_int_equal(option_read_argv(&toy_options, &ctx, &toy, argc, argv, OPTION_PERMUTE,
                                      operands, &left, &err),
                     0);
    assert_true(toy.all && toy.verbose == 1);
    assert_string_equal(toy.name, "USR2");
    assert_int_equal(left, 3);
    assert_string_equal(operands[0], "12");
    assert_string_equal(operands[1], "13");
    assert_string_equal(operands[2], "-v");
}

static void test_rows_are_whole_and_in_order(void **state)
{
    for (size_t i = 0; i < sbatch_options.count; i++) {
        const struct option *row = &sbatch_options.rows[i];

        assert_non_null(row->read);
        assert_ptr_equal(row, option_find(row->commands & CMD_SBATCH   ? &sbatch_options
                                          : row->commands & CMD_SALLOC ? &salloc_options
                                                                       : &srun_options,
                                          row->name));
        for (size_t k = 0; k < i; k++) {
            const struct option *other = &sbatch_options.rows[k];

            if (row->key && row->key == other->key)
                assert_true((row->commands & other->commands) == 0);
        }
    }
}

static void test_help_and_man_page_come_from_the_rows(void **state)
{
    struct str out = { 0 };

    option_add_help(&sbatch_options, &out);
    assert_non_null(strstr(str_text(&out), "  -t, --time=time "));
    assert_non_null(strstr(str_text(&out), "      --nice[=N] "));
    assert_null(strstr(str_text(&out), "--bbf"));
    for (const char *line = str_text(&out); *line; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= 80);
    str_clear(&out);
    option_add_man(&sbatch_options, &out);
    assert_non_null(strstr(str_text(&out), ".TH SBATCH 1"));
    assert_non_null(strstr(str_text(&out), "Variable: SBATCH_TIMELIMIT."));
    str_done(&out);
}

static void test_given_options_are_listed(void **state)
{
    char line[] = "sbatch -v --wrap true";
    char *operands[WORDS_MAX];
    struct job_request request;
    struct str out = { 0 };
    struct err err;
    int left;

    assert_int_equal(read_line(&request, line, operands, &left, &err), 0);
    job_request_add_given(&request, "sbatch", &out);
    assert_string_equal(str_text(&out), "sbatch: defined options\n"
                                        "sbatch: -------------------- --------------------\n"
                                        "sbatch: verbose             : 1\n"
                                        "sbatch: wrap                : true\n"
                                        "sbatch: -------------------- --------------------\n"
                                        "sbatch: end of defined options\n");
    str_done(&out);
    job_request_done(&request);
}

static int set_zone(void **state)
{
    setenv("TZ", "UTC", 1);
    tzset();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(test_bad_values_have_slurms_words),
        UNIT(test_good_values_reach_their_field),
        UNIT(test_times_and_sizes),
        UNIT(test_gpus_in_every_form),
        UNIT(test_script_environment_and_command_line_in_this_order),
        UNIT(test_bad_script_lines),
        UNIT(test_pbs_lines_are_translated),
        UNIT(test_script_files_that_slurm_refuses),
        UNIT(test_long_and_hostile_lines_are_bounded),
        UNIT(test_options_may_follow_operands),
        UNIT(test_rows_are_whole_and_in_order),
        UNIT(test_help_and_man_page_come_from_the_rows),
        UNIT(test_given_options_are_listed),
    };

    return cmocka_run_group_tests(tests, set_zone, NULL);
}
