/* SPDX-License-Identifier: Apache-2.0 */
/*
 * objects_json.h - objects that have no table of fields, as commands and REST write them in JSON
 */
#ifndef SCHEMA_OBJECTS_JSON_H
#define SCHEMA_OBJECTS_JSON_H

#include "proto/controller.pb-c.h"
#include "schema/jsonw.h"

/* One object each, in a list. */
void reservation_add_json(const Reservation *one, struct jsonw *json);
void license_add_json(const License *one, struct jsonw *json);

#endif
