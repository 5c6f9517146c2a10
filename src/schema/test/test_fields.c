// SPDX-License-Identifier: Apache-2.0
/*
 * test_fields.c - columns, records and JSON are what Slurm printed for the same jobs and nodes
 */
#include <jansson.h>
#include <time.h>

#include "proto/config.pb-c.h"
#include "sample.h"
#include "schema/columns.h"
#include "schema/job_view.h"
#include "test/unit.h"
#include "wire/message.h"

static const uint32_t sample_ids[] = { 133, 134, 136, 137, 140, 141, 142,
                                       143, 145, 146, 147, 148, 149, 152 };

static struct field_ctx ctx_at(int64_t seconds)
{
    return (struct field_ctx){ .now_us = SAMPLE_START_US + seconds * 1000000, .cluster = "peer" };
}

static char *next_word(char **at)
{
    char *word = *at, *tab = strchr(word, '\t');

    if (tab)
        *tab = '\0';
    *at = tab ? tab + 1 : word + strlen(word);
    return word;
}

static void check_column(char *line, Job *const *jobs)
{
    char *what = next_word(&line);
    struct field_ctx ctx = ctx_at(atoi(next_word(&line)));
    char *header = next_word(&line);
    const struct field *field = what[0] == '%' ? field_by_letter(&job_fields, what[1])
                                               : field_by_name(&job_fields, what, strlen(what));

    if (!field)
        fail_msg("no row for %s", what);
    assert_string_equal(field->column.header, header);
    for (size_t i = 0; i < ARRAY_LEN(sample_ids); i++) {
        struct field_call call = { field, jobs[i], &ctx };
        struct str got = { 0 };
        char *want = next_word(&line);

        field->write(&call, &got);
        if (strcmp(str_text(&got), want) != 0)
            fail_msg("%s of job %u: got \"%s\", Slurm printed \"%s\"", what, sample_ids[i],
                     str_text(&got), want);
        str_done(&got);
    }
}

static void test_every_column_prints_what_slurm_prints(void **state)
{
    char *text = sample_output("squeue.tsv"), *save = NULL;
    Job *jobs[ARRAY_LEN(sample_ids)];
    unsigned checked = 0;

    assert_non_null(text);
    for (size_t i = 0; i < ARRAY_LEN(sample_ids); i++)
        jobs[i] = sample_job(sample_ids[i]);
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (line[0] == '#')
            continue;
        check_column(line, jobs);
        checked++;
    }
    assert_true(checked > 160);
    for (size_t i = 0; i < ARRAY_LEN(sample_ids); i++)
        job__free_unpacked(jobs[i], NULL);
    free(text);
}

/* Lines that tell when the recording was made, or who scheduled, are compared up to there. */
static void normalise(char *text)
{
    static const char *const cut[] = { "LastSchedEval=", "Scheduler=", "   SLUID=" };

    for (size_t i = 0; i < ARRAY_LEN(cut); i++) {
        for (char *at = text; (at = strstr(at, cut[i]));) {
            char *from = at + (cut[i][0] == ' ' ? 0 : strlen(cut[i]));
            size_t len = strcspn(from, cut[i][0] == ' ' ? "\n" : " \n") + (cut[i][0] == ' ');

            memmove(from, from + len, strlen(from + len) + 1);
            at = from;
        }
    }
}

static void check_text(const char *file, char *got, char *want)
{
    normalise(got);
    normalise(want);
    if (strcmp(got, want) != 0)
        fail_msg("%s:\n--- got\n%s--- want\n%s", file, got, want);
}

