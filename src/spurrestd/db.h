/* SPDX-License-Identifier: Apache-2.0 */
/*
 * db.h - Slurm's /slurmdb: what its handlers share
 *
 * The leader passes questions and changes on to spurdbd (relay.c of spurctld) with the caller's token, and
 * spurdbd decides what he may see and change.
 */
#ifndef SPURRESTD_DB_H
#define SPURRESTD_DB_H

#include "proto/acct.pb-c.h"
#include "spurrestd/answer.h"
#include "spurrestd/ask.h"

/* A parameter without a value, or with one that means yes. */
bool db_flag(const struct exchange *x, const char *name);
/* True: the list (commas) is not given, or has the text. */
bool db_listed(const char *list, const char *text);
bool db_matches(const struct exchange *x, const char *param, const char *text);

/* Reads all tables; `done` comes with a ListTablesReply that is valid during the call. */
void db_ask_tables(struct exchange *x, bool with_deleted, ask_done *done);

/* Answers in the words of Slurm that nothing was found. */
void db_warn_nothing(struct answer *answer, const char *call, const char *source);

#endif
