/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join_token.c - a join token from a controller that knows who asks: what `spur token --join` prints
 */
#include "spurd/join_token.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "base/util.h"
#include "sys/files.h"
#include "sys/host.h"
#include "sys/spawn.h"

enum { ASK_MS = 10000, TOKEN_BYTES = 16 * 1024, SELF_BYTES = 4096 };

/* A controller of this host is asked over its socket, which says that we are root. */
static void near_first(const char *controllers, struct str *out)
{
    char host[HOST_NAME_BYTES], short_host[HOST_NAME_BYTES];

    host_name(host);
    host_short(short_host);
    for (const char *at = controllers; *at; at += strcspn(at, ",") + (strchr(at, ',') != NULL)) {
        size_t len = strcspn(at, ":,");
        if ((strlen(host) == len && strncmp(at, host, len) == 0) ||
            (strlen(short_host) == len && strncmp(at, short_host, len) == 0))
            str_addf(out, "localhost%.*s,", (int)(strcspn(at, ",") - len), at + len);
    }
    str_add(out, controllers);
}

/* The program `spur`: beside us, in ../bin, or in the build tree. */
static char *find_spur(void)
{
    char self[SELF_BYTES];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

    self[MAX(len, 0)] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    char *places[] = { mem_printf("%s/spur", self), mem_printf("%s/../bin/spur", self),
                       mem_printf("%s/../cli/spur", self) };
    char *found = NULL;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        if (!found && access(places[i], X_OK) == 0)
            found = places[i];
        else
            free(places[i]);
    }
    return found ? found : mem_strdup("/usr/bin/spur");
}

/* Our environment has little that it needs: where to ask, and where sockets are. */
static int run_spur(const char *controllers, const char *node, struct str *out, struct err *err)
{
    CLEANUP(str_done) struct str addresses = { 0 };
    CLEANUP(freep) char *program = find_spur();
    const char *run_dir = getenv("SPUR_RUN_DIR");
    struct spawn_result result = { 0 };

    near_first(controllers, &addresses);
    CLEANUP(freep) char *where = mem_printf("SPUR_CONTROLLER_ADDR=%s", str_text(&addresses));
    CLEANUP(freep) char *run = mem_printf("SPUR_RUN_DIR=%s", run_dir ? run_dir : "");
    char *env[] = { where, run, NULL };
    char *argv[] = { (char[]){ "spur" },   (char[]){ "token" }, (char[]){ "--join" },
                     (char[]){ "--node" }, (char *)node,        NULL };
    const struct spawn spec = { .path = program, .argv = argv, .env = env };
    int code = spawn_run(&spec, (struct span){ 0 }, ASK_MS, out, TOKEN_BYTES, &result, err);
    if (code < 0)
        return code;
    while (out->len && strchr(" \t\r\n", out->data[out->len - 1]))
        str_truncate(out, out->len - 1);
    if (result.timed_out)
        return err_set(err, ERR_UNREACHABLE, "no answer within %d s", ASK_MS / 1000);
    if (!WIFEXITED(result.status) || WEXITSTATUS(result.status) != 0 || !out->len)
        return err_set(err, ERR_UNREACHABLE, "%s", str_text(out));
    return 0;
}

int join_ask_token(const char *controllers, const char *node, const char *path, struct err *err)
{
    CLEANUP(str_done) struct str token = { 0 };
    int code = run_spur(controllers, node, &token, err);

    return code < 0 ? code : file_write(path, token.data, token.len, 0600, err);
}
