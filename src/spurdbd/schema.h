/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.h - the tables of the database, by version
 *
 * An empty database is set up at the first start. One of an older version is changed only when
 * --migrate says so; one of a newer version is refused.
 */
#ifndef SPURDBD_SCHEMA_H
#define SPURDBD_SCHEMA_H

#include "spurdbd/store.h"

/* The version of this build. */
unsigned schema_version(void);
/* The version that the database has; 0: it is empty. */
int schema_found(struct store *store, unsigned *out, struct err *err);
/* Makes the database fit this build. An older one is an error unless `migrate`. */
int schema_settle(struct store *store, bool migrate, struct err *err);

#endif
