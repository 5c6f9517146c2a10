// SPDX-License-Identifier: Apache-2.0
/*
 * memory.c - the xmalloc family: memory that the client frees with slurm_xfree()
 *
 * Each piece has its size before it, as slurm_xsize() and growing strings need it.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "compat/compat.h"

enum { MAGIC = 0x42424242 };

struct head {
    size_t magic, size;
};

void *slurm_xcalloc(size_t count, size_t size, bool clear, bool may_fail, const char *file,
                    int line, const char *func)
{
    size_t bytes;

    if (!count || !size)
        return NULL;
    if (__builtin_mul_overflow(count, size, &bytes) ||
        __builtin_add_overflow(bytes, sizeof(struct head), &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    struct head *head = clear ? calloc(1, bytes) : malloc(bytes);
    if (!head) {
        errno = ENOMEM;
        return NULL;
    }
    head->magic = MAGIC;
    head->size = bytes - sizeof(*head);
    return head + 1;
}

void slurm_xfree(void **pointer)
{
    if (!pointer || !*pointer)
        return;
    struct head *head = (struct head *)*pointer - 1;
    if (head->magic == MAGIC) { /* or it is not ours: then it is left alone */
        head->magic = 0;
        free(head);
    }
    *pointer = NULL;
}

void slurm_xfree_ptr(void *pointer)
{
    slurm_xfree(&pointer);
}

void *compat_alloc(size_t size)
{
    void *memory = slurm_xcalloc(1, size ? size : 1, true, true, "", 0, "");

    if (!memory)
        mem_failed();
    return memory;
}

static char *copy(const char *text, size_t len)
{
    char *out = slurm_xcalloc(1, len + 1, false, true, "", 0, "");

    if (!out)
        mem_failed();
    memcpy(out, text, len);
    out[len] = '\0';
    return out;
}

char *compat_text(const char *text)
{
    return str_is_empty(text) ? NULL : copy(text, strlen(text));
}

char *compat_text_kept(const char *text)
{
    return text ? copy(text, strlen(text)) : NULL;
}

char *compat_take(struct str *text)
{
    char *out = text->len ? copy(text->data, text->len) : NULL;

    str_done(text);
    return out;
}

char *compat_join(char *const *list, size_t count)
{
    struct str out = { 0 };

    for (size_t i = 0; i < count; i++)
        str_addf(&out, "%s%s", i ? "," : "", list[i]);
    return compat_take(&out);
}

char *slurm_xstrdup(const char *str)
{
    GUARD(NULL);

    return compat_text_kept(str);
}

char *slurm_xstrdup_printf(const char *fmt, ...)
{
    char *text = NULL;
    va_list args;

    va_start(args, fmt);
    int len = vasprintf(&text, fmt, args);
    va_end(args);
    if (len < 0)
        return NULL;
    char *out = slurm_xcalloc(1, (size_t)len + 1, false, true, "", 0, "");
    if (out)
        memcpy(out, text, (size_t)len + 1);
    free(text);
    return out;
}

/* NULL sorts before every text. */
int slurm_xstrcmp(const char *s1, const char *s2)
{
    if (!s1 || !s2)
        return (s1 != NULL) - (s2 != NULL);
    return strcmp(s1, s2);
}

int slurm_xstrncasecmp(const char *s1, const char *s2, size_t n)
{
    if (!s1 || !s2)
        return (s1 != NULL) - (s2 != NULL);
    return strncasecmp(s1, s2, n);
}

void compat_free_strings(char ***list, uint32_t count)
{
    if (!*list)
        return;
    for (uint32_t i = 0; i < count && (count != UINT32_MAX || (*list)[i]); i++)
        slurm_xfree((void **)&(*list)[i]);
    slurm_xfree((void **)list);
}

void compat_free_rows(uint32_t ***rows, uint32_t count)
{
    if (!*rows)
        return;
    for (uint32_t i = 0; i < count; i++)
        slurm_xfree((void **)&(*rows)[i]);
    slurm_xfree((void **)rows);
}

/* ---- environments ---- */

char **slurm_env_array_create(void)
{
    return slurm_xcalloc(1, sizeof(char *), true, true, "", 0, "");
}

void slurm_env_array_free(char **env_array)
{
    compat_free_strings(&env_array, UINT32_MAX);
}

static size_t env_find(char **env, const char *name, size_t len, bool *found)
{
    size_t i = 0;

    for (; env && env[i]; i++) {
        if (strncmp(env[i], name, len) == 0 && env[i][len] == '=') {
            *found = true;
            return i;
        }
    }
    *found = false;
    return i;
}

/* 1: it is there now, as in Slurm; 0: it could not be. */
int slurm_env_array_overwrite(char ***array_ptr, const char *name, const char *value)
{
    GUARD(0);
    bool found;

    if (!array_ptr || str_is_empty(name) || strchr(name, '='))
        return 0;
    size_t at = env_find(*array_ptr, name, strlen(name), &found);
    char *text = slurm_xstrdup_printf("%s=%s", name, value ? value : "");
    if (!text)
        return 0;
    if (found) {
        slurm_xfree((void **)&(*array_ptr)[at]);
    } else {
        char **more = compat_alloc((at + 2) * sizeof(char *));
        if (at)
            memcpy(more, *array_ptr, at * sizeof(char *));
        slurm_xfree((void **)array_ptr);
        *array_ptr = more;
    }
    (*array_ptr)[at] = text;
    return 1;
}

void slurm_env_array_merge(char ***dest_array, const char **src_array)
{
    for (size_t i = 0; src_array && src_array[i]; i++) {
        const char *equals = strchr(src_array[i], '=');
        char *name = equals ? strndup(src_array[i], (size_t)(equals - src_array[i])) : NULL;

        if (name)
            slurm_env_array_overwrite(dest_array, name, equals + 1);
        free(name);
    }
}
