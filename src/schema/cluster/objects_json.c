/* SPDX-License-Identifier: Apache-2.0 */
/*
 * objects_json.c - objects that have no table of fields, as commands and REST write them in JSON
 */
#include "schema/objects_json.h"

static void join_json(struct jsonw *json, const char *key, char *const *list, size_t count)
{
    struct str text = { 0 };

    for (size_t i = 0; i < count; i++)
        str_addf(&text, "%s%s", i ? "," : "", list[i]);
    jsonw_text(json, key, str_text(&text));
    str_done(&text);
}

void reservation_add_json(const Reservation *one, struct jsonw *json)
{
    const ReservationSpec *spec = one->spec;

    jsonw_object(json, NULL);
    join_json(json, "accounts", spec->accounts, spec->n_accounts);
    join_json(json, "allowed_partitions", spec->allowed_partitions, spec->n_allowed_partitions);
    jsonw_text(json, "burst_buffer", spec->burst_buffer);
    jsonw_text(json, "comment", spec->comment);
    jsonw_number(json, "core_count", one->core_count);
    jsonw_list(json, "core_specializations");
    jsonw_list_end(json);
    jsonw_set(json, "end_time", true, false, spec->end_us / 1000000);
    jsonw_text(json, "features", spec->features);
    jsonw_list(json, "flags");
    for (size_t i = 0; i < spec->n_flags; i++)
        jsonw_text(json, NULL, spec->flags[i]);
    jsonw_list_end(json);
    join_json(json, "groups", spec->groups, spec->n_groups);
    jsonw_text(json, "licenses", spec->licenses);
    jsonw_number(json, "max_start_delay", spec->max_start_delay_s);
    jsonw_text(json, "name", spec->name);
    jsonw_number(json, "node_count", one->node_count);
    jsonw_text(json, "node_list", one->node_names);
    jsonw_text(json, "partition", spec->partition);
    jsonw_object(json, "purge_completed");
    jsonw_set(json, "time", spec->has_purge_comp_s, false, spec->purge_comp_s);
    jsonw_object_end(json);
    join_json(json, "qos", spec->qos, spec->n_qos);
    jsonw_set(json, "start_time", true, false, spec->start_us / 1000000);
    jsonw_text(json, "tres", one->tres);
    join_json(json, "users", spec->users, spec->n_users);
    jsonw_object_end(json);
}

void license_add_json(const License *one, struct jsonw *json)
{
    jsonw_object(json, NULL);
    jsonw_text(json, "LicenseName", one->name);
    jsonw_number(json, "Total", one->total);
    jsonw_number(json, "Used", one->used);
    jsonw_number(json, "Free", one->total - MIN(one->used, one->total));
    jsonw_bool(json, "Remote", false);
    jsonw_number(json, "Reserved", one->reserved);
    jsonw_number(json, "LastConsumed", 0);
    jsonw_number(json, "LastDeficit", 0);
    jsonw_number(json, "LastUpdate", 0);
    jsonw_object_end(json);
}
