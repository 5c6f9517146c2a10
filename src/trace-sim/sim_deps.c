/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_deps.c - what a waiting job of a live queue depends on, said with the ids of a simulated one
 *
 * "afterok:131(unfulfilled),after:12_3+5(unfulfilled)" names jobs of the controller. Each id is replaced;
 * one of an array whose tasks have records of their own by all of these. What names nobody who is
 * replayed is fulfilled, or soon will be, and is left out.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "trace-sim/sim.h"

/* "131", "131_4", "131_*", each perhaps with "+5" behind it. */
struct named {
    uint32_t id;
    const char *rest; /* behind the id and its task */
    size_t rest_len;
};

static bool read_named(const char *text, size_t len, struct named *out)
{
    char *end;
    unsigned long id = strtoul(text, &end, 10);

    if (!len || !isdigit((unsigned char)*text) || id == 0 || id > UINT32_MAX || end > text + len)
        return false;
    if (end < text + len && *end == '_') {
        for (end++; end < text + len && (isdigit((unsigned char)*end) || *end == '*'); end++)
            ;
    }
    *out = (struct named){ (uint32_t)id, end, (size_t)(text + len - end) };
    return true;
}

/* "TYPE:ID[:ID...]" without what is in brackets; false when nothing of it is left. */
static bool add_clause(struct str *out, const char *clause, size_t len, sim_deps_fn *find,
                       void *ctx)
{
    const char *colon = memchr(clause, ':', len), *bracket = memchr(clause, '(', len);
    size_t before = out->len;
    bool any = false;

    len = bracket ? (size_t)(bracket - clause) : len;
    if (!colon || colon >= clause + len) { /* singleton */
        str_addf(out, "%.*s", (int)len, clause);
        return len > 0;
    }
    str_addf(out, "%.*s", (int)(colon - clause), clause);
    for (const char *at = colon + 1, *end = clause + len; at < end;) {
        const char *next = memchr(at, ':', (size_t)(end - at));
        size_t one = (size_t)((next ? next : end) - at);
        struct named named;
        uint32_t ids[SIM_DEPS_MOST];
        size_t count = read_named(at, one, &named) ? find(ctx, named.id, ids) : 0;
        for (size_t i = 0; i < count; i++)
            str_addf(out, ":%u%.*s", ids[i], (int)named.rest_len, named.rest);
        any = any || count;
        at += one + 1;
    }
    if (!any)
        str_truncate(out, before);
    return any;
}

char *sim_deps(const char *text, sim_deps_fn *find, void *ctx)
{
    struct str out = { 0 };
    bool first = true;
    char sign = ',';

    while (text && *text) {
        size_t len = strcspn(text, ",?"), was = out.len;
        if (!first)
            str_add_char(&out, sign);
        if (add_clause(&out, text, len, find, ctx)) {
            first = false;
        } else {
            str_truncate(&out, was);
            if (text[len] == '?' || sign == '?') { /* one of several was enough, and is there */
                str_truncate(&out, 0);
                break;
            }
        }
        sign = text[len] ? text[len] : sign;
        text += len + (text[len] != '\0');
    }
    char *result = out.len ? mem_strdup(str_text(&out)) : NULL;
    str_done(&out);
    return result;
}
