/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_file.h - the configuration from disk, the same for daemons and commands
 *
 * The file is spur.conf (TOML) or a slurm.conf as it is; which of them, its content says. What reads
 * it is schema/conf.h; this adds the disk.
 */
#ifndef CLIENT_CONF_FILE_H
#define CLIENT_CONF_FILE_H

#include "base/err.h"
#include "schema/conf.h"

#define CONF_FILE_DEFAULT "/etc/spur/spur.conf"

/* `given`, or $SPUR_CONF, or /etc/spur/spur.conf. */
const char *conf_file_path(const char *given);

/* Files beside a slurm.conf, when they are not beside it. */
struct conf_file_options {
    const char *gres, *topology, *cgroup;
};

/*
 * Reads what conf_file_path(path) names. NULL when the file itself cannot be read; with mistakes in
 * it the result has them as notes. `options` may be NULL.
 */
struct conf *conf_file_read(const char *path, const struct conf_file_options *options,
                            struct err *err);

/* The same, but mistakes too are NULL and ERR_CONFIG, with the first of them as text. */
struct conf *conf_file_load(const char *path, struct err *err);

/* One log line per warning (conf.warning) and per key without effect (conf.unused). */
void conf_file_log(const struct conf *conf);

#endif
