/* SPDX-License-Identifier: Apache-2.0 */
/*
 * option.h - options of commands: one row each, read by every walk
 *
 * A row says what the option is called, what it takes, which environment variable stands for it,
 * how its value is read and where it goes. The walks over rows read argv, the environment and
 * `#SBATCH` lines (script.h) and write help and a man page (option_help.c); completion reads them too.
 *
 *     { .name = "time", .key = 't', .arg = "TIME", .commands = CMD_JOB,
 *       .env = { "SBATCH_TIMELIMIT", "SALLOC_TIMELIMIT", "SLURM_TIMELIMIT" },
 *       .read = option_minutes, .into = SPEC(time_limit_s),
 *       .help = "Limit on the run time of the allocation." },
 *
 * (1) An accepted option acts. A row with `.later` refuses with that reason.
 * (2) Reading never prints. What is wrong is in `struct err`, and its code says how Slurm's commands
 *     end: ERR_UNKNOWN_OPTION "Try ... --help" and usage_exit, ERR_RANGE and ERR_UNSUPPORTED
 *     "error:" and 1, ERR_SYNTAX "fatal:" and 1, everything else "error:" and usage_exit. Lines
 *     before the last of err->text are printed as they are.
 */
#ifndef SCHEMA_OPTION_H
#define SCHEMA_OPTION_H

#include <protobuf-c/protobuf-c.h>

#include "base/err.h"
#include "base/str.h"

/* Where a value goes. */
enum option_kind {
    INTO_NOTHING,
    INTO_MESSAGE, /* a field of the protobuf message that the target's first member points to */
    INTO_BOOL,    /* members of the target struct */
    INTO_TEXT,    /* const char *, borrowed from argv, environment or the script's arena */
    INTO_U32,
    INTO_I64,
};
struct option_into {
    enum option_kind kind;
    size_t offset;
    const ProtobufCMessageDescriptor *type; /* of INTO_MESSAGE */
};
#define OPTION_MESSAGE(message, member, descriptor)            \
    {                                                          \
        INTO_MESSAGE, offsetof(message, member), &(descriptor) \
    }
#define OPTION_BOOL(type, member)         \
    {                                     \
        INTO_BOOL, offsetof(type, member) \
    }
#define OPTION_TEXT(type, member)         \
    {                                     \
        INTO_TEXT, offsetof(type, member) \
    }
#define OPTION_U32(type, member)         \
    {                                    \
        INTO_U32, offsetof(type, member) \
    }
#define OPTION_I64(type, member)         \
    {                                    \
        INTO_I64, offsetof(type, member) \
    }

/* From where an option came; a later one wins over an earlier one. */
enum option_level { LEVEL_NONE, LEVEL_SCRIPT, LEVEL_ENVIRONMENT, LEVEL_ARGV };

enum { OPTION_COMMANDS = 3 }; /* commands that share a table */

struct option_call;
typedef int option_reader(const struct option_call *call, const char *value, struct err *err);

struct option {
    const char *name;  /* long name */
    int key;           /* short name, or 0 */
    const char *arg;   /* what its value is called; "[N]" may be left out; NULL: no value */
    unsigned commands; /* bits of those that have it; 0: every one of the set */
    const char
        *env[OPTION_COMMANDS]; /* by bit number of the command; "A,B": the first that is set */
    option_reader *read;
    struct option_into into;
    int64_t value;       /* what a flag sets, or a reader's own number */
    const char *later;   /* not supported yet, and why */
    const char *update;  /* keys of scontrol update: "JobName,Name" */
    const char *help;    /* NULL: an alias, left out of help */
    const char *heading; /* of help, behind all others; NULL: as its name says */
};

/* More that there is to say of a command, behind its options. */
struct option_section {
    const char *title; /* "EXIT STATUS"; NULL ends a list */
    const char *text;
};

