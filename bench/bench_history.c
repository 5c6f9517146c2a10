/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_history.c - how long spurdbd needs for a question when the database is large
 *
 * Rows are made by the database itself, the indexes afterwards; a year and a month of them. Each question is asked
 * as spurdbd asks it, to the last byte of the answer; the first time tells what a cold cache costs, the best of
 * five what a warm one does. The memory is this process's, which is spurdbd's code.
 *
 *     bench-history URL [rows]      what URL names has its rows already when the number is right
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "spurdbd/history.h"
#include "spurdbd/ingest.h"
#include "spurdbd/schema.h"
#include "sys/log.h"

#define SECOND INT64_C(1000000)
#define DAY    (86400 * SECOND)
#define NOW    (INT64_C(1800000000) * SECOND)

enum { ROWS = 10000000, SLICE = 250000, DAYS = 400, PIECE = 192 * 1024, LONGEST_DAYS = 3 };

static void must(int code, const struct err *err)
{
    if (code == 0)
        return;
    fprintf(stderr, "bench-history: %s\n", err->text);
    exit(1);
}

/* ---- rows ---- */

static const char *const indexes[][2] = {
    { "job_end", "job(t_end)" },
    { "job_user", "job(uid, t_end)" },
    { "job_account", "job(account, t_end)" },
    { "job_id", "job(job_id)" },
};

static const char insert[] =
    "WITH RECURSIVE n(i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)"
    " INSERT INTO job(cluster, job_id, run, array_job, het_job, uid, gid, user_name, account,"
    " assoc_id, partition_name, qos, wckey, name, reservation, state, requeued, cancelled_by,"
    " t_submit, t_eligible, t_start, t_end, suspended_us, limit_s, cpus, nodes, mem_mb, gpus,"
    " billing, exit_status, nodelist, tres_alloc, job_bytes)"
    " SELECT ?3, i, 1, 0, 0, 1000 + i * 7919 % 500, 100, 'user' || (i * 7919 % 500),"
    " 'account' || (i % 40), 0, 'batch', 'normal', '', 'simulation', '', 3, 0, -1,"
    " ?4 + i * ?5 - ?6 * (1 + CASE WHEN i % 1000 = 0 THEN 250000 ELSE i % 7200 END),"
    " ?4 + i * ?5 - ?6 * (1 + CASE WHEN i % 1000 = 0 THEN 250000 ELSE i % 7200 END),"
    " ?4 + i * ?5 - ?6 * CASE WHEN i % 1000 = 0 THEN 250000 ELSE i % 7200 END,"
    " ?4 + i * ?5, 0, 3600, 4, 1, 4096, 0, 4, 0, 'node' || (i % 1000),"
    " 'cpu=4,mem=4096M,node=1,billing=4', ?7 FROM n";

static int64_t register_cluster(struct store *store)
{
    uint8_t id[16] = "bench";
    FeedHello hello = FEED_HELLO__INIT;
    struct ingest_position position;
    struct err err = { 0 };
    int64_t cluster;
    bool gap;

    hello.has_cluster_id = true;
    hello.cluster_id = (ProtobufCBinaryData){ sizeof(id), id };
    hello.cluster = (char *)"bench";
    must(ingest_hello(store, &hello, NOW, &cluster, &position, &gap, &err), &err);
    return cluster;
}

/* The message that the rows share: as large as that of a small job. */
static size_t pack_job(uint8_t *out)
{
    Job job = JOB__INIT;
    JobOwner owner = JOB_OWNER__INIT;
    JobSpec spec = JOB_SPEC__INIT;
    JobStatus status = JOB_STATUS__INIT;
    Allocation allocation = ALLOCATION__INIT;
    NodeAlloc node = NODE_ALLOC__INIT, *nodes[] = { &node };

    job.has_id = owner.has_uid = true;
    job.id = 1;
    job.owner = &owner;
    job.spec = &spec;
    job.status = &status;
    owner.uid = 1000;
    owner.user = (char *)"somebody";
    spec.name = (char *)"simulation";
    spec.work_dir = (char *)"/home/somebody/project/run";
    spec.submit_line = (char *)"sbatch -N1 -n4 --time=1:00:00 --mem=4G run.sh input.dat";
    status.account = (char *)"physics";
    status.partition = (char *)"batch";
    node.node = (char *)"node0123";
    allocation.n_nodes = 1;
    allocation.nodes = nodes;
    status.allocation = &allocation;
    return job__pack(&job, out);
}

static void script(struct store *store, const char *before, const char *name, const char *after)
{
    CLEANUP(freep) char *sql = mem_printf("%s %s%s", before, name, after);
    struct err err = { 0 };

    must(store_script(store, sql, &err), &err);
}

