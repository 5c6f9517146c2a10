// SPDX-License-Identifier: Apache-2.0
/*
 * control_update.c - scontrol create, update and delete
 *
 * The first words tell what is meant: JobId=, NodeName=, PartitionName=, ReservationName=. Keys are
 * rows of schema/update.h and, for jobs, of the job options.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/limits.h"
#include "base/size.h"
#include "base/timefmt.h"
#include "cli/control.h"
#include "schema/job_view.h"
#include "schema/request.h"
#include "schema/update.h"

enum entity {
    ENTITY_NONE,
    ENTITY_JOB,
    ENTITY_NODE,
    ENTITY_PARTITION,
    ENTITY_RESERVATION,
    ENTITY_STEP
};

static bool key_is(const char *word, const char *key)
{
    size_t len = strcspn(word, "=");

    return strlen(key) == len && strncasecmp(word, key, len) == 0;
}

/*
 * A reservation may name a partition and nodes, and a job a partition, so the more special words
 * decide first.
 */
static enum entity entity_of(int argc, char **argv)
{
    static const struct {
        const char *key;
        enum entity entity;
    } keys[] = {
        { "reservation", ENTITY_RESERVATION },
        { "reservationname", ENTITY_RESERVATION },
        { "stepid", ENTITY_STEP },
        { "jobid", ENTITY_JOB },
        { "job", ENTITY_JOB },
        { "jobname", ENTITY_JOB },
        { "nodename", ENTITY_NODE },
        { "node", ENTITY_NODE },
        { "partitionname", ENTITY_PARTITION },
        { "partition", ENTITY_PARTITION },
    };

    /* Jobs have a ReservationName= key too: what comes first counts among those two. */
    for (int i = 0; i < argc && i < 1; i++) {
        for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
            if (key_is(argv[i], keys[k].key))
                return keys[k].entity;
        }
    }
    for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
        for (int i = 0; i < argc; i++) {
            if (key_is(argv[i], keys[k].key))
                return keys[k].entity;
        }
    }
    return ENTITY_NONE;
}

const char *control_words(const struct err *err)
{
    return err->code == ERR_PERMISSION && strcmp(err->text, err_text(ERR_PERMISSION)) == 0
               ? "Invalid user id"
               : err->text;
}

int control_aborted(const struct err *err)
{
    fprintf(stderr, "%s\n", err->text);
    if (err->code == ERR_UNKNOWN_OPTION)
        fprintf(stderr, "Request aborted\n");
    return 1;
}

/* ---- jobs ---- */

struct job_update {
    struct control *control;
    struct option_ctx ctx;
    struct job_request request;
    UpdateJobRequest message;
    VEC(char *) clear;
    bool sized; /* a change of its nodes */
};

static int ask_job(struct job_update *update, const Job **job, struct err *err)
{
    GetJobRequest request = GET_JOB_REQUEST__INIT;
    GetJobReply *reply;

    request.id = update->message.id;
    if (cli_call(&update->control->cli, "GetJob", &request.base, &get_job_reply__descriptor,
                 (ProtobufCMessage **)&reply, err) < 0)
        return -1;
    if (!reply->n_jobs)
        return err_code(err, ERR_INVALID_JOB_ID);
    *job = reply->jobs[0];
    return 0;
}

static void set_limit(struct job_update *update, int64_t seconds)
{
    update->request.spec->has_time_limit_s = true;
    update->request.spec->time_limit_s = seconds;
}

/* "+=10", "-=10", "=+10" and "=-10": from the limit the job has now. */
static int relative_limit(struct job_update *update, char sign, const char *value, struct err *err)
{
    const Job *job = NULL;
    int64_t seconds, limit;

    if (timefmt_read_duration(value, &seconds, NULL) < 0 || seconds < 0)
        return err_set(err, ERR_INVALID, "Invalid TimeLimit value");
    if (ask_job(update, &job, err) < 0)
        return -1;
    limit = job_limit_s(job);
    if (limit < 0)
        return err_set(err, ERR_INVALID, "Invalid TimeLimit value: the job has no time limit");
    limit = sign == '+' ? limit + seconds : limit - seconds;
    if (limit < 0)
        return err_set(err, ERR_INVALID, "TimeLimit would be negative");
    set_limit(update, limit);
    return 0;
}

