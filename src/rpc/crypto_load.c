/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crypto_load.c - opens libspur_tls.so
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpc/crypto.h"

static const char *const beside[] = { "../lib/spur", "../rpc", "../src/rpc" };

static void *open_in(const char *dir, const char *more, char *tried, size_t room)
{
    char path[4096 + 64];

    snprintf(path, sizeof(path), "%s/%s/libspur_tls.so", dir, more);
    if (access(path, R_OK) != 0)
        return NULL;
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module)
        snprintf(tried, room, "%s", dlerror());
    return module;
}

static void *open_module(char *tried, size_t room)
{
    const char *named = secure_getenv("SPUR_LIB_DIR");
    char self[4096];

    snprintf(tried, room, "it is not installed beside this program");
    if (named && *named)
        return open_in(named, ".", tried, room);
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (len <= 0)
        return NULL;
    self[len] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    void *module = NULL;
    for (size_t i = 0; i < ARRAY_LEN(beside) && !module; i++)
        module = open_in(self, beside[i], tried, room);
    return module;
}

const struct crypto_api *crypto_load(struct err *err)
{
    static const struct crypto_api *loaded; /* once per process; a module is never unloaded */
    char tried[256];

    if (loaded)
        return loaded;
    void *module = open_module(tried, sizeof(tried));
    if (!module) {
        err_set(err, ERR_UNSUPPORTED, "libspur_tls.so, needed for TLS and keys: %s", tried);
        return NULL;
    }
    const struct crypto_api *api = dlsym(module, CRYPTO_SYMBOL);
    if (!api || strcmp(api->version, SPUR_VERSION) != 0) {
        err_set(err, ERR_UNSUPPORTED, "libspur_tls.so is of another version than this program");
        return NULL;
    }
    loaded = api;
    return loaded;
}
