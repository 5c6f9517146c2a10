/* SPDX-License-Identifier: Apache-2.0 */
/*
 * credentials.c - who we are, shown without being asked
 *
 * In order: the caller's token; $SPUR_JWT; $SLURM_JWT; the file $SPUR_TOKEN_FILE; on a unix socket
 * nothing, because the kernel says it; MUNGE, where munged runs; the agent of this host (vouch.c). A MUNGE credential is good for one
 * connection; the server remembers what it found out from it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "client/client_priv.h"
#include "rpc/munge.h"

static int read_token(const char *path, struct str *out, struct err *err)
{
    char text[LIMIT_METADATA_BYTES / 2];
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return err_errno(err, errno, "token file %s", path);
    ssize_t got = fstat(fd, &st) == 0 ? read(fd, text, sizeof(text)) : -1;
    int why = errno;
    close(fd);
    if (got < 0)
        return err_errno(err, why, "token file %s", path);
    if (st.st_mode & (S_IRWXG | S_IRWXO))
        return err_set(err, ERR_PERMISSION,
                       "token file %s can be read by others: chmod 600 it, and replace the token",
                       path);
    if ((size_t)got == sizeof(text))
        return err_set(err, ERR_TOO_LARGE, "token file %s is too large", path);
    text[got] = '\0';
    str_addf(out, "Bearer %s", str_trim(text));
    return 0;
}

bool credentials_absent(const struct client_options *options)
{
    static const char *const names[] = { "SPUR_JWT", "SLURM_JWT", "SPUR_TOKEN_FILE" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (!str_is_empty(getenv(names[i])))
            return false;
    }
    return !options->token && !munge_available();
}

int credentials_find(const struct client_options *options, bool is_unix, struct str *out,
                     struct err *err)
{
    const char *token = options->token;

    if (!token) {
        token = getenv("SPUR_JWT");
        if (str_is_empty(token))
            token = getenv("SLURM_JWT");
    }
    if (!str_is_empty(token)) {
        str_addf(out, "Bearer %s", token);
        return 0;
    }
    if (options->token) /* "": none at all */
        return 0;
    const char *path = getenv("SPUR_TOKEN_FILE");
    if (!str_is_empty(path))
        return read_token(path, out, err);
    if (is_unix || !munge_available())
        return 0;
    str_add(out, "Munge ");
    int rc = munge_make(out, err);
    if (rc < 0)
        str_clear(out);
    return rc;
}