/* Keys that are no option of sbatch. */
static int special_key(struct job_update *update, const char *word, const char *value,
                       struct err *err)
{
    uint64_t number;

    if (key_is(word, "jobid") || key_is(word, "job")) {
        update->message.id = (char *)value;
    } else if (key_is(word, "admincomment")) {
        update->message.admin_comment = (char *)value;
    } else if (key_is(word, "endtime")) {
        int64_t point;
        if (timefmt_read_point(value, update->ctx.now_us / 1000000, TIMEFMT_COMING, &point, NULL) <
            0)
            return err_set(err, ERR_INVALID, "Invalid EndTime value: %s", value);
        update->message.has_end_us = true;
        update->message.end_us = point * 1000000;
    } else if (key_is(word, "timelimit") && (*value == '+' || *value == '-') &&
               !str_ieq(value, "-1")) {
        return relative_limit(update, *value, value + 1, err) < 0 ? -1 : 1;
    } else if (key_is(word, "priority") && str_to_u64(value, 0, &number)) {
        update->message.has_hold = true; /* a job of priority 0 is held */
        update->message.hold = 2;
    } else if (key_is(word, "requeue") && strcmp(value, "0") == 0) {
        update->request.spec->has_requeue = true;
        update->request.spec->requeue = false;
    } else if (key_is(word, "nodelist") && *value) {
        free(update->request.spec->nodelist);
        update->request.spec->nodelist = mem_strdup(value);
        update->sized = true;
    } else if (key_is(word, "arraytaskthrottle")) {
        if (!str_to_u64(value, UINT32_MAX - 1, &number))
            return err_set(err, ERR_INVALID, "Invalid ArrayTaskThrottle value");
        free(update->request.spec->array);
        update->request.spec->array = mem_printf("%%%llu", (unsigned long long)number);
    } else if (key_is(word, "sitefactor")) {
        int64_t factor;
        if (!str_to_i64(value, -(INT32_MAX - 2), INT32_MAX - 2, &factor))
            return err_set(err, ERR_INVALID, "Invalid SiteFactor, must be between %d and %d",
                           -(INT32_MAX - 2), INT32_MAX - 2);
        update->message.has_site_factor = true;
        update->message.site_factor = (int32_t)factor;
    } else if (key_is(word, "numcpus")) { /* never more than it needs, so the most says nothing */
        uint64_t most;
        if (size_read_range(value, UINT32_MAX, &number, &most, NULL) < 0 || !number)
            return err_set(err, ERR_INVALID, "Invalid NumCPUs value: %s", value);
        update->message.has_num_cpus = true;
        update->message.num_cpus = (uint32_t)number;
    } else if (key_is(word, "userid")) {
        update->message.user = (char *)value;
    } else if (key_is(word, "wait-for-switch")) {
        if (!str_to_u64(value, UINT32_MAX - 2, &number))
            return err_set(err, ERR_INVALID, "Invalid wait-for-switch value: %s", value);
        update->request.spec->has_switches_wait_s = true;
        update->request.spec->switches_wait_s = (uint32_t)number;
    } else {
        return 0;
    }
    return 1;
}

/* Keys of Slurm that say something that is not done here. */
static const struct {
    const char *key, *why;
} refused_keys[] = {
    { "BurstBuffer", "there are no burst buffers" },
    { "ClusterFeatures", "a job belongs to one cluster" },
    { "Clusters", "a job belongs to one cluster" },
    { "AllocNode:Sid", "it is where the job was submitted" },
    { "BatchFlag", "it follows from how the job was submitted" },
    { "ExitCode", "it is what the job ended with" },
    { "GroupId", "it is the group of the job's owner" },
    { "JobState", "hold, release, suspend, resume, requeue and scancel change it" },
    { "Reason", "the scheduler says it" },
    { "SubmitTime", "it is when the job was submitted" },
};

