/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.c - what libpmix asks for: copied, and passed to the main thread
 *
 * Everything here runs in a thread of libpmix. It owns what it passes to us, so what is needed later is
 * copied; it hears the result by the callback it gave, from the main thread.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "pmix/server.h"

static struct server *used; /* libpmix has one server in a process, and passes no pointer of ours */

void calls_use(struct server *server)
{
    used = server;
}

void call_free(struct call *call)
{
    if (!call)
        return;
    free(call->text);
    str_done(&call->data);
    if (call->ask)
        pmix_names_ask__free_unpacked(call->ask, NULL);
    bitset_done(&call->ranks);
    free(call);
}

static pmix_status_t pass(struct call *call)
{
    ssize_t len;

    do
        len = write(used->pipe[1], &call, sizeof(call)); /* whole: far below PIPE_BUF */
    while (len < 0);
    return PMIX_SUCCESS;
}

static struct call *call_new(void (*run)(struct server *, struct call *), const pmix_proc_t *proc,
                             void *cbdata)
{
    struct call *call = NEW(struct call);

    call->run = run;
    call->rank = proc ? proc->rank : 0;
    call->cbdata = cbdata;
    return call;
}

static bool is_ours(const pmix_proc_t *proc)
{
    return PMIX_CHECK_NSPACE(proc->nspace, used->nspace) && proc->rank < used->layout->ntasks;
}

/* ---- tasks come and go ---- */

static pmix_status_t on_connected(const pmix_proc_t *proc, void *object, pmix_info_t info[],
                                  size_t ninfo, pmix_op_cbfunc_t done, void *cbdata)
{
    if (!is_ours(proc))
        return PMIX_ERR_NOT_SUPPORTED;
    struct call *call = call_new(act_connected, proc, cbdata);
    call->op = done;
    return pass(call);
}

static pmix_status_t on_finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t done,
                                  void *cbdata)
{
    struct call *call = call_new(act_finalized, proc, cbdata);

    call->op = done;
    return pass(call);
}

static pmix_status_t on_abort(const pmix_proc_t *proc, void *object, int status, const char msg[],
                              pmix_proc_t procs[], size_t nprocs, pmix_op_cbfunc_t done,
                              void *cbdata)
{
    struct call *call = call_new(act_abort, proc, cbdata);

    call->status = status;
    call->text = mem_strdup(msg);
    call->op = done;
    return pass(call);
}

static pmix_status_t on_control(const pmix_proc_t *proc, const pmix_proc_t targets[],
                                size_t ntargets, const pmix_info_t directives[], size_t ndirs,
                                pmix_info_cbfunc_t done, void *cbdata)
{
    bool end = ndirs > 0;

    for (size_t i = 0; i < ndirs; i++)
        end &= (PMIX_CHECK_KEY(&directives[i], PMIX_JOB_CTRL_KILL) ||
                PMIX_CHECK_KEY(&directives[i], PMIX_JOB_CTRL_TERMINATE)) &&
               PMIX_INFO_TRUE(&directives[i]);
    if (!end)
        return PMIX_ERR_NOT_SUPPORTED;
    struct call *call = call_new(act_abort, proc, cbdata);
    call->text = mem_strdup("asked for the end of the step");
    call->infos = done;
    return pass(call);
}

/* ---- together ---- */

/* False: somebody is not of this step. */
static bool put_ranks(struct bitset *ranks, const pmix_proc_t procs[], size_t nprocs)
{
    bitset_init(ranks, used->layout->ntasks);
    for (size_t i = 0; i < nprocs; i++) {
        if (!PMIX_CHECK_NSPACE(procs[i].nspace, used->nspace))
            return false;
        if (procs[i].rank == PMIX_RANK_WILDCARD)
            bitset_fill(ranks);
        else if (procs[i].rank < used->layout->ntasks)
            bitset_add(ranks, procs[i].rank);
        else
            return false;
    }
    return !bitset_is_empty(ranks);
}

static pmix_status_t together(struct call *call, char kind, const pmix_proc_t procs[],
                              size_t nprocs)
{
    call->kind = kind;
    if (put_ranks(&call->ranks, procs, nprocs))
        return pass(call);
    call_free(call);
    return PMIX_ERR_BAD_PARAM;
}

