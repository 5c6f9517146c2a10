/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_keys.h - every setting, one row each
 *
 * The TOML reader, the slurm.conf reader, `spur config show`, `spur config import` and
 * docs/configuration.md all read these rows. A new setting is a field in proto/config.proto, a row
 * here, and the code that gives it meaning.
 */
#ifndef SCHEMA_CONF_KEYS_H
#define SCHEMA_CONF_KEYS_H

#include <protobuf-c/protobuf-c.h>

#include "base/util.h"

enum conf_type {
    CONF_TEXT,    /* any text on one line */
    CONF_NAME,    /* letters, digits and _ - . + @ : / */
    CONF_PATH,    /* absolute; %n and the like are for whoever uses it */
    CONF_BOOL,    /* true or false; yes, no, 1 and 0 in slurm.conf */
    CONF_COUNT,   /* a whole number from min to max */
    CONF_SECONDS, /* a number of seconds, or H:M:S */
    CONF_MINUTES, /* a number of minutes, or H:M:S */
    CONF_TIME,    /* Slurm's time limits: minutes, M:S, H:M:S, D-H, D-H:M:S; kept in seconds */
    CONF_DAYS,    /* a number of days, or a time as above; kept in seconds */
    CONF_MB,      /* a number of MB, or 4G and the like */
    CONF_HOSTS,   /* a host list, node[001-008] */
    CONF_WORD,    /* one of words */
    CONF_WORDS,   /* several of words */
    CONF_LIST,    /* several texts */
    CONF_COUNTS,  /* several whole numbers */
    CONF_TRES,    /* cpu=1.0,gres/gpu=3 */
    CONF_GRES,    /* gpu:mi300x:8 */
    CONF_ADDR,    /* host, host:port, http://host:port */
    CONF_ADDRS,   /* address:port, [::]:6817; several */
};

enum conf_flag {
    CONF_LOCAL = 1,     /* in ConfLocal: never leaves the process that read it */
    CONF_REQUIRED = 2,  /* its section is nothing without it */
    CONF_UNLIMITED = 4, /* UNLIMITED is a value too */
    CONF_SECRET = 16,   /* may hold a password, which `config show` does not print */
    CONF_PARENT = 64,   /* "parent" is a value too: the largest there is */
    CONF_LATER = 32,    /* nothing acts on it yet; whoever gives it is told */
};

struct conf_key {
    const char *name;
    const char *field; /* of the section's message, Config or ConfLocal */
    enum conf_type type;
    unsigned flags;
    const char *def; /* in the notation of the file; NULL: unset */
    int64_t min, max;
    const char *const *words; /* ended by NULL */
    const char *const
        *later;        /* those of them that nothing acts on yet: whoever gives one is told */
    const char *kind;  /* what Slurm writes before it: "sched" for sched/backfill */
    const char *slurm; /* what slurm.conf calls it, comma list, newest name first */
    const char *help;
    const char *instead; /* of CONF_LATER: what is done instead, and nothing will ever act on it */
};

struct conf_section {
    const char *name; /* "" is the top of the file */
    const char *list; /* the field of Config with one message per [[name]]; NULL for [name] */
    const ProtobufCMessageDescriptor *message; /* of an element of `list` */
    const struct conf_key *keys;               /* ended by a row without name */
    const char *help;
};

extern const struct conf_section conf_sections[];
extern const size_t conf_section_count;

size_t conf_key_count(const struct conf_section *section);
const struct conf_section *conf_section_find(const char *name);
/* NULL when the section has no such key. */
const struct conf_key *conf_key_find(const struct conf_section *section, const char *name);
/* The descriptor of the field that a key fills. Never NULL: a test walks all rows. */
const ProtobufCFieldDescriptor *conf_key_field(const struct conf_section *section,
                                               const struct conf_key *key);

/* Fields that no key fills, and why. */
struct conf_skip {
    const char *message, *field, *why;
};
extern const struct conf_skip conf_skips[];
extern const size_t conf_skip_count;

/* What a value of the key looks like, in words: "a whole number from 1 to 65535". */
struct str;
void conf_key_expects(const struct conf_key *key, struct str *out);

/* The tables of the files conf_keys_*.c. */
extern const struct conf_key conf_keys_top[], conf_keys_controller[], conf_keys_agent[],
    conf_keys_scheduler[], conf_keys_priority[], conf_keys_preemption[], conf_keys_jobs[],
    conf_keys_hooks[], conf_keys_private[], conf_keys_access[], conf_keys_accounting[],
    conf_keys_cgroup[], conf_keys_topology[], conf_keys_update[], conf_keys_partitions[],
    conf_keys_nodes[], conf_keys_nodesets[], conf_keys_gres[], conf_keys_switches[],
    conf_keys_blocks[], conf_keys_down[], conf_keys_accounts[], conf_keys_users[], conf_keys_qos[];

#endif
