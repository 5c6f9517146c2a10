/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feature.c - which features --constraint asks for, of each node and of all of them together
 *
 * One walk serves both questions about a node: with one it evaluates, without it checks.
 */
#include "core/feature.h"

#include <string.h>

#include "base/str.h"

enum { FEATURE_DEPTH = 16 };

struct walk {
    const char *at;
    const struct node *node;
    bool (*known)(const void *ctx, const char *name, size_t len);
    const void *ctx;
    struct err *err;
    unsigned depth;
    int code; /* negative: stop */
};

bool node_has_feature(const struct node *node, const char *feature)
{
    for (size_t i = 0; i < node->spec->n_features; i++) {
        if (strcmp(node->spec->features[i], feature) == 0)
            return true;
    }
    return false;
}

static bool has_span(const struct node *node, struct span name)
{
    for (size_t i = 0; i < node->spec->n_features; i++) {
        if (span_eq(name, node->spec->features[i]))
            return true;
    }
    return false;
}

static bool fail(struct walk *walk, enum err_code code, const char *what)
{
    if (walk->code == 0)
        walk->code = err_set(walk->err, code, "%s: %s", err_text(code), what);
    return false;
}

static bool expression(struct walk *walk);

static bool term(struct walk *walk)
{
    if (*walk->at == '(') {
        if (++walk->depth > FEATURE_DEPTH)
            return fail(walk, ERR_FEATURE, "too many parentheses");
        walk->at++;
        bool value = expression(walk);
        if (walk->code == 0 && *walk->at++ != ')')
            return fail(walk, ERR_FEATURE, "a parenthesis is not closed");
        walk->depth--;
        return value;
    }
    struct span name = { walk->at, strcspn(walk->at, "&|()[]*,!") };
    walk->at += name.len;
    if (name.len == 0)
        return fail(walk, ERR_FEATURE, "a name is missing");
    if (walk->node)
        return has_span(walk->node, name);
    if (walk->known && !walk->known(walk->ctx, name.ptr, name.len)) {
        char text[100];
        size_t len = MIN(name.len, sizeof(text) - 1);
        memcpy(text, name.ptr, len);
        text[len] = '\0';
        return fail(walk, ERR_FEATURE, text);
    }
    return true;
}

static bool expression(struct walk *walk)
{
    bool value = term(walk);

    while (walk->code == 0 && (*walk->at == '&' || *walk->at == '|' || *walk->at == ',')) {
        char sign = *walk->at++;
        bool right = term(walk);
        value = sign == '|' ? value || right : value && right;
    }
    return value;
}

static int check(const char *text, bool (*known)(const void *ctx, const char *name, size_t len),
                 const void *ctx, struct err *err)
{
    struct walk walk = { .at = text, .known = known, .ctx = ctx, .err = err };

    expression(&walk);
    if (walk.code == 0 && *walk.at)
        fail(&walk, ERR_FEATURE, "unexpected character");
    return walk.code;
}

bool feature_match(const char *text, const struct node *node)
{
    struct walk walk = { .at = text, .node = node };

    return expression(&walk);
}

bool feature_same(const struct node *a, const struct node *b)
{
    return a->features_hash == b->features_hash;
}

bool feature_match_next(const char *text, const struct node *node, struct feature_last *last)
{
    if (!last->node || !feature_same(last->node, node))
        last->answer = feature_match(text, node);
    last->node = node;
    return last->answer;
}

/* ---- taking an expression apart ---- */

struct reader {
    struct arena *arena;
    struct features *out;
    struct err *err;
    struct str plain;
};

static int bad(struct reader *reader, const char *what)
{
    return err_set(reader->err, ERR_FEATURE, "%s: %s", err_text(ERR_FEATURE), what);
}

/* The part of the text before the next of these signs that is in no parentheses or brackets. */
static struct span next_part(const char *text, size_t len, const char *signs)
{
    unsigned depth = 0;
    size_t at = 0;

    for (; at < len; at++) {
        if (text[at] == '(' || text[at] == '[')
            depth++;
        else if ((text[at] == ')' || text[at] == ']') && depth)
            depth--;
        else if (!depth && strchr(signs, text[at]))
            break;
    }
    return (struct span){ text, at };
}

static int add_group(struct reader *reader, struct span text, uint32_t count)
{
    struct features *out = reader->out;

    if (text.len == 0)
        return bad(reader, "a name is missing");
    if (out->group_count == LIMIT_FEATURE_GROUPS)
        return bad(reader, "too many counts or alternatives");
    if (!out->groups)
        out->groups = ARENA_ARRAY(reader->arena, struct feature_group, LIMIT_FEATURE_GROUPS);
    out->groups[out->group_count++] =
        (struct feature_group){ arena_strndup(reader->arena, text.ptr, text.len), count };
    out->total += count;
    return 0;
}

/* "name*4", or "name" with `otherwise`. */
static int add_counted(struct reader *reader, struct span part, uint32_t otherwise)
{
    struct span name = next_part(part.ptr, part.len, "*");
    uint64_t count = otherwise;

    if (name.len < part.len) {
        char *number =
            arena_strndup(reader->arena, part.ptr + name.len + 1, part.len - name.len - 1);
        if (!str_to_u64(number, LIMIT_NODES, &count) || count == 0)
            return bad(reader, "a count is wrong");
    }
    return add_group(reader, name, (uint32_t)count);
}