struct option_set {
    const char *command; /* "sbatch": before every message */
    const char *usage;   /* "[OPTIONS...] SCRIPT [ARGUMENTS...]" */
    const char *
        operands; /* of Slurm's commands: what follows the options in --help and --usage; NULL: `usage` says it all */
    const char *about;         /* one sentence */
    const char *first_heading; /* of help: "Parallel run options:"; NULL: "Options:" */
    unsigned bit;              /* of the command in .commands */
    int usage_exit;            /* exit code of a wrong option: 255 for sbatch, 1 for most */
    const struct option *rows;
    size_t count;
    const struct option_section *sections; /* NULL: none */
    /* told of every option that was read, when not NULL */
    void (*seen)(const struct option_call *call, const char *value);
};

/* What readers may know of the world. */
struct option_ctx {
    int64_t now_us;
    char *const *env; /* NAME=value, ended by NULL */
};

struct option_call {
    const struct option_set *set;
    const struct option *row;
    const struct option_ctx *ctx;
    void *target;
    enum option_level level;
};

enum option_mode {
    OPTION_STOP,    /* the first operand ends the options: sbatch, srun, scontrol */
    OPTION_PERMUTE, /* options may follow operands: scancel ID --signal USR2 */
};

/*
 * Reads argv[1] ... by getopt_long()'s rules: unambiguous prefixes of long names, clusters of short
 * flags, "--name=value" and "--name value", "-kvalue" and "-k value", "--" ends them. `operands`
 * has room for argc pointers and gets what is left, in order.
 */
int option_read_argv(const struct option_set *set, const struct option_ctx *ctx, void *target,
                     int argc, char **argv, enum option_mode mode, char **operands,
                     int *operand_count, struct err *err);

/* The same for a list of words without a command name, such as those of a script's lines. */
int option_read_words(const struct option_set *set, const struct option_ctx *ctx, void *target,
                      enum option_level level, int count, char **words, enum option_mode mode,
                      char **operands, int *operand_count, struct err *err);

/* Reads the variables of ctx->env that rows name. */
int option_read_env(const struct option_set *set, const struct option_ctx *ctx, void *target,
                    struct err *err);

/* Reads one option by its long name; what scontrol update and REST use. */
int option_read_one(const struct option_set *set, const struct option_ctx *ctx, void *target,
                    enum option_level level, const char *name, const char *value, struct err *err);

/* The row with this long name, or with this update key (case ignored); NULL when there is none. */
const struct option *option_find(const struct option_set *set, const char *name);
const struct option *option_find_update(const struct option_set *set, const char *key, size_t len);
int option_call_row(const struct option_set *set, const struct option_ctx *ctx, void *target,
                    const struct option *row, const char *value, struct err *err);
/* Value of a variable in ctx->env, or NULL. */
const char *option_getenv(const struct option_ctx *ctx, const char *name);

/* For readers: where the value goes. */
void option_set_number(const struct option_call *call, int64_t value);
void option_set_text(const struct option_call *call, const char *text);

/* Readers that any table may use. */
option_reader option_flag;     /* sets .value, or 1 when that is 0 */
option_reader option_off;      /* sets 0 */
option_reader option_text;     /* as it is, at most LIMIT_COMMENT_BYTES */
option_reader option_increase; /* one more: -vv */
option_reader option_number;   /* 0 ... 2^31-1 */
option_reader option_positive; /* 1 ... 2^31-1 */
option_reader option_duration; /* a time limit, in seconds; -1 is UNLIMITED */
option_reader option_ignored;  /* accepted because it asks for what we do anyway */

/* "Invalid --time specification": Slurm's words for most bad values. */
int option_invalid(const struct option_call *call, struct err *err);

/* Help and friends; every one of them walks the rows. */
void option_add_help(const struct option_set *set, struct str *out);
void option_add_usage(const struct option_set *set, struct str *out);
void option_add_man(const struct option_set *set, struct str *out);

/* Whether a row belongs to the command of the set. */
static inline bool option_applies(const struct option_set *set, const struct option *row)
{
    return row->commands == 0 || (row->commands & set->bit) != 0;
}
/* 0 takes no value, 1 needs one, 2 may have one. */
int option_arity(const struct option *row);

#endif