static int refuse_key(const char *word, size_t len, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(refused_keys); i++) {
        if (strlen(refused_keys[i].key) == len && strncasecmp(word, refused_keys[i].key, len) == 0)
            return err_set(err, ERR_UNKNOWN_OPTION, "%s of a job cannot be changed: %s",
                           refused_keys[i].key, refused_keys[i].why);
    }
    return err_set(err, ERR_UNKNOWN_OPTION, "Update of this parameter is not supported: %s", word);
}

static int read_job_key(struct job_update *update, char *word, struct err *err)
{
    char *equals = strchr(word, '=');
    const struct option *row;
    size_t len;
    int result;

    if (!equals && strncasecmp(word, "resetaccruetime", MAX(strlen(word), 6)) == 0) {
        update->message.has_reset_accrue = update->message.reset_accrue = true;
        return 1;
    }
    if (!equals)
        return err_set(err, ERR_UNKNOWN_OPTION, "Update of this parameter is not supported: %s",
                       word);
    len = (size_t)(equals - word);
    if (len && (word[len - 1] == '+' || word[len - 1] == '-') &&
        strncasecmp(word, "timelimit", len - 1) == 0)
        return relative_limit(update, word[len - 1], equals + 1, err);
    update->sized = update->sized || key_is(word, "numnodes") || key_is(word, "reqnodelist");
    result = special_key(update, word, equals + 1, err);
    if (result)
        return result < 0 ? result : 0;
    /* "jobname=" alone selects jobs, beside an id it renames */
    row = option_find_update(&sbatch_options, word, len);
    if (!row)
        return refuse_key(word, len, err);
    if (!equals[1] && row->into.kind == INTO_MESSAGE && option_arity(row) == 1) {
        for (unsigned i = 0; i < job_spec__descriptor.n_fields; i++) {
            if (job_spec__descriptor.fields[i].offset == row->into.offset)
                vec_push(&update->clear, (char *)job_spec__descriptor.fields[i].name);
        }
        return 0;
    }
    result = option_call_row(&sbatch_options, &update->ctx, &update->request, row, equals + 1, err);
    if (result < 0 && err->code != ERR_UNSUPPORTED)
        err_set(err, ERR_INVALID, "Invalid %.*s value: %s", (int)len, word, equals + 1);
    return result;
}

static int send_job_update(struct job_update *update)
{
    JobsReply *reply;
    struct err err = { 0 };

    update->message.change = update->request.spec;
    update->message.clear = update->clear.items;
    update->message.n_clear = update->clear.len;
    if (cli_call(&update->control->cli, "UpdateJob", &update->message.base, &jobs_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) < 0) {
        fprintf(stderr, "%s for job %s\n", err.text,
                update->message.id ? update->message.id : update->message.name);
        return 1;
    }
    int code = control_results(reply, NULL);
    if (!update->message.id && !reply->n_results) {
        fprintf(stderr, "%s: no job is called %s\n", err_text(ERR_INVALID_JOB_ID),
                update->message.name);
        code = 1;
    }
    if (!code && update->sized && update->message.id)
        code = control_write_resize(update->control, update->message.id);
    return code;
}

