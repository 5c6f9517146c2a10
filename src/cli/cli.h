/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli.h - what every command does: read options, call the controller, print, complain
 *
 * Results go to standard output, complaints to standard error in Slurm's words:
 * "sbatch: error: ...". Everything a command unpacks lives in its arena until it ends.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "schema/field.h"
#include "schema/option.h"

struct client;

struct cli {
    const char *name; /* before messages: "sbatch", "spur submit" */
    struct client *client;
    struct arena arena;
    bool quiet;
    unsigned timeout_ms; /* of calls; 0: as the client has it */
};

void cli_init(struct cli *cli, const char *name);
void cli_done(struct cli *cli);

/* The name of a command as it was called: "sbatch", or "spur submit" for `spur submit`. */
const char *cli_name(char **argv);

/* Prints "name: error: text", each further line with the same beginning. */
void cli_error(const struct cli *cli, const char *fmt, ...) PRINTF(2, 3);
void cli_fatal(const struct cli *cli, const char *fmt, ...) PRINTF(2, 3);
void cli_say(const struct cli *cli, const char *fmt, ...) PRINTF(2, 3); /* "name: text" */

/*
 * Prints "before TEXT" as Slurm's library does: "slurm_load_jobs error: Unable to contact ...". What
 * the general text of a code leaves out (which address, why) comes in a line before. Returns 1.
 */
int cli_load_error(const struct cli *cli, const char *before, const struct err *err);

/* Prints what is wrong with the options and returns the exit code that Slurm's command has for it. */
int cli_option_error(const struct option_set *set, const struct err *err);

struct option_ctx cli_option_ctx(void);
struct field_ctx cli_field_ctx(int64_t now_us); /* with SLURM_TIME_FORMAT, SLURM_BITSTR_LEN */

/* --help, --usage and --version; true when one of them was asked for. */
bool cli_help(const struct option_set *set, bool help, bool usage, bool version);
/* The same for a job, where an option may have the value "help". */
struct job_request;
bool cli_help_job(const struct option_set *set, const struct job_request *request);
/* Nodes and tasks of the job that is to be made; says so when there are fewer nodes than asked for. */
void cli_settle_counts(const struct cli *cli, struct job_request *request);
/* --uid: root becomes that user before anything is asked. 0, or the exit code after a complaint. */
int cli_become(struct cli *cli, const struct job_request *request);
/* How commands of jobs end after an error, and when --immediate found nothing: as the environment says, else 1. */
int cli_error_code(void);
int cli_immediate_code(void);
/* Of files that jobs make: SLURM_UMASK, else our own. */
unsigned cli_umask(void);
void cli_print_version(void); /* "slurm 26.11.0": programs read the number */

/* Writes all of it to standard output and empties it; false when nobody reads any more. */
bool cli_flush(struct str *out);

/* One call, connecting first when need be. "/spur.Controller/" goes before the method. */
int cli_call(struct cli *cli, const char *method, const ProtobufCMessage *request,
             const ProtobufCMessageDescriptor *reply_type, ProtobufCMessage **reply,
             struct err *err);
int cli_connect(struct cli *cli, struct err *err);

/* "a,b[1,3],c" as an array of three in the arena, appended to what is there. NULL adds nothing. */
void cli_split(struct cli *cli, const char *text, const char *separators, char ***list,
               size_t *count);

/* Job ids as people write them: 12, 12_3, 12_[1-5,7%2], 12_*, 12+1. */
bool cli_is_job_id(const char *text, size_t len);
/* The same after which a step may follow: 12.0, 12_3.batch; *step is what is after the dot. */
bool cli_is_step_id(const char *text, size_t *job_len, const char **step);

/* A name or number of a user as a number. */
bool cli_user(const char *text, uint32_t *uid);
/* Names or numbers of users as numbers; says "Invalid user: NAME" and leaves those out. */
void cli_users(struct cli *cli, const char *text, char ***list, size_t *count);

/*
 * Begins a JSON or YAML answer, in the version of Slurm's API that --json=v0.0.43 or --yaml= names; without one all
 * there is is written. `object` is what REST answers with ("openapi_job_info_resp"); NULL: REST has no such answer.
 * Ends the command when there is no such version.
 */
struct str;
struct jsonw;
void cli_json_begin(struct jsonw *json, struct str *out, bool yaml, char **argv,
                    const char *object);
/* meta, errors and warnings that end every JSON answer, and the closing brace. */
void cli_json_end(struct jsonw *json, int argc, char **argv, const char *cluster);

#endif
