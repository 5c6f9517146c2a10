// SPDX-License-Identifier: Apache-2.0
/*
 * hostlists.c - Slurm's hostlists over base/hostlist.h
 *
 * Slurm's lists are eaten from the front: `skip` hosts are gone already. What slurm_hostlist_shift() returns is
 * freed with free(), what the *_xmalloc functions return with slurm_xfree().
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/limits.h"
#include "compat/compat.h"
#include "sys/files.h"

struct hostlist_of_slurm {
    pthread_mutex_t lock;
    struct hostlist list;
    uint64_t skip;
};

/* The client's type is opaque; its tag is that of base/hostlist.h, which is another struct. */
static struct hostlist_of_slurm *of(compat_hostlist hl)
{
    return (struct hostlist_of_slurm *)(void *)hl;
}

static compat_hostlist given(struct hostlist_of_slurm *list)
{
    return (compat_hostlist)(void *)list;
}

static void bad_argument(const struct err *err)
{
    errno = err->code == ERR_TOO_MANY || err->code == ERR_TOO_LARGE ? ERANGE : EINVAL;
}

compat_hostlist slurm_hostlist_create(const char *hostlist)
{
    GUARD(NULL);
    struct err err = { 0 };
    struct hostlist_of_slurm *list = NEW(struct hostlist_of_slurm);

    if (hostlist && hostlist_parse(&list->list, hostlist, &err) < 0) {
        free(list);
        bad_argument(&err);
        return NULL;
    }
    pthread_mutex_init(&list->lock, NULL);
    return given(list);
}

void slurm_hostlist_destroy(compat_hostlist hl)
{
    if (!hl)
        return;
    hostlist_done(&of(hl)->list);
    pthread_mutex_destroy(&of(hl)->lock);
    free(of(hl));
}

int slurm_hostlist_count(compat_hostlist hl)
{
    if (!hl)
        return -1;
    return (int)MIN(hostlist_count(&of(hl)->list) - of(hl)->skip, (uint64_t)INT32_MAX);
}

/* Drops the hosts that were shifted away. */
static void settle(struct hostlist_of_slurm *list)
{
    struct hostlist *hosts = &list->list;
    size_t gone = 0;

    hosts->count -= list->skip;
    while (list->skip && gone < hosts->ranges.len) {
        struct host_range *range = &hosts->ranges.items[gone];
        uint64_t here = range->width ? range->hi - range->lo + 1 : 1;
        if (here > list->skip) {
            range->lo += list->skip;
            list->skip = 0;
            break;
        }
        list->skip -= here;
        gone++;
    }
    hosts->ranges.len -= gone;
    if (gone && hosts->ranges.len)
        memmove(hosts->ranges.items, hosts->ranges.items + gone,
                hosts->ranges.len * sizeof(hosts->ranges.items[0]));
}

char *slurm_hostlist_shift(compat_hostlist hl)
{
    GUARD(NULL);
    struct str name = { 0 };
    char *out = NULL;

    if (!hl)
        return NULL;
    pthread_mutex_lock(&of(hl)->lock);
    if (hostlist_nth(&of(hl)->list, of(hl)->skip, &name)) {
        out = str_take(&name);
        if (++of(hl)->skip % 1024 == 0) /* so that a long list is not walked from its beginning */
            settle(of(hl));
    }
    pthread_mutex_unlock(&of(hl)->lock);
    str_done(&name);
    return out;
}

int slurm_hostlist_find(compat_hostlist hl, const char *hostname)
{
    if (!hl || !hostname)
        return -1;
    pthread_mutex_lock(&of(hl)->lock);
    settle(of(hl));
    int64_t at = hostlist_find(&of(hl)->list, hostname);
    pthread_mutex_unlock(&of(hl)->lock);
    return (int)at;
}

/* How many were added; 0 for what is not a list of hosts. */
int slurm_hostlist_push(compat_hostlist hl, const char *hosts)
{
    GUARD(0);
    struct err err = { 0 };

    if (!hl || !hosts)
        return 0;
    pthread_mutex_lock(&of(hl)->lock);
    uint64_t before = hostlist_count(&of(hl)->list);
    int rc = hostlist_parse(&of(hl)->list, hosts, &err);
    uint64_t added = hostlist_count(&of(hl)->list) - before;
    pthread_mutex_unlock(&of(hl)->lock);
    if (rc < 0)
        bad_argument(&err);
    return rc < 0 ? 0 : (int)added;
}