static pmix_status_t on_fence(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                              size_t ninfo, char *data, size_t ndata, pmix_modex_cbfunc_t done,
                              void *cbdata)
{
    struct call *call = call_new(act_together, NULL, cbdata);

    str_add_len(&call->data, data, ndata);
    call->modex = done;
    return together(call, 'F', procs, nprocs);
}

static pmix_status_t on_connect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                                size_t ninfo, pmix_op_cbfunc_t done, void *cbdata)
{
    struct call *call = call_new(act_together, NULL, cbdata);

    call->op = done;
    return together(call, 'C', procs, nprocs);
}

static pmix_status_t on_disconnect(const pmix_proc_t procs[], size_t nprocs,
                                   const pmix_info_t info[], size_t ninfo, pmix_op_cbfunc_t done,
                                   void *cbdata)
{
    struct call *call = call_new(act_together, NULL, cbdata);

    call->op = done;
    return together(call, 'D', procs, nprocs);
}

static pmix_status_t on_group(pmix_group_operation_t op, char group[], const pmix_proc_t procs[],
                              size_t nprocs, const pmix_info_t directives[], size_t ndirs,
                              pmix_info_cbfunc_t done, void *cbdata)
{
    struct call *call = call_new(act_together, NULL, cbdata);

    call->text = mem_strdup(group);
    call->infos = done;
    for (size_t i = 0; i < ndirs; i++)
        call->wants_number |= PMIX_CHECK_KEY(&directives[i], PMIX_GROUP_ASSIGN_CONTEXT_ID) &&
                              PMIX_INFO_TRUE(&directives[i]);
    return together(call, op == PMIX_GROUP_CONSTRUCT ? 'G' : 'H', procs, nprocs);
}

/* ---- what another task has put ---- */

static pmix_status_t on_modex(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                              pmix_modex_cbfunc_t done, void *cbdata)
{
    if (!is_ours(proc))
        return PMIX_ERR_NOT_FOUND;
    struct call *call = call_new(act_modex, proc, cbdata);
    call->modex = done;
    return pass(call);
}

void calls_on_modex_here(pmix_status_t status, char *data, size_t len, void *passed)
{
    struct call *call = passed;

    call->run = act_modex_here;
    call->status = status;
    if (data)
        str_add_len(&call->data, data, len);
    pass(call);
}

/* ---- names ---- */

static struct call *names_call(const pmix_proc_t *proc, void *cbdata)
{
    struct call *call = call_new(act_names, proc, cbdata);

    call->ask = NEW(PmixNamesAsk);
    pmix_names_ask__init(call->ask);
    call->ask->has_rank = true;
    call->ask->rank = proc->rank;
    return call;
}

static int number_of(const pmix_value_t *value)
{
    return value->type == PMIX_INT      ? value->data.integer
           : value->type == PMIX_INT32  ? value->data.int32
           : value->type == PMIX_UINT32 ? (int)value->data.uint32
                                        : 0;
}

/* "pmix.…" are words to us, and not published. */
static bool is_word(const pmix_info_t *info)
{
    return strncmp(info->key, "pmix.", strlen("pmix.")) == 0;
}

static PmixName *name_of(const pmix_info_t *info, bool once)
{
    PmixName *name = NEW(PmixName);
    pmix_data_buffer_t buffer;
    pmix_byte_object_t bytes = { 0 };

    pmix_name__init(name);
    name->key = mem_strndup(info->key, PMIX_MAX_KEYLEN);
    name->has_once = name->once = once;
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    if (PMIx_Data_pack(NULL, &buffer, (void *)&info->value, 1, PMIX_VALUE) == PMIX_SUCCESS)
        PMIx_Data_unload(&buffer, &bytes);
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    name->has_value = true;
    name->value = (ProtobufCBinaryData){ .data = (uint8_t *)bytes.bytes, .len = bytes.size };
    return name;
}

static pmix_status_t on_publish(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                                pmix_op_cbfunc_t done, void *cbdata)
{
    struct call *call = names_call(proc, cbdata);
    bool once = false;

    call->op = done;
    for (size_t i = 0; i < ninfo; i++)
        once |= PMIX_CHECK_KEY(&info[i], PMIX_PERSISTENCE) &&
                info[i].value.data.persist == PMIX_PERSIST_FIRST_READ;
    call->ask->publish = NEW_ARRAY(PmixName *, ninfo + 1);
    for (size_t i = 0; i < ninfo; i++) {
        if (!is_word(&info[i]))
            call->ask->publish[call->ask->n_publish++] = name_of(&info[i], once);
    }
    if (call->ask->n_publish)
        return pass(call);
    call_free(call);
    return PMIX_ERR_BAD_PARAM;
}

