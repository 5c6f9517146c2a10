/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.c - which engine a URL means, and what is the same for both
 */
#include "spurdbd/store.h"

#include <string.h>

#include "spurdbd/store_priv.h"

static const struct store_engine *const engines[] = { &store_sqlite };

static const struct store_engine *engine_of(const char *url)
{
    for (size_t i = 0; i < ARRAY_LEN(engines); i++) {
        if (str_starts(url, engines[i]->scheme))
            return engines[i];
    }
    return NULL;
}

int store_open(const char *url, struct store **out, struct err *err)
{
    const struct store_engine *engine = engine_of(url);
    CLEANUP(str_done) struct str shown = { 0 };

    if (engine)
        return engine->open(url, out, err);
    store_add_shown(&shown, url);
    return err_set(err, ERR_INVALID, "'%s' is not a database: expected sqlite:PATH",
                   str_text(&shown));
}

void store_add_shown(struct str *out, const char *url)
{
    const char *host = strstr(url, "://");
    const char *at = host ? strchr(host, '@') : NULL;
    const char *colon = at ? memchr(host + 3, ':', (size_t)(at - host - 3)) : NULL;

    if (!colon) {
        str_add(out, url);
        return;
    }
    str_add_len(out, url, (size_t)(colon - url));
    str_add(out, at);
}

struct store_value store_text(const char *text)
{
    return (struct store_value){ STORE_IS_TEXT, 0, { text ? text : "", text ? strlen(text) : 0 } };
}

enum store_kind store_kind_of(const struct store *store)
{
    return store->engine->kind;
}

void store_close(struct store *store)
{
    if (store)
        store->engine->close(store);
}

int store_script(struct store *store, const char *sql, struct err *err)
{
    return store->engine->script(store, sql, err);
}

int store_run(struct store *store, const char *sql, struct store_values values, struct err *err)
{
    return store->engine->run(store, sql, values, err);
}

int store_each(struct store *store, const char *sql, struct store_values values,
               store_each_fn *each, void *ctx, struct err *err)
{
    return store->engine->each(store, sql, values, each, ctx, err);
}

int64_t store_row_int(const struct store_row *row, unsigned column)
{
    return row->engine->row_int(row, column);
}

struct span store_row_bytes(const struct store_row *row, unsigned column)
{
    return row->engine->row_bytes(row, column);
}

static int take_number(void *ctx, const struct store_row *row, struct err *err)
{
    (void)err;
    *(int64_t *)ctx = store_row_int(row, 0);
    return 0;
}

int store_number(struct store *store, const char *sql, struct store_values values,
                 int64_t otherwise, int64_t *out, struct err *err)
{
    *out = otherwise;
    return store_each(store, sql, values, take_number, out, err);
}

int store_begin(struct store *store, struct err *err)
{
    return store->engine->begin(store, err);
}

int store_commit(struct store *store, struct err *err)
{
    return store->engine->commit(store, err);
}

void store_rollback(struct store *store)
{
    store->engine->rollback(store);
}
