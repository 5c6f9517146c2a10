// SPDX-License-Identifier: Apache-2.0
/*
 * control_config.c - scontrol show config: the configuration under Slurm's names
 *
 * The rows of schema/conf_keys.h say what Slurm calls each setting; keys of a slurm.conf that change
 * nothing here are shown as they were.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "cli/control.h"
#include "schema/conf_keys.h"
#include "schema/message.h"

typedef VEC(char *) line_list;

static void add_unit(struct str *out, const struct conf_key *key, int64_t value)
{
    if ((key->flags & CONF_UNLIMITED) && value < 0)
        str_add(out, "UNLIMITED");
    else if (key->type == CONF_BOOL)
        str_add(out, value ? "Yes" : "No");
    else if (key->type == CONF_SECONDS)
        str_addf(out, "%lld sec", (long long)value);
    else if (key->type == CONF_MINUTES)
        str_addf(out, "%lld min", (long long)value);
    else
        str_add_i64(out, value);
}

static void add_value(struct str *out, const void *message, const ProtobufCFieldDescriptor *field,
                      const struct conf_key *key)
{
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        size_t count = *(const size_t *)((const char *)message + field->quantifier_offset);
        char *const *items = *(char *const *const *)((const char *)message + field->offset);

        if (field->type != PROTOBUF_C_TYPE_STRING || !count) {
            str_add(out, "(null)");
            return;
        }
        for (size_t i = 0; i < count; i++)
            str_addf(out, "%s%s", i ? "," : "", items[i]);
        return;
    }
    if (!msg_has(message, field)) {
        str_add(out, key->def ? key->def : "(null)");
        return;
    }
    if (field->type == PROTOBUF_C_TYPE_STRING)
        str_add(out, key->flags & CONF_SECRET ? "(hidden)" : msg_text(message, field));
    else
        add_unit(out, key, msg_number(message, field));
}

static void push_line(line_list *lines, const char *name, size_t len, const char *value)
{
    struct str line = { 0 };

    str_addf(&line, "%-23.*s = ", (int)len, name);
    str_add_visible(&line, value, strlen(value));
    vec_push(lines, str_take(&line));
}

/* "affinity,cgroup" as "task/affinity,task/cgroup". */
static void add_kinds(struct str *value, const char *kind)
{
    struct str out = { 0 };
    struct span rest = { str_text(value), value->len };

    while (rest.len) {
        size_t len = 0;
        while (len < rest.len && rest.ptr[len] != ',')
            len++;
        str_addf(&out, "%s%s/%.*s", out.len ? "," : "", kind, (int)len, rest.ptr);
        len += len < rest.len;
        rest = (struct span){ rest.ptr + len, rest.len - len };
    }
    str_done(value);
    *value = out;
}

static void push_section(line_list *lines, const struct conf_section *section,
                         const GetConfigReply *reply)
{
    for (const struct conf_key *key = section->keys; key->name; key++) {
        const ProtobufCFieldDescriptor *field = conf_key_field(section, key);
        const void *message =
            key->flags & CONF_LOCAL ? (const void *)reply->local : (const void *)reply->config;
        struct str value = { 0 };

        if (!key->slurm || !message)
            continue;
        add_value(&value, message, field, key);
        if (key->kind && *str_text(&value) != '(')
            add_kinds(&value, key->kind);
        push_line(lines, key->slurm, strcspn(key->slurm, ","), str_text(&value));
        str_done(&value);
    }
}

static int by_text(const void *a, const void *b)
{
    return strcasecmp(*(char *const *)a, *(char *const *)b);
}

static bool has_key(const line_list *lines, const char *key)
{
    size_t len = strlen(key);

    for (size_t i = 0; i < lines->len; i++) {
        if (strncasecmp(lines->items[i], key, len) == 0 && lines->items[i][len] == ' ')
            return true;
    }
    return false;
}

int control_show_config(struct control *control)
{
    GetConfigRequest request = GET_CONFIG_REQUEST__INIT;
    GetConfigReply *reply;
    struct field_ctx ctx = cli_field_ctx(0);
    struct err err = { 0 };
    struct str out = { 0 }, text = { 0 };
    line_list lines = { 0 };

    if (cli_call(&control->cli, "GetConfig", &request.base, &get_config_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) < 0)
        return cli_load_error(&control->cli, "slurm_load_ctl_conf error:", &err);
    for (size_t i = 0; i < conf_section_count; i++) {
        if (!conf_sections[i].list)
            push_section(&lines, &conf_sections[i], reply);
    }
    for (size_t i = 0; reply->config && i < reply->config->n_kept; i++) {
        const ConfKept *kept = reply->config->kept[i];

        if (kept->key && !has_key(&lines, kept->key))
            push_line(&lines, kept->key, strlen(kept->key), kept->value ? kept->value : "(null)");
    }
    str_add_u64(&text, reply->next_job_id);
    push_line(&lines, "NEXT_JOB_ID", 11, str_text(&text));
    str_clear(&text);
    field_add_moment(&text, &ctx, reply->boot_us);
    push_line(&lines, "BOOT_TIME", 9, str_text(&text));
    for (size_t i = 0; reply->local && i < reply->local->n_hosts; i++) {
        char key[32];
        int len = snprintf(key, sizeof(key), "SlurmctldHost[%zu]", i);
        push_line(&lines, key, (size_t)len, reply->local->hosts[i]);
    }
    push_line(&lines, "SLURM_VERSION", 13, reply->version ? reply->version : "(null)");
    qsort(lines.items, lines.len, sizeof(lines.items[0]), by_text);
    str_add(&out, "Configuration data as of ");
    field_add_moment(&out, &ctx, ctx.now_us);
    str_add_char(&out, '\n');
    vec_each (char *, line, &lines) {
        str_addf(&out, "%s\n", *line);
        free(*line);
    }
    cli_flush(&out);
    vec_done(&lines);
    str_done(&text);
    str_done(&out);
    return 0;
}
