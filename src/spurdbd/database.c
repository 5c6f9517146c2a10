/* SPDX-License-Identifier: Apache-2.0 */
/*
 * database.c - connections to the database whose tables are of our version
 */
#include "spurdbd/schema.h"
#include "spurdbd/serve.h"

int dbd_settle(struct dbd *dbd, struct store *store, struct err *err)
{
    bool others = false;

    if (dbd->settled)
        return 0;
    if (!atomic_compare_exchange_strong(&dbd->settling, &others, true))
        return err_set(err, ERR_DB_CONNECTION,
                       "the tables of the database are being brought up to date: try again later");
    int code = schema_settle(store, dbd->options->migrate, err);
    dbd->settled = code == 0;
    dbd->settling = false;
    return code;
}

int dbd_open(struct dbd *dbd, struct store **out, struct err *err)
{
    struct store *store = NULL;

    if (store_open(dbd->url, &store, err) < 0)
        return -(int)err->code;
    if (dbd_settle(dbd, store, err) < 0) {
        store_close(store);
        return -(int)err->code;
    }
    *out = store;
    return 0;
}
