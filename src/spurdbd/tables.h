/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables.h - accounts, users, associations, QOS and what belongs to them, in the database
 *
 *     tables_read(store, &arena, &(struct tables_want){ 0 }, &tables, &err);
 *     tables_may(tables, edit, &asker, &err);
 *     tables_edit(store, edit, "alice", now_us, &err);
 *
 * The tables are read whole: some ten thousand associations at most. What an edit removes stays as a row
 * that is marked, so that an id is never given twice and a name that returns has its id again.
 */
#ifndef SPURDBD_TABLES_H
#define SPURDBD_TABLES_H

#include "base/arena.h"
#include "proto/acct.pb-c.h"
#include "proto/dbd.pb-c.h"
#include "spurdbd/store.h"

struct tables_want {
    bool deleted, transactions;
};
/* Everything in *out lives in the arena. Associations: each account, its users, the accounts below it. */
int tables_read(struct store *store, struct arena *arena, const struct tables_want *want,
                ListTablesReply **out, struct err *err);

/* A cluster that a leader spoke for, or that somebody added: it, root and the QOS normal are there then. */
int tables_register(struct store *store, const char *cluster, int64_t now_us, struct err *err);
/* One edit, with its row among the transactions. */
int tables_edit(struct store *store, const AcctEdit *edit, const char *actor, int64_t now_us,
                struct err *err);
/* The number of a cluster's last change of accounts, and the next. */
int tables_next_change(struct store *store, const char *cluster, struct err *err);
/* Its accounts may not be changed until tables_repaired() says what number the last change has. */
int tables_need_repair(struct store *store, const char *cluster, const char *why, struct err *err);
int tables_repaired(struct store *store, const char *cluster, uint64_t number, struct err *err);
int tables_next_revision(struct store *store, uint64_t *out, struct err *err);

/* ---- tables_check.c ---- */

/* Does every row refer to what is there? */
int tables_check(const ListTablesReply *tables, struct err *err);

enum { ADMIN_NONE, ADMIN_OPERATOR, ADMIN_FULL };
/* Who asks: `level` in the database and in the files of all clusters that are concerned. */
struct tables_asker {
    const char *name; /* NULL: no account */
    unsigned level;
};
int tables_may(const ListTablesReply *tables, const AcctEdit *edit,
               const struct tables_asker *asker, struct err *err);
/* Is the user a coordinator of the account, or of one above it, in some cluster? */
bool tables_coordinates(const ListTablesReply *tables, const char *user, const char *account);
/* Takes out what PrivateData keeps from the asker. */
void tables_hide(ListTablesReply *tables, const struct tables_asker *asker,
                 const char *private_data);

/* What a cluster's controllers are told: its QOS, accounts, users and administrators. */
Config *tables_config(const ListTablesReply *tables, const char *cluster, struct arena *arena);
/* The edits that bring the sections of a file into the database. */
size_t tables_adopt(const ListTablesReply *tables, const Config *config, const char *cluster,
                    struct arena *arena, AcctEdit **out);

#endif