static void test_job_records_are_those_of_scontrol(void **state)
{
    static const struct {
        const char *file;
        uint32_t ids[3];
        int now;
        bool detail, one_line;
    } cases[] = {
        { "show-job-two.txt", { 133 }, 73, false, false },
        { "show-job-gpu.txt", { 134 }, 73, false, false },
        { "show-job-arr.txt", { 136, 138, 137 }, 73, false, false },
        { "show-job-susp.txt", { 141 }, 73, false, false },
        { "show-job-adminheld.txt", { 145 }, 73, false, false },
        { "show-job-dep.txt", { 146 }, 73, false, false },
        { "show-job-depnever.txt", { 147 }, 73, false, false },
        { "show-job-begin.txt", { 148 }, 73, false, false },
        { "show-job-lic.txt", { 149 }, 73, false, false },
        { "show-job-reqnode.txt", { 152 }, 73, false, false },
        { "show-job-d.txt", { 133 }, 74, true, false },
        { "show-job-dd.txt", { 134 }, 75, true, false },
        { "show-job-oneliner.txt", { 133 }, 74, false, true },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *want = sample_output(cases[i].file);
        struct field_ctx ctx = ctx_at(cases[i].now);
        struct str got = { 0 };

        assert_non_null(want);
        ctx.detail = cases[i].detail;
        for (size_t k = 0; k < 3 && cases[i].ids[k]; k++) {
            Job *job = sample_job(cases[i].ids[k]);

            field_add_record(&job_fields, job, &ctx, cases[i].one_line, &got);
            job__free_unpacked(job, NULL);
        }
        check_text(cases[i].file, got.data, want);
        str_done(&got);
        free(want);
    }
}

static void test_planned_jobs_show_where_and_when(void **state)
{
    char *want = sample_output("show-job-big.txt");
    struct field_ctx ctx = ctx_at(73);
    Job *job = sample_job(142);
    struct str got = { 0 };

    job->status->has_planned_start_us = true;
    job->status->planned_start_us = SAMPLE_START_US + INT64_C(86400) * 1000000;
    job->status->planned_nodes = mem_strdup("node[1-5,7-8]");
    field_add_record(&job_fields, job, &ctx, false, &got);
    check_text("show-job-big.txt", got.data, want);
    job__free_unpacked(job, NULL);
    str_done(&got);
    free(want);
}

static void test_node_records_are_those_of_scontrol(void **state)
{
    static const struct {
        const char *file;
        unsigned first, last;
        bool detail, one_line;
    } cases[] = {
        { "show-node1.txt", 1, 1, false, false },
        { "show-node-range.txt", 6, 8, false, false },
        { "show-node-d.txt", 7, 7, true, false },
        { "show-node-oneliner.txt", 7, 7, false, true },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *want = sample_output(cases[i].file);
        struct field_ctx ctx = ctx_at(73);
        struct str got = { 0 };

        assert_non_null(want);
        ctx.detail = cases[i].detail;
        for (unsigned n = cases[i].first; n <= cases[i].last; n++) {
            Node *node = sample_node(n);

            field_add_record(&node_fields, node, &ctx, cases[i].one_line, &got);
            node__free_unpacked(node, NULL);
        }
        check_text(cases[i].file, got.data, want);
        str_done(&got);
        free(want);
    }
}

static void test_partition_records_are_those_of_scontrol(void **state)
{
    static const char *const names[] = { "debug", "batch", "gpu", "restricted", "closed" };
    struct field_ctx ctx = ctx_at(73);

    for (int one_line = 0; one_line < 2; one_line++) {
        const char *file = one_line ? "show-partition-oneliner.txt" : "show-partition.txt";
        char *want = sample_output(file);
        struct str got = { 0 };

        assert_non_null(want);
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
            Partition *partition = sample_partition(names[i]);

            field_add_record(&partition_fields, partition, &ctx, one_line, &got);
            partition__free_unpacked(partition, NULL);
        }
        check_text(file, got.data, want);
        str_done(&got);
        free(want);
    }
}

