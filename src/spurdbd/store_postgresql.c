/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_postgresql.c - store.h on a database of PostgreSQL
 *
 * (1) The connection is always in pipeline mode. Inside a transaction store_run() only sends: results are
 *     collected when something has to be known, so a batch of entries costs a few round trips.
 * (2) A transaction holds an advisory lock of the database, so writers come one after the other as with
 *     SQLite. A connection that outlived its spurdbd cannot commit between what the next one reads and writes.
 * (3) A commit is durable when it returns, whatever the server's default is: synchronous_commit is never off.
 * (4) PostgreSQL takes no text with a NUL or with bytes that are not UTF-8. Names of jobs have such bytes;
 *     what must be stored is stored with U+FFFD in their place.
 * (5) Rows come one at a time, so a long answer needs no memory here.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "spurdbd/pq.h"
#include "spurdbd/store_priv.h"
#include "sys/log.h"

enum { STATEMENTS_MOST = 128, QUEUED_MOST = 256, OLDEST_SERVER = 120000 };

/* Types by the numbers that PostgreSQL gives them in pg_type. */
enum {
    TYPE_UNKNOWN = 0,
    TYPE_BOOL = 16,
    TYPE_BYTEA = 17,
    TYPE_INT8 = 20,
    TYPE_INT2 = 21,
    TYPE_INT4 = 23,
    TYPE_TEXT = 25,
    TYPE_FLOAT8 = 701,
    TYPE_NUMERIC = 1700
};

#define WRITERS_LOCK "SELECT pg_advisory_xact_lock(1937012082)" /* "spur" */

struct statement {
    char name[16];
    char *sql;
    bool ready; /* the server has said so */
};

/* What was sent, and whose result has not been seen. */
struct sent {
    struct statement *statement;
    bool prepares;
};

/* The values of a statement as libpq wants them. */
struct arguments {
    VEC(const char *) values;
    VEC(int) lengths;
    VEC(int) formats;
    VEC(Oid) types;
    VEC(char *) made; /* that are freed */
};

struct pg_store {
    struct store store;
    const struct pq *pq;
    PGconn *conn;
    struct map statements; /* text → struct statement */
    unsigned next_name;
    VEC(struct sent) queue;
    struct arguments arguments;
    bool in_transaction;
};

struct pg_row {
    struct store_row row;
    const struct pq *pq;
    const PGresult *result;
};

static struct pg_store *self_of(struct store *store)
{
    return (struct pg_store *)store;
}

/* ---- errors ---- */

/* libpq ends its sentences with a newline and may write several lines. */
static int set_error(struct err *err, enum err_code code, const char *text)
{
    CLEANUP(str_done) struct str line = { 0 };
    size_t len = strlen(text);

    while (len && text[len - 1] == '\n')
        len--;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\n')
            str_add(&line, "; ");
        else if (text[i] != '\t')
            str_add_char(&line, text[i]);
    }
    return err_set(err, code, "database: %s", str_text(&line));
}

static bool is_lost(const struct pg_store *self)
{
    return self->pq->PQstatus(self->conn) != CONNECTION_OK;
}

static int lost(const struct pg_store *self, struct err *err)
{
    return set_error(err, ERR_DB_CONNECTION, self->pq->PQerrorMessage(self->conn));
}

static enum err_code code_of_state(const char *state)
{
    static const struct {
        const char *state;
        enum err_code code;
    } codes[] = {
        { "08", ERR_DB_CONNECTION },    /* connection exceptions */
        { "25006", ERR_DB_CONNECTION }, /* a standby: another server is the primary now */
        { "53100", ERR_DISK_FULL },     { "53300", ERR_DB_CONNECTION }, /* too many connections */
        { "57P", ERR_DB_CONNECTION }, /* the server is being stopped, or starts */
        { "XX001", ERR_CORRUPT },       { "XX002", ERR_CORRUPT },
    };

    for (size_t i = 0; state && i < ARRAY_LEN(codes); i++) {
        if (str_starts(state, codes[i].state))
            return codes[i].code;
    }
    return ERR_IO;
}

static int failed(const struct pg_store *self, const PGresult *result, struct err *err)
{
    if (is_lost(self))
        return lost(self, err);
    return set_error(err, code_of_state(self->pq->PQresultErrorField(result, PG_DIAG_SQLSTATE)),
                     self->pq->PQresultErrorMessage(result));
}

/* ---- opening and closing ---- */

