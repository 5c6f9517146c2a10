/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.c - what Slurm's REST API has, version by version
 *
 * (1) The rows are read once per version, when the version is first asked for, and kept.
 */
#include "schema/api.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"

extern const char slurm_api_rows[]; /* slurm_api.tsv */

struct version {
    struct arena arena;
    struct map names; /* of objects, to their number */
    VEC(struct api_type *) types;
    struct api_type *list; /* the same, once all are there */
    VEC(struct api_operation) operations;
};

static struct version *versions[API_LAST + 1];

enum { COLUMNS = 8 };

/* ---- reading ---- */

static bool covers(const char *text, unsigned version)
{
    char *end;
    unsigned long first = strtoul(text, &end, 10), last = strtoul(end + 1, NULL, 10);

    return version >= first && version <= last;
}

static size_t split(struct version *v, const char *line, size_t len, char **columns)
{
    char *copy = arena_strndup(&v->arena, line, len);
    size_t count = 0;

    while (copy && count < COLUMNS) {
        char *tab = strchr(copy, '\t');
        columns[count++] = copy;
        if (tab)
            *tab = '\0';
        copy = tab ? tab + 1 : NULL;
    }
    return count;
}

static struct api_type *type_of(struct version *v, const char *name)
{
    struct api_type *type = map_get(&v->names, name);

    if (!type) {
        type = ARENA_NEW(&v->arena, struct api_type);
        type->name = arena_strdup(&v->arena, name);
        map_put(&v->names, name, type);
        vec_push(&v->types, type);
    }
    return type;
}

static struct api_shape read_shape(struct version *v, const char *text)
{
    static const struct {
        const char *word;
        struct api_shape shape;
    } plain[] = {
        { "text", { .kind = API_TEXT } },   { "int", { .kind = API_INT } },
        { "num", { .kind = API_NUM } },     { "bool", { .kind = API_BOOL } },
        { "any", { .kind = API_ANY } },     { "map", { .kind = API_ANY } },
        { "set.int", { .kind = API_SET } }, { "set.num", { .kind = API_SET, .decimal = true } },
        { "empty", { .kind = API_ANY } },
    };
    struct api_shape shape = { .kind = API_OBJECT };
    size_t len = strlen(text);

    for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
        if (strcmp(text, plain[i].word) == 0)
            return plain[i].shape;
    }
    if (text[0] == '[') {
        struct api_shape *item = ARENA_NEW(&v->arena, struct api_shape);
        *item = read_shape(v, arena_strndup(&v->arena, text + 1, len - 2));
        return (struct api_shape){ .kind = API_LIST, .item = item };
    }
    if (str_starts(text, "words("))
        return (struct api_shape){ .kind = API_WORD,
                                   .words = arena_strndup(&v->arena, text + 6, len - 7) };
    shape.type = type_of(v, text);
    return shape;
}

/* Fields are few while a type is read: the array grows by copying. */
static struct api_field *add_field(struct version *v, struct api_type *type, const char *name)
{
    struct api_field *longer = ARENA_ARRAY(&v->arena, struct api_field, type->count + 1);

    if (type->count)
        memcpy(longer, type->fields, type->count * sizeof(*longer));
    type->fields = longer;
    type->fields[type->count].name = arena_strdup(&v->arena, name);
    return &type->fields[type->count++];
}

/* "limits/max/jobs" is a field of an object in an object. */
static void take_field(struct version *v, struct api_type *type, const char *path,
                       const struct api_shape *shape, bool required)
{
    const char *slash = strchr(path, '/');

    if (!slash) {
        struct api_field *field = add_field(v, type, path);
        field->shape = *shape;
        field->required = required;
        return;
    }
    char *name = arena_strndup(&v->arena, path, (size_t)(slash - path));
    struct api_field *field = NULL;
    for (size_t i = 0; i < type->count; i++) {
        if (strcmp(type->fields[i].name, name) == 0)
            field = &type->fields[i];
    }
    if (!field) {
        field = add_field(v, type, name);
        field->shape.kind = API_OBJECT;
        field->shape.type = ARENA_NEW(&v->arena, struct api_type);
    }
    take_field(v, (struct api_type *)(uintptr_t)field->shape.type, slash + 1, shape, required);
}

