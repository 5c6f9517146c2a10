/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sacctmgr.h - what the files of `sacctmgr` share
 *
 * A command reads all tables once (manager_load()), picks what its words mean, and sends edits made from them;
 * spurdbd refuses them when somebody changed the tables meanwhile.
 */
#ifndef CLI_SACCTMGR_H
#define CLI_SACCTMGR_H

#include "base/vec.h"
#include "cli/cli.h"
#include "proto/acct.pb-c.h"

struct client;

struct manager {
    struct cli cli;
    struct client *client;
    const ListTablesReply *tables;
    bool immediate, no_header, quiet, read_only, with_assocs;
    bool parsable, parsable2;
    bool offline; /* the tables are empty and nobody is asked */
    VEC(AcctEdit *) edits;
    struct str out;
};

/* What a word means: key, how it is given, value. */
struct word {
    const char *key, *value; /* value NULL: a word alone */
    char how;                /* '=', '+', '-' */
};
typedef VEC(struct word) words;

/* Limits and settings that an association, a QOS or both have. */
enum key_kind {
    KEY_COUNT,
    KEY_MINUTES,
    KEY_SECONDS,
    KEY_TRES,
    KEY_LIST,
    KEY_TEXT,
    KEY_DECIMAL,
    KEY_SHARE
};
struct setting {
    const char *name;    /* as it is written to files and shown after an add */
    const char *also[4]; /* other names */
    const char *field;   /* of ConfUser or ConfQos */
    enum key_kind kind;
    const char *header; /* of its column */
    int width;
    bool inherited; /* of associations: unset is the parent's */
};
extern const struct setting assoc_settings[], qos_settings[]; /* in alphabetical order */
const struct setting *setting_find(const struct setting *table, const char *name);
/* Case does not matter; `typed` may be the beginning of `name`, of three letters at least. */
bool word_is(const char *typed, const char *name);

/* Sets the field of the message as the word says; false after a complaint. */
bool setting_put(struct manager *m, const struct setting *setting, void *message,
                 const struct word *word);
/* Its value as text; false: it is not set. `raw`: as dump files have it. */
bool setting_get(const struct setting *setting, const void *message, bool raw, struct str *out);

/* ---- tables ---- */

int manager_load(struct manager *m, bool deleted, bool transactions);
const AcctAssoc *assoc_above(const struct manager *m, const AcctAssoc *assoc);
const AcctAssoc *assoc_find(const struct manager *m, const char *cluster, const char *account,
                            const char *user, const char *partition);
unsigned assoc_depth(const struct manager *m, const AcctAssoc *assoc);
const AcctAccount *account_find(const struct manager *m, const char *name);
const AcctUser *user_find(const struct manager *m, const char *name);
const AcctQos *qos_find(const struct manager *m, const char *name);
const char *default_account(const struct manager *m, const char *cluster, const char *user);
/* The message that has the value: its own, or the next above that has one. */
const ConfUser *limits_with(const struct manager *m, const AcctAssoc *assoc,
                            const struct setting *setting);

/* ---- lists of names ---- */

struct names {
    char **items;
    size_t count;
};
struct names names_of(struct manager *m, const char *list);   /* in lower case */
bool names_have(const struct names *names, const char *name); /* none: any */

/* ---- commands ---- */

int manager_list(struct manager *m, const char *entity, const words *specs);
/* Events, reservations and runaway jobs; -1: it is another entity. */
int manager_records(struct manager *m, const char *entity, const words *specs);
/* Asks on the terminal; true: yes, in time. */
bool manager_agrees(const char *question);
int manager_connect(struct manager *m);
int manager_add(struct manager *m, const char *entity, const words *specs);
int manager_modify(struct manager *m, const char *entity, const words *where, const words *set);
int manager_delete(struct manager *m, const char *entity, const words *where);
int manager_dump(struct manager *m, const words *specs);
int manager_load_file(struct manager *m, const words *specs);

/* A new edit; `action` and `what` are for the list of transactions. */
AcctEdit *edit_new(struct manager *m, bool remove, const char *action, const char *what);
AcctAssoc *assoc_copy(struct manager *m, const AcctAssoc *assoc);
AcctAssoc *assoc_new(struct manager *m, const char *cluster, const char *account, const char *user,
                     const char *partition);
/* Prints what was said, asks, and sends the edits. Returns the exit code. */
int manager_commit(struct manager *m);
int manager_bad_word(const struct manager *m, const struct word *word, bool modify);

#endif