static int update_one_job(struct control *control, int argc, char **argv)
{
    struct job_update update = { .control = control, .ctx = cli_option_ctx() };
    struct err err = { 0 };
    int code = 0;

    job_request_init(&update.request);
    update_job_request__init(&update.message);
    for (int i = 0; i < argc && !code; i++) {
        if (read_job_key(&update, argv[i], &err) < 0)
            code = control_aborted(&err);
    }
    if (!code && job_request_finish(&update.request, &err) < 0)
        code = control_aborted(&err);
    if (!code && !update.message.id) { /* all my jobs of this name */
        update.message.name = update.request.spec->name;
        update.request.spec->name = NULL;
    }
    if (!code && str_is_empty(update.message.id) && str_is_empty(update.message.name)) {
        fprintf(stderr, "Job id or name is missing\n");
        code = 1;
    }
    if (!code && update.message.id && update.message.user) {
        fprintf(stderr, "UserID goes with JobName, to say whose jobs are meant\n");
        code = 1;
    }
    if (!code && argc == 1 && update.message.id) {
        fprintf(stderr, "No changes specified\n");
        code = 1;
    }
    if (!code)
        code = send_job_update(&update);
    if (!update.message.id)
        free(update.message.name);
    vec_done(&update.clear);
    job_request_done(&update.request);
    return code;
}

/* JobId=4,5: the same for each of them. */
static int update_job(struct control *control, int argc, char **argv)
{
    char **words = ARENA_ARRAY(&control->cli.arena, char *, argc + 1);
    char **ids = NULL;
    size_t count = 0;
    int at = -1, code = 0;

    for (int i = 0; i < argc; i++) {
        words[i] = argv[i];
        if (strchr(argv[i], '=') && (key_is(argv[i], "jobid") || key_is(argv[i], "job"))) {
            at = i;
            cli_split(&control->cli, strchr(argv[i], '=') + 1, ", ", &ids, &count);
        }
    }
    if (count < 2)
        return update_one_job(control, argc, argv);
    for (size_t i = 0; i < count; i++) {
        words[at] = arena_printf(&control->cli.arena, "JobId=%s", ids[i]);
        code |= update_one_job(control, argc, words);
    }
    return code;
}

/* ---- nodes ---- */

/* Keys of Slurm that say something of nodes that is not done here. */
static int refuse_node_key(const char *word, struct err *err)
{
    if (key_is(word, "certtoken"))
        return err_set(
            err, ERR_UNKNOWN_OPTION,
            "CertToken is not supported: a node joins with a token of spur token --join");
    if (key_is(word, "cpubind"))
        return err_set(err, ERR_UNKNOWN_OPTION,
                       "CpuBind of a node is not supported: the job or its partition says it");
    return 0;
}

static bool needs_reason(const char *state)
{
    return state && (str_ieq(state, "DOWN") || str_ieq(state, "DRAIN") || str_ieq(state, "FAIL"));
}

static int update_nodes(struct control *control, int argc, char **argv)
{
    UpdateNodeRequest request = UPDATE_NODE_REQUEST__INIT;
    struct node_update update = { .spec = NEW(NodeSpec) };
    struct option_ctx ctx = cli_option_ctx();
    struct err err = { 0 };
    DoneReply *reply;
    int code = 0;

    node_spec__init(update.spec);
    for (int i = 0; i < argc && !code; i++) {
        if (refuse_node_key(argv[i], &err) < 0 ||
            update_read(&node_updates, &ctx, &update, argv[i], &err) < 0)
            code = control_aborted(&err);
    }
    if (!code && needs_reason(update.state) && str_is_empty(update.reason)) {
        fprintf(stderr,
                "You must specify a reason when DOWNING or DRAINING a node. Request denied\n");
        code = 1;
    }
    request.names = (char *)update.names;
    request.state = (char *)update.state;
    request.reason = (char *)update.reason;
    request.change = update.spec;
    request.has_resume_after_s = update.has_resume_after;
    request.resume_after_s = update.resume_after_s;
    request.has_clear_features = request.clear_features =
        update.features && !update.spec->n_features;
    if (!code && cli_call(&control->cli, "UpdateNode", &request.base, &done_reply__descriptor,
                          (ProtobufCMessage **)&reply, &err) < 0) {
        fprintf(stderr, "slurm_update error: %s\n", control_words(&err));
        code = 1;
    }
    node_update_done(&update);
    return code;
}