static size_t copy_keys(char **keys, char ***out)
{
    size_t count = 0;

    while (keys && keys[count])
        count++;
    *out = NEW_ARRAY(char *, count + 1);
    for (size_t i = 0; i < count; i++)
        (*out)[i] = mem_strdup(keys[i]);
    return count;
}

static pmix_status_t on_lookup(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
                               size_t ninfo, pmix_lookup_cbfunc_t done, void *cbdata)
{
    struct call *call = names_call(proc, cbdata);
    PmixNamesAsk *ask = call->ask;

    call->lookup = done;
    ask->n_lookup = copy_keys(keys, &ask->lookup);
    for (size_t i = 0; i < ninfo; i++) {
        int number = number_of(&info[i].value);
        if (PMIX_CHECK_KEY(&info[i], PMIX_WAIT)) {
            ask->has_wait = true;
            ask->wait = number > 0 ? (uint32_t)number : 0;
        } else if (PMIX_CHECK_KEY(&info[i], PMIX_TIMEOUT)) {
            ask->has_timeout_s = true;
            ask->timeout_s = number > 0 ? (uint32_t)number : 0;
        }
    }
    return pass(call);
}

static pmix_status_t on_unpublish(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
                                  size_t ninfo, pmix_op_cbfunc_t done, void *cbdata)
{
    struct call *call = names_call(proc, cbdata);

    call->op = done;
    call->ask->n_unpublish = copy_keys(keys, &call->ask->unpublish);
    return pass(call);
}

/* ---- events ---- */

static pmix_status_t on_notify(pmix_status_t code, const pmix_proc_t *source,
                               pmix_data_range_t range, pmix_info_t info[], size_t ninfo,
                               pmix_op_cbfunc_t done, void *cbdata)
{
    struct call *call = call_new(act_event, source, cbdata);
    pmix_data_buffer_t buffer;
    pmix_byte_object_t bytes = { 0 };

    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    if (ninfo && PMIx_Data_pack(NULL, &buffer, info, (int32_t)ninfo, PMIX_INFO) == PMIX_SUCCESS) {
        PMIx_Data_unload(&buffer, &bytes);
        str_add_len(&call->data, bytes.bytes, bytes.size);
        call->count = (uint32_t)ninfo;
        free(bytes.bytes);
    }
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    call->status = code;
    call->range = range;
    pass(call);
    return PMIX_OPERATION_SUCCEEDED; /* libpmix 4.2 forgets what it would be answered by */
}

/* Which events tasks want to hear of: all that tasks of the step cause reach every node anyway. */
static pmix_status_t on_register(pmix_status_t *codes, size_t ncodes, const pmix_info_t info[],
                                 size_t ninfo, pmix_op_cbfunc_t done, void *cbdata)
{
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_deregister(pmix_status_t *codes, size_t ncodes, pmix_op_cbfunc_t done,
                                   void *cbdata)
{
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_spawn(const pmix_proc_t *proc, const pmix_info_t job_info[], size_t ninfo,
                              const pmix_app_t apps[], size_t napps, pmix_spawn_cbfunc_t done,
                              void *cbdata)
{
    struct call *call = call_new(act_complain, proc, cbdata);

    call->spawn = done;
    call->status = PMIX_ERR_NOT_SUPPORTED;
    call->text =
        mem_strdup("cannot start more tasks (MPI_Comm_spawn, PMIx_Spawn): steps do not grow");
    return pass(call);
}

pmix_server_module_t calls_module = {
    .client_connected2 = on_connected,
    .client_finalized = on_finalized,
    .abort = on_abort,
    .fence_nb = on_fence,
    .direct_modex = on_modex,
    .publish = on_publish,
    .lookup = on_lookup,
    .unpublish = on_unpublish,
    .spawn = on_spawn,
    .connect = on_connect,
    .disconnect = on_disconnect,
    .register_events = on_register,
    .deregister_events = on_deregister,
    .notify_event = on_notify,
    .job_control = on_control,
    .group = on_group,
};
