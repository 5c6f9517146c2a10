/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nspace.c - what libpmix is told of the step: who its tasks are, and where
 *
 * Nodes have the names that Spur gives them, even when several are one machine: who is near whom is said by
 * these names and by lists of ranks, never by what gethostname() says.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "pmix/server.h"

enum { PROC_INFO_COUNT = 8 };

struct infos {
    VEC(pmix_info_t) list;
};

static pmix_info_t *next(struct infos *infos)
{
    vec_push(&infos->list, (pmix_info_t){ 0 });
    return &infos->list.items[infos->list.len - 1];
}

static void add(struct infos *infos, const char *key, const void *value, pmix_data_type_t type)
{
    PMIX_INFO_LOAD(next(infos), key, value, type);
}

static void add_u32(struct infos *infos, const char *key, uint32_t value)
{
    add(infos, key, &value, PMIX_UINT32);
}

static void infos_done(struct infos *infos)
{
    vec_each (pmix_info_t, info, &infos->list)
        PMIX_INFO_DESTRUCT(info);
    vec_done(&infos->list);
}

static int complain(struct err *err, const char *what, pmix_status_t status)
{
    return err_set(err, ERR_IO, "PMIx: %s: %s", what, PMIx_Error_string(status));
}

/* ---- one task ---- */

static void add_proc(struct infos *infos, const struct server *server, uint32_t node, size_t local)
{
    const StepNode *where = server->layout->nodes[node];
    pmix_rank_t rank = where->tasks[local], zero = 0;
    uint16_t here = (uint16_t)local;
    uint32_t app = 0;
    pmix_data_array_t *array;

    PMIX_DATA_ARRAY_CREATE(array, PROC_INFO_COUNT, PMIX_INFO);
    pmix_info_t *info = array->array;
    PMIX_INFO_LOAD(&info[0], PMIX_RANK, &rank, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&info[1], PMIX_GLOBAL_RANK, &rank, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&info[2], PMIX_APP_RANK, &rank, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&info[3], PMIX_APPLDR, &zero, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&info[4], PMIX_APPNUM, &app, PMIX_UINT32);
    PMIX_INFO_LOAD(&info[5], PMIX_LOCAL_RANK, &here, PMIX_UINT16);
    PMIX_INFO_LOAD(&info[6], PMIX_NODE_RANK, &here, PMIX_UINT16);
    PMIX_INFO_LOAD(&info[7], PMIX_NODEID, &node, PMIX_UINT32);
    pmix_info_t *to = next(infos);
    PMIX_LOAD_KEY(to->key, PMIX_PROC_INFO_ARRAY);
    to->value.type = PMIX_DATA_ARRAY;
    to->value.data.darray = array;
}

/* ---- the step ---- */

static void add_ranks(struct str *out, const StepNode *node)
{
    for (size_t i = 0; i < node->n_tasks; i++)
        str_addf(out, "%s%u", i ? "," : "", node->tasks[i]);
}

static int add_maps(struct infos *infos, const struct server *server, struct err *err)
{
    CLEANUP(str_done) struct str names = { 0 };
    CLEANUP(str_done) struct str ranks = { 0 };
    char *regex = NULL;

    for (size_t i = 0; i < server->layout->n_nodes; i++) {
        str_addf(&names, "%s%s", i ? "," : "", server->layout->nodes[i]->name);
        if (i)
            str_add_char(&ranks, ';');
        add_ranks(&ranks, server->layout->nodes[i]);
    }
    pmix_status_t status = PMIx_generate_regex(str_text(&names), &regex);
    if (status != PMIX_SUCCESS)
        return complain(err, "names of nodes", status);
    add(infos, PMIX_NODE_MAP, regex, PMIX_REGEX);
    free(regex);
    add(infos, PMIX_NODE_LIST, str_text(&names), PMIX_STRING);
    status = PMIx_generate_ppn(str_text(&ranks), &regex);
    if (status != PMIX_SUCCESS)
        return complain(err, "ranks of nodes", status);
    add(infos, PMIX_PROC_MAP, regex, PMIX_REGEX);
    free(regex);
    return 0;
}

static void add_sizes(struct infos *infos, const struct server *server)
{
    const StepNode *here = server->layout->nodes[server->here];
    CLEANUP(str_done) struct str peers = { 0 };
    pmix_rank_t leader = here->tasks[0];

    add_u32(infos, PMIX_UNIV_SIZE, server->layout->ntasks);
    add_u32(infos, PMIX_JOB_SIZE, server->layout->ntasks);
    add_u32(infos, PMIX_APP_SIZE, server->layout->ntasks);
    add_u32(infos, PMIX_MAX_PROCS, server->layout->ntasks);
    add_u32(infos, PMIX_JOB_NUM_APPS, 1);
    add_u32(infos, PMIX_NUM_NODES, (uint32_t)server->layout->n_nodes);
    add_u32(infos, PMIX_LOCAL_SIZE, (uint32_t)here->n_tasks);
    add_u32(infos, PMIX_NODE_SIZE, (uint32_t)here->n_tasks);
    add_u32(infos, PMIX_NODEID, server->here);
    add(infos, PMIX_LOCALLDR, &leader, PMIX_PROC_RANK);
    add_ranks(&peers, here);
    add(infos, PMIX_LOCAL_PEERS, str_text(&peers), PMIX_STRING);
}