/* Keys with one value for each node, in the order of the names. */
static bool is_per_node(const char *word)
{
    static const char *const keys[] = { "instanceid", "instancetype", "nodeaddr", "nodehostname" };

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        if (key_is(word, keys[i]) && strchr(word, ','))
            return true;
    }
    return false;
}

/* Values of such keys are dealt out: one update for each node. */
static int update_node(struct control *control, int argc, char **argv)
{
    char **words = ARENA_ARRAY(&control->cli.arena, char *, argc + 1), **names = NULL;
    size_t count = 0;
    bool dealt = false;
    int code = 0;

    for (int i = 0; i < argc; i++) {
        dealt = dealt || is_per_node(argv[i]);
        if (strchr(argv[i], '=') && (key_is(argv[i], "nodename") || key_is(argv[i], "node"))) {
            CLEANUP(hostlist_done) struct hostlist list = { 0 };

            if (hostlist_parse(&list, strchr(argv[i], '=') + 1, NULL) < 0 ||
                hostlist_count(&list) > LIMIT_HOSTLIST_HOSTS)
                continue;
            names = ARENA_ARRAY(&control->cli.arena, char *, hostlist_count(&list) + 1);
            hostlist_each (host, &list)
                names[count++] =
                    arena_printf(&control->cli.arena, "%.*s", (int)host.len, host.name);
        }
    }
    if (!dealt || !names)
        return update_nodes(control, argc, argv);
    for (size_t n = 0; n < count && !code; n++) {
        for (int i = 0; i < argc && !code; i++) {
            char **values = NULL;
            size_t value_count = 0;
            int key = (int)strcspn(argv[i], "=");

            words[i] = argv[i];
            if (key_is(argv[i], "nodename") || key_is(argv[i], "node"))
                words[i] = arena_printf(&control->cli.arena, "NodeName=%s", names[n]);
            if (!is_per_node(argv[i]))
                continue;
            cli_split(&control->cli, argv[i] + key + 1, ",", &values, &value_count);
            if (value_count != count) {
                fprintf(stderr, "%.*s has %zu values for %zu nodes\n", key, argv[i], value_count,
                        count);
                code = 1;
                break;
            }
            words[i] = arena_printf(&control->cli.arena, "%.*s=%s", key, argv[i], values[n]);
        }
        code = code ? code : update_nodes(control, argc, words);
    }
    return code;
}

/* ---- partitions ---- */

static int send_partition(struct control *control, int argc, char **argv, bool create)
{
    UpdatePartitionRequest request = UPDATE_PARTITION_REQUEST__INIT;
    struct partition_update update = { .spec = NEW(PartitionSpec) };
    struct option_ctx ctx = cli_option_ctx();
    struct err err = { 0 };
    DoneReply *reply;
    int code = 0;

    partition_spec__init(update.spec);
    for (int i = 0; i < argc && !code; i++) {
        if (control_whole_list(control, argc, argv, &argv[i], &err) < 0 ||
            update_read(&partition_updates, &ctx, &update, argv[i], &err) < 0)
            code = control_aborted(&err);
    }
    request.change = update.spec;
    request.clear = (char **)update.clear.items;
    request.n_clear = update.clear.len;
    request.has_create = request.create = create;
    if (!code && cli_call(&control->cli, "UpdatePartition", &request.base, &done_reply__descriptor,
                          (ProtobufCMessage **)&reply, &err) < 0) {
        fprintf(stderr, create ? "Error creating the partition: %s\n" : "slurm_update error: %s\n",
                control_words(&err));
        code = 1;
    }
    partition_update_done(&update);
    return code;
}

/* Words that stand alone. */
static bool is_flag(const char *word)
{
    return str_ieq(word, "skip") || strncasecmp(word, "resetaccruetime", MAX(strlen(word), 6)) == 0;
}

