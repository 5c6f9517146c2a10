/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_doc.h - the configuration and its keys, for people to read
 */
#ifndef SCHEMA_CONF_DOC_H
#define SCHEMA_CONF_DOC_H

#include "schema/conf.h"

/* Every key with its value, and behind it where that was set or that it is the default. */
void conf_show_text(const struct conf *conf, struct str *out);
void conf_show_json(const struct conf *conf, struct str *out);

/* The reference of all keys, and what becomes of Slurm's: docs/configuration.md has it. */
void conf_document(struct str *out);

#endif