static void add_names(struct infos *infos, const struct server *server)
{
    CLEANUP(freep)
    char *job = mem_printf("%u.%u", server->layout->id->job_id, server->layout->id->step);
    CLEANUP(freep) char *session = mem_printf("%s/session", server->setup->dir); /* tasks tidy it */
    bool no = false, yes = true;

    add(infos, PMIX_JOBID, job, PMIX_STRING);
    add(infos, PMIX_SPAWNED, &no, PMIX_BOOL);
    add(infos, PMIX_TMPDIR, session, PMIX_STRING);
    add(infos, PMIX_NSDIR, session, PMIX_STRING);
    add(infos, PMIX_TDIR_RMCLEAN, &yes, PMIX_BOOL);
}

/* Each for one use: who tidies one of them up takes nothing from the others. */
static int make_dirs(const struct server *server, struct err *err)
{
    static const char *const names[] = { "server", "session", "shm" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CLEANUP(freep) char *path = mem_printf("%s/%s", server->setup->dir, names[i]);
        if (mkdir(path, 0700) < 0)
            return err_errno(err, errno, "directory '%s'", path);
    }
    return 0;
}

static int begin_library(struct server *server, struct err *err)
{
    struct infos infos = { 0 };
    pmix_rank_t rank = server->here;
    CLEANUP(freep)
    char *name =
        mem_printf("spurstepd.%u.%u", server->layout->id->job_id, server->layout->id->step);

    CLEANUP(freep) char *dir = mem_printf("%s/server", server->setup->dir);
    if (make_dirs(server, err) < 0)
        return -(int)err->code;
    setenv("TMPDIR", dir, 1);
    setenv("HOME", dir, 1); /* libpmix dies when nobody knows the user's */
    add(&infos, PMIX_SERVER_TMPDIR, dir, PMIX_STRING);
    add(&infos, PMIX_SYSTEM_TMPDIR, dir, PMIX_STRING);
    add(&infos, PMIX_HOSTNAME, server->layout->nodes[server->here]->name, PMIX_STRING);
    add(&infos, PMIX_SERVER_NSPACE, name, PMIX_STRING);
    add(&infos, PMIX_SERVER_RANK, &rank, PMIX_PROC_RANK);
    pmix_status_t status = PMIx_server_init(&calls_module, infos.list.items, infos.list.len);
    infos_done(&infos);
    return status == PMIX_SUCCESS ? 0 : complain(err, "start", status);
}

/* With NULL for the callback libpmix answers when it is done. */
static bool is_done(pmix_status_t status)
{
    return status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED;
}

static int register_step(struct server *server, struct err *err)
{
    const StepLayout *layout = server->layout;
    struct infos infos = { 0 };
    int ret = add_maps(&infos, server, err);

    add_names(&infos, server);
    add_sizes(&infos, server);
    for (uint32_t i = 0; i < layout->n_nodes; i++) {
        for (size_t k = 0; k < layout->nodes[i]->n_tasks; k++)
            add_proc(&infos, server, i, k);
    }
    if (ret == 0) {
        pmix_status_t status =
            PMIx_server_register_nspace(server->nspace, (int)layout->nodes[server->here]->n_tasks,
                                        infos.list.items, infos.list.len, NULL, NULL);
        if (!is_done(status))
            ret = complain(err, "the step", status);
    }
    infos_done(&infos);
    return ret;
}

static int register_tasks(struct server *server, struct err *err)
{
    const StepNode *here = server->layout->nodes[server->here];

    for (size_t i = 0; i < here->n_tasks; i++) {
        pmix_proc_t proc;
        PMIX_LOAD_PROCID(&proc, server->nspace, here->tasks[i]);
        pmix_status_t status = PMIx_server_register_client(&proc, server->setup->uid,
                                                           server->setup->gid, NULL, NULL, NULL);
        if (!is_done(status))
            return complain(err, "a task", status);
    }
    return 0;
}

int nspace_begin(struct server *server, struct err *err)
{
    int ret = begin_library(server, err);

    if (ret == 0)
        ret = register_step(server, err);
    return ret == 0 ? register_tasks(server, err) : ret;
}

int nspace_env(struct server *server, uint32_t rank, char ***env, struct err *err)
{
    pmix_proc_t proc;

    PMIX_LOAD_PROCID(&proc, server->nspace, rank);
    pmix_status_t status = PMIx_server_setup_fork(&proc, env);
    return status == PMIX_SUCCESS ? 0 : complain(err, "environment", status);
}
