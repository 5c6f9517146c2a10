/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slurmconf.h - what is known of Slurm's configuration keys
 *
 * A key of Slurm is either the name of one of our settings (the .slurm of a row in conf_keys*.c), or
 * has a row here: with a function, when it becomes a setting in another shape, or with the reason
 * why it changes nothing. Together they are all keys of 22.05 and 26.11; a test compares.
 *
 * slurmconf_lex.c    a file to lines of key=value
 * slurmconf.c        files, Include, global keys
 * slurmconf_lines.c  NodeName, PartitionName and the other lines; gres.conf, topology.conf
 * slurmconf_set.c    keys and words that take another shape here
 * slurmconf_keys.c   the rows
 * slurmconf_words.c  words inside SchedulerParameters and its kind
 */
#ifndef SCHEMA_SLURMCONF_H
#define SCHEMA_SLURMCONF_H

#include "schema/conf/conf_priv.h"

enum slurmconf_scope {
    SLURMCONF_GLOBAL,
    SLURMCONF_NODE,
    SLURMCONF_PARTITION,
    SLURMCONF_NODESET,
    SLURMCONF_DOWN,
    SLURMCONF_FRONTEND,
    SLURMCONF_POWER,
    SLURMCONF_GRES,     /* gres.conf */
    SLURMCONF_TOPOLOGY, /* topology.conf */
    SLURMCONF_CGROUP,   /* cgroup.conf */
    SLURMCONF_PRIVATE,  /* job_container.conf */
    SLURMCONF_SCOPES
};

/* The reader of one slurm.conf and the files beside it. */
struct slurmconf;

typedef void slurmconf_set_fn(struct slurmconf *sc, struct conf_source source, const char *value);

struct slurmconf_key {
    enum slurmconf_scope scope;
    const char *name;
    const char *to;        /* what it becomes, for people: "controller.listen_addr" */
    slurmconf_set_fn *set; /* how; NULL when it changes nothing here */
    const char *why;       /* then: the reason */
    bool lacks;            /* then: Slurm does something by it that is not done here */
    bool keep;             /* a function that uses some of it: shown by scontrol show config too */
};
extern const struct slurmconf_key slurmconf_keys[];
extern const size_t slurmconf_key_count;

struct slurmconf_match {
    const struct conf_section *section; /* a setting of ours: its section and row, */
    const struct conf_key *key;
    const struct slurmconf_key *row; /* or a row of the table above */
    char name[48];                   /* as Slurm spells it */
};

/* Case is ignored, as Slurm does. */
bool slurmconf_find(enum slurmconf_scope scope, const char *name, struct slurmconf_match *out);
/* "jobs.kill_wait", "[[nodes]] cpus", or NULL when it changes nothing here. */
const char *slurmconf_target(const struct slurmconf_match *match, struct arena *arena);
/* "; did you mean 'X'?" among the keys of a scope. */
const char *slurmconf_guess(enum slurmconf_scope scope, const char *name, struct arena *arena);
/* Puts a key into Config.kept, once. */
void slurmconf_keep(struct conf *conf, const char *key, const char *value);

/* One word of a list-valued key: what it becomes, or why it changes nothing. */
struct slurmconf_word {
    const char *key, *word; /* "max_script_size=" with '=' when it has a value */
    const char *to;         /* "jobs.max_script_bytes" */
    const char *why;
    bool lacks;
};
extern const struct slurmconf_word slurmconf_words[];
extern const size_t slurmconf_word_count;

/* A line of key=value, or one Include. */
struct slurmconf_pair {
    const char *key, *value;
};
struct slurmconf_line {
    struct conf_origin at;
    const char *include; /* its path, when it is one */
    VEC(struct slurmconf_pair) pairs;
};

/* Lines of a file, comments and continuations taken out. Strings are in `arena`. */
struct slurmconf_lexer {
    const char *p, *end, *file;
    unsigned line;
    struct arena *arena;
};
/* 1 and a line, 0 at the end, or -1 and what is wrong with the line in `err`. Frees line->pairs first. */
int slurmconf_next(struct slurmconf_lexer *lexer, struct slurmconf_line *line, struct err *err);

/* DEFAULT lines of nodes and partitions. */
struct slurmconf_default {
    enum slurmconf_scope scope;
    const char *key, *value;
};

struct slurmconf {
    struct conf *conf;
    const char *dir; /* of slurm.conf */
    unsigned depth, includes;
    VEC(struct slurmconf_default) defaults;
    struct map *seen;  /* global keys, to say when one is given again */
    struct map *noted; /* rows that were complained about: once is enough */
    const char *ctld_port, *dbd_host, *dbd_port, *dbd_type;
    struct conf_origin ctld_port_at, dbd_at;
    VEC(const char *) hosts, addrs; /* controllers */
    bool private_dirs;              /* job_container.conf counts */
    struct conf_origin hosts_at;
    /* of the line being read */
    struct conf_item *item;
    const struct slurmconf_line *line;
};

/* slurmconf_set.c: what the rows call */
slurmconf_set_fn slurmconf_set_auth_type, slurmconf_set_backup, slurmconf_set_backup_addr,
    slurmconf_set_control, slurmconf_set_control_addr, slurmconf_set_dbd_host,
    slurmconf_set_dbd_port, slurmconf_set_dbd_type, slurmconf_set_decay, slurmconf_set_enforce,
    slurmconf_set_host, slurmconf_set_job_defaults, slurmconf_set_ctld_debug,
    slurmconf_set_node_debug, slurmconf_set_port, slurmconf_set_select_type, slurmconf_set_topology,
    slurmconf_set_words, slurmconf_set_exclusive, slurmconf_set_sockets_per_board,
    slurmconf_set_block_sizes, slurmconf_set_container_type, slurmconf_set_node_state;

/* Sets "section.key" or a key of the current line's item from text in Slurm's notation. */
int slurmconf_put(struct slurmconf *sc, const char *to, struct conf_source source,
                  const char *value);
int slurmconf_put_key(struct slurmconf *sc, struct conf_item *item, const struct conf_key *key,
                      struct conf_source source, const char *value);
/* Controllers, listen address, accounting: what several keys say together. */
void slurmconf_settle(struct slurmconf *sc);

/* slurmconf_lines.c */
void slurmconf_read_line(struct slurmconf *sc, enum slurmconf_scope scope,
                         const struct slurmconf_line *line);
/* The row changes nothing: says so, once for each row. */
void slurmconf_note_row(struct slurmconf *sc, const struct slurmconf_key *row, const char *value,
                        struct conf_origin at);
void slurmconf_pair(struct slurmconf *sc, enum slurmconf_scope scope, struct conf_item *item,
                    const struct slurmconf_pair *pair, struct conf_origin at);

#endif