/* "JobId 5 Priority 1" as "JobId=5 Priority=1": the words in the arena. */
static char **join_pairs(struct control *control, int *argc, char **argv)
{
    char **out = ARENA_ARRAY(&control->cli.arena, char *, *argc + 1);
    int count = 0;

    for (int i = 0; i < *argc; i++) {
        bool pair = !strchr(argv[i], '=') && !is_flag(argv[i]) && i + 1 < *argc &&
                    !strchr(argv[i + 1], '=');

        out[count++] =
            pair ? arena_printf(&control->cli.arena, "%s=%s", argv[i], argv[i + 1]) : argv[i];
        i += pair;
    }
    *argc = count;
    return out;
}

int control_update(struct control *control, int argc, char **argv)
{
    argv = join_pairs(control, &argc, argv);
    switch (entity_of(argc, argv)) {
    case ENTITY_JOB:
        return update_job(control, argc, argv);
    case ENTITY_NODE:
        return update_node(control, argc, argv);
    case ENTITY_PARTITION:
        return send_partition(control, argc, argv, false);
    case ENTITY_RESERVATION:
        return control_send_reservation(control, argc, argv, false);
    case ENTITY_STEP:
        fprintf(
            stderr,
            "A step keeps its time limit: srun --time sets it, scontrol update JobId= that of the job\n");
        return 1;
    case ENTITY_NONE:
        break;
    }
    fprintf(stderr, "No valid entity in update command\n"
                    "Input line must include \"NodeName\", \"PartitionName\", \"Reservation\", "
                    "\"JobId\"\n");
    return 1;
}

/* "create reservation Key=Value..." and "create reservation Key Value..." name the kind first. */
static enum entity kind_word(int argc, char **argv)
{
    int bare = 0;

    while (bare < argc && !strchr(argv[bare], '='))
        bare++;
    if (bare % 2 == 0)
        return ENTITY_NONE;
    if (str_istarts("reservation", argv[0]))
        return ENTITY_RESERVATION;
    return str_istarts("partition", argv[0]) ? ENTITY_PARTITION
           : str_istarts("node", argv[0])    ? ENTITY_NODE
                                             : ENTITY_NONE;
}

int control_create(struct control *control, int argc, char **argv)
{
    enum entity entity = kind_word(argc, argv);

    if (entity != ENTITY_NONE) {
        argc--;
        argv++;
    }
    argv = join_pairs(control, &argc, argv);
    if (entity == ENTITY_NONE)
        entity = entity_of(argc, argv);
    if (entity == ENTITY_RESERVATION)
        return control_send_reservation(control, argc, argv, true);
    if (entity == ENTITY_PARTITION)
        return send_partition(control, argc, argv, true);
    fprintf(stderr,
            entity == ENTITY_NODE ? "nodes cannot be created yet: a node joins with a token\n"
                                  : "Invalid creation entity: %s\n",
            argc ? argv[0] : "");
    return 1;
}

static int delete_partition(struct control *control, const char *word, const char *name)
{
    UpdatePartitionRequest request = UPDATE_PARTITION_REQUEST__INIT;
    PartitionSpec spec = PARTITION_SPEC__INIT;
    struct err err = { 0 };
    DoneReply *reply;

    spec.name = (char *)name;
    request.change = &spec;
    request.has_remove = request.remove = true;
    if (cli_call(&control->cli, "UpdatePartition", &request.base, &done_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) == 0)
        return 0;
    fprintf(stderr, "delete_partition %s: %s\n", word, control_words(&err));
    return 1;
}

int control_delete(struct control *control, int argc, char **argv)
{
    const char *word = argv[0], *equals = strchr(word, '=');
    const char *name = equals ? equals + 1 : argc > 1 ? argv[1] : NULL;

    if (name && (key_is(word, "partitionname") || key_is(word, "partition")))
        return delete_partition(control, word, name);
    if (name && (key_is(word, "reservationname") || key_is(word, "reservation")))
        return control_delete_reservation(control, word, name);
    fprintf(stderr, "Invalid deletion entity: %s\n", word);
    return 1;
}
