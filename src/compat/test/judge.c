// SPDX-License-Identifier: Apache-2.0
/*
 * judge.c - our load functions inside Debian's own squeue, sinfo and scontrol
 *
 * Those programs use libslurmfull.so. With only the load functions preloaded they print *our* structs with *Slurm's*
 * formatter: t/t57-api/judge.t compares their bytes with our commands'. Memory must be the real library's, because it
 * frees it; the linker sends our allocations here (--wrap).
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compat/compat.h"

typedef void *real_xcalloc(size_t, size_t, bool, bool, const char *, int, const char *);
typedef void real_xfree(void **);

void *__wrap_slurm_xcalloc(size_t count, size_t size, bool clear, bool may_fail, const char *file,
                           int line, const char *func);
void __wrap_slurm_xfree(void **pointer);
void *__wrap_compat_alloc(size_t size);
char *__wrap_compat_text(const char *text);
char *__wrap_compat_text_kept(const char *text);
char *__wrap_compat_take(struct str *text);
char *__wrap_compat_join(char *const *list, size_t count);
char *__wrap_slurm_xstrdup_printf(const char *fmt, ...);
int select_g_select_nodeinfo_get(dynamic_plugin_data_t *nodeinfo, enum select_nodedata_type type,
                                 enum node_states state, void *data);

static void *real(const char *name)
{
    void *symbol = dlsym(RTLD_DEFAULT, name);

    if (!symbol) {
        fprintf(stderr, "judge: %s is not there\n", name);
        _exit(9);
    }
    return symbol;
}

void *__wrap_slurm_xcalloc(size_t count, size_t size, bool clear, bool may_fail, const char *file,
                           int line, const char *func)
{
    real_xcalloc *call = (real_xcalloc *)real("slurm_xcalloc");

    return call(count, size, clear, may_fail, file, line, func);
}

void __wrap_slurm_xfree(void **pointer)
{
    real_xfree *call = (real_xfree *)dlsym(RTLD_DEFAULT, "slurm_xfree");

    if (call) /* not when the real library is gone already, at exit */
        call(pointer);
}

void *__wrap_compat_alloc(size_t size)
{
    return __wrap_slurm_xcalloc(1, size ? size : 1, true, false, "", 0, "");
}

char *__wrap_compat_text_kept(const char *text)
{
    if (!text)
        return NULL;
    char *out = __wrap_compat_alloc(strlen(text) + 1);
    return strcpy(out, text);
}

char *__wrap_compat_text(const char *text)
{
    return str_is_empty(text) ? NULL : __wrap_compat_text_kept(text);
}

char *__wrap_compat_take(struct str *text)
{
    char *out = __wrap_compat_text(text->data);

    str_done(text);
    return out;
}

char *__wrap_compat_join(char *const *list, size_t count)
{
    struct str out = { 0 };

    for (size_t i = 0; i < count; i++)
        str_addf(&out, "%s%s", i ? "," : "", list[i]);
    return __wrap_compat_take(&out);
}

char *__wrap_slurm_xstrdup_printf(const char *fmt, ...)
{
    struct str out = { 0 };
    va_list args;

    va_start(args, fmt);
    str_vaddf(&out, fmt, args);
    va_end(args);
    return __wrap_compat_take(&out);
}

int select_g_select_nodeinfo_get(dynamic_plugin_data_t *nodeinfo, enum select_nodedata_type type,
                                 enum node_states state, void *data)
{
    return slurm_get_select_nodeinfo(nodeinfo, type, state, data);
}
