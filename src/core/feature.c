/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feature.c - does a node have the features that --constraint asks for
 *
 * One walk serves both questions: with a node it evaluates, without one it checks.
 */
#include "core/feature.h"

#include <string.h>

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
    if (*walk->at == '*' || *walk->at == '[' || *walk->at == ']')
        return fail(walk, ERR_UNSUPPORTED, "counts and [a|b] of features are not there yet");
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

int feature_check(const char *text, bool (*known)(const void *ctx, const char *name, size_t len),
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
