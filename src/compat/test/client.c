// SPDX-License-Identifier: Apache-2.0
/*
 * client.c - a program that knows nothing but slurm/slurm.h, for each API number: t/t57-api runs it
 *
 *     client offline            what needs no controller
 *     client cluster            every group of functions, on a cluster with the nodes n1 and n2
 *     client seed               the example of the README, as printed there
 *     client jobs | nodes | …   prints records, which the test compares with scontrol's
 *     client fill N             submits N held jobs
 *     client many N             loads one job N times and all jobs once, and says how long it took
 *
 * Prints "not ok - …" for each check that fails; the exit code is how many did.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <slurm/slurm.h>
#include <slurm/slurmdb.h>

static int failed;

#define CHECK(condition)                                                                        \
    do {                                                                                        \
        if (!(condition)) {                                                                     \
            failed++;                                                                           \
            printf("not ok - %s:%d %s (errno %d: %s)\n", __func__, __LINE__, #condition, errno, \
                   slurm_strerror(errno));                                                      \
        }                                                                                       \
    } while (0)

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
#define BY_STEP 1
#define JOB(id) ((slurm_step_id_t){ .job_id = (id), .step_id = NO_VAL, .step_het_comp = NO_VAL })
#define ID(msg) ((msg)->step_id.job_id)
#else
#define BY_STEP 0
#define JOB(id) (id)
#define ID(msg) ((msg)->job_id)
#endif
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 11, 0)
typedef list_t *list_type;
typedef hostlist_t *hosts_type;
typedef list_itr_t *iterator_type;
#else
typedef List list_type;
typedef hostlist_t hosts_type;
typedef ListIterator iterator_type;
#endif

extern void slurm_xfree(void **pointer);
extern char *slurm_node_state_string(uint32_t state);
extern char *slurm_job_state_string(uint32_t state);
extern void slurm_free_stats_response_msg(stats_info_response_msg_t *msg);

/* ---- what needs no controller ---- */

static void hostlists(void)
{
    hosts_type list = slurm_hostlist_create("n[1-3],m7");
    char buffer[64];

    CHECK(list && slurm_hostlist_count(list) == 4);
    char *name = slurm_hostlist_shift(list);
    CHECK(name && strcmp(name, "n1") == 0);
    free(name);
    CHECK(slurm_hostlist_count(list) == 3 && slurm_hostlist_find(list, "n3") == 1);
    CHECK(slurm_hostlist_push(list, "n[2-9]") == 8 && slurm_hostlist_push_host(list, "x") == 1);
    slurm_hostlist_uniq(list);
    CHECK(slurm_hostlist_ranged_string(list, sizeof(buffer), buffer) > 0);
    CHECK(strcmp(buffer, "m7,n[2-9],x") == 0);
    char *text = slurm_hostlist_ranged_string_xmalloc(list);
    CHECK(text && strcmp(text, buffer) == 0);
    slurm_xfree((void **)&text);
    slurm_hostlist_destroy(list);
    CHECK(!slurm_hostlist_create("n[1-"));
}

static int by_text(void *x, void *y)
{
    return strcmp(*(char **)x, *(char **)y);
}

static void lists(void)
{
    list_type list = slurm_list_create(free);
    char *item;

    slurm_list_append(list, strdup("b"));
    slurm_list_append(list, strdup("a"));
    CHECK(slurm_list_count(list) == 2 && !slurm_list_is_empty(list));
    slurm_list_sort(list, by_text);
    iterator_type at = slurm_list_iterator_create(list);
    CHECK((item = slurm_list_next(at)) && strcmp(item, "a") == 0);
    CHECK((item = slurm_list_next(at)) && strcmp(item, "b") == 0);
    CHECK(!slurm_list_next(at));
    slurm_list_iterator_reset(at);
    CHECK(slurm_list_next(at) != NULL);
    slurm_list_iterator_destroy(at);
    item = slurm_list_pop(list);
    CHECK(item && strcmp(item, "a") == 0);
    free(item);
    slurm_list_destroy(list);
}

