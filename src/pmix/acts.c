/* SPDX-License-Identifier: Apache-2.0 */
/*
 * acts.c - what is done about what libpmix asks for, and about what other nodes say; on the main thread
 *
 * (1) A call is answered once, and freed then. One that waits for others is the token of its collective, or
 *     is in `asked` by its number.
 * (2) The supervisor hears that a task is gone before the task does, so when the task's process ends it is
 *     known whether it had said so.
 */
#include <stdlib.h>
#include <string.h>

#include "pmix/server.h"
#include "sys/clock.h"

enum { NAMES_NODE = 0 };

/* ---- answers ---- */

static void answer(struct call *call, pmix_status_t status)
{
    if (call->op)
        call->op(status, call->cbdata);
    else if (call->modex)
        call->modex(status, NULL, 0, call->cbdata, NULL, NULL);
    else if (call->lookup)
        call->lookup(status, NULL, 0, call->cbdata);
    else if (call->infos)
        call->infos(status, NULL, 0, call->cbdata, NULL, NULL);
    else if (call->spawn)
        call->spawn(status, NULL, call->cbdata);
    call_free(call); /* (1) */
}

static void answer_data(struct call *call, pmix_status_t status, const ProtobufCBinaryData *data)
{
    char *copy = mem_new(data->len + 1);

    memcpy(copy, data->data ? (const char *)data->data : "", data->len);
    call->modex(status, copy, data->len, call->cbdata, free, copy);
    call_free(call);
}

static void release_info(void *data)
{
    pmix_info_t *info = data;

    PMIX_INFO_FREE(info, 1);
}

static void answer_number(struct call *call, uint64_t number)
{
    pmix_info_t *info;
    size_t value = number;

    PMIX_INFO_CREATE(info, 1);
    PMIX_INFO_LOAD(info, PMIX_GROUP_CONTEXT_ID, &value, PMIX_SIZE);
    call->infos(PMIX_SUCCESS, info, 1, call->cbdata, release_info, info);
    call_free(call);
}

/* ---- tasks ---- */

static void say_client(struct server *server, uint32_t rank, bool here)
{
    PmixOut out = PMIX_OUT__INIT;
    PmixClient client = PMIX_CLIENT__INIT;

    client.has_task = client.has_here = true;
    client.task = rank;
    client.here = here;
    out.what_case = PMIX_OUT__WHAT_CLIENT;
    out.client = &client;
    server_say(server, &out);
}

void act_connected(struct server *server, struct call *call)
{
    say_client(server, call->rank, true);
    answer(call, PMIX_SUCCESS);
}

void act_finalized(struct server *server, struct call *call)
{
    say_client(server, call->rank, false); /* (2) */
    answer(call, PMIX_SUCCESS);
}

void act_abort(struct server *server, struct call *call)
{
    PmixOut out = PMIX_OUT__INIT;
    PmixAbort words = PMIX_ABORT__INIT;

    words.has_task = words.has_code = true;
    words.task = call->rank;
    words.code = (call->status & 0xff) ? (uint32_t)call->status & 0xff : 1;
    CLEANUP(freep)
    char *code = mem_printf("asked for the end of the step with code %u", words.code);
    bool said = !str_is_empty(call->text) && !str_eq(call->text, "N/A"); /* so Open MPI */
    words.text = said ? call->text : code;
    out.what_case = PMIX_OUT__WHAT_ABORT;
    out.abort = &words;
    server_say(server, &out);
    answer(call, PMIX_SUCCESS);
}

void act_complain(struct server *server, struct call *call)
{
    PmixOut out = PMIX_OUT__INIT;
    CLEANUP(freep) char *text = mem_printf("task %u: %s", call->rank, call->text);

    out.what_case = PMIX_OUT__WHAT_SAY;
    out.say = text;
    server_say(server, &out);
    answer(call, call->status); /* not before: the task may end at once */
}

/* ---- together ---- */

void act_together(struct server *server, struct call *call)
{
    CLEANUP(str_done) struct str key = { 0 };
    struct bitset among;

    str_add_char(&key, call->kind);
    bitset_format(&call->ranks, &key);
    if (call->text)
        str_addf(&key, " %s", call->text);
    bitset_init(&among, server->layout->n_nodes);
    bitset_each (rank, &call->ranks)
        bitset_add(&among, server->node_of[rank]);
    coll_begin(&server->colls, str_text(&key), &among, str_text(&call->data), call->data.len, call);
    bitset_done(&among);
}

static void together_done(void *ctx, void *token, bool ok, const ProtobufCBinaryData *data,
                          uint64_t number)
{
    struct call *call = token;

    if (!ok)
        answer(call, PMIX_ERR_UNREACH);
    else if (call->modex)
        answer_data(call, PMIX_SUCCESS, data);
    else if (call->wants_number)
        answer_number(call, number);
    else
        answer(call, PMIX_SUCCESS);
}