static void on_notice(void *arg, const char *message)
{
    (void)arg;
    log_debug("database.notice", "text=%s", message);
}

static void forget_statement(struct pg_store *self, struct statement *statement)
{
    map_del(&self->statements, statement->sql);
    free(statement->sql);
    free(statement);
}

static void arguments_clear(struct arguments *arguments)
{
    vec_each (char *, made, &arguments->made)
        free(*made);
    vec_clear(&arguments->made);
    vec_clear(&arguments->values);
    vec_clear(&arguments->lengths);
    vec_clear(&arguments->formats);
    vec_clear(&arguments->types);
}

static void pg_close(struct store *store)
{
    struct pg_store *self = self_of(store);

    map_each (entry, &self->statements)
        forget_statement(self, entry->value);
    map_done(&self->statements);
    vec_done(&self->queue);
    arguments_clear(&self->arguments);
    vec_done(&self->arguments.made);
    vec_done(&self->arguments.values);
    vec_done(&self->arguments.lengths);
    vec_done(&self->arguments.formats);
    vec_done(&self->arguments.types);
    if (self->conn)
        self->pq->PQfinish(self->conn);
    free(self);
}

/* libpq's own sentence about a URL that it cannot read has the whole URL in it, with the password. */
static int check_url(const struct pq *pq, const char *url, struct err *err)
{
    PQconninfoOption *parts = pq->PQconninfoParse(url, NULL);
    CLEANUP(str_done) struct str shown = { 0 };

    if (parts) {
        pq->PQconninfoFree(parts);
        return 0;
    }
    store_add_shown(&shown, url);
    return err_set(err, ERR_INVALID,
                   "'%s' is not a URL of PostgreSQL: expected "
                   "postgresql://USER:PASSWORD@HOST/DATABASE, or "
                   "postgresql:///DATABASE?host=DIRECTORY for a unix socket",
                   str_text(&shown));
}

/* What stands before the URL is a default that it may change. */
static PGconn *dial(const struct pq *pq, const char *url)
{
    static const char *const names[] = { "fallback_application_name", "connect_timeout",
                                         "target_session_attrs",      "keepalives_idle",
                                         "tcp_user_timeout",          "dbname",
                                         "client_encoding",           NULL };
    const char *const values[] = {
        "spurdbd", "10", "read-write", "30", "30000", url, "UTF8", NULL
    };

    return pq->PQconnectdbParams(names, values, 1);
}

static int check_server(const struct pg_store *self, struct err *err)
{
    const char *encoding = self->pq->PQparameterStatus(self->conn, "server_encoding");
    int version = self->pq->PQserverVersion(self->conn);

    if (version < OLDEST_SERVER)
        return err_set(err, ERR_UNSUPPORTED,
                       "database: the server is PostgreSQL %d; version %d or later is needed",
                       version / 10000, OLDEST_SERVER / 10000);
    if (!str_eq(encoding, "UTF8") && !str_eq(encoding, "SQL_ASCII"))
        return err_set(err, ERR_UNSUPPORTED,
                       "database: its encoding is %s; create it with ENCODING 'UTF8'",
                       encoding ? encoding : "unknown");
    return 0;
}

static int set_up(struct pg_store *self, struct err *err)
{
    PGresult *result = self->pq->PQexec(
        self->conn, "SET jit = off; SET client_min_messages = warning;"
                    "SELECT set_config('synchronous_commit', 'on', false)" /* (3) */
                    " WHERE current_setting('synchronous_commit') = 'off'");
    bool good = self->pq->PQresultStatus(result) == PGRES_TUPLES_OK;
    int code = good ? 0 : failed(self, result, err);

    self->pq->PQclear(result);
    if (good && !self->pq->PQenterPipelineMode(self->conn))
        code = lost(self, err);
    return code;
}

static int pg_open(const char *url, struct store **out, struct err *err)
{
    const struct pq *pq = pq_load(err);

    if (!pq || check_url(pq, url, err) < 0)
        return -(int)err->code;
    struct pg_store *self = NEW(struct pg_store);
    self->store.engine = &store_postgresql;
    self->pq = pq;
    map_init(&self->statements);
    self->conn = dial(pq, url);
    int code = 0;
    if (is_lost(self)) {
        code = lost(self, err);
    } else {
        pq->PQsetNoticeProcessor(self->conn, on_notice, NULL);
        code = check_server(self, err);
        if (code == 0)
            code = set_up(self, err);
    }
    if (code < 0) {
        pg_close(&self->store);
        return code;
    }
    *out = &self->store;
    return 0;
}

