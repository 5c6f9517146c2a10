/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slurm_conf.c - where the controllers of a slurm.conf are
 */
#include "sys/slurm_conf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "base/vec.h"
#include "sys/host.h"

enum { DEPTH_MOST = 8 }; /* of files that include each other */

struct scan {
    VEC(char *) hosts; /* "c1" or "c1(10.0.0.1)" */
    char *port;
    unsigned depth;
};

static int scan_file(struct scan *scan, const char *path, struct err *err);

static void keep_port(struct scan *scan, const char *value)
{
    free(scan->port);
    scan->port = mem_strndup(value, strcspn(value, "-"));
}

/* "include FILE": beside the file that names it, when it is not absolute. */
static int include(struct scan *scan, const char *from, const char *name, struct err *err)
{
    const char *slash = strrchr(from, '/');
    CLEANUP(freep)
    char *path = name[0] == '/' || !slash ? mem_strdup(name)
                                          : mem_printf("%.*s/%s", (int)(slash - from), from, name);

    if (scan->depth >= DEPTH_MOST)
        return err_set(err, ERR_CONFIG, "%s: files include each other more than %d deep", from,
                       DEPTH_MOST);
    return scan_file(scan, path, err);
}

static int scan_line(struct scan *scan, const char *path, char *line, struct err *err)
{
    line[strcspn(line, "#\r\n")] = '\0';
    char *key = str_trim(line);

    if (strncasecmp(key, "include", 7) == 0 && key[strcspn(key, " \t=")] != '=')
        return include(scan, path, str_trim(key + 7), err);
    char *equals = strchr(key, '=');
    if (!equals)
        return 0;
    *equals = '\0';
    char *value = str_trim(equals + 1);
    key = str_trim(key);
    if (str_ieq(key, "SlurmctldPort"))
        keep_port(scan, value);
    else if (str_ieq(key, "SlurmctldHost") || str_ieq(key, "ControlMachine") ||
             str_ieq(key, "BackupController"))
        vec_push(&scan->hosts, mem_strdup(value));
    return 0;
}

static int scan_file(struct scan *scan, const char *path, struct err *err)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    int code = 0;

    if (!file)
        return err_errno(err, errno, "cannot read '%s'", path);
    scan->depth++;
    while (code == 0 && getline(&line, &room, file) >= 0)
        code = scan_line(scan, path, line, err);
    scan->depth--;
    free(line);
    fclose(file);
    return code;
}

static void add_host(const struct scan *scan, const char *text, struct str *out)
{
    char host[HOST_NAME_BYTES], short_host[HOST_NAME_BYTES];
    size_t len = strcspn(text, "(");
    CLEANUP(freep) char *name = mem_strndup(text, len);

    host_name(host);
    host_short(short_host);
    if (out->len)
        str_add_char(out, ',');
    if (str_eq(name, host) || str_eq(name, short_host))
        str_add(out, "localhost");
    else if (text[len] == '(')
        str_addf(out, "%.*s", (int)strcspn(text + len + 1, ")"), text + len + 1);
    else
        str_add(out, name);
    str_addf(out, ":%s", scan->port ? scan->port : "6817");
}

int slurm_conf_controllers(const char *path, struct str *out, struct err *err)
{
    struct scan scan = { 0 };
    struct str list = { 0 };
    int code = scan_file(&scan, path, err);

    for (size_t i = 0; code == 0 && i < scan.hosts.len; i++)
        add_host(&scan, scan.hosts.items[i], &list);
    if (code == 0 && !list.len)
        code = err_set(err, ERR_CONFIG, "'%s' names no SlurmctldHost", path);
    if (code == 0)
        str_add(out, str_text(&list));
    str_done(&list);
    vec_each (char *, at, &scan.hosts)
        free(*at);
    vec_done(&scan.hosts);
    free(scan.port);
    return code;
}
