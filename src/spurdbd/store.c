/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.c - which engine a URL means, and what is the same for both
 */
#include "spurdbd/store.h"

#include <string.h>

#include "spurdbd/store_priv.h"

static const struct scheme {
    const char *prefix;
    const struct store_engine *engine;
} schemes[] = {
    { "sqlite:", &store_sqlite },
    { "postgresql://", &store_postgresql },
    { "postgres://", &store_postgresql },
};

/* What one database calls otherwise than the other. */
static const struct word {
    const char *word, *text[2]; /* by enum store_kind */
} words[] = {
    { "@id", { "INTEGER PRIMARY KEY AUTOINCREMENT", "BIGSERIAL PRIMARY KEY" } },
    { "@bytes", { "BLOB", "BYTEA" } },
    { "@big", { "INTEGER", "BIGINT" } },
    { "@greatest", { "max", "greatest" } },
    { "@least", { "min", "least" } },
    { "TEXT", { "TEXT", "TEXT COLLATE \"C\"" } },
};

static const struct store_engine *engine_of(const char *url)
{
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        if (str_starts(url, schemes[i].prefix))
            return schemes[i].engine;
    }
    return NULL;
}

static const struct word *word_at(const char *sql)
{
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_starts(sql, words[i].word))
            return &words[i];
    }
    return NULL;
}

void store_add_dialect(struct str *out, const char *sql, enum store_kind kind)
{
    bool quoted = false;

    while (*sql) {
        const struct word *word = quoted ? NULL : word_at(sql);
        quoted ^= *sql == '\'';
        if (word) {
            str_add(out, word->text[kind]);
            sql += strlen(word->word);
        } else if (*sql == '?' && !quoted && kind == STORE_POSTGRESQL) {
            str_add_char(out, '$');
            sql++;
        } else {
            str_add_char(out, *sql++);
        }
    }
}

int store_open(const char *url, struct store **out, struct err *err)
{
    const struct store_engine *engine = engine_of(url);
    CLEANUP(str_done) struct str shown = { 0 };

    if (engine)
        return engine->open(url, out, err);
    store_add_shown(&shown, url);
    return err_set(err, ERR_INVALID,
                   "'%s' is not a database: expected sqlite:PATH or "
                   "postgresql://USER:PASSWORD@HOST/DATABASE",
                   str_text(&shown));
}

/* user:password@ */
static const char *add_user(struct str *out, const char *user)
{
    size_t len = strcspn(user, "/?");
    const char *at = NULL;

    for (size_t i = 0; i < len; i++)
        at = user[i] == '@' ? user + i : at;
    if (!at)
        return user;
    const char *colon = memchr(user, ':', (size_t)(at - user));
    str_add_len(out, user, (size_t)((colon ? colon : at) - user));
    return at;
}

void store_add_shown(struct str *out, const char *url)
{
    const char *host = strstr(url, "://");
    bool first = true;
    struct span word;

    if (!host || str_starts(url, "sqlite:")) {
        str_add(out, url);
        return;
    }
    str_add_len(out, url, (size_t)(host + 3 - url));
    host = add_user(out, host + 3);
    size_t path = strcspn(host, "?");
    str_add_len(out, host, path);
    const char *cursor = host[path] ? host + path + 1 : NULL;
    while (cursor && str_next(&cursor, "&", &word)) {
        if (word.len >= 9 && strncmp(word.ptr, "password=", 9) == 0)
            continue;
        str_add_char(out, first ? '?' : '&');
        str_add_len(out, word.ptr, word.len);
        first = false;
    }
}

void store_hide_password(char *url)
{
    CLEANUP(str_done) struct str shown = { 0 };

    store_add_shown(&shown, url);
    size_t len = strlen(url);
    if (shown.len < len) {
        memcpy(url, str_text(&shown), shown.len);
        memset(url + shown.len, '\0', len - shown.len);
    }
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
