/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pmi_2.c - what tasks ask in PMI-2, one row each
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spurstepd/pmi.h"
#include "spurstepd/relay.h"
#include "spurstepd/tasks_priv.h"

typedef void pmi_2_fn(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words);

/* The beginning of an answer; pmi_add() the rest, then finish(). */
static void begin(struct str *body, const char *name, const char *thread)
{
    str_addf(body, "cmd=%s-response;", name);
    if (thread)
        pmi_add(body, "thrid", thread);
}

static void finish(struct pmi_peer *peer, struct str *body, const char *error)
{
    CLEANUP(str_done) struct str text = { 0 };

    pmi_add_num(body, "rc", error ? -1 : 0);
    if (error)
        pmi_add(body, "errmsg", error);
    str_addf(&text, "%6zu", body->len);
    str_add_len(&text, str_text(body), body->len);
    str_done(body);
    pmi_reply(peer, &text);
}

static void answer(struct pmi_peer *peer, const struct pmi_words *words, const char *error)
{
    struct str body = { 0 };

    begin(&body, pmi_word(words, "cmd"), pmi_word(words, "thrid"));
    finish(peer, &body, error);
}

static void answer_value(struct pmi_peer *peer, const struct pmi_words *words, const char *value)
{
    struct str body = { 0 };

    begin(&body, pmi_word(words, "cmd"), pmi_word(words, "thrid"));
    pmi_add(&body, "found", value ? "TRUE" : "FALSE");
    if (value)
        pmi_add(&body, "value", value);
    finish(peer, &body, NULL);
}

static void on_fullinit(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words)
{
    struct str body = { 0 };

    begin(&body, "fullinit", pmi_word(words, "thrid"));
    pmi_add_num(&body, "pmi-version", 2);
    pmi_add_num(&body, "pmi-subversion", 0);
    pmi_add_num(&body, "rank", peer->number);
    pmi_add_num(&body, "size", pmi->tasks->relay->layout->ntasks);
    pmi_add_num(&body, "appnum", 0);
    pmi_add(&body, "debugged", "FALSE");
    pmi_add(&body, "pmiverbose", "FALSE");
    finish(peer, &body, NULL);
}

static void on_jobid(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words)
{
    struct str body = { 0 };

    begin(&body, "job-getid", pmi_word(words, "thrid"));
    pmi_add(&body, "jobid", pmi->name);
    finish(peer, &body, NULL);
}

static void on_put(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words)
{
    const char *key = pmi_word(words, "key"), *value = pmi_word(words, "value");

    answer(peer, words, key && value && pmi_put(pmi, key, value) ? NULL : "refused");
}

static void on_get(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words)
{
    const char *key = pmi_word(words, "key");

    answer_value(peer, words, key ? map_get(&pmi->values, key) : NULL);
}

static void on_fence(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words)
{
    free(peer->thread);
    peer->thread = mem_strdup(pmi_word(words, "thrid"));
    pmi_fence(pmi, peer);
}

void pmi_2_fenced(struct pmi_peer *peer)
{
    struct str body = { 0 };

    begin(&body, "kvs-fence", peer->thread);
    finish(peer, &body, NULL);
}

static void on_job_attr(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words)
{
    const char *key = pmi_word(words, "key"), *value = NULL;
    char number[16];

    if (str_eq(key, "PMI_process_mapping")) {
        value = str_text(&pmi->mapping);
    } else if (str_eq(key, "universeSize")) {
        snprintf(number, sizeof(number), "%u", pmi->tasks->relay->layout->ntasks);
        value = number;
    }
    answer_value(peer, words, value);
}

static void give_attribute(struct pmi_peer *peer, const char *value)
{
    struct str body = { 0 };

    begin(&body, "info-getnodeattr", peer->thread);
    pmi_add(&body, "found", value ? "TRUE" : "FALSE");
    if (value)
        pmi_add(&body, "value", value);
    finish(peer, &body, NULL);
}

