/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pq.h - libpq, opened when a database URL asks for PostgreSQL
 *
 * spurdbd with SQLite neither needs libpq nor pays for the libraries that it brings along.
 */
#ifndef SPURDBD_PQ_H
#define SPURDBD_PQ_H

#include <libpq-fe.h>

#include "base/err.h"

#define PQ_FUNCTIONS(F)     \
    F(PQcancel)             \
    F(PQclear)              \
    F(PQcmdStatus)          \
    F(PQconnectdbParams)    \
    F(PQconninfoFree)       \
    F(PQconninfoParse)      \
    F(PQenterPipelineMode)  \
    F(PQerrorMessage)       \
    F(PQexec)               \
    F(PQexitPipelineMode)   \
    F(PQfinish)             \
    F(PQfreeCancel)         \
    F(PQftype)              \
    F(PQgetCancel)          \
    F(PQgetisnull)          \
    F(PQgetlength)          \
    F(PQgetResult)          \
    F(PQgetvalue)           \
    F(PQparameterStatus)    \
    F(PQpipelineSync)       \
    F(PQresultErrorField)   \
    F(PQresultErrorMessage) \
    F(PQresultStatus)       \
    F(PQsendPrepare)        \
    F(PQsendQueryPrepared)  \
    F(PQserverVersion)      \
    F(PQsetNoticeProcessor) \
    F(PQsetSingleRowMode)   \
    F(PQstatus)

#define PQ_MEMBER(function) __typeof__(function) *function;
struct pq {
    PQ_FUNCTIONS(PQ_MEMBER)
};
#undef PQ_MEMBER

/* NULL, with the reason in `err`, when this machine has no libpq of version 14 or later. */
const struct pq *pq_load(struct err *err);

#endif