static json_t *json_of(const struct field_table *table, const void *object)
{
    struct field_ctx ctx = ctx_at(73);
    struct str text = { 0 };
    struct jsonw json;
    json_error_t where;
    json_t *root;

    jsonw_init(&json, &text);
    jsonw_object(&json, NULL);
    field_add_json(table, object, &ctx, &json);
    jsonw_object_end(&json);
    root = json_loadb(str_text(&text), text.len, JSON_REJECT_DUPLICATES, &where);
    if (!root)
        fail_msg("line %d: %s\n%s", where.line, where.text, str_text(&text));
    str_done(&text);
    return root;
}

/* "time_limit.number" in a parsed reply. */
static json_t *at(json_t *root, const char *path)
{
    const char *cursor = path;
    struct span word;

    while (str_next(&cursor, ".", &word)) {
        char *key = mem_strndup(word.ptr, word.len);

        root = json_object_get(root, key);
        free(key);
    }
    return root;
}

static void test_json_has_slurms_names_and_shapes(void **state)
{
    Job *job = sample_job(133);
    Node *node = sample_node(6);
    Partition *partition = sample_partition("debug");
    json_t *root = json_of(&job_fields, job);

    assert_int_equal(json_integer_value(at(root, "job_id")), 133);
    assert_int_equal(json_integer_value(at(root, "time_limit.number")), 90);
    assert_true(json_is_true(at(root, "time_limit.set")));
    assert_int_equal(json_integer_value(at(root, "start_time.number")), 1794768163);
    assert_int_equal(json_integer_value(at(root, "end_time.number")), 1794773563);
    assert_string_equal(json_string_value(at(root, "stdout_expanded")), "/home/alice/w/tn-133.out");
    assert_string_equal(json_string_value(json_array_get(at(root, "job_state"), 0)), "RUNNING");
    assert_string_equal(json_string_value(json_array_get(at(root, "mail_type"), 0)), "END");
    assert_string_equal(json_string_value(at(root, "nodes")), "node[2-3]");
    assert_string_equal(json_string_value(at(root, "dependency")), "");
    assert_true(json_is_false(at(root, "array_task_id.set")));
    assert_int_equal(json_integer_value(at(root, "exit_code.return_code.number")), 0);
    json_decref(root);

    root = json_of(&node_fields, node);
    assert_string_equal(json_string_value(json_array_get(at(root, "state"), 1)), "DRAIN");
    assert_int_equal(json_array_size(at(root, "features")), 2);
    assert_string_equal(json_string_value(at(root, "reason")), "bad fan");
    json_decref(root);

    root = json_of(&partition_fields, partition);
    assert_int_equal(json_integer_value(at(root, "defaults.time.number")), 10);
    assert_int_equal(json_integer_value(at(root, "maximums.time.number")), 30);
    assert_true(json_is_true(at(root, "maximums.nodes.infinite")));
    assert_string_equal(json_string_value(at(root, "nodes.configured")), "node[1-2]");
    assert_string_equal(json_string_value(json_array_get(at(root, "flags"), 0)), "DEFAULT");
    json_decref(root);
    job__free_unpacked(job, NULL);
    node__free_unpacked(node, NULL);
    partition__free_unpacked(partition, NULL);
}

/* Fails when someone adds a field to a message and forgets its row. */
static void check_covered(const struct field_table *table, const ProtobufCMessageDescriptor *type)
{
    for (unsigned i = 0; i < type->n_fields; i++) {
        bool found = false;

        for (size_t k = 0; k < table->count && !found; k++)
            found = table->rows[k].of.type == type &&
                    table->rows[k].of.offset == type->fields[i].offset;
        if (!found)
            fail_msg("%s.%s has neither a row nor a skip row in the %s table", type->short_name,
                     type->fields[i].name, table->what);
    }
}

static void test_every_field_of_a_message_has_a_row(void **state)
{
    check_covered(&job_fields, &job_spec__descriptor);
    check_covered(&job_fields, &job_status__descriptor);
    check_covered(&job_fields, &job_owner__descriptor);
    check_covered(&node_fields, &node_spec__descriptor);
    check_covered(&node_fields, &node_status__descriptor);
    check_covered(&partition_fields, &partition_spec__descriptor);
}