static void make_rows(struct store *store, int64_t cluster, int64_t rows)
{
    uint8_t packed[1024];
    size_t len = pack_job(packed);
    struct err err = { 0 };
    int64_t gap = DAYS * DAY / rows;

    for (size_t i = 0; i < ARRAY_LEN(indexes); i++)
        script(store, "DROP INDEX", indexes[i][0], "");
    for (int64_t from = 1; from <= rows; from += SLICE) {
        int64_t upto = MIN(from + SLICE - 1, rows);
        must(store_begin(store, &err), &err);
        must(store_run(store, insert,
                       STORE_VALUES(STORE_INT(from), STORE_INT(upto), STORE_INT(cluster),
                                    STORE_INT(NOW - DAYS * DAY), STORE_INT(gap), STORE_INT(SECOND),
                                    STORE_BYTES(packed, len)),
                       &err),
             &err);
        must(store_commit(store, &err), &err);
    }
    for (size_t i = 0; i < ARRAY_LEN(indexes); i++) {
        CLEANUP(freep) char *on = mem_printf(" ON %s", indexes[i][1]);
        script(store, "CREATE INDEX", indexes[i][0], on);
    }
    must(store_run(store,
                   "INSERT INTO span(month, longest_us) SELECT DISTINCT t_end / ?1, ?2 FROM job",
                   STORE_VALUES(STORE_INT(30 * DAY), STORE_INT(LONGEST_DAYS * DAY)), &err),
         &err);
    if (store_kind_of(store) == STORE_POSTGRESQL)
        must(store_script(store, "ANALYZE", &err), &err); /* as autovacuum does */
}

/* ---- questions ---- */

struct times {
    double select, whole;
    size_t runs;
};

static struct times ask(struct store *store, const ListHistoryRequest *request)
{
    struct history_viewer viewer = { .uid = 0, .name = "root", .admin = true };
    struct history *history = history_new(store, request, &viewer);
    CLEANUP(str_done) struct str piece = { 0 };
    struct err err = { 0 };
    double begin = bench_ms();
    struct times times;

    must(history_select(history, &err), &err);
    times.select = bench_ms() - begin;
    while (history_more(history)) {
        str_clear(&piece);
        must(history_next(history, PIECE, &piece, &err), &err);
    }
    times.whole = bench_ms() - begin;
    times.runs = history_count(history);
    history_free(history);
    return times;
}

static void measure(struct store *store, const char *name, const ListHistoryRequest *request)
{
    const char *kind = store_kind_of(store) == STORE_SQLITE ? "sqlite" : "postgresql";
    CLEANUP(freep) char *row = mem_printf("dbd.%s.%s", name, kind);
    struct times first = ask(store, request), best = first;

    for (int i = 0; i < 5; i++) {
        struct times again = ask(store, request);
        best = again.whole < best.whole ? again : best;
    }
    printf("%-32s %10.1f ms to find, %.1f ms for the answer, %zu runs (first time %.1f ms)\n", row,
           best.select, best.whole, best.runs, first.whole);
}

static void measure_all(struct store *store, int64_t rows)
{
    ListHistoryRequest r = LIST_HISTORY_REQUEST__INIT;
    AcctJobId id = ACCT_JOB_ID__INIT, *ids[] = { &id };
    uint32_t uid = 1007;

    r.has_start_us = r.has_end_us = true;
    r.start_us = NOW - 7 * DAY;
    r.end_us = NOW;
    r.uids = &uid;
    r.n_uids = 1;
    measure(store, "user_week", &r);
    r.n_uids = 0;
    r.start_us = NOW - 365 * DAY;
    r.end_us = r.start_us + DAY;
    r.has_no_steps = r.no_steps = true;
    measure(store, "day_a_year_ago", &r);
    r.has_start_us = r.has_end_us = r.no_steps = false;
    id.has_job = true;
    id.job = (uint32_t)(rows / 3);
    r.ids = ids;
    r.n_ids = 1;
    measure(store, "job", &r);
}

static void print_memory(void)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[128];

    while (file && fgets(line, sizeof(line), file)) {
        if (strncmp(line, "VmHWM:", 6) == 0)
            printf("%-32s %10.1f MB\n", "dbd.memory", strtod(line + 6, NULL) / 1024);
    }
    if (file)
        fclose(file);
}

int main(int argc, char **argv)
{
    struct store *store;
    struct err err = { 0 };
    int64_t rows = argc > 2 ? atoll(argv[2]) : ROWS, there = 0;

    if (argc < 2) {
        fprintf(stderr, "usage: bench-history URL [rows]\n");
        return 2;
    }
    must(store_open(argv[1], &store, &err), &err);
    must(schema_settle(store, false, &err), &err);
    int64_t cluster = register_cluster(store);
    must(store_number(store, "SELECT count(*) FROM job", STORE_NO_VALUES, 0, &there, &err), &err);
    double begin = bench_ms();
    if (there != rows)
        make_rows(store, cluster, rows);
    fprintf(stderr, "%lld rows are there after %.0f s\n", (long long)rows,
            (bench_ms() - begin) / 1e3);
    measure_all(store, rows);
    print_memory();
    store_close(store);
    return 0;
}