/* What is between brackets: alternatives, or counts. */
static int read_brackets(struct reader *reader, struct span text)
{
    struct span first = next_part(text.ptr, text.len, "|");
    bool one_of = first.len < text.len;

    if (reader->out->group_count)
        return bad(reader, "brackets and counts cannot be combined");
    reader->out->one_of = one_of;
    for (size_t at = 0; at <= text.len;) {
        struct span part = next_part(text.ptr + at, text.len - at, one_of ? "|" : "&,");
        if (one_of && next_part(part.ptr, part.len, "*").len < part.len)
            return bad(reader, "alternatives have no counts");
        int code = one_of ? add_group(reader, part, 0) : add_counted(reader, part, 1);
        if (code < 0)
            return code;
        at += part.len + 1;
    }
    return 0;
}

/* One of what is joined by "&". */
static int read_part(struct reader *reader, struct span part)
{
    if (part.len && part.ptr[0] == '[') {
        if (part.len < 3 || part.ptr[part.len - 1] != ']')
            return bad(reader, "a bracket is not closed");
        return read_brackets(reader, (struct span){ part.ptr + 1, part.len - 2 });
    }
    if (next_part(part.ptr, part.len, "*").len < part.len) {
        if (reader->out->one_of)
            return bad(reader, "brackets and counts cannot be combined");
        return add_counted(reader, part, 1);
    }
    str_addf(&reader->plain, "%s%.*s", reader->plain.len ? "&" : "", (int)part.len, part.ptr);
    return 0;
}

int features_read(const char *text, struct arena *arena, struct features *out, struct err *err)
{
    struct reader reader = { .arena = arena, .out = out, .err = err };
    int code = 0;

    *out = (struct features){ 0 };
    if (str_is_empty(text))
        return 0;
    size_t len = strlen(text);
    if (!strpbrk(text, "[]*")) {
        out->plain = arena_strdup(arena, text);
        return 0;
    }
    if (next_part(text, len, "|").len < len)
        return bad(&reader, "| goes into the brackets");
    for (size_t at = 0; at <= len && code == 0;) {
        struct span part = next_part(text + at, len - at, "&,");
        code = read_part(&reader, part);
        at += part.len + 1;
    }
    if (code == 0 && reader.plain.len)
        out->plain = arena_strdup(arena, str_text(&reader.plain));
    str_done(&reader.plain);
    return code;
}

int features_check(const struct features *features,
                   bool (*known)(const void *ctx, const char *name, size_t len), const void *ctx,
                   struct err *err)
{
    int code = features->plain ? check(features->plain, known, ctx, err) : 0;

    for (size_t i = 0; i < features->group_count && code == 0; i++)
        code = check(features->groups[i].text, known, ctx, err);
    return code;
}

unsigned features_groups(const struct features *features, const struct node *node)
{
    unsigned groups = 0;

    for (size_t i = 0; i < features->group_count; i++)
        groups |= feature_match(features->groups[i].text, node) ? 1U << i : 0;
    return groups;
}

static bool could(const struct features *features, uint32_t nodes, const struct node *node,
                  unsigned *groups)
{
    *groups = 0;
    if (features->plain && !feature_match(features->plain, node))
        return false;
    if (!features->group_count || (!features->one_of && features->total < nodes))
        return true;
    *groups = features_groups(features, node);
    return *groups != 0;
}

bool features_could(const struct features *features, uint32_t nodes, const struct node *node)
{
    unsigned groups;

    return could(features, nodes, node, &groups);
}

bool features_could_next(const struct features *features, uint32_t nodes, const struct node *node,
                         struct feature_last *last)
{
    if (!features->plain && !features->group_count)
        return true;
    if (!last->node || !feature_same(last->node, node))
        last->answer = could(features, nodes, node, &last->groups);
    last->node = node;
    return last->answer;
}

/* ---- counts ---- */

void feature_tally_init(struct feature_tally *tally, const struct features *features)
{
    *tally = (struct feature_tally){ .features = features };
}

/*
 * How many of the counted nodes can be had at once: for some set of groups what the others count
 * and the nodes that match any of the set are the narrowest place (Koenig).
 */
static uint32_t can_have(const struct feature_tally *tally)
{
    unsigned all = 1U << tally->features->group_count;
    uint32_t least = UINT32_MAX;

    for (unsigned set = 0; set < all; set++) {
        uint32_t sum = 0;
        for (size_t i = 0; i < tally->features->group_count; i++)
            sum += set >> i & 1 ? 0 : tally->features->groups[i].count;
        for (unsigned groups = 1; groups < all; groups++)
            sum += groups & set ? tally->by_groups[groups] : 0;
        least = MIN(least, sum);
    }
    return least;
}

bool feature_tally_add(struct feature_tally *tally, const struct node *node)
{
    unsigned groups = features_groups(tally->features, node);

    if (!groups || tally->have == tally->features->total)
        return false;
    tally->by_groups[groups]++;
    uint32_t have = can_have(tally);
    if (have == tally->have) {
        tally->by_groups[groups]--;
        return false;
    }
    tally->have = have;
    return true;
}
