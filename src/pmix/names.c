/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.c - what tasks publish and look up, kept by the first node of the step
 */
#include "pmix/names.h"

#include <stdlib.h>

#include "base/limits.h"
#include "base/str.h"

enum { COST_BYTES = 128, SECOND_US = 1000000 };

struct name {
    uint32_t rank;
    bool once;
    struct str value;
};

struct names_waiting {
    uint32_t node;
    PmixNamesAsk *ask;
    int64_t late_us; /* -1: never */
};

void names_init(struct names *names)
{
    *names = (struct names){ 0 };
    map_init(&names->values);
}

static void drop(struct names *names, const char *key)
{
    struct name *name = map_del(&names->values, key);

    if (!name)
        return;
    names->kept_bytes -= COST_BYTES + name->value.len;
    str_done(&name->value);
    free(name);
}

static void waiting_free(struct names_waiting *waiting)
{
    pmix_names_ask__free_unpacked(waiting->ask, NULL);
    free(waiting);
}

void names_done(struct names *names)
{
    map_each (entry, &names->values) {
        struct name *name = entry->value;
        str_done(&name->value);
        free(name);
    }
    map_done(&names->values);
    for (size_t i = 0; i < names->waiting.len; i++)
        waiting_free(names->waiting.items[i]);
    vec_done(&names->waiting);
}

static void answer(struct names *names, uint32_t node, uint64_t id, PmixNamesStatus status)
{
    PmixNamesAnswer words = PMIX_NAMES_ANSWER__INIT;

    words.has_id = words.has_status = true;
    words.id = id;
    words.status = status;
    names->answer(names->ctx, node, &words);
}

/* All of them, or none. */
static PmixNamesStatus publish(struct names *names, const PmixNamesAsk *ask)
{
    size_t more = 0;

    for (size_t i = 0; i < ask->n_publish; i++) {
        if (str_is_empty(ask->publish[i]->key) || map_has(&names->values, ask->publish[i]->key))
            return PMIX_NAMES_TAKEN;
        more += COST_BYTES + ask->publish[i]->value.len;
    }
    if (names->kept_bytes + more > LIMIT_PMI_KVS_BYTES)
        return PMIX_NAMES_FULL;
    for (size_t i = 0; i < ask->n_publish; i++) {
        const PmixName *from = ask->publish[i];
        struct name *name = NEW(struct name);
        drop(names, from->key); /* twice in one question */
        name->rank = ask->rank;
        name->once = from->once;
        str_add_len(&name->value, from->value.data, from->value.len);
        map_put(&names->values, from->key, name);
        names->kept_bytes += COST_BYTES + name->value.len;
    }
    return PMIX_NAMES_OK;
}

static PmixNamesStatus unpublish(struct names *names, const PmixNamesAsk *ask)
{
    for (size_t i = 0; i < ask->n_unpublish; i++) {
        const struct name *name = map_get(&names->values, ask->unpublish[i]);
        if (name && name->rank == ask->rank) /* nobody takes back what another has said */
            drop(names, ask->unpublish[i]);
    }
    return PMIX_NAMES_OK;
}

static size_t count_here(const struct names *names, const PmixNamesAsk *ask)
{
    size_t count = 0;

    for (size_t i = 0; i < ask->n_lookup; i++)
        count += map_has(&names->values, ask->lookup[i]);
    return count;
}

static bool must_wait(const struct names *names, const PmixNamesAsk *ask)
{
    size_t enough =
        ask->wait && ask->wait < ask->n_lookup ? (size_t)ask->wait : (size_t)ask->n_lookup;

    return ask->has_wait && count_here(names, ask) < enough;
}

static void answer_lookup(struct names *names, uint32_t node, const PmixNamesAsk *ask)
{
    PmixNamesAnswer words = PMIX_NAMES_ANSWER__INIT;
    CLEANUP(freep) PmixName *list = NEW_ARRAY(PmixName, ask->n_lookup + 1);
    CLEANUP(freep) PmixName **all = NEW_ARRAY(PmixName *, ask->n_lookup + 1);

    for (size_t i = 0; i < ask->n_lookup; i++) {
        struct name *name = map_get(&names->values, ask->lookup[i]);
        PmixName *out = &list[words.n_names];
        if (!name)
            continue;
        pmix_name__init(out);
        out->key = ask->lookup[i];
        out->has_rank = out->has_value = true;
        out->rank = name->rank;
        out->value =
            (ProtobufCBinaryData){ .data = (uint8_t *)name->value.data, .len = name->value.len };
        all[words.n_names++] = out;
    }
    words.has_id = words.has_status = true;
    words.id = ask->id;
    words.names = all;
    words.status = words.n_names == ask->n_lookup ? PMIX_NAMES_OK
                   : words.n_names                ? PMIX_NAMES_SOME
                                                  : PMIX_NAMES_NONE;
    names->answer(names->ctx, node, &words);
    for (size_t i = 0; i < ask->n_lookup; i++) {
        const struct name *name = map_get(&names->values, ask->lookup[i]);
        if (name && name->once)
            drop(names, ask->lookup[i]);
    }
}

static void serve_waiting(struct names *names)
{
    for (size_t i = 0; i < names->waiting.len;) {
        struct names_waiting *waiting = names->waiting.items[i];
        if (must_wait(names, waiting->ask)) {
            i++;
            continue;
        }
        vec_remove(&names->waiting, i);
        answer_lookup(names, waiting->node, waiting->ask);
        waiting_free(waiting);
    }
}

void names_ask(struct names *names, uint32_t node, PmixNamesAsk *ask, int64_t now_us)
{
    if (ask->n_lookup && must_wait(names, ask)) {
        struct names_waiting *waiting = NEW(struct names_waiting);
        waiting->node = node;
        waiting->ask = ask;
        waiting->late_us = ask->timeout_s ? now_us + ask->timeout_s * (int64_t)SECOND_US : -1;
        vec_push(&names->waiting, waiting);
        return;
    }
    if (ask->n_lookup)
        answer_lookup(names, node, ask);
    else
        answer(names, node, ask->id, ask->n_publish ? publish(names, ask) : unpublish(names, ask));
    if (ask->n_publish)
        serve_waiting(names);
    pmix_names_ask__free_unpacked(ask, NULL);
}

int64_t names_next_us(const struct names *names)
{
    int64_t next = -1;

    for (size_t i = 0; i < names->waiting.len; i++) {
        int64_t late = names->waiting.items[i]->late_us;
        if (late >= 0 && (next < 0 || late < next))
            next = late;
    }
    return next;
}

void names_due(struct names *names, int64_t now_us)
{
    for (size_t i = 0; i < names->waiting.len;) {
        struct names_waiting *waiting = names->waiting.items[i];
        if (waiting->late_us < 0 || waiting->late_us > now_us) {
            i++;
            continue;
        }
        vec_remove(&names->waiting, i);
        answer(names, waiting->node, waiting->ask->id, PMIX_NAMES_LATE);
        waiting_free(waiting);
    }
}
