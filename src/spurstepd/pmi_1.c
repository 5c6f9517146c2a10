/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pmi_1.c - what tasks ask in PMI-1, one row each
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spurstepd/pmi.h"
#include "spurstepd/relay.h"
#include "spurstepd/tasks_priv.h"

typedef void pmi_1_fn(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words);

static PRINTF(2, 3) void answer(struct pmi_peer *peer, const char *fmt, ...)
{
    CLEANUP(str_done) struct str text = { 0 };
    va_list args;

    va_start(args, fmt);
    str_vaddf(&text, fmt, args);
    va_end(args);
    str_add_char(&text, '\n');
    pmi_reply(peer, &text);
}

static uint32_t size_of(const struct pmi *pmi)
{
    return pmi->tasks->relay->layout->ntasks;
}

/* Which dialect follows. */
static void on_init(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words)
{
    const char *version = pmi_word(words, "pmi_version");

    (void)pmi;
    peer->second = str_eq(version, "2");
    if (peer->second)
        answer(peer, "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0");
    else if (str_eq(version, "1"))
        answer(peer, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0");
    else
        answer(peer, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1");
}

static void on_maxes(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words)
{
    (void)pmi, (void)words;
    answer(peer, "cmd=maxes kvsname_max=%d keylen_max=%d vallen_max=%d", PMI_NAME_BYTES,
           PMI_KEY_BYTES, PMI_VALUE_BYTES);
}

static void on_appnum(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words)
{
    (void)pmi, (void)words;
    answer(peer, "cmd=appnum appnum=0");
}

static void on_universe(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words)
{
    (void)words;
    answer(peer, "cmd=universe_size size=%u", size_of(pmi));
}

static void on_kvsname(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words)
{
    (void)words;
    answer(peer, "cmd=my_kvsname kvsname=%s", pmi->name);
}

/* A task that is not told its rank by the environment. */
static void on_initack(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words)
{
    (void)words;
    answer(peer, "cmd=initack rc=0");
    answer(peer, "cmd=set size=%u", size_of(pmi));
    answer(peer, "cmd=set rank=%u", peer->number);
    answer(peer, "cmd=set debug=0");
}

static void on_barrier(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words)
{
    (void)words;
    pmi_fence(pmi, peer);
}

void pmi_1_fenced(struct pmi_peer *peer)
{
    answer(peer, "cmd=barrier_out rc=0");
}

static void on_put(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words)
{
    const char *key = pmi_word(words, "key"), *value = pmi_word(words, "value");

    if (key && value && pmi_put(pmi, key, value))
        answer(peer, "cmd=put_result rc=0 msg=success");
    else
        answer(peer, "cmd=put_result rc=-1 msg=refused");
}

static void on_get(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words)
{
    const char *key = pmi_word(words, "key"), *value = NULL;

    if (str_eq(key, "PMI_process_mapping") && pmi->mapping.len <= PMI_VALUE_BYTES)
        value = str_text(&pmi->mapping);
    else if (key)
        value = map_get(&pmi->values, key);
    if (value)
        answer(peer, "cmd=get_result rc=0 msg=success value=%s", value);
    else
        answer(peer, "cmd=get_result rc=-1 msg=key_%.64s_not_found value=unknown",
               key ? key : "absent");
}

static void on_byidx(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words)
{
    const char *idx = pmi_word(words, "idx");
    uint64_t wanted = 0, at = 0;

    if (idx && str_to_u64(idx, UINT32_MAX, &wanted)) {
        map_each (entry, &pmi->values) {
            if (at++ != wanted)
                continue;
            answer(peer, "cmd=getbyidx_results rc=0 nextidx=%llu key=%s val=%s",
                   (unsigned long long)at, entry->key, (const char *)entry->value);
            return;
        }
    }
    answer(peer, "cmd=getbyidx_results rc=-2 reason=no_more_keyvals");
}

static void on_publish(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words)
{
    const char *service = pmi_word(words, "service"), *port = pmi_word(words, "port");

    if (!service || !port || !*port || map_has(&pmi->services, service)) {
        answer(peer, "cmd=publish_result rc=-1 msg=refused");
        return;
    }
    pmi_publish(pmi, service, port);
    answer(peer, "cmd=publish_result rc=0 msg=success");
}

static void on_unpublish(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words)
{
    const char *service = pmi_word(words, "service");

    if (!service || !map_has(&pmi->services, service)) {
        answer(peer, "cmd=unpublish_result rc=-1 msg=not_found");
        return;
    }
    pmi_publish(pmi, service, NULL);
    answer(peer, "cmd=unpublish_result rc=0 msg=success");
}

static void on_lookup(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words)
{
    const char *service = pmi_word(words, "service");
    const char *port = service ? map_get(&pmi->services, service) : NULL;

    if (port)
        answer(peer, "cmd=lookup_result rc=0 msg=success port=%s", port);
    else
        answer(peer, "cmd=lookup_result rc=-1 msg=not_found");
}

static void on_abort(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words)
{
    pmi_abort(pmi, peer, pmi_word(words, "exitcode"), NULL);
}

static void on_finalize(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words)
{
    (void)pmi, (void)words;
    peer->finalized = true;
    answer(peer, "cmd=finalize_ack rc=0");
}

static const struct {
    const char *name;
    pmi_1_fn *take;
} commands[] = {
    { "init", on_init },
    { "initack", on_initack },
    { "get_maxes", on_maxes },
    { "get_appnum", on_appnum },
    { "get_universe_size", on_universe },
    { "get_my_kvsname", on_kvsname },
    { "barrier_in", on_barrier },
    { "put", on_put },
    { "get", on_get },
    { "getbyidx", on_byidx },
    { "publish_name", on_publish },
    { "unpublish_name", on_unpublish },
    { "lookup_name", on_lookup },
    { "abort", on_abort },
    { "finalize", on_finalize },
};

/* "mcmd=spawn" goes on for many lines, until "endcmd". */
static bool take_spawn(struct pmi_peer *peer, const struct pmi_words *words)
{
    if (!peer->in_spawn)
        peer->in_spawn = str_eq(pmi_word(words, "mcmd"), "spawn");
    if (!peer->in_spawn)
        return false;
    if (str_eq(words->list[0].name, "endcmd")) {
        peer->in_spawn = false;
        answer(peer, "cmd=spawn_result rc=-1 errmsg=starting_more_tasks_is_not_supported");
    }
    return true;
}

bool pmi_1_take(struct pmi *pmi, struct pmi_peer *peer, char *line)
{
    struct pmi_words words;

    if (!pmi_read_line(line, &words))
        return peer->in_spawn; /* an argument may be anything */
    if (take_spawn(peer, &words))
        return true;
    const char *name = pmi_word(&words, "cmd");
    for (size_t i = 0; name && i < ARRAY_LEN(commands); i++) {
        if (strcmp(commands[i].name, name) == 0) {
            commands[i].take(pmi, peer, &words);
            return true;
        }
    }
    return false;
}
