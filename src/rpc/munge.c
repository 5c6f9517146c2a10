/* SPDX-License-Identifier: Apache-2.0 */
/*
 * munge.c - MUNGE credentials by a library that may not be there
 *
 * The few declarations below follow munge(3); the header is not needed to build.
 */
#include "rpc/munge.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SOCKET_PATH "/run/munge/munge.socket.2"
#define INSIDE      "spur rpc"

enum { OPT_SOCKET = 8, CRED_EXPIRED = 15, CRED_REWOUND = 16, CRED_REPLAYED = 17 };

static struct lib {
    bool there;
    int (*encode)(char **cred, void *ctx, const void *buf, int len);
    int (*decode)(const char *cred, void *ctx, void **buf, int *len, uid_t *uid, gid_t *gid);
    const char *(*strerror)(int code);
    void *(*ctx_create)(void);
    void (*ctx_destroy)(void *ctx);
    int (*ctx_set)(void *ctx, int option, ...);
} lib;
static pthread_once_t once = PTHREAD_ONCE_INIT; /* workers come here, too */

/* dlsym() gives data pointers; POSIX promises that a function's address survives this. */
static bool find(void *handle, const char *name, void *function_pointer)
{
    void *symbol = dlsym(handle, name);

    memcpy(function_pointer, &symbol, sizeof(symbol));
    return symbol != NULL;
}

static void load(void)
{
    void *handle = dlopen("libmunge.so.2", RTLD_NOW | RTLD_LOCAL);

    lib.there = handle && find(handle, "munge_encode", &lib.encode) &&
                find(handle, "munge_decode", &lib.decode) &&
                find(handle, "munge_strerror", &lib.strerror) &&
                find(handle, "munge_ctx_create", &lib.ctx_create) &&
                find(handle, "munge_ctx_destroy", &lib.ctx_destroy) &&
                find(handle, "munge_ctx_set", &lib.ctx_set);
}

static const char *socket_path(void)
{
    const char *named = secure_getenv("SPUR_MUNGE_SOCKET");

    return named && *named ? named : SOCKET_PATH;
}

bool munge_available(void)
{
    if (access(socket_path(), R_OK | W_OK) != 0)
        return false; /* the usual case costs one system call */
    pthread_once(&once, load);
    return lib.there;
}

static void *context(struct err *err)
{
    pthread_once(&once, load);
    void *ctx = lib.there ? lib.ctx_create() : NULL;
    if (!ctx)
        err_set(err, ERR_UNSUPPORTED, "MUNGE is not installed on this machine");
    else
        lib.ctx_set(ctx, OPT_SOCKET, socket_path());
    return ctx;
}

int munge_make(struct str *out, struct err *err)
{
    char *credential = NULL;
    void *ctx = context(err);

    if (!ctx)
        return -(int)ERR_UNSUPPORTED;
    int rc = lib.encode(&credential, ctx, INSIDE, (int)strlen(INSIDE));
    lib.ctx_destroy(ctx);
    if (rc != 0)
        return err_set(err, ERR_UNAUTHENTICATED, "MUNGE: %s", lib.strerror(rc));
    str_add(out, credential);
    free(credential);
    return 0;
}

int munge_check(const char *credential, uint32_t *uid, uint32_t *gid, struct err *err)
{
    void *inside = NULL;
    int len = 0;
    uid_t user = (uid_t)-1;
    gid_t group = (gid_t)-1;
    void *ctx = context(err);

    if (!ctx)
        return -(int)ERR_UNSUPPORTED;
    int rc = lib.decode(credential, ctx, &inside, &len, &user, &group);
    lib.ctx_destroy(ctx);
    bool ours = inside && len == (int)strlen(INSIDE) && memcmp(inside, INSIDE, (size_t)len) == 0;
    free(inside);
    if (rc == CRED_EXPIRED || rc == CRED_REWOUND || rc == CRED_REPLAYED)
        return err_set(err, ERR_CREDENTIAL_EXPIRED, "MUNGE: %s", lib.strerror(rc));
    if (rc != 0)
        return err_set(err, ERR_UNAUTHENTICATED, "MUNGE: %s", lib.strerror(rc));
    if (!ours)
        return err_set(err, ERR_UNAUTHENTICATED,
                       "MUNGE: the credential was made for something else");
    *uid = user;
    *gid = group;
    return 0;
}