/* ---- results ---- */

static void cancel(struct pg_store *self)
{
    PGcancel *cancel = self->pq->PQgetCancel(self->conn);
    char why[256];

    if (cancel)
        self->pq->PQcancel(cancel, why, sizeof(why));
    self->pq->PQfreeCancel(cancel);
}

struct taking {
    store_each_fn *each; /* NULL: rows are of no interest */
    void *ctx;
    int code; /* the first failure */
    struct err *err;
};

static void take_rows(struct pg_store *self, const PGresult *result, struct taking *taking)
{
    struct pg_row row = { { &store_postgresql }, self->pq, result };

    if (taking->code < 0 || !taking->each)
        return;
    taking->code = taking->each(taking->ctx, &row.row, taking->err);
    if (taking->code < 0)
        cancel(self); /* nobody wants the rest */
}

/* Everything up to the end of one statement. */
static void take_result(struct pg_store *self, const struct sent *sent, struct taking *taking)
{
    PGresult *result;

    while ((result = self->pq->PQgetResult(self->conn))) {
        ExecStatusType status = self->pq->PQresultStatus(result);
        if (status == PGRES_SINGLE_TUPLE) {
            take_rows(self, result, taking);
        } else if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) {
            sent->statement->ready = true;
            if (strcmp(sent->statement->sql, "COMMIT") == 0 && taking->code == 0 &&
                strcmp(self->pq->PQcmdStatus(result), "ROLLBACK") == 0)
                taking->code = err_set(taking->err, ERR_IO, "database: nothing was committed");
        } else if (taking->code == 0) { /* else it is a consequence of the first */
            taking->code = failed(self, result, taking->err);
            err_wrap(taking->err, "%.60s", sent->statement->sql);
        }
        self->pq->PQclear(result);
        if (is_lost(self))
            break;
    }
    if (is_lost(self) && taking->code == 0)
        taking->code = lost(self, taking->err);
}

/* What the server was asked to prepare after something failed, it did not. */
static void forget_unprepared(struct pg_store *self)
{
    vec_each (struct sent, sent, &self->queue) {
        if (sent->prepares && !sent->statement->ready)
            forget_statement(self, sent->statement);
    }
    vec_clear(&self->queue);
}

/* Waits for all that was sent. Rows of the last statement go to `each`. */
static int collect(struct pg_store *self, store_each_fn *each, void *ctx, struct err *err)
{
    struct taking taking = { .err = err };

    if (!self->queue.len)
        return 0;
    if (!self->pq->PQpipelineSync(self->conn))
        taking.code = lost(self, err);
    for (size_t i = 0; i < self->queue.len && !is_lost(self); i++) {
        if (i + 1 == self->queue.len) {
            taking.each = each;
            taking.ctx = ctx;
            self->pq->PQsetSingleRowMode(self->conn); /* (5) */
        }
        take_result(self, &self->queue.items[i], &taking);
    }
    if (!is_lost(self))
        self->pq->PQclear(self->pq->PQgetResult(self->conn)); /* the sync */
    if (is_lost(self) && taking.code == 0)
        taking.code = lost(self, err);
    forget_unprepared(self);
    return taking.code;
}

/* The simple protocol takes several statements, and is not for pipelines. */
static int pg_script(struct store *store, const char *sql, struct err *err)
{
    struct pg_store *self = self_of(store);
    CLEANUP(str_done) struct str text = { 0 };

    if (is_lost(self))
        return lost(self, err);
    if (collect(self, NULL, NULL, err) < 0)
        return -(int)err->code;
    store_add_dialect(&text, sql, STORE_POSTGRESQL);
    self->pq->PQexitPipelineMode(self->conn);
    PGresult *result = self->pq->PQexec(self->conn, str_text(&text));
    ExecStatusType status = self->pq->PQresultStatus(result);
    int code =
        status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ? 0 : failed(self, result, err);
    self->pq->PQclear(result);
    if (code == 0 && !self->pq->PQenterPipelineMode(self->conn))
        code = lost(self, err);
    else if (code < 0 && !is_lost(self))
        self->pq->PQenterPipelineMode(self->conn);
    return code;
}

/* ---- statements ---- */