static void together_send(void *ctx, const struct bitset *to, PmixTalk *talk)
{
    struct server *server = ctx;

    if (bitset_count(to) == server->layout->n_nodes) {
        server_talk_all(server, talk);
        return;
    }
    bitset_each (node, to) {
        if (node != server->here)
            server_talk(server, (uint32_t)node, talk);
    }
}

/* ---- what another task has put ---- */

/* 0: that node has gone, and the call is answered. */
static uint64_t keep_asked(struct server *server, struct call *call, uint32_t node)
{
    if (bitset_has(&server->colls.gone, node)) {
        answer(call, PMIX_ERR_UNREACH);
        return 0;
    }
    call->from = node;
    map_put_num(&server->asked, ++server->last_ask, call);
    return server->last_ask;
}

void act_modex(struct server *server, struct call *call)
{
    PmixTalk talk = PMIX_TALK__INIT;
    PmixModexAsk ask = PMIX_MODEX_ASK__INIT;

    ask.has_id = ask.has_rank = true;
    ask.rank = call->rank;
    ask.id = keep_asked(server, call, server->node_of[ask.rank]);
    if (!ask.id)
        return;
    talk.what_case = PMIX_TALK__WHAT_MODEX_ASK;
    talk.modex_ask = &ask;
    server_talk(server, server->node_of[ask.rank], &talk);
}

static void answer_modex(struct server *server, uint32_t to, uint64_t id, pmix_status_t status,
                         const struct str *data)
{
    PmixTalk talk = PMIX_TALK__INIT;
    PmixModexAnswer words = PMIX_MODEX_ANSWER__INIT;

    words.has_id = words.has_status = words.has_data = true;
    words.id = id;
    words.status = status;
    words.data = (ProtobufCBinaryData){ .data = (uint8_t *)data->data, .len = data->len };
    talk.what_case = PMIX_TALK__WHAT_MODEX_ANSWER;
    talk.modex_answer = &words;
    server_talk(server, to, &talk);
}

/* What libpmix found for another node. */
void act_modex_here(struct server *server, struct call *call)
{
    answer_modex(server, call->from, call->id, call->status, &call->data);
    call_free(call);
}

static void take_modex_ask(struct server *server, uint32_t from, const PmixModexAsk *ask)
{
    static const struct str nothing;
    pmix_proc_t proc;

    PMIX_LOAD_PROCID(&proc, server->nspace, ask->rank);
    struct call *call = NEW(struct call);
    call->from = from;
    call->id = ask->id;
    pmix_status_t status = PMIx_server_dmodex_request(&proc, calls_on_modex_here, call);
    if (status == PMIX_SUCCESS)
        return;
    call_free(call);
    answer_modex(server, from, ask->id, status, &nothing);
}

static void take_modex_answer(struct server *server, const PmixModexAnswer *words)
{
    struct call *call = map_del_num(&server->asked, words->id);

    if (!call)
        return;
    if (words->status == PMIX_SUCCESS && call->modex)
        answer_data(call, PMIX_SUCCESS, &words->data);
    else
        answer(call, words->status == PMIX_SUCCESS ? PMIX_ERROR : words->status);
}

/* ---- names ---- */

static const pmix_status_t names_status[] = {
    [PMIX_NAMES_OK] = PMIX_SUCCESS,         [PMIX_NAMES_SOME] = PMIX_ERR_PARTIAL_SUCCESS,
    [PMIX_NAMES_NONE] = PMIX_ERR_NOT_FOUND, [PMIX_NAMES_TAKEN] = PMIX_ERR_DUPLICATE_KEY,
    [PMIX_NAMES_LATE] = PMIX_ERR_TIMEOUT,   [PMIX_NAMES_FULL] = PMIX_ERR_NOMEM,
};

void act_names(struct server *server, struct call *call)
{
    PmixTalk talk = PMIX_TALK__INIT;
    PmixNamesAsk *ask = TAKE(call->ask);

    ask->has_id = true;
    ask->id = keep_asked(server, call, NAMES_NODE);
    talk.what_case = PMIX_TALK__WHAT_NAMES_ASK;
    talk.names_ask = ask;
    if (ask->id)
        server_talk(server, NAMES_NODE, &talk);
    pmix_names_ask__free_unpacked(ask, NULL);
}

static void names_answer(void *ctx, uint32_t node, PmixNamesAnswer *words)
{
    PmixTalk talk = PMIX_TALK__INIT;

    talk.what_case = PMIX_TALK__WHAT_NAMES_ANSWER;
    talk.names_answer = words;
    server_talk(ctx, node, &talk);
}

static bool unpack(const ProtobufCBinaryData *from, void *to, int32_t count, pmix_data_type_t type)
{
    pmix_byte_object_t bytes = { .bytes = (char *)from->data, .size = from->len };
    pmix_data_buffer_t buffer;
    int32_t got = count;

    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    bool ok = PMIx_Data_embed(&buffer, &bytes) == PMIX_SUCCESS &&
              PMIx_Data_unpack(NULL, &buffer, to, &got, type) == PMIX_SUCCESS && got == count;
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    return ok;
}

