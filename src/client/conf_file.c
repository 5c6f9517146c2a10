/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_file.c - the configuration from disk
 */
#include "client/conf_file.h"

#include <stdlib.h>

#include "base/limits.h"
#include "base/str.h"
#include "sys/files.h"
#include "sys/log.h"

const char *conf_file_path(const char *given)
{
    const char *env = getenv("SPUR_CONF");

    if (!str_is_empty(given))
        return given;
    return str_is_empty(env) ? CONF_FILE_DEFAULT : env;
}

static int read_disk(void *ctx, const char *path, char **text, size_t *len, struct err *err)
{
    struct str out = { 0 };
    int code = file_read(path, LIMIT_CONFIG_BYTES, &out, err);

    if (code < 0) {
        str_done(&out);
        return code;
    }
    *len = out.len;
    *text = str_take(&out);
    return 0;
}

struct conf *conf_file_read(const char *path, const struct conf_file_options *options,
                            struct err *err)
{
    struct conf_files files = { .read = read_disk };
    CLEANUP(freep) char *text = NULL;
    size_t len = 0;

    path = conf_file_path(path);
    if (options) {
        files.gres = options->gres;
        files.topology = options->topology;
        files.cgroup = options->cgroup;
    }
    if (read_disk(NULL, path, &text, &len, err) < 0)
        return NULL;
    return conf_read(path, text, len, &files);
}

struct conf *conf_file_load(const char *path, struct err *err)
{
    struct conf *conf = conf_file_read(path, NULL, err);

    if (conf && conf_verdict(conf, err) < 0) {
        conf_free(conf);
        return NULL;
    }
    return conf;
}

void conf_file_log(const struct conf *conf)
{
    const struct conf_note *note;

    for (size_t i = 0; (note = conf_note(conf, i)); i++) {
        if (note->kind == CONF_NOTE_WARNING)
            log_warn("conf.warning", "at=%s:%u text=%s", note->at.file, note->at.line, note->text);
        else if (note->kind == CONF_NOTE_KEPT)
            log_info("conf.unused", "at=%s:%u text=%s", note->at.file, note->at.line, note->text);
    }
}