/* (4) */
static void push_text(struct arguments *arguments, struct span text)
{
    struct str clean = { 0 };
    size_t at = 0, len;

    while (at < text.len && text.ptr[at] && (len = str_utf8_len(text.ptr + at, text.len - at)) > 0)
        at += len;
    if (at == text.len) {
        vec_push(&arguments->values, text.ptr);
        vec_push(&arguments->lengths, (int)text.len);
        return;
    }
    for (at = 0; at < text.len; at += len) {
        len = text.ptr[at] ? str_utf8_len(text.ptr + at, text.len - at) : 0;
        if (len)
            str_add_len(&clean, text.ptr + at, len);
        else
            str_add(&clean, "\xef\xbf\xbd");
        len = len ? len : 1;
    }
    vec_push(&arguments->lengths, (int)clean.len);
    vec_push(&arguments->made, str_take(&clean));
    vec_push(&arguments->values, arguments->made.items[arguments->made.len - 1]);
}

static void push_argument(struct arguments *arguments, const struct store_value *value)
{
    Oid type = TYPE_UNKNOWN;
    int binary = 1;

    if (value->type == STORE_IS_INT) {
        type = TYPE_INT8;
        binary = 0; /* as text it fits whatever number the server takes it for */
        vec_push(&arguments->made, mem_printf("%lld", (long long)value->number));
        vec_push(&arguments->values, arguments->made.items[arguments->made.len - 1]);
        vec_push(&arguments->lengths, 0);
    } else if (value->type == STORE_IS_TEXT) {
        type = TYPE_TEXT;
        push_text(arguments, value->bytes);
    } else if (value->type == STORE_IS_BYTES) {
        type = TYPE_BYTEA;
        vec_push(&arguments->values, value->bytes.len ? value->bytes.ptr : "");
        vec_push(&arguments->lengths, (int)value->bytes.len);
    } else {
        vec_push(&arguments->values, NULL);
        vec_push(&arguments->lengths, 0);
    }
    vec_push(&arguments->formats, binary);
    vec_push(&arguments->types, type);
}

static struct statement *new_statement(struct pg_store *self, const char *sql)
{
    struct statement *statement = NEW(struct statement);

    snprintf(statement->name, sizeof(statement->name), "s%u", self->next_name++);
    statement->sql = mem_strdup(sql);
    map_put(&self->statements, sql, statement);
    return statement;
}

/* Selections are put together for each request: those of long ago are forgotten. */
static int make_room(struct pg_store *self, struct err *err)
{
    if (map_len(&self->statements) < STATEMENTS_MOST)
        return 0;
    if (pg_script(&self->store, "DEALLOCATE ALL", err) < 0)
        return -(int)err->code;
    map_each (entry, &self->statements)
        forget_statement(self, entry->value);
    return 0;
}

static struct statement *prepare(struct pg_store *self, const char *sql, struct err *err)
{
    struct statement *statement = map_get(&self->statements, sql);
    CLEANUP(str_done) struct str text = { 0 };

    if (statement)
        return statement;
    if (make_room(self, err) < 0)
        return NULL;
    store_add_dialect(&text, sql, STORE_POSTGRESQL);
    statement = new_statement(self, sql);
    struct sent sent = { statement, true };
    vec_push(&self->queue, sent);
    if (!self->pq->PQsendPrepare(self->conn, statement->name, str_text(&text),
                                 (int)self->arguments.types.len, self->arguments.types.items)) {
        lost(self, err);
        forget_unprepared(self);
        return NULL;
    }
    return statement;
}

static int send_statement(struct pg_store *self, const char *sql, struct store_values values,
                          struct err *err)
{
    struct arguments *arguments = &self->arguments;

    if (is_lost(self))
        return lost(self, err);
    arguments_clear(arguments);
    for (size_t i = 0; i < values.count; i++)
        push_argument(arguments, &values.items[i]);
    struct statement *statement = prepare(self, sql, err);
    if (!statement)
        return -(int)err->code;
    struct sent sent = { statement, false };
    vec_push(&self->queue, sent);
    if (!self->pq->PQsendQueryPrepared(self->conn, statement->name, (int)values.count,
                                       arguments->values.items, arguments->lengths.items,
                                       arguments->formats.items, 1)) {
        lost(self, err);
        forget_unprepared(self);
        return -(int)err->code;
    }
    return 0;
}

static int pg_each(struct store *store, const char *sql, struct store_values values,
                   store_each_fn *each, void *ctx, struct err *err)
{
    struct pg_store *self = self_of(store);
    int code = send_statement(self, sql, values, err);

    return code < 0 ? code : collect(self, each, ctx, err);
}