static void test_rows_are_whole(void **state)
{
    const struct field_table *tables[] = { &job_fields, &node_fields, &partition_fields };

    for (size_t t = 0; t < ARRAY_LEN(tables); t++) {
        for (size_t i = 0; i < tables[t]->count; i++) {
            const struct field *row = &tables[t]->rows[i];

            if (row->skip) {
                assert_non_null(row->of.type);
                continue;
            }
            assert_non_null(row->help);
            if (row->key || row->column.header || row->json.shape == SHAPE_SHOWN)
                assert_true(row->write || row->record);
            if (row->column.header)
                assert_ptr_equal(row, row->column.name ? field_by_name(tables[t], row->column.name,
                                                                       strlen(row->column.name))
                                                       : row);
        }
    }
}

static void test_empty_messages_can_be_shown(void **state)
{
    Job job = JOB__INIT;
    Node node = NODE__INIT;
    Partition partition = PARTITION__INIT;
    struct field_ctx ctx = ctx_at(0);
    struct columns columns = { 0 };
    struct str out = { 0 };

    assert_int_equal(columns_read_letters(&columns, &job_fields, "%all", &out, NULL), 0);
    columns_add_row(&columns, &job, &ctx, &out);
    ctx.detail = true;
    field_add_record(&job_fields, &job, &ctx, false, &out);
    field_add_record(&node_fields, &node, &ctx, false, &out);
    field_add_record(&partition_fields, &partition, &ctx, false, &out);
    json_decref(json_of(&job_fields, &job));
    json_decref(json_of(&node_fields, &node));
    json_decref(json_of(&partition_fields, &partition));
    columns_done(&columns);
    str_done(&out);
}

/* What a user types as a name must neither end a line, nor move the cursor, nor break JSON. */
static void test_hostile_names_are_shown_not_obeyed(void **state)
{
    static const char *const hostile[] = { "a\nb",   "\x1b[2J",  "$(id)`id`",
                                           "%n%s%s", "\xff\xfe", "\xc0\xaf",
                                           "\"\\/",  "=x y=z",   "\xed\xa0\x80" };
    struct field_ctx ctx = ctx_at(0);

    for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
        Job *job = sample_job(133);
        struct columns columns = { 0 };
        struct str out = { 0 };
        json_t *root;

        free(job->spec->name);
        job->spec->name = mem_strdup(hostile[i]);
        columns_read_letters(&columns, &job_fields, "%.8i %j %k", &out, NULL);
        columns_add_row(&columns, job, &ctx, &out);
        assert_ptr_equal(strchr(str_text(&out), '\n'), out.data + out.len - 1);
        assert_null(strchr(str_text(&out), '\x1b'));
        str_clear(&out);
        field_add_record(&job_fields, job, &ctx, true, &out);
        assert_ptr_equal(strchr(str_text(&out), '\n'), out.data + out.len - 1);
        assert_null(strchr(str_text(&out), '\x1b'));
        root = json_of(&job_fields, job);
        if (i < 4)
            assert_string_equal(json_string_value(at(root, "name")), hostile[i]);
        json_decref(root);
        columns_done(&columns);
        str_done(&out);
        job__free_unpacked(job, NULL);
    }
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
        UNIT(test_every_column_prints_what_slurm_prints),
        UNIT(test_job_records_are_those_of_scontrol),
        UNIT(test_planned_jobs_show_where_and_when),
        UNIT(test_node_records_are_those_of_scontrol),
        UNIT(test_partition_records_are_those_of_scontrol),
        UNIT(test_json_has_slurms_names_and_shapes),
        UNIT(test_every_field_of_a_message_has_a_row),
        UNIT(test_rows_are_whole),
        UNIT(test_empty_messages_can_be_shown),
        UNIT(test_hostile_names_are_shown_not_obeyed),
    };

    return cmocka_run_group_tests(tests, set_zone, NULL);
}