static void errors(void)
{
    CHECK(strcmp(slurm_strerror(ESLURM_INVALID_JOB_ID), "Invalid job id specified") == 0);
    CHECK(strcmp(slurm_strerror(SLURM_SUCCESS), "No error") == 0);
    CHECK(strlen(slurm_strerror(ESLURM_TRANSITION_STATE_NO_UPDATE)) > 3);
    CHECK(ESLURM_INVALID_JOB_ID == 2017 && SLURM_ERROR == -1);
    CHECK(slurm_api_version() == SLURM_VERSION_NUMBER);
    errno = 0;
    CHECK(slurm_load_federation(NULL) == SLURM_ERROR && errno == ESLURM_NOT_SUPPORTED);
}

static void conditions(void)
{
    slurmdb_cluster_cond_t cond;
    uint16_t flags;
    void *conn = slurmdb_connection_get(&flags);

    slurmdb_init_cluster_cond(&cond, false);
    CHECK(conn != NULL && slurmdb_connection_close(&conn) == SLURM_SUCCESS && !conn);
    slurmdb_destroy_job_cond(NULL);
}

static void offline(void)
{
    hostlists();
    lists();
    errors();
}

/* ---- with a controller ---- */

static char *const environment[] = { (char *)"PATH=/usr/bin:/bin", (char *)"FROM_CLIENT=yes",
                                     NULL };

static void describe(job_desc_msg_t *desc, const char *name, const char *script)
{
    slurm_init_job_desc_msg(desc);
    desc->name = (char *)name;
    desc->script = (char *)script;
    desc->environment = (char **)environment;
    desc->env_size = 2;
    desc->work_dir = (char *)"/tmp";
    desc->std_out = (char *)"/dev/null";
    desc->user_id = getuid();
    desc->group_id = getgid();
}

static uint32_t submit(const char *name, const char *script, bool held)
{
    submit_response_msg_t *answer = NULL;
    job_desc_msg_t desc;

    describe(&desc, name, script);
    if (held)
        desc.priority = 0;
    CHECK(slurm_submit_batch_job(&desc, &answer) == SLURM_SUCCESS && answer);
    uint32_t id = answer ? ID(answer) : 0;
    slurm_free_submit_response_response_msg(answer);
    return id;
}

static uint32_t state_of(uint32_t id)
{
    job_info_msg_t *msg = NULL;
    uint32_t state = NO_VAL;

    if (slurm_load_job(&msg, JOB(id), SHOW_ALL) == SLURM_SUCCESS && msg->record_count)
        state = msg->job_array[0].job_state & JOB_STATE_BASE;
    slurm_free_job_info_msg(msg);
    return state;
}

static bool becomes(uint32_t id, uint32_t state)
{
    for (int i = 0; i < 600; i++) {
        if (state_of(id) == state)
            return true;
        usleep(50000);
    }
    return false;
}

static int32_t last_of(const int32_t *index)
{
    int32_t last = -1;

    for (; *index != -1; index++)
        last = *index;
    return last;
}

