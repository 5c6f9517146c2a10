/* SPDX-License-Identifier: Apache-2.0 */
/*
 * up_conf.c - the configuration of a private cluster
 *
 * Without --conf it is made from the numbers given. With one, that file is taken as it is, and only
 * what it lacks is added: a cluster name, nodes, a partition, and config_overrides (the agents share
 * one machine, so what they find is not what the file says). A slurm.conf works too.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hostlist.h"
#include "base/limits.h"
#include "base/toml.h"
#include "cli/up.h"
#include "client/conf_file.h"
#include "proto/config.pb-c.h"
#include "sys/files.h"

static uint64_t machine_memory_mb(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / (1024 * 1024);
}

static void add_nodes(struct str *out, const struct up_options *o)
{
    unsigned cpus = o->cpus ? o->cpus : (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t memory = o->memory_mb ? o->memory_mb : machine_memory_mb();

    str_addf(out, "\n[[nodes]]\nnames = \"n[1-%u]\"\ncpus = %u\nmemory_mb = %llu\n", o->nodes, cpus,
             (unsigned long long)memory);
    if (o->gpus)
        str_addf(out, "gres = [\"gpu:%s\"]\n", o->gpus);
}

static void add_partition(struct str *out)
{
    str_add(out, "\n[[partitions]]\nname = \"debug\"\ndefault = true\nnodes = \"ALL\"\n"
                 "max_time = \"UNLIMITED\"\n");
}

/* Puts `line` behind the line that holds a table's header; text lines are counted from 1. */
static void insert_after(struct str *text, unsigned line, const char *what)
{
    struct str out = { 0 };
    const char *at = str_text(text);

    for (unsigned i = 0; i < line && at; i++) {
        const char *end = strchr(at, '\n');
        str_add_len(&out, at, end ? (size_t)(end - at) : strlen(at));
        str_add_char(&out, '\n');
        at = end ? end + 1 : NULL;
    }
    str_add(&out, what);
    str_add(&out, at);
    str_done(text);
    *text = out;
}

static int complete_toml(struct str *text, const struct up_options *o, const char *name,
                         struct err *err)
{
    struct toml *doc = NULL;

    if (toml_parse(name, str_text(text), text->len, &doc, err) < 0)
        return -(int)err->code;
    const struct toml_value *root = toml_root(doc);
    const struct toml_value *scheduler = toml_get(root, "scheduler");
    bool overrides = scheduler && toml_get(scheduler, "config_overrides");
    unsigned scheduler_line = scheduler && !overrides ? scheduler->pos.line : 0;
    bool has_nodes = toml_get(root, "nodes"), has_parts = toml_get(root, "partitions");
    bool has_name = toml_get(root, "cluster_name");

    toml_free(doc);
    if (scheduler_line)
        insert_after(text, scheduler_line, "config_overrides = true\n");
    else if (!overrides)
        str_add(text, "\n[scheduler]\nconfig_overrides = true\n");
    if (!has_nodes)
        add_nodes(text, o);
    if (!has_parts)
        add_partition(text);
    if (!has_name)
        insert_after(text, 0, "cluster_name = \"spur\"\n");
    return 0;
}

static int add_name(void *ctx, const NodeSpec *node)
{
    up_names *nodes = ctx;

    vec_push(nodes, mem_strdup(node->name));
    return 0;
}

static int node_names(const char *path, up_names *nodes, struct err *err)
{
    struct conf *conf = conf_file_load(path, err);

    if (!conf)
        return -(int)err->code;
    int code = conf_each_node(conf_config(conf), add_name, nodes, err);
    conf_free(conf);
    return code;
}

int up_conf_write(const struct up_options *o, char **path, up_names *nodes, struct err *err)
{
    struct str text = { 0 };
    int code = 0;
    bool slurm = false;

    if (o->conf) {
        code = file_read(o->conf, LIMIT_CONFIG_BYTES, &text, err);
        slurm = code == 0 && conf_text_is_slurm(str_text(&text));
    } else {
        str_add(&text, "# Made by `spur up`; edit it and run `scontrol reconfigure`.\n"
                       "cluster_name = \"spur\"\n\n[scheduler]\nconfig_overrides = true\n");
    }
    if (code == 0 && slurm)
        str_add(&text, "\nSlurmdParameters=config_overrides\n");
    else if (code == 0)
        code = complete_toml(&text, o, o->conf ? o->conf : "spur.conf", err);
    CLEANUP(freep) char *out = mem_printf("%s/%s", o->dir, slurm ? "slurm.conf" : "spur.conf");
    if (code == 0)
        code = file_write_quick(out, str_text(&text), text.len, 0644, err);
    if (code == 0)
        code = node_names(out, nodes, err);
    str_done(&text);
    if (code == 0)
        *path = TAKE(out);
    return code;
}
