/* SPDX-License-Identifier: Apache-2.0 */
/*
 * up_conf.c - the configuration of a private cluster
 *
 * Without --conf it is made from the numbers given. With one, that file is taken as it is, and only
 * what it lacks is added: a cluster name, nodes, a partition, and config_overrides (the agents share
 * one machine, so what they find is not what the file says). A slurm.conf works too.
 */
#include <stdio.h>
#include <stdlib.h>
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

    str_addf(
        out,
        "\n[[nodes]]\nnames = \"n[1-%u]\"\nhostname = \"n[1-%u]\"\ncpus = %u\nmemory_mb = %llu\n",
        o->nodes, o->nodes, cpus, (unsigned long long)memory);
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

/* A setting that private clusters have unless their file says otherwise. */
static const struct setting {
    const char *section, *key, *line;
    bool root_only; /* only when root starts the cluster */
} settings[] = {
    { "scheduler", "config_overrides", "config_overrides = true\n", false },
    { "access", "disable_root_jobs", "disable_root_jobs = false\n", true },
};

static int add_setting(struct str *text, const struct setting *setting, const char *name,
                       struct err *err)
{
    struct toml *doc = NULL;

    if (setting->root_only && geteuid() != 0)
        return 0;
    if (toml_parse(name, str_text(text), text->len, &doc, err) < 0)
        return -(int)err->code;
    const struct toml_value *section = toml_get(toml_root(doc), setting->section);
    bool given = section && toml_get(section, setting->key);
    unsigned line = section ? section->pos.line : 0;
    toml_free(doc);
    if (given)
        return 0;
    if (line)
        insert_after(text, line, setting->line);
    else
        str_addf(text, "\n[%s]\n%s", setting->section, setting->line);
    return 0;
}

static int complete_toml(struct str *text, const struct up_options *o, const char *name,
                         struct err *err)
{
    struct toml *doc = NULL;

    if (toml_parse(name, str_text(text), text->len, &doc, err) < 0)
        return -(int)err->code;
    const struct toml_value *root = toml_root(doc);
    bool has_nodes = toml_get(root, "nodes"), has_parts = toml_get(root, "partitions");
    bool has_name = toml_get(root, "cluster_name");

    toml_free(doc);
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        if (add_setting(text, &settings[i], name, err) < 0)
            return -(int)err->code;
    }
    if (!has_nodes)
        add_nodes(text, o);
    if (!has_parts)
        add_partition(text);
    if (!has_name)
        insert_after(text, 0, "cluster_name = \"spur\"\n");
    return 0;
}

static void complete_slurm(struct str *text)
{
    if (!strcasestr(str_text(text), "config_overrides"))
        str_add(text, "\nSlurmdParameters=config_overrides\n");
    if (geteuid() == 0 && !strcasestr(str_text(text), "DisableRootJobs"))
        str_add(text, "DisableRootJobs=NO\n");
}

static int add_name(void *ctx, const NodeSpec *node)
{
    up_names *nodes = ctx;

    vec_push(nodes, mem_strdup(node->name));
    return 0;
}

int up_conf_nodes(const char *path, up_names *nodes, struct err *err)
{
    struct conf *conf = conf_file_load(path, err);

    if (!conf)
        return -(int)err->code;
    int code = conf_each_node(conf_config(conf), add_name, nodes, err);
    conf_free(conf);
    return code;
}

bool up_conf_accounts(const char *path)
{
    struct conf *conf = conf_file_load(path, NULL);
    bool on = conf && conf_local(conf)->accounting_enabled;

    conf_free(conf);
    return on;
}

char *up_conf_found(const char *dir)
{
    static const char *const names[] = { "spur.conf", "slurm.conf" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char *path = mem_printf("%s/%s", dir, names[i]);
        if (access(path, R_OK) == 0)
            return path;
        free(path);
    }
    return NULL;
}

/* The files that slurm.conf has beside it. */
static int copy_beside(const struct up_options *o, struct err *err)
{
    static const char *const names[] = { "gres.conf", "topology.conf", "cgroup.conf",
                                         "job_container.conf" };
    const char *slash = strrchr(o->conf, '/');
    int len = slash ? (int)(slash - o->conf) + 1 : 0, code = 0;

    for (size_t i = 0; i < ARRAY_LEN(names) && code == 0; i++) {
        CLEANUP(freep) char *from = mem_printf("%.*s%s", len, o->conf, names[i]);
        CLEANUP(freep) char *to = mem_printf("%s/%s", o->dir, names[i]);
        CLEANUP(str_done) struct str text = { 0 };
        if (access(from, F_OK) < 0)
            continue;
        code = file_read(from, LIMIT_CONFIG_BYTES, &text, err);
        if (code == 0)
            code = file_write(to, str_text(&text), text.len, 0644, err);
    }
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
                       "cluster_name = \"spur\"\n");
    }
    if (code == 0 && slurm)
        code = copy_beside(o, err);
    if (code == 0 && slurm)
        complete_slurm(&text);
    else if (code == 0)
        code = complete_toml(&text, o, o->conf ? o->conf : "spur.conf", err);
    CLEANUP(freep) char *out = mem_printf("%s/%s", o->dir, slurm ? "slurm.conf" : "spur.conf");
    if (code == 0)
        code = file_write(out, str_text(&text), text.len, 0644, err);
    if (code == 0)
        code = up_conf_nodes(out, nodes, err);
    str_done(&text);
    if (code == 0)
        *path = TAKE(out);
    return code;
}

int up_conf_add_hosts(const char *path, const struct up_options *o, struct err *err)
{
    struct str text = { 0 }, line = { 0 };
    int code = file_read(path, LIMIT_CONFIG_BYTES, &text, err);

    if (code == 0 && conf_text_is_slurm(str_text(&text))) {
        for (unsigned i = 0; i < o->controllers; i++)
            str_addf(&text, "SlurmctldHost=ctl%u(127.0.0.1:%u)\n", i + 1, up_port(o, i));
    } else if (code == 0) {
        str_add(&line, "hosts = [");
        for (unsigned i = 0; i < o->controllers; i++)
            str_addf(&line, "%s\"ctl%u(127.0.0.1:%u)\"", i ? ", " : "", i + 1, up_port(o, i));
        str_add(&line, "]\n");
        struct setting setting = { "controller", "hosts", str_text(&line), false };
        code = add_setting(&text, &setting, path, err);
    }
    if (code == 0)
        code = file_write(path, str_text(&text), text.len, 0644, err);
    str_done(&text);
    str_done(&line);
    return code;
}