static void jobs(void)
{
    uint32_t running = submit("runs", "#!/bin/sh\nsleep 300\n", false);
    uint32_t held = submit("held", "#!/bin/sh\nexit 3\n", true);
    job_info_msg_t *msg = NULL;
    job_desc_msg_t change;

    CHECK(running && held && becomes(running, JOB_RUNNING));
    CHECK(slurm_load_job(&msg, JOB(running), SHOW_DETAIL) == SLURM_SUCCESS &&
          msg->record_count == 1);
    if (msg) {
        const slurm_job_info_t *job = &msg->job_array[0];
        CHECK(strcmp(job->name, "runs") == 0 && job->user_id == getuid() && job->batch_flag);
        CHECK(job->nodes && job->num_nodes == 1 && job->batch_host && job->start_time > 0);
        CHECK(job->node_inx && last_of(job->node_inx) >= 0);
        CHECK(job->exc_node_inx && job->exc_node_inx[0] == -1);
        CHECK(job->req_node_inx && job->req_node_inx[0] == -1);
        CHECK(job->partition && strcmp(job->partition, "debug") == 0);
        CHECK(job->nice == NICE_OFFSET && job->array_task_id == NO_VAL);
    }
    slurm_free_job_info_msg(msg);
    msg = NULL;
    CHECK(slurm_load_jobs(0, &msg, SHOW_ALL) == SLURM_SUCCESS && msg->record_count >= 2);
    slurm_free_job_info_msg(msg);
    msg = NULL;
    CHECK(slurm_load_job_user(&msg, getuid(), 0) == SLURM_SUCCESS && msg->record_count >= 2);
    slurm_free_job_info_msg(msg);
    msg = NULL;
    errno = 0;
    CHECK(slurm_load_job(&msg, JOB(4000000), 0) == SLURM_ERROR && errno == ESLURM_INVALID_JOB_ID);

    slurm_init_job_desc_msg(&change);
#if BY_STEP
    change.step_id.job_id = held;
#else
    change.job_id = held;
#endif
    change.comment = (char *)"changed";
    change.time_limit = 7;
    CHECK(slurm_update_job(&change) == SLURM_SUCCESS);
    CHECK(slurm_load_job(&msg, JOB(held), 0) == SLURM_SUCCESS && msg->job_array[0].time_limit == 7);
    CHECK(msg && msg->job_array[0].comment && strcmp(msg->job_array[0].comment, "changed") == 0);
    slurm_free_job_info_msg(msg);

    CHECK(slurm_suspend(JOB(running)) == SLURM_SUCCESS && becomes(running, JOB_SUSPENDED));
    CHECK(slurm_resume(JOB(running)) == SLURM_SUCCESS && becomes(running, JOB_RUNNING));
    CHECK(slurm_job_node_ready(JOB(running)) == (READY_JOB_STATE | READY_NODE_STATE));
    CHECK(slurm_job_node_ready(JOB(held)) == 0);
    FILE *file = tmpfile();
    char line[64] = "";
    CHECK(slurm_job_batch_script(file, JOB(held)) == SLURM_SUCCESS);
    rewind(file);
    CHECK(fgets(line, sizeof(line), file) && strcmp(line, "#!/bin/sh\n") == 0);
    fclose(file);
    time_t end = 0;
    CHECK(slurm_get_end_time(JOB(running), &end) == SLURM_SUCCESS);
    resource_allocation_response_msg_t *found = NULL;
    CHECK(slurm_allocation_lookup(JOB(running), &found) == SLURM_SUCCESS && found->node_cnt == 1);
    slurm_free_resource_allocation_response_msg(found);
    CHECK(slurm_signal_job(JOB(running), SIGCONT) == SLURM_SUCCESS);
    CHECK(slurm_notify_job(JOB(running), (char *)"hello") == SLURM_SUCCESS);
    CHECK(slurm_kill_job(JOB(running), SIGKILL, 0) == SLURM_SUCCESS &&
          becomes(running, JOB_CANCELLED));
    slurm_init_job_desc_msg(&change);
#if BY_STEP
    change.step_id.job_id = held;
#else
    change.job_id = held;
#endif
    change.priority = INFINITE; /* released */
    CHECK(slurm_update_job(&change) == SLURM_SUCCESS && becomes(held, JOB_FAILED));
    CHECK(slurm_load_job(&msg, JOB(held), 0) == SLURM_SUCCESS &&
          msg->job_array[0].exit_code == 3 << 8);
    slurm_free_job_info_msg(msg);
}

static uint32_t told;
#if BY_STEP
static void pending(slurm_step_id_t *step)
{
    told = step->job_id;
}
#define BLOCKING(desc, s) slurm_allocate_resources_blocking(desc, s, pending, -1)
#else
static void pending(uint32_t id)
{
    told = id;
}
#define BLOCKING(desc, s) slurm_allocate_resources_blocking(desc, s, pending)
#endif

static void allocations(void)
{
    resource_allocation_response_msg_t *got;
    job_desc_msg_t desc;

    describe(&desc, "alloc", NULL);
    desc.min_nodes = desc.max_nodes = 2;
    got = BLOCKING(&desc, 30);
    CHECK(got && got->node_cnt == 2 && got->node_list && strcmp(got->node_list, "n[1-2]") == 0);
    if (!got)
        return;
    CHECK(got->num_cpu_groups == 1 && got->cpu_count_reps[0] == 2);
#if BY_STEP
    CHECK(slurm_complete_job(&got->step_id, 0) == SLURM_SUCCESS);
#else
    CHECK(slurm_complete_job(got->job_id, 0) == SLURM_SUCCESS);
#endif
    slurm_free_resource_allocation_response_msg(got);
    describe(&desc, "never", NULL);
    desc.min_nodes = 50;
    errno = 0;
    CHECK(!BLOCKING(&desc, 5) && errno != 0);
    describe(&desc, "when", "#!/bin/sh\ntrue\n");
    CHECK(slurm_job_will_run(&desc) == SLURM_SUCCESS);
}

