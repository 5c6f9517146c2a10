// SPDX-License-Identifier: Apache-2.0
/*
 * job_common.c - what sbatch, salloc and srun have in common besides their options: exit codes and the file mode
 * mask that the environment says, another user's name
 */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "schema/request.h"
#include "sys/spawn.h"
#include "sys/users.h"

static int code_of(const char *name)
{
    const char *text = getenv(name);
    uint64_t code;

    return text && str_to_u64(text, 255, &code) ? (int)code : 1;
}

int cli_error_code(void)
{
    return code_of("SLURM_EXIT_ERROR");
}

int cli_immediate_code(void)
{
    return getenv("SLURM_EXIT_IMMEDIATE") ? code_of("SLURM_EXIT_IMMEDIATE") : cli_error_code();
}

unsigned cli_umask(void)
{
    const char *text = getenv("SLURM_UMASK");
    char *end;

    if (text && *text) {
        unsigned long mask = strtoul(text, &end, 8);
        if (!*end && mask <= 0777)
            return (unsigned)mask;
    }
    mode_t mask = umask(0);
    umask(mask);
    return mask;
}

/* ---- --uid, --gid ---- */

static bool is_member(const struct user *user, gid_t gid)
{
    for (size_t i = 0; i < user->group_count; i++) {
        if (user->groups[i] == gid)
            return true;
    }
    return false;
}

/* Of root, or of somebody whom root becomes: the controller takes the group of who asks. */
static int read_group(struct cli *cli, const char *text, const struct user *user, gid_t *out)
{
    struct err err = { 0 };
    uint64_t number;

    if (users_group_by_name(text, out, &err) < 0) {
        if (!str_to_u64(text, UINT32_MAX - 1, &number)) {
            cli_fatal(cli, "Invalid group id: %s", text);
            return 1;
        }
        *out = (gid_t)number;
    }
    if (user && user->uid != 0 && !is_member(user, *out)) {
        cli_error(cli, "--gid: user %s is not in group %s", user->name, text);
        return 1;
    }
    return 0;
}

int cli_become(struct cli *cli, const struct job_request *request)
{
    CLEANUP(user_freep) struct user *user = NULL;
    struct err err = { 0 };

    if (!request->run_uid && !request->run_gid)
        return 0;
    if (getuid() != 0) {
        cli_error(cli, "--%s only permitted by root user", request->run_uid ? "uid" : "gid");
        return 255;
    }
    if (users_parse(request->run_uid ? request->run_uid : "0", &user, &err) < 0) {
        cli_fatal(cli, "Invalid user id: %s", request->run_uid);
        return 1;
    }
    gid_t gid = user->gid;
    if (request->run_gid && read_group(cli, request->run_gid, user, &gid) != 0)
        return 1;
    struct spawn_user who = {
        .uid = user->uid, .gid = gid, .groups = user->groups, .group_count = user->group_count
    };
    if (spawn_become(&who, &err) < 0) {
        cli_error(cli, "--uid: %s", err.text);
        return 1;
    }
    setenv("USER", user->name, 1);
    setenv("LOGNAME", user->name, 1);
    setenv("HOME", user->home ? user->home : "/", 1);
    return 0;
}
