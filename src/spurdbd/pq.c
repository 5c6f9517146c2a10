/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pq.c - finds the functions of libpq
 */
#include "spurdbd/pq.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static struct pq functions;
static const char *missing; /* the library or the function that is not there */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* dlsym() gives data pointers; POSIX promises that a function's address survives this. */
static void find(void *handle, const char *name, void *function_pointer)
{
    void *symbol = dlsym(handle, name);

    memcpy(function_pointer, &symbol, sizeof(symbol));
    if (!symbol && !missing)
        missing = name;
}

static void load(void)
{
    void *handle = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);

    if (!handle) {
        missing = "libpq.so.5";
        return;
    }
#define PQ_FIND(function) find(handle, #function, &functions.function);
    PQ_FUNCTIONS(PQ_FIND)
#undef PQ_FIND
}

const struct pq *pq_load(struct err *err)
{
    pthread_once(&once, load);
    if (!missing)
        return &functions;
    err_set(err, ERR_UNSUPPORTED,
            "a PostgreSQL database needs libpq 14 or later, and this machine lacks %s: "
            "install the package libpq5",
            missing);
    return NULL;
}