static void het(void)
{
    submit_response_msg_t *answer = NULL;
    job_desc_msg_t first, second;
    list_type list = slurm_list_create(NULL);
    job_info_msg_t *msg = NULL;

    describe(&first, "het", "#!/bin/sh\nsleep 300\n");
    describe(&second, "het", NULL);
    slurm_list_append(list, &first);
    slurm_list_append(list, &second);
    CHECK(slurm_submit_batch_het_job(list, &answer) == SLURM_SUCCESS && answer);
    slurm_list_destroy(list);
    if (!answer)
        return;
    uint32_t id = ID(answer);
    slurm_free_submit_response_response_msg(answer);
    CHECK(slurm_load_job(&msg, JOB(id + 1), 0) == SLURM_SUCCESS &&
          msg->job_array[0].het_job_id == id);
    slurm_free_job_info_msg(msg);
    CHECK(slurm_kill_job(JOB(id), SIGKILL, 0) == SLURM_SUCCESS);
}

static void nodes_and_partitions(void)
{
    partition_info_msg_t *parts = NULL;
    node_info_msg_t *nodes = NULL;
    update_node_msg_t drain;

    CHECK(slurm_load_node(0, &nodes, SHOW_ALL) == SLURM_SUCCESS && nodes->record_count == 2);
    CHECK(slurm_load_partitions(0, &parts, SHOW_ALL) == SLURM_SUCCESS && parts->record_count == 1);
    if (!nodes || !parts)
        return;
    CHECK(strcmp(nodes->node_array[0].name, "n1") == 0 && nodes->node_array[0].cpus == 4);
    CHECK(nodes->node_array[0].real_memory > 0 && nodes->node_array[0].version);
    CHECK(parts->partition_array[0].total_nodes == 2 && parts->partition_array[0].node_inx[0] == 0);
    CHECK(parts->partition_array[0].node_inx[1] == 1 &&
          parts->partition_array[0].node_inx[2] == -1);
    CHECK(parts->partition_array[0].state_up == PARTITION_UP);
    CHECK(parts->partition_array[0].flags & PART_FLAG_DEFAULT);
    slurm_populate_node_partitions(nodes, parts);
    CHECK(nodes->node_array[1].partitions && strcmp(nodes->node_array[1].partitions, "debug") == 0);
    slurm_free_node_info_msg(nodes);
    slurm_free_partition_info_msg(parts);
    nodes = NULL;

    slurm_init_update_node_msg(&drain);
    drain.node_names = (char *)"n2";
    drain.node_state = NODE_STATE_DRAIN;
    drain.reason = (char *)"because";
    CHECK(slurm_update_node(&drain) == SLURM_SUCCESS);
    CHECK(slurm_load_node_single(&nodes, (char *)"n2", 0) == SLURM_SUCCESS &&
          nodes->record_count == 1);
    CHECK(nodes && (nodes->node_array[0].node_state & NODE_STATE_DRAIN));
    CHECK(nodes && nodes->node_array[0].reason &&
          strcmp(nodes->node_array[0].reason, "because") == 0);
    slurm_free_node_info_msg(nodes);
    drain.node_state = NODE_RESUME;
    drain.reason = NULL;
    CHECK(slurm_update_node(&drain) == SLURM_SUCCESS);
#if !BY_STEP
    uint16_t cpus = 77;
    CHECK(slurm_load_node(0, &nodes, 0) == SLURM_SUCCESS);
    CHECK(slurm_get_select_nodeinfo(nodes->node_array[0].select_nodeinfo, SELECT_NODEDATA_SUBCNT,
                                    NODE_STATE_ALLOCATED, &cpus) == SLURM_SUCCESS &&
          cpus <= 4);
    slurm_free_node_info_msg(nodes);
#endif
    partition_info_t part;
    slurm_init_part_desc_msg(&part);
    part.name = (char *)"debug";
    part.max_time = 77;
    CHECK(slurm_update_partition(&part) == SLURM_SUCCESS);
    parts = NULL;
    CHECK(slurm_load_partitions(0, &parts, 0) == SLURM_SUCCESS &&
          parts->partition_array[0].max_time == 77);
    slurm_free_partition_info_msg(parts);
    part.max_time = INFINITE;
    CHECK(slurm_update_partition(&part) == SLURM_SUCCESS);
}

