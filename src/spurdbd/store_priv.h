/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_priv.h - what an engine behind store.h is
 */
#ifndef SPURDBD_STORE_PRIV_H
#define SPURDBD_STORE_PRIV_H

#include "spurdbd/store.h"

struct store_engine {
    enum store_kind kind;
    int (*open)(const char *url, struct store **out, struct err *err);
    void (*close)(struct store *store);
    int (*script)(struct store *store, const char *sql, struct err *err);
    int (*run)(struct store *store, const char *sql, struct store_values values, struct err *err);
    int (*each)(struct store *store, const char *sql, struct store_values values,
                store_each_fn *each, void *ctx, struct err *err);
    int (*begin)(struct store *store, struct err *err);
    int (*commit)(struct store *store, struct err *err);
    void (*rollback)(struct store *store);
    int64_t (*row_int)(const struct store_row *row, unsigned column);
    struct span (*row_bytes)(const struct store_row *row, unsigned column);
};

/* The first member of an engine's own struct. */
struct store {
    const struct store_engine *engine;
};
struct store_row {
    const struct store_engine *engine;
};

extern const struct store_engine store_sqlite, store_postgresql;

/* The statement as this kind of database wants it; store.h tells what may be in it. */
void store_add_dialect(struct str *out, const char *sql, enum store_kind kind);

#endif