static char *name_or_null(char *text)
{
    return strcmp(text, "-") == 0 ? NULL : text;
}

static void take_row(struct version *v, unsigned number, char **columns, size_t count)
{
    if (count == 8 && columns[0][0] == 'O' && covers(columns[3], number)) {
        struct api_operation operation = { .method = columns[1],
                                           .path = columns[2],
                                           .answer = name_or_null(columns[4]),
                                           .body = name_or_null(columns[5]),
                                           .id = columns[6],
                                           .params = name_or_null(columns[7]) };
        vec_push(&v->operations, operation);
    } else if (count == 6 && columns[0][0] == 'F' && covers(columns[3], number)) {
        struct api_shape shape = read_shape(v, columns[4]);
        if (columns[2][0])
            take_field(v, type_of(v, columns[1]), columns[2], &shape,
                       strcmp(columns[5], "required") == 0);
    }
}

static uint32_t hash_of(const char *name)
{
    uint32_t hash = 2166136261u;

    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash;
}

static void make_index(struct version *v, struct api_type *type)
{
    if (type->index)
        return;
    for (type->index_size = 8; type->index_size < 2 * type->count;)
        type->index_size *= 2;
    type->index = ARENA_ARRAY(&v->arena, uint16_t, type->index_size);
    for (size_t i = 0; i < type->count; i++) {
        size_t at = hash_of(type->fields[i].name) & (type->index_size - 1);
        while (type->index[at])
            at = (at + 1) & (type->index_size - 1);
        type->index[at] = (uint16_t)(i + 1);
        if (type->fields[i].shape.kind == API_OBJECT && !type->fields[i].shape.type->name)
            make_index(v, (struct api_type *)(uintptr_t)type->fields[i].shape.type);
    }
}

static struct version *version_of(unsigned number)
{
    char *columns[COLUMNS];

    if (number < API_FIRST || number > API_LAST)
        return NULL;
    if (versions[number]) /* (1) */
        return versions[number];
    struct version *v = NEW(struct version);
    arena_init(&v->arena);
    map_init(&v->names);
    for (const char *line = slurm_api_rows; *line;) {
        size_t len = strcspn(line, "\n");
        size_t count = split(v, line, len, columns);
        take_row(v, number, columns, count);
        line += len + 1;
    }
    v->list = ARENA_ARRAY(&v->arena, struct api_type, v->types.len + 1);
    for (size_t i = 0; i < v->types.len; i++) {
        make_index(v, v->types.items[i]);
        v->list[i] = *v->types.items[i];
    }
    versions[number] = v;
    return v;
}

/* ---- asking ---- */

const struct api_type *api_object(unsigned version, const char *name)
{
    struct version *v = version_of(version);

    return v && name ? map_get(&v->names, name) : NULL;
}

const struct api_type *api_types(unsigned version, size_t *count)
{
    struct version *v = version_of(version);

    *count = v ? v->types.len : 0;
    return v ? v->list : NULL;
}

const struct api_operation *api_operation_of(unsigned version, const char *method, const char *path)
{
    struct version *v = version_of(version);

    for (size_t i = 0; v && i < v->operations.len; i++) {
        const struct api_operation *operation = &v->operations.items[i];
        if (strcmp(operation->method, method) == 0 && strcmp(operation->path, path) == 0)
            return operation;
    }
    return NULL;
}

int api_field_find(const struct api_type *type, const char *name)
{
    size_t at = hash_of(name) & (type->index_size - 1);

    for (; type->index[at]; at = (at + 1) & (type->index_size - 1)) {
        if (strcmp(type->fields[type->index[at] - 1].name, name) == 0)
            return type->index[at] - 1;
    }
    return -1;
}

unsigned api_version_read(const char *text)
{
    const char *digits = str_starts(text, "v0.0.") ? text + 5 : text;
    uint64_t number;

    if (!str_to_u64(digits, API_LAST, &number) || number < API_FIRST)
        return 0;
    return (unsigned)number;
}
