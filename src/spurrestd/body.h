/* SPDX-License-Identifier: Apache-2.0 */
/*
 * body.h - what a request carries: JSON or YAML, as values of jansson
 */
#ifndef SPURRESTD_BODY_H
#define SPURRESTD_BODY_H

#include <jansson.h>

#include "base/err.h"
#include "spurrestd/exchange.h"

/*
 * Reads the body by its Content-Type; without one it is JSON. NULL: the exchange was answered (415 for another
 * type, 400 for what cannot be parsed). The caller frees it with json_decref().
 */
json_t *body_read(struct exchange *x);

/* The text of a value as an option would have it: a string, a number, or Slurm's { set, infinite, number }.
 * Returns false when the value means "not given" (null, set false), and sets err when it is neither. */
bool body_text(struct exchange *x, const json_t *value, const char *infinite, const char **out,
               struct err *err);

#endif
