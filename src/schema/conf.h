/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf.h - the configuration: from the text of a file to validated messages, and back
 *
 * One reader for two notations. TOML (spur.conf) and Slurm's slurm.conf, with the files beside it,
 * fill the same messages by the same table (conf_keys.h): `Config`, which the cluster agrees on,
 * and `ConfLocal`, which belongs to one process. Reading never stops at the first mistake: a note
 * is kept for each, with file and line, so that a person sees all of them at once.
 *
 *     CLEANUP(conf_freep) struct conf *conf = conf_read("spur.conf", text, len, &files);
 *     if (conf_verdict(conf, err) < 0)
 *         return -1;                         "spur.conf:7: unknown key 'cpu' in [[nodes]]; ..."
 *     use(conf_config(conf)->cluster_name);
 *
 * Pure: other files (Include, gres.conf) come through a callback. client/conf_file.h has the one
 * that reads from disk, and is what programs call.
 */
#ifndef SCHEMA_CONF_H
#define SCHEMA_CONF_H

#include "base/err.h"
#include "base/hostlist.h"
#include "base/str.h"
#include "proto/config.pb-c.h"
#include "schema/conf_keys.h"

struct conf;

/*
 * How the reader gets at other files. `read` gives the whole text of `path` (the caller frees it),
 * or fails with ERR_NOT_FOUND when there is none, which is no mistake for gres.conf and its kind.
 * Paths that the file gives are relative to the directory of the file itself.
 */
struct conf_files {
    int (*read)(void *ctx, const char *path, char **text, size_t *len, struct err *err);
    void *ctx;
    /* Instead of the files beside slurm.conf; NULL looks beside it. */
    const char *gres, *topology, *cgroup;
};

/* Reads `len` bytes of `text`, called `name` in messages. Never NULL. `files` may be NULL: no others. */
struct conf *conf_read(const char *name, const char *text, size_t len,
                       const struct conf_files *files);
void conf_free(struct conf *conf);
void conf_freep(struct conf **conf);

/* A configuration of nothing but defaults, for programs that run without a file. */
struct conf *conf_defaults(void);

/* 0, or -ERR_CONFIG with the first mistake and how many more there are. */
int conf_verdict(const struct conf *conf, struct err *err);

/* Valid when the verdict is; they live as long as conf does. */
const Config *conf_config(const struct conf *conf);
const ConfLocal *conf_local(const struct conf *conf);
bool conf_is_slurm(const struct conf *conf); /* the file was in Slurm's notation */

/* Which notation a text is in, as conf_read() decides it. */
bool conf_text_is_slurm(const char *text);

enum conf_note_kind {
    CONF_NOTE_ERROR,   /* the configuration cannot be used */
    CONF_NOTE_WARNING, /* it can, but this is probably not what was meant */
    CONF_NOTE_KEPT,    /* a key that changes nothing here, with the reason */
};

/* Where something was said. Line 0: nowhere, it is a default. */
struct conf_origin {
    const char *file;
    unsigned line;
};

struct conf_note {
    enum conf_note_kind kind;
    struct conf_origin at;
    const char *text;
};

size_t conf_note_count(const struct conf *conf, enum conf_note_kind kind);
/* All notes in the order of the file; index from 0, NULL behind the last. */
const struct conf_note *conf_note(const struct conf *conf, size_t index);
/* "file:line: text" */
void conf_note_format(const struct conf_note *note, struct str *out);

/* One section of the file as it was read: [jobs], or one of several [[nodes]]. */
struct conf_item {
    const struct conf_section *section;
    ProtobufCMessage *message;   /* of a [[section]]; NULL for the others */
    struct conf_origin at;       /* of its header */
    struct conf_origin *origins; /* one per key of the section */
};

/* Sections without an own message come first, in the order of the table, whether given or not. */
size_t conf_item_count(const struct conf *conf);
const struct conf_item *conf_item(const struct conf *conf, size_t index);

/* The value of a key in an item as TOML (and JSON) writes it: 30, "gpu", ["a", "b"]. False: unset. */
bool conf_value_format(const struct conf *conf, const struct conf_item *item,
                       const struct conf_key *key, struct str *out);

/* The configuration as TOML: what was given, not the defaults. Reading it gives the same messages. */
void conf_write_toml(const struct conf *conf, struct str *out);

/*
 * `text` of a partition's nodes, a reservation or an update: hosts, node sets and ALL, in any mix.
 * Appends to `out`. ERR_INVALID_NODE_NAME names what no node or set is called.
 */
int conf_hosts(const Config *config, const char *text, struct hostlist *out, struct err *err);
/* The same without a look at all nodes: there may be names of none. For a text that was looked at before. */
int conf_hosts_named(const Config *config, const char *text, struct hostlist *out, struct err *err);

/*
 * Calls `each` for every node with a NodeSpec of its own: one name, its address, the devices of its
 * resources, the state that a [[down]] section gives it. The spec is valid during the call. Stops
 * when `each` returns other than 0, and returns that.
 */
int conf_each_node(const Config *config, int (*each)(void *ctx, const NodeSpec *node), void *ctx,
                   struct err *err);

/*
 * A copy with one NodeSpec per node, and partitions whose nodes are plain host lists: what is given to
 * the log. The caller frees it with config__free_unpacked(). From any thread.
 */
int conf_expand(const struct conf *conf, Config **out, struct err *err);

/* "gpu:mi300x:8", "gpu:2", "craynetwork": into `out`, whose strings are taken from `arena`. */
int conf_gres_parse(const char *text, struct arena *arena, GresInventory *out, struct err *err);

#endif
