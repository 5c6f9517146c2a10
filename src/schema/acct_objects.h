/* SPDX-License-Identifier: Apache-2.0 */
/*
 * acct_objects.h - accounts, users, associations, QOS and what belongs to them as objects of Slurm's API
 *
 * One row says where a value lies in the object ("max/jobs/per/count"), which field of the message it is, what
 * form it has and which versions have it. REST and sacctmgr write objects by these rows; REST reads what
 * programs send by the same ones.
 */
#ifndef SCHEMA_ACCT_OBJECTS_H
#define SCHEMA_ACCT_OBJECTS_H

#include "proto/acct.pb-c.h"
#include "schema/jsonw.h"

enum acct_form {
    ACCT_TEXT,
    ACCT_NUMBER,  /* a plain number */
    ACCT_BOOL,    /* a truth value */
    ACCT_COUNT,   /* { set, infinite, number }; absent is infinite */
    ACCT_MINUTES, /* the same; the field has seconds */
    ACCT_SECONDS, /* a plain number */
    ACCT_DECIMAL, /* { set, infinite, number } of a decimal text */
    ACCT_TRES,    /* a list of TRES, of "cpu=8,mem=100" */
    ACCT_WORDS,   /* a list of texts */
    ACCT_FLAGS,   /* a list of flags of a QOS, in the words of the API */
    ACCT_MODE,    /* a list of preemption modes */
    ACCT_GIVEN,   /* written by hand, beside the rows */
};

struct acct_row {
    const char *json;
    const char *
        field; /* of the limits or the QOS; NULL: there is no such thing here, and it is written as absent */
    enum acct_form form;
    const char *set;       /* its name in the short form of users_association, or NULL */
    unsigned since, until; /* versions; 0: all */
};

extern const struct acct_row acct_assoc_rows[], acct_qos_rows[];
extern const size_t acct_assoc_row_count, acct_qos_row_count;

/* The word of the API for a flag of a QOS ("DENY_LIMIT"), and back; NULL: there is none. */
const char *acct_qos_flag_word(const char *flag);
const char *acct_qos_flag_of(const char *word);

/* One object each, in a list. `tables` is what the object is in. */
enum { ACCT_WITH_ASSOCS = 1, ACCT_WITH_COORDS = 2, ACCT_WITH_WCKEYS = 4, ACCT_WITH_DEFAULTS = 8 };
void acct_account_json(const ListTablesReply *tables, const AcctAccount *account, unsigned with,
                       struct jsonw *json);
void acct_user_json(const ListTablesReply *tables, const AcctUser *user, unsigned with,
                    struct jsonw *json);
void acct_assoc_json(const ListTablesReply *tables, const AcctAssoc *assoc, struct jsonw *json);
void acct_qos_json(const AcctQos *qos, struct jsonw *json);
void acct_cluster_json(const ListTablesReply *tables, const AcctClusterRow *cluster,
                       struct jsonw *json);
void acct_tres_json(const AcctTres *tres, struct jsonw *json);
void acct_wckey_json(const AcctWckey *wckey, struct jsonw *json);

/* The association of an account itself; NULL: there is none. */
const AcctAssoc *acct_account_assoc(const ListTablesReply *tables, const char *cluster,
                                    const char *account);
/* Fills in the limits that an association has from those above it: `assoc->limits` is changed. */
void acct_assoc_inherit(const ListTablesReply *tables, AcctAssoc *assoc);

#endif
