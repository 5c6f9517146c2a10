/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - a connection to the database: what SQLite and PostgreSQL both do
 *
 *     struct store *store;
 *     store_open("sqlite:/var/lib/spurdb/spur.db", &store, &err);
 *     store_begin(store, &err);
 *     store_run(store, "UPDATE job SET state = ?1 WHERE db_id = ?2",
 *               STORE_VALUES(STORE_INT(3), STORE_INT(17)), &err);
 *     store_commit(store, &err);
 *
 * Statements are prepared once per connection and kept by their text; values are always bound, never
 * written into the text. One text serves both databases; where they have different words for a thing, it has
 *
 *     @id                   a primary key that counts by itself      @greatest(a, b)  the larger of two values
 *     @big @bytes TEXT      types of columns; text compares by bytes  @least(a, b)     the smaller of two values
 *
 * README.md of this folder tells what else to look out for.
 *
 * (1) One thread at a time uses a connection; it need not always be the same one.
 * (2) store_run() in a transaction may be executed together with what follows it: its error comes at the latest
 *     from store_commit(), and nothing of the transaction holds then. The same is true of store_begin().
 * (3) After ERR_DB_CONNECTION the connection is of no more use; store_close() it and open another.
 * (4) Transactions come one after the other, also those of other processes. After an error in one, only
 *     store_rollback() or store_close() is allowed.
 */
#ifndef SPURDBD_STORE_H
#define SPURDBD_STORE_H

#include "base/err.h"
#include "base/str.h"

enum store_kind { STORE_SQLITE, STORE_POSTGRESQL };

struct store;

/*
 * "sqlite:PATH" makes the file if need be. "postgresql://user:password@host/name" is as libpq reads it: a unix socket
 * is "postgresql:///name?host=/run/postgresql". ERR_DB_CONNECTION: the server does not answer now.
 */
int store_open(const char *url, struct store **out, struct err *err);
void store_close(struct store *store); /* NULL is allowed; what was not committed is undone */
static inline void store_closep(struct store **store)
{
    store_close(*store);
}
enum store_kind store_kind_of(const struct store *store);
/* The URL without its password, for people. */
void store_add_shown(struct str *out, const char *url);
/* Takes the password out of a URL in place, so that whoever lists processes does not see it. */
void store_hide_password(char *url);

enum store_type { STORE_IS_NULL, STORE_IS_INT, STORE_IS_TEXT, STORE_IS_BYTES };
struct store_value {
    enum store_type type;
    int64_t number;
    struct span bytes;
};
struct store_values {
    const struct store_value *items;
    size_t count;
};
#define STORE_INT(n) ((struct store_value){ .type = STORE_IS_INT, .number = (int64_t)(n) })
#define STORE_BYTES(ptr, len) \
    ((struct store_value){ STORE_IS_BYTES, 0, { (const char *)(ptr), (len) } })
struct store_value store_text(const char *text); /* NULL is "" */
#define STORE_TEXT(text) store_text(text)
#define STORE_NONE       ((struct store_value){ .type = STORE_IS_NULL })
#define STORE_VALUES(...)                                                         \
    ((struct store_values){ (const struct store_value[]){ __VA_ARGS__ },          \
                            sizeof((const struct store_value[]){ __VA_ARGS__ }) / \
                                sizeof(struct store_value) })
#define STORE_NO_VALUES ((struct store_values){ NULL, 0 })

/* Several statements without values, for schemas. */
int store_script(struct store *store, const char *sql, struct err *err);
/* One statement that gives no rows. */
int store_run(struct store *store, const char *sql, struct store_values values, struct err *err);

struct store_row;
int64_t store_row_int(const struct store_row *row, unsigned column); /* NULL is 0 */
struct span store_row_bytes(const struct store_row *row, unsigned column);
/*
 * A negative result ends the walk and is returned. What the row gives is valid during the call, which must not use the
 * same connection.
 */
typedef int store_each_fn(void *ctx, const struct store_row *row, struct err *err);
/* One statement with rows. */
int store_each(struct store *store, const char *sql, struct store_values values,
               store_each_fn *each, void *ctx, struct err *err);
/* The first column of the first row; `otherwise` when there is none. */
int store_number(struct store *store, const char *sql, struct store_values values,
                 int64_t otherwise, int64_t *out, struct err *err);

int store_begin(struct store *store, struct err *err);
int store_commit(struct store *store, struct err *err); /* durable when it returns 0 */
void store_rollback(struct store *store);

#endif