static void take_names_answer(struct server *server, const PmixNamesAnswer *words)
{
    struct call *call = map_del_num(&server->asked, words->id);
    size_t status = words->status, count = 0;
    pmix_pdata_t *list;

    if (!call)
        return;
    pmix_status_t result =
        status < ARRAY_LEN(names_status) ? names_status[status] : (pmix_status_t)PMIX_ERROR;
    if (!call->lookup || words->n_names == 0) {
        answer(call, result);
        return;
    }
    PMIX_PDATA_CREATE(list, words->n_names);
    for (size_t i = 0; i < words->n_names; i++) {
        pmix_pdata_t *to = &list[count];
        if (!unpack(&words->names[i]->value, &to->value, 1, PMIX_VALUE))
            continue;
        PMIX_LOAD_PROCID(&to->proc, server->nspace, words->names[i]->rank);
        PMIX_LOAD_KEY(to->key, words->names[i]->key);
        count++;
    }
    call->lookup(result, list, count, call->cbdata);
    PMIX_PDATA_FREE(list, words->n_names);
    call_free(call);
}

/* ---- events ---- */

void act_event(struct server *server, struct call *call)
{
    PmixTalk talk = PMIX_TALK__INIT;
    PmixEvent event = PMIX_EVENT__INIT;
    bool here_only = call->range == PMIX_RANGE_LOCAL || call->range == PMIX_RANGE_PROC_LOCAL;

    event.has_code = event.has_range = event.has_info = event.has_count = true;
    event.code = call->status;
    event.has_rank = call->rank < server->layout->ntasks;
    event.rank = call->rank;
    event.range = (uint32_t)call->range;
    event.info = (ProtobufCBinaryData){ .data = (uint8_t *)call->data.data, .len = call->data.len };
    event.count = call->count;
    talk.what_case = PMIX_TALK__WHAT_EVENT;
    talk.event = &event;
    if (!here_only)
        server_talk_all(server, &talk);
    answer(call, PMIX_SUCCESS);
}

struct told {
    pmix_info_t *info;
    size_t count;
};

static void event_told(pmix_status_t status, void *data)
{
    struct told *told = data;

    if (told->info)
        PMIX_INFO_FREE(told->info, told->count);
    free(told);
}

static void take_event(struct server *server, const PmixEvent *event)
{
    struct told *told = NEW(struct told);
    pmix_proc_t source;

    PMIX_LOAD_PROCID(&source, server->nspace,
                     event->has_rank ? event->rank : (pmix_rank_t)PMIX_RANK_UNDEF);
    if (event->count && event->count <= event->info.len) {
        told->count = event->count;
        PMIX_INFO_CREATE(told->info, told->count);
        if (!unpack(&event->info, told->info, (int32_t)told->count, PMIX_INFO)) {
            event_told(0, told);
            return;
        }
    }
    pmix_status_t status = PMIx_Notify_event(event->code, &source, (pmix_data_range_t)event->range,
                                             told->info, told->count, event_told, told);
    if (status != PMIX_SUCCESS) /* it will not be told, or was already */
        event_told(status, told);
}

/* ---- messages ---- */

static void take_gone(struct server *server, uint32_t from)
{
    map_each (entry, &server->asked) {
        struct call *call = entry->value;
        if (call->from != from)
            continue;
        map_del_num(&server->asked, entry->num);
        answer(call, PMIX_ERR_UNREACH);
    }
    coll_take_gone(&server->colls, from);
}

void act_talk(struct server *server, uint32_t from, PmixTalk *talk)
{
    switch (talk->what_case) {
    case PMIX_TALK__WHAT_PART:
        coll_take_part(&server->colls, from, talk->part);
        break;
    case PMIX_TALK__WHAT_WHOLE:
        coll_take_whole(&server->colls, talk->whole);
        break;
    case PMIX_TALK__WHAT_MODEX_ASK:
        take_modex_ask(server, from, talk->modex_ask);
        break;
    case PMIX_TALK__WHAT_MODEX_ANSWER:
        take_modex_answer(server, talk->modex_answer);
        break;
    case PMIX_TALK__WHAT_NAMES_ASK:
        names_ask(&server->names, from, TAKE(talk->names_ask), clock_mono_us());
        talk->what_case = PMIX_TALK__WHAT__NOT_SET;
        break;
    case PMIX_TALK__WHAT_NAMES_ANSWER:
        take_names_answer(server, talk->names_answer);
        break;
    case PMIX_TALK__WHAT_EVENT:
        take_event(server, talk->event);
        break;
    case PMIX_TALK__WHAT_GONE:
        take_gone(server, from);
        break;
    default:
        break;
    }
}

void act_begin(struct server *server)
{
    colls_init(&server->colls, server->here, (uint32_t)server->layout->n_nodes);
    server->colls.ctx = server;
    server->colls.send = together_send;
    server->colls.done = together_done;
    names_init(&server->names);
    server->names.ctx = server;
    server->names.answer = names_answer;
    map_init(&server->asked);
}
