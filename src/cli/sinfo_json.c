// SPDX-License-Identifier: Apache-2.0
/*
 * sinfo_json.c - groups of nodes as sinfo --json shows them
 */
#include <string.h>

#include "cli/sinfo.h"
#include "schema/jsonw.h"
#include "schema/names.h"
#include "schema/node_view.h"

static void json_range(struct jsonw *json, const char *key, struct sinfo_range range)
{
    jsonw_object(json, key);
    jsonw_number(json, "minimum", (int64_t)range.min);
    jsonw_number(json, "maximum", (int64_t)range.max);
    jsonw_object_end(json);
}

/* As the column of that name shows it; what a table calls (null) is empty here. */
static void json_shown(struct jsonw *json, const char *key, const char *column,
                       const struct sinfo_group *group, const struct field_ctx *ctx)
{
    const struct field *field = field_by_name(&sinfo_fields, column, strlen(column));
    struct field_call call = { NULL, group, ctx };
    struct str value = { 0 };

    field->write(&call, &value);
    jsonw_text(json, key, str_eq(str_text(&value), "(null)") ? "" : str_text(&value));
    str_done(&value);
}

static void json_nodes(struct jsonw *json, const struct sinfo_group *group)
{
    jsonw_object(json, "nodes");
    jsonw_number(json, "allocated", group->alloc);
    jsonw_number(json, "idle", group->idle);
    jsonw_number(json, "other", group->other);
    jsonw_number(json, "total", (int64_t)group->nodes.len);
    jsonw_list(json, "hostnames");
    jsonw_list_end(json);
    jsonw_list(json, "addresses");
    jsonw_list_end(json);
    jsonw_list(json, "nodes");
    for (size_t i = 0; i < group->nodes.len; i++)
        jsonw_text(json, NULL, node_spec(group->nodes.items[i])->name);
    jsonw_list_end(json);
    jsonw_object_end(json);
}

static void json_state(struct jsonw *json, const struct sinfo_group *group)
{
    const NodeStatus *status = group->first ? node_status(group->first) : NULL;

    jsonw_object(json, "node");
    jsonw_list(json, "state");
    if (status)
        jsonw_text(json, NULL, name_of(&node_state_names, status->state));
    for (size_t i = 0; status && i < node_flag_names.count; i++) {
        if (node_flag_names.rows[i].value & status->flags)
            jsonw_text(json, NULL, node_flag_names.rows[i].name);
    }
    jsonw_list_end(json);
    jsonw_object_end(json);
}

static void json_group(struct jsonw *json, const struct sinfo_group *group,
                       const struct field_ctx *ctx)
{
    const NodeStatus *status = group->first ? node_status(group->first) : NULL;

    jsonw_object(json, NULL);
    jsonw_number(json, "port", group->first ? node_spec(group->first)->port : 0);
    json_state(json, group);
    json_nodes(json, group);
    jsonw_object(json, "cpus");
    jsonw_number(json, "allocated", (int64_t)group->cpus_alloc);
    jsonw_number(json, "idle", (int64_t)group->cpus_idle);
    jsonw_number(json, "other", (int64_t)group->cpus_other);
    jsonw_number(json, "total",
                 (int64_t)(group->cpus_alloc + group->cpus_idle + group->cpus_other));
    jsonw_number(json, "minimum", (int64_t)group->cpus.min);
    jsonw_number(json, "maximum", (int64_t)group->cpus.max);
    json_range(json, "load", group->load);
    jsonw_object_end(json);
    json_range(json, "sockets", group->sockets);
    json_range(json, "cores", group->cores);
    json_range(json, "threads", group->threads);
    json_range(json, "disk", group->disk);
    jsonw_object(json, "memory");
    jsonw_number(json, "minimum", (int64_t)group->memory.min);
    jsonw_number(json, "maximum", (int64_t)group->memory.max);
    jsonw_object(json, "free");
    jsonw_set(json, "minimum", group->any_free, false, (int64_t)group->free_mem.min);
    jsonw_set(json, "maximum", group->any_free, false, (int64_t)group->free_mem.max);
    jsonw_object_end(json);
    jsonw_number(json, "allocated", (int64_t)group->alloc_mem_mb);
    jsonw_object_end(json);
    json_range(json, "weight", group->weight);
    jsonw_object(json, "features");
    json_shown(json, "total", "Features", group, ctx);
    json_shown(json, "active", "Features", group, ctx);
    jsonw_object_end(json);
    jsonw_object(json, "gres");
    json_shown(json, "total", "Gres", group, ctx);
    json_shown(json, "used", "GresUsed", group, ctx);
    jsonw_object_end(json);
    jsonw_text(json, "cluster", ctx->cluster);
    json_shown(json, "comment", "Comment", group, ctx);
    json_shown(json, "extra", "Extra", group, ctx);
    jsonw_object(json, "reason");
    jsonw_text(json, "description", status ? status->reason : NULL);
    jsonw_number(json, "time", status ? status->reason_us / 1000000 : 0);
    jsonw_object_end(json);
    jsonw_text(json, "reservation", status ? status->reservation : NULL);
    jsonw_text(json, "reason_set_by_user", status ? status->reason_user : NULL);
    jsonw_object(json, "partition");
    field_add_json(&partition_fields, group->partition, ctx, json);
    jsonw_object_end(json);
    jsonw_object_end(json);
}

void sinfo_add_json(struct jsonw *json, const sinfo_groups *groups, const struct field_ctx *ctx)
{
    jsonw_list(json, "sinfo");
    for (size_t i = 0; i < groups->len; i++)
        json_group(json, &groups->items[i], ctx);
    jsonw_list_end(json);
}