static void reservations(void)
{
    reservation_name_msg_t gone = { .name = (char *)"later" };
    reserve_info_msg_t *msg = NULL;
    resv_desc_msg_t desc;

    slurm_init_resv_desc_msg(&desc);
    desc.name = (char *)"later";
    desc.users = (char *)"root";
    desc.node_list = (char *)"n1";
    desc.start_time = time(NULL) + 36000;
    desc.duration = 60;
    char *name = slurm_create_reservation(&desc);
    CHECK(name && strcmp(name, "later") == 0);
    free(name);
    CHECK(slurm_load_reservations(0, &msg) == SLURM_SUCCESS && msg->record_count == 1);
    if (msg && msg->record_count) {
        CHECK(strcmp(msg->reservation_array[0].name, "later") == 0);
        CHECK(msg->reservation_array[0].node_cnt == 1 &&
              msg->reservation_array[0].node_inx[0] == 0);
        CHECK(msg->reservation_array[0].end_time - msg->reservation_array[0].start_time == 3600);
    }
    slurm_free_reservation_info_msg(msg);
    CHECK(slurm_delete_reservation(&gone) == SLURM_SUCCESS);
    errno = 0;
    CHECK(slurm_delete_reservation(&gone) == SLURM_ERROR && errno == ESLURM_RESERVATION_INVALID);
}

static void rest(void)
{
    stats_info_request_msg_t get = { .command_id = STAT_COMMAND_GET };
    stats_info_response_msg_t *stats = NULL;
    license_info_msg_t *licences = NULL;
    trigger_info_msg_t *triggers = NULL;
    slurm_conf_t *conf = NULL;

    CHECK(slurm_ping(0) == SLURM_SUCCESS);
    CHECK(slurm_load_ctl_conf(0, &conf) == SLURM_SUCCESS && conf->control_machine[0]);
    CHECK(conf && conf->cluster_name && conf->next_job_id > 0);
#if BY_STEP
    slurm_free_conf(conf);
#else
    slurm_free_ctl_conf(conf);
#endif
    CHECK(slurm_get_statistics(&stats, &get) == SLURM_SUCCESS && stats->jobs_submitted > 0);
    slurm_free_stats_response_msg(stats);
    CHECK(slurm_load_licenses(0, &licences, 0) == SLURM_SUCCESS);
    slurm_free_license_info_msg(licences);
    CHECK(slurm_get_triggers(&triggers) == SLURM_SUCCESS && triggers->record_count == 0);
    slurm_free_trigger_msg(triggers);
    job_step_info_response_msg_t *steps = NULL;
#if BY_STEP
    slurm_step_id_t all = { .job_id = NO_VAL, .step_id = NO_VAL, .step_het_comp = NO_VAL };
    CHECK(slurm_get_job_steps(&all, &steps, SHOW_ALL) == SLURM_SUCCESS);
#else
    CHECK(slurm_get_job_steps(0, NO_VAL, NO_VAL, &steps, SHOW_ALL) == SLURM_SUCCESS);
#endif
    slurm_free_job_step_info_response_msg(steps);
    char *token = slurm_fetch_token(NULL, 60);
    CHECK(token && strlen(token) > 20);
    slurm_xfree((void **)&token);
}

static void *in_thread(void *arg)
{
    for (int i = 0; i < 20; i++) {
        job_info_msg_t *msg = NULL;
        if (slurm_load_jobs(0, &msg, SHOW_ALL) != SLURM_SUCCESS)
            *(int *)arg += 1;
        slurm_free_job_info_msg(msg);
    }
    return NULL;
}