int slurm_hostlist_push_host(compat_hostlist hl, const char *host)
{
    GUARD(0);
    struct err err = { 0 };

    if (!hl || !host)
        return 0;
    pthread_mutex_lock(&of(hl)->lock);
    int rc = hostlist_push(&of(hl)->list, host, &err);
    pthread_mutex_unlock(&of(hl)->lock);
    if (rc < 0)
        bad_argument(&err);
    return rc < 0 ? 0 : 1;
}

void slurm_hostlist_uniq(compat_hostlist hl)
{
    GUARD();

    if (!hl)
        return;
    pthread_mutex_lock(&of(hl)->lock);
    settle(of(hl));
    hostlist_uniq(&of(hl)->list, NULL);
    pthread_mutex_unlock(&of(hl)->lock);
}

static void write_ranged(compat_hostlist hl, struct str *out)
{
    pthread_mutex_lock(&of(hl)->lock);
    settle(of(hl));
    hostlist_format(&of(hl)->list, out);
    pthread_mutex_unlock(&of(hl)->lock);
}

static void write_names(compat_hostlist hl, struct str *out)
{
    pthread_mutex_lock(&of(hl)->lock);
    settle(of(hl));
    if (hostlist_count(&of(hl)->list) <= LIMIT_HOSTLIST_HOSTS) {
        hostlist_each (host, &of(hl)->list)
            str_addf(out, "%s%.*s", out->len ? "," : "", (int)host.len, host.name);
    }
    pthread_mutex_unlock(&of(hl)->lock);
}

ssize_t slurm_hostlist_ranged_string(compat_hostlist hl, size_t n, char *buf)
{
    GUARD(-1);
    struct str text = { 0 };

    if (!hl || !buf || !n)
        return -1;
    write_ranged(hl, &text);
    size_t len = MIN(text.len, n - 1);
    memcpy(buf, str_text(&text), len);
    buf[len] = '\0';
    bool cut = text.len >= n;
    str_done(&text);
    return cut ? -1 : (ssize_t)len;
}

static char *kept_text(struct str *text)
{
    char *out = compat_text_kept(str_text(text));

    str_done(text);
    return out;
}

char *slurm_hostlist_ranged_string_xmalloc(compat_hostlist hl)
{
    GUARD(NULL);
    struct str text = { 0 };

    if (!hl)
        return NULL;
    write_ranged(hl, &text);
    return kept_text(&text);
}

char *slurm_hostlist_deranged_string_xmalloc(compat_hostlist hl)
{
    GUARD(NULL);
    struct str text = { 0 };

    if (!hl)
        return NULL;
    write_names(hl, &text);
    return kept_text(&text);
}

char *slurm_hostlist_deranged_string_malloc(compat_hostlist hl)
{
    GUARD(NULL);
    struct str text = { 0 };

    if (!hl)
        return NULL;
    write_names(hl, &text);
    return str_take(&text);
}

#if EXPORTS_slurm_hostlist_ranged_string_malloc
char *slurm_hostlist_ranged_string_malloc(compat_hostlist hl)
{
    GUARD(NULL);
    struct str text = { 0 };

    if (!hl)
        return NULL;
    write_ranged(hl, &text);
    return str_take(&text);
}
#endif

/* The first n names of a file (0: all) as a list; the client frees it with free(). */
char *slurm_read_hostfile(const char *filename, int n)
{
    GUARD(NULL);
    struct str text = { 0 }, out = { 0 };
    struct err err = { 0 };
    const char *cursor;
    struct span line;
    int have = 0;

    if (!filename || file_read(filename, LIMIT_HOSTLIST_TEXT, &text, &err) < 0) {
        errno = filename ? ENOENT : EINVAL;
        return NULL;
    }
    cursor = str_text(&text);
    while ((n <= 0 || have < n) && str_next(&cursor, " \t\r\n", &line)) {
        if (line.ptr[0] == '#') { /* to the end of its line */
            cursor = line.ptr + strcspn(line.ptr, "\n");
            continue;
        }
        str_addf(&out, "%s%.*s", out.len ? "," : "", (int)line.len, line.ptr);
        have++;
    }
    str_done(&text);
    return str_take(&out);
}