/* (1) */
static int pg_run(struct store *store, const char *sql, struct store_values values, struct err *err)
{
    struct pg_store *self = self_of(store);
    int code = send_statement(self, sql, values, err);

    if (code == 0 && (!self->in_transaction || self->queue.len >= QUEUED_MOST))
        code = collect(self, NULL, NULL, err);
    return code;
}

/* ---- transactions ---- */

static int pg_begin(struct store *store, struct err *err)
{
    struct pg_store *self = self_of(store);

    self->in_transaction = true;
    if (pg_run(store, "BEGIN", STORE_NO_VALUES, err) < 0 ||
        pg_run(store, WRITERS_LOCK, STORE_NO_VALUES, err) < 0) { /* (2) */
        self->in_transaction = false;
        return -(int)err->code;
    }
    return 0;
}

static int pg_commit(struct store *store, struct err *err)
{
    struct pg_store *self = self_of(store);

    self->in_transaction = false;
    return pg_run(store, "COMMIT", STORE_NO_VALUES, err);
}

static void pg_rollback(struct store *store)
{
    struct pg_store *self = self_of(store);
    struct err ignored;

    self->in_transaction = false;
    if (is_lost(self))
        return;
    collect(self, NULL, NULL, &ignored);
    pg_run(store, "ROLLBACK", STORE_NO_VALUES, &ignored);
}

/* ---- values of rows ---- */

/* A sum of 64-bit numbers: digits of base 10,000, the first of which stands for 10,000^weight. */
static int64_t numeric_to_int(const char *bytes, int len)
{
    uint16_t words[4];
    int64_t number = 0;

    if (len < (int)sizeof(words))
        return 0;
    memcpy(words, bytes, sizeof(words));
    int digits = be16toh(words[0]), weight = (int16_t)be16toh(words[1]);
    for (int i = 0; i <= weight; i++) {
        uint16_t digit = 0;
        if (i < digits && (int)sizeof(words) + 2 * i + 2 <= len)
            memcpy(&digit, bytes + sizeof(words) + 2 * (size_t)i, sizeof(digit));
        if (__builtin_mul_overflow(number, 10000, &number) ||
            __builtin_add_overflow(number, be16toh(digit), &number))
            return INT64_MAX;
    }
    return be16toh(words[2]) == 0x4000 ? -number : number;
}

static int64_t float_to_int(const char *bytes)
{
    uint64_t raw;
    double number;

    memcpy(&raw, bytes, sizeof(raw));
    raw = be64toh(raw);
    memcpy(&number, &raw, sizeof(number));
    return number > -9e18 && number < 9e18 ? (int64_t)number : 0;
}

/* Big-endian, of 1, 2, 4 or 8 bytes. */
static int64_t integer_of(const char *bytes, int len)
{
    uint64_t number = len && (bytes[0] & 0x80) ? UINT64_MAX : 0;

    for (int i = 0; i < len; i++)
        number = number << 8 | (uint8_t)bytes[i];
    return (int64_t)number;
}

static int64_t pg_row_int(const struct store_row *base, unsigned column)
{
    const struct pg_row *row = (const struct pg_row *)base;
    int at = (int)column;
    const char *bytes = row->pq->PQgetvalue(row->result, 0, at);
    int len = row->pq->PQgetlength(row->result, 0, at);

    if (row->pq->PQgetisnull(row->result, 0, at))
        return 0;
    switch (row->pq->PQftype(row->result, at)) {
    case TYPE_BOOL:
    case TYPE_INT2:
    case TYPE_INT4:
    case TYPE_INT8:
        return integer_of(bytes, len);
    case TYPE_NUMERIC:
        return numeric_to_int(bytes, len);
    case TYPE_FLOAT8:
        return float_to_int(bytes);
    default:
        return strtoll(bytes, NULL, 10); /* libpq puts a NUL behind every value */
    }
}

static struct span pg_row_bytes(const struct store_row *base, unsigned column)
{
    const struct pg_row *row = (const struct pg_row *)base;

    return (struct span){ row->pq->PQgetvalue(row->result, 0, (int)column),
                          (size_t)row->pq->PQgetlength(row->result, 0, (int)column) };
}

const struct store_engine store_postgresql = {
    .kind = STORE_POSTGRESQL,
    .open = pg_open,
    .close = pg_close,
    .script = pg_script,
    .run = pg_run,
    .each = pg_each,
    .begin = pg_begin,
    .commit = pg_commit,
    .rollback = pg_rollback,
    .row_int = pg_row_int,
    .row_bytes = pg_row_bytes,
};