static void threads_and_forks(void)
{
    pthread_t threads[4];
    int bad[4] = { 0 }, status;

    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, in_thread, &bad[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK(bad[0] + bad[1] + bad[2] + bad[3] == 0);
    pid_t child = fork();
    if (child == 0) {
        int wrong = 0;
        in_thread(&wrong);
        slurm_fini();
        _exit(wrong);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    int wrong = 0;
    in_thread(&wrong); /* the parent's connection is as it was */
    CHECK(wrong == 0);
}

static void cluster(void)
{
    struct sigaction before, after;

    sigaction(SIGPIPE, NULL, &before);
    conditions();
    jobs();
    allocations();
    het();
    nodes_and_partitions();
    reservations();
    rest();
    threads_and_forks();
    sigaction(SIGPIPE, NULL, &after);
    CHECK(before.sa_handler == after.sa_handler);
}

/* ---- the README's example, as it stands there ---- */

static void seed(void)
{
    job_desc_msg_t desc;
    slurm_init_job_desc_msg(&desc);
    desc.name = "my_job";
    desc.script = "#!/bin/bash\necho hello";

    uint32_t job_id;
    slurm_submit_batch_job(&desc, &job_id);
    printf("Submitted job %u\n", job_id);
}

/* ---- records ---- */

static void print_nodes(void)
{
    node_info_msg_t *msg = NULL;

    CHECK(slurm_load_node(0, &msg, SHOW_ALL) == SLURM_SUCCESS);
    for (uint32_t i = 0; msg && i < msg->record_count; i++)
        slurm_print_node_table(stdout, &msg->node_array[i], 0);
    slurm_free_node_info_msg(msg);
}

static void print_partitions(void)
{
    partition_info_msg_t *msg = NULL;

    CHECK(slurm_load_partitions(0, &msg, SHOW_ALL) == SLURM_SUCCESS);
    for (uint32_t i = 0; msg && i < msg->record_count; i++)
        slurm_print_partition_info(stdout, &msg->partition_array[i], 0);
    slurm_free_partition_info_msg(msg);
}

static void print_jobs(void)
{
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(24, 11, 0)
    job_info_msg_t *msg = NULL;

    CHECK(slurm_load_jobs(0, &msg, SHOW_ALL) == SLURM_SUCCESS);
    for (uint32_t i = 0; msg && i < msg->record_count; i++)
        slurm_print_job_info(stdout, &msg->job_array[i], 0);
    slurm_free_job_info_msg(msg);
#endif
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void many(long count)
{
    job_info_msg_t *msg = NULL;
    double begin = seconds();

    CHECK(slurm_load_jobs(0, &msg, SHOW_ALL) == SLURM_SUCCESS && msg->record_count > 0);
    printf("slurm_load_jobs: %u jobs in %.3f s\n", msg ? msg->record_count : 0, seconds() - begin);
    uint32_t id = msg && msg->record_count ? msg->job_array[0].job_id : 1;
    slurm_free_job_info_msg(msg);
    begin = seconds();
    for (long i = 0; i < count; i++) {
        msg = NULL;
        CHECK(slurm_load_job(&msg, JOB(id), 0) == SLURM_SUCCESS);
        slurm_free_job_info_msg(msg);
    }
    printf("slurm_load_job: %.0f per second\n", (double)count / (seconds() - begin));
}

struct part {
    long count;
    int bad;
};

static void *submit_some(void *arg)
{
    struct part *part = arg;
    job_desc_msg_t desc;

    describe(&desc, "many", "#!/bin/sh\ntrue\n");
    desc.priority = 0;
    for (long i = 0; i < part->count; i++) {
        submit_response_msg_t *answer = NULL;
        part->bad += slurm_submit_batch_job(&desc, &answer) != SLURM_SUCCESS;
        slurm_free_submit_response_response_msg(answer);
    }
    return NULL;
}

/* Held jobs, by several threads, so that they are committed together. */
static void fill_queue(long count)
{
    enum { THREADS = 32 };
    pthread_t threads[THREADS];
    struct part parts[THREADS];
    double begin = seconds();

    for (int i = 0; i < THREADS; i++) {
        parts[i] = (struct part){ .count = count / THREADS };
        pthread_create(&threads[i], NULL, submit_some, &parts[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        CHECK(parts[i].bad == 0);
    }
    printf("slurm_submit_batch_job: %.0f per second\n", (double)count / (seconds() - begin));
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    slurm_init(NULL);
    if (strcmp(what, "offline") == 0)
        offline();
    else if (strcmp(what, "cluster") == 0)
        cluster();
    else if (strcmp(what, "seed") == 0)
        seed();
    else if (strcmp(what, "jobs") == 0)
        print_jobs();
    else if (strcmp(what, "nodes") == 0)
        print_nodes();
    else if (strcmp(what, "partitions") == 0)
        print_partitions();
    else if (strcmp(what, "fill") == 0)
        fill_queue(argc > 2 ? atol(argv[2]) : 1000);
    else if (strcmp(what, "many") == 0)
        many(argc > 2 ? atol(argv[2]) : 1000);
    else
        failed = 99;
    slurm_fini();
    return failed;
}