static void on_put_attr(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words)
{
    const char *key = pmi_word(words, "key"), *value = pmi_word(words, "value");

    if (!key || !value || strlen(key) > PMI_KEY_BYTES || strlen(value) > PMI_VALUE_BYTES ||
        map_len(&pmi->attributes) >= PMI_VALUE_BYTES) {
        answer(peer, words, "refused");
        return;
    }
    free(map_put(&pmi->attributes, key, mem_strdup(value)));
    answer(peer, words, NULL);
    for (size_t i = 0; i < pmi->count; i++) {
        struct pmi_peer *other = &pmi->peers[i];
        if (!other->wants || !str_eq(other->wants, key))
            continue;
        free(TAKE(other->wants));
        give_attribute(other, value);
    }
}

/* May wait until a task of this node has put it. */
static void on_get_attr(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words)
{
    const char *key = pmi_word(words, "key"), *wait = pmi_word(words, "wait");
    const char *value = key ? map_get(&pmi->attributes, key) : NULL;

    free(peer->thread);
    peer->thread = mem_strdup(pmi_word(words, "thrid"));
    if (!value && key && wait && str_ieq(wait, "TRUE")) {
        free(peer->wants);
        peer->wants = mem_strdup(key);
        return;
    }
    give_attribute(peer, value);
}

static void on_publish(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words)
{
    const char *name = pmi_word(words, "name"), *port = pmi_word(words, "port");

    if (!name || !port || !*port || map_has(&pmi->services, name)) {
        answer(peer, words, "refused");
        return;
    }
    pmi_publish(pmi, name, port);
    answer(peer, words, NULL);
}

static void on_unpublish(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words)
{
    const char *name = pmi_word(words, "name");
    bool known = name && map_has(&pmi->services, name);

    if (known)
        pmi_publish(pmi, name, NULL);
    answer(peer, words, known ? NULL : "not found");
}

static void on_lookup(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words)
{
    const char *name = pmi_word(words, "name");
    const char *port = name ? map_get(&pmi->services, name) : NULL;
    struct str body = { 0 };

    begin(&body, "name-lookup", pmi_word(words, "thrid"));
    if (port)
        pmi_add(&body, "value", port);
    if (port)
        pmi_add(&body, "port", port);
    finish(peer, &body, port ? NULL : "not found");
}

static void refuse(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words)
{
    (void)pmi;
    answer(peer, words, "not supported by this process manager");
}

static void on_abort(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words)
{
    const char *code = pmi_word(words, "exitcode");

    pmi_abort(pmi, peer, code, pmi_word(words, "msg"));
}

static void on_finalize(struct pmi *pmi, struct pmi_peer *peer, const struct pmi_words *words)
{
    (void)pmi;
    peer->finalized = true;
    answer(peer, words, NULL);
}

static const struct {
    const char *name;
    pmi_2_fn *take;
} commands[] = {
    { "fullinit", on_fullinit },
    { "job-getid", on_jobid },
    { "job-connect", refuse },
    { "job-disconnect", refuse },
    { "kvs-put", on_put },
    { "kvs-get", on_get },
    { "kvs-fence", on_fence },
    { "info-getjobattr", on_job_attr },
    { "info-putnodeattr", on_put_attr },
    { "info-getnodeattr", on_get_attr },
    { "name-publish", on_publish },
    { "name-unpublish", on_unpublish },
    { "name-lookup", on_lookup },
    { "spawn", refuse },
    { "abort", on_abort },
    { "finalize", on_finalize },
};

bool pmi_2_take(struct pmi *pmi, struct pmi_peer *peer, char *packet)
{
    struct pmi_words words;
    const char *name = pmi_read_packet(packet, &words) ? pmi_word(&words, "cmd") : NULL;

    for (size_t i = 0; name && i < ARRAY_LEN(commands); i++) {
        if (strcmp(commands[i].name, name) == 0) {
            commands[i].take(pmi, peer, &words);
            return true;
        }
    }
    return false;
}
