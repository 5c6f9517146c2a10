/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_dbd.c - how fast spurdbd takes a journal that waited for it
 *
 * A job is four entries: submitted, started, one step, ended. Batches are as large as those of a stream that
 * is held back. The floor writes the same bytes to a file and calls fdatasync once a batch.
 *
 *     bench-dbd [directory] [jobs]       SPUR_TEST_DATABASE names a server: tools/postgresql with --durable bench-dbd
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "spurdbd/ingest.h"
#include "spurdbd/schema.h"
#include "sys/log.h"

enum { BATCH_JOBS = 500, JOBS = 20000 };

#define START_US (INT64_C(1700000000) * 1000000)

static void add(struct ingest_batch *batch, JournalRecord *record, uint64_t *index)
{
    JournalEntry entry = JOURNAL_ENTRY__INIT;
    struct str packed = { 0 };

    record->has_kind = record->has_job_id = true;
    entry.has_index = entry.has_time_us = true;
    entry.index = ++*index;
    entry.time_us = START_US + (int64_t)*index * 1000;
    entry.n_records = 1;
    entry.records = &record;
    str_reserve(&packed, journal_entry__get_packed_size(&entry) + 1);
    packed.len = journal_entry__pack(&entry, (uint8_t *)packed.data);
    vec_push(&batch->entries, packed);
    batch->bytes += packed.len;
    batch->last = *index;
}

static void add_job(struct ingest_batch *batch, uint32_t id, uint64_t *index)
{
    static const JournalKind kinds[] = { JOURNAL_SUBMITTED, JOURNAL_STARTED, JOURNAL_ENDED };
    static const JobState states[] = { JOB_PENDING, JOB_RUNNING, JOB_COMPLETED };
    Job job = JOB__INIT;
    JobOwner owner = JOB_OWNER__INIT;
    JobSpec spec = JOB_SPEC__INIT;
    JobStatus status = JOB_STATUS__INIT;
    Allocation allocation = ALLOCATION__INIT;
    NodeAlloc node = NODE_ALLOC__INIT, *nodes[] = { &node };
    Usage usage = USAGE__INIT;

    job.has_id = owner.has_uid = spec.has_batch = spec.batch = true;
    job.id = id;
    job.owner = &owner;
    job.spec = &spec;
    job.status = &status;
    owner.uid = 1000 + id % 50;
    owner.user = (char *)"somebody";
    spec.name = (char *)"simulation";
    spec.work_dir = (char *)"/home/somebody/project/run";
    spec.submit_line = (char *)"sbatch -N1 -n4 --time=1:00:00 --mem=4G run.sh input.dat";
    status.account = (char *)"physics";
    status.partition = (char *)"batch";
    status.has_state = status.has_attempt = status.has_submit_us = status.has_eligible_us = true;
    status.submit_us = status.eligible_us = START_US + id * INT64_C(1000000);
    node.node = (char *)"node0123";
    node.has_cpus = true;
    node.cpus = 4;
    allocation.n_nodes = 1;
    allocation.nodes = nodes;
    usage.has_max_rss_bytes = usage.has_user_us = true;
    usage.max_rss_bytes = 123456789;
    usage.user_us = 3000000;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        JournalRecord record = JOURNAL_RECORD__INIT;
        if (i == 2) {
            JournalRecord step = JOURNAL_RECORD__INIT;
            StepPart part = STEP_PART__INIT;
            StepId step_id = STEP_ID__INIT;
            step_id.has_job_id = step_id.has_attempt = step_id.has_step = true;
            step_id.job_id = id;
            step_id.attempt = 1;
            part.id = &step_id;
            part.name = (char *)"solver";
            part.node = part.nodes = (char *)"node0123";
            part.has_tasks_here = true;
            part.tasks_here = 4;
            part.usage = &usage;
            step.kind = JOURNAL_STEP;
            step.job_id = id;
            step.step = &part;
            add(batch, &step, index);
            record.has_end_state = record.has_end_us = record.has_start_us = true;
            record.end_state = JOB_COMPLETED;
            record.start_us = status.start_us;
            record.end_us = status.end_us = status.start_us + 1000000;
            record.usage = &usage;
            status.has_end_us = true;
        }
        status.state = states[i];
        status.attempt = i ? 1 : 0;
        if (i) {
            status.has_start_us = true;
            status.start_us = status.submit_us + 500000;
            status.allocation = &allocation;
            status.tres_alloc = (char *)"cpu=4,mem=4096M,node=1,billing=4";
        }
        record.kind = kinds[i];
        record.job_id = id;
        record.job = &job;
        add(batch, &record, index);
    }
}

static void must(int code, const struct err *err)
{
    if (code == 0)
        return;
    fprintf(stderr, "bench-dbd: %s\n", err->text);
    exit(1);
}

/* The same bytes, synced as often. */
static double floor_ms(const char *dir, const struct ingest_batch *batches, size_t count)
{
    CLEANUP(freep) char *path = mem_printf("%s/floor", dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    double begin = bench_ms();

    for (size_t i = 0; i < count; i++) {
        vec_each (const struct str, entry, &batches[i].entries) {
            if (write(fd, entry->data, entry->len) < 0)
                exit(1);
        }
        fdatasync(fd);
    }
    double took = bench_ms() - begin;
    close(fd);
    unlink(path);
    return took;
}

int main(int argc, char **argv)
{
    char dir[] = "/tmp/spur-bench-dbd.XXXXXX";
    const char *in = argc > 1 ? argv[1] : mkdtemp(dir);
    uint32_t jobs = argc > 2 ? (uint32_t)atoi(argv[2]) : JOBS;
    size_t count = (jobs + BATCH_JOBS - 1) / BATCH_JOBS;
    struct ingest_batch *batches = NEW_ARRAY(struct ingest_batch, count);
    const char *server = getenv("SPUR_TEST_DATABASE");
    CLEANUP(freep) char *url = server ? mem_strdup(server) : mem_printf("sqlite:%s/bench.db", in);
    uint8_t id[16] = "bench";
    FeedHello hello = FEED_HELLO__INIT;
    struct ingest_position position;
    struct store *store;
    struct err err = { 0 };
    int64_t cluster;
    uint64_t index = 0;
    bool gap;

    must(store_open(url, &store, &err), &err);
    must(schema_settle(store, false, &err), &err);
    hello.has_cluster_id = true;
    hello.cluster_id = (ProtobufCBinaryData){ sizeof(id), id };
    hello.cluster = (char *)"bench";
    must(ingest_hello(store, &hello, START_US, &cluster, &position, &gap, &err), &err);
    for (uint32_t job = 0; job < jobs; job++) {
        batches[job / BATCH_JOBS].cluster = cluster;
        add_job(&batches[job / BATCH_JOBS], job + 1, &index);
    }
    double floor = floor_ms(in, batches, count), begin = bench_ms();
    for (size_t i = 0; i < count; i++)
        must(ingest_write(store, &batches[i], &err), &err);
    double took = bench_ms() - begin;
    printf("%-32s %10.0f jobs/s (%.1f of floor)\n",
           server ? "dbd.drain.postgresql" : "dbd.drain.sqlite", jobs / took * 1e3, took / floor);
    store_close(store);
    for (size_t i = 0; i < count; i++)
        ingest_batch_done(&batches[i]);
    free(batches);
    if (argc <= 1) {
        CLEANUP(freep) char *command = mem_printf("rm -rf '%s'", dir);
        return system(command) != 0;
    }
    return 0;
}
