/* SPDX-License-Identifier: Apache-2.0 */
/*
 * het.h - the components of a heterogeneous job: which variables describe each, which ones a list names
 */
#ifndef SCHEMA_HET_H
#define SCHEMA_HET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bitset.h"
#include "base/err.h"

/*
 * What a script or shell finds for each component: NAME_HET_GROUP_n, and the older NAME_PACK_GROUP_n.
 * srun reads them back for the component that it runs in.
 */
extern const char *const het_names[];
extern const size_t het_name_count;

bool het_has_name(const char *name, size_t len);

/* "0,2-3" as a set of fewer than LIMIT_HET_COMPONENTS; the caller ends it, also after an error. */
int het_read_list(const char *text, struct bitset *out, struct err *err);

#endif
