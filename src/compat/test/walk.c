// SPDX-License-Identifier: Apache-2.0
/*
 * walk.c - calls every function that the library exports with nothing: none may end the process
 *
 *     walk LIBRARY
 *
 * Each is called in a child, with arguments that are all 0, without a controller. Data objects must be there.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
    const char *name;
    int is_data;
} names[] = {
#define NAME(name, is_data) { name, is_data },
#include "names.h"
#undef NAME
};

typedef void *any_function(void *, void *, void *, void *, void *, void *, void *, void *, void *,
                           void *);

static int call(void *symbol)
{
    any_function *function;

    memcpy(&function, &symbol, sizeof(function));
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        alarm(20);
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
            _exit(9);
        function(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return -1;
    return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    int bad = 0;

    if (!library) {
        printf("not ok - %s\n", argc > 1 ? dlerror() : "usage: walk LIBRARY");
        return 1;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        void *symbol = dlsym(library, names[i].name);
        int code = symbol ? names[i].is_data ? 0 : call(symbol) : -2;
        if (code) {
            bad++;
            printf("not ok - %s: %s %d\n", names[i].name, symbol ? "signal or code" : "missing",
                   code);
        }
    }
    printf("%zu names, %d bad\n", sizeof(names) / sizeof(names[0]), bad);
    return bad != 0;
}
