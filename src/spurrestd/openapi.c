/* SPDX-License-Identifier: Apache-2.0 */
/*
 * openapi.c - GET /openapi: what there is, written from the tables that also serve it
 *
 * Paths come from routes.c, jobs, nodes and partitions from the field tables, the description of a job that is submitted
 * from job_desc.c. So nothing is described that is not served, and the other way round.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/field.h"
#include "spurrestd/answer.h"
#include "spurrestd/job_desc.h"
#include "spurrestd/routes.h"

static void add_ref(struct jsonw *json, const char *key, const char *schema)
{
    char text[96];

    snprintf(text, sizeof(text), "#/components/schemas/%s", schema);
    if (key)
        jsonw_object(json, key);
    jsonw_text(json, "$ref", text);
    if (key)
        jsonw_object_end(json);
}

/* ---- schemas ---- */

static void add_shape(struct jsonw *json, const struct field *field)
{
    switch (field->json.shape) {
    case SHAPE_TEXT:
    case SHAPE_SHOWN:
        jsonw_text(json, "type", "string");
        break;
    case SHAPE_NUMBER:
        jsonw_text(json, "type", "integer");
        jsonw_text(json, "format", "int64");
        break;
    case SHAPE_BOOL:
        jsonw_text(json, "type", "boolean");
        break;
    case SHAPE_SET:
    case SHAPE_SET_0:
    case SHAPE_TIME:
        add_ref(json, NULL, "optional_number");
        return; /* beside $ref nothing counts */
    case SHAPE_WORDS:
        jsonw_text(json, "type", "array");
        jsonw_object(json, "items");
        jsonw_text(json, "type", "string");
        jsonw_object_end(json);
        break;
    default:
        break;
    }
    if (field->help)
        jsonw_text(json, "description", field->help);
}

/* Rows of one object; "defaults.time" is `time` in the object `defaults`. */
static void add_properties(struct jsonw *json, const struct field_table *table, const char *prefix)
{
    size_t len = strlen(prefix);

    jsonw_text(json, "type", "object");
    jsonw_object(json, "properties");
    for (size_t i = 0; i < table->count; i++) {
        const struct field *field = &table->rows[i];
        const char *name = field->json.name;
        if (!name || field->skip || strncmp(name, prefix, len) != 0)
            continue;
        const char *rest = name + len, *dot = strchr(rest, '.');
        if (!dot) {
            jsonw_object(json, rest);
            add_shape(json, field);
            jsonw_object_end(json);
            continue;
        }
        char inner[128], key[64];
        bool again = false;
        snprintf(inner, sizeof(inner), "%.*s", (int)(dot - name + 1), name);
        snprintf(key, sizeof(key), "%.*s", (int)(dot - rest), rest);
        for (size_t k = 0; k < i && !again; k++)
            again = table->rows[k].json.name && !table->rows[k].skip &&
                    str_starts(table->rows[k].json.name, inner);
        if (again)
            continue;
        jsonw_object(json, key);
        add_properties(json, table, inner);
        jsonw_object_end(json);
    }
    jsonw_object_end(json);
}

static void add_desc_row(struct jsonw *json, const struct job_desc_row *row)
{
    jsonw_object(json, row->name);
    switch (row->kind) {
    case DESC_YES:
    case DESC_YES_NO:
        jsonw_text(json, "type", "boolean");
        break;
    case DESC_LIST:
        jsonw_text(json, "type", "array");
        jsonw_object(json, "items");
        jsonw_text(json, "type", "string");
        jsonw_object_end(json);
        break;
    case DESC_TEXT:
    case DESC_GPUS:
        jsonw_text(json, "type", "string");
        break;
    default: /* a number, { set, infinite, number }, or a list: see the description */
        break;
    }
    jsonw_text(json, "description", row->help);
    jsonw_object_end(json);
}

static void add_simple(struct jsonw *json, const char *key, const char *type)
{
    jsonw_object(json, key);
    jsonw_text(json, "type", type);
    jsonw_object_end(json);
}

static void add_list_of(struct jsonw *json, const char *key, const char *schema)
{
    jsonw_object(json, key);
    jsonw_text(json, "type", "array");
    add_ref(json, "items", schema);
    jsonw_object_end(json);
}

static void add_slurm_types(struct jsonw *json);

static void add_schemas(struct jsonw *json)
{
    static const struct {
        const char *name;
        const struct field_table *table;
    } tables[] = { { "job_info", &job_fields },
                   { "node", &node_fields },
                   { "partition_info", &partition_fields } };

    jsonw_object(json, "schemas");
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        jsonw_object(json, tables[i].name);
        add_properties(json, tables[i].table, "");
        jsonw_object_end(json);
    }
    jsonw_object(json, "job_desc_msg");
    jsonw_text(json, "type", "object");
    jsonw_object(json, "properties");
    for (size_t i = 0; i < job_desc_count; i++) {
        if (job_desc_rows[i].kind != DESC_REFUSED)
            add_desc_row(json, &job_desc_rows[i]);
    }
    jsonw_object_end(json);
    jsonw_object_end(json);
    jsonw_object(json, "optional_number");
    jsonw_text(json, "type", "object");
    jsonw_object(json, "properties");
    add_simple(json, "set", "boolean");
    add_simple(json, "infinite", "boolean");
    add_simple(json, "number", "integer");
    jsonw_object_end(json);
    jsonw_object_end(json);
    jsonw_object(json, "optional_decimal");
    jsonw_text(json, "type", "object");
    jsonw_object(json, "properties");
    add_simple(json, "set", "boolean");
    add_simple(json, "infinite", "boolean");
    add_simple(json, "number", "number");
    jsonw_object_end(json);
    jsonw_object_end(json);
    add_slurm_types(json);
    jsonw_object(json, "error");
    jsonw_text(json, "type", "object");
    jsonw_object(json, "properties");
    add_simple(json, "description", "string");
    add_simple(json, "error_number", "integer");
    add_simple(json, "error", "string");
    add_simple(json, "source", "string");
    jsonw_object_end(json);
    jsonw_object_end(json);
    jsonw_object_end(json);
}

/* ---- Slurm's objects, by slurm_api.tsv ---- */

static void add_slurm_shape(struct jsonw *json, const char *key, unsigned version,
                            const struct api_shape *shape);

static void add_type(struct jsonw *json, const char *key, unsigned version,
                     const struct api_type *type)
{
    bool any = false;

    jsonw_object(json, key);
    jsonw_text(json, "type", "object");
    jsonw_object(json, "properties");
    for (size_t i = 0; i < type->count; i++) {
        add_slurm_shape(json, type->fields[i].name, version, &type->fields[i].shape);
        any = any || type->fields[i].required;
    }
    jsonw_object_end(json);
    if (any) {
        jsonw_list(json, "required");
        for (size_t i = 0; i < type->count; i++) {
            if (type->fields[i].required)
                jsonw_text(json, NULL, type->fields[i].name);
        }
        jsonw_list_end(json);
    }
    jsonw_object_end(json);
}

static void add_type_ref(struct jsonw *json, const char *key, unsigned version, const char *name)
{
    char text[160];

    snprintf(text, sizeof(text), "#/components/schemas/v0.0.%u_%s", version, name);
    jsonw_object(json, key);
    jsonw_text(json, "$ref", text);
    jsonw_object_end(json);
}

static void add_words(struct jsonw *json, const char *words)
{
    const char *cursor = words;
    struct span word;

    jsonw_text(json, "type", "string");
    jsonw_list(json, "enum");
    while (str_next(&cursor, "|", &word))
        jsonw_text_len(json, NULL, word.ptr, word.len);
    jsonw_list_end(json);
}

static void add_slurm_shape(struct jsonw *json, const char *key, unsigned version,
                            const struct api_shape *shape)
{
    static const char *const types[] = {
        [API_TEXT] = "string", [API_INT] = "integer", [API_NUM] = "number", [API_BOOL] = "boolean"
    };

    if (shape->kind == API_OBJECT && shape->type->name) {
        add_type_ref(json, key, version, shape->type->name);
    } else if (shape->kind == API_OBJECT) {
        add_type(json, key, version, shape->type);
    } else if (shape->kind == API_SET) {
        add_ref(json, key, shape->decimal ? "optional_decimal" : "optional_number");
    } else {
        jsonw_object(json, key);
        if (shape->kind == API_LIST) {
            jsonw_text(json, "type", "array");
            add_slurm_shape(json, "items", version, shape->item);
        } else if (shape->kind == API_WORD) {
            add_words(json, shape->words);
        } else if (shape->kind != API_ANY) {
            jsonw_text(json, "type", types[shape->kind]);
            if (shape->kind == API_INT)
                jsonw_text(json, "format", "int64");
        }
        jsonw_object_end(json);
    }
}

static void add_slurm_types(struct jsonw *json)
{
    for (unsigned version = API_FIRST; version <= API_LAST; version++) {
        size_t count;
        const struct api_type *types = api_types(version, &count);
        for (size_t i = 0; i < count; i++) {
            char name[128];
            snprintf(name, sizeof(name), "v0.0.%u_%s", version, types[i].name);
            add_type(json, name, version, &types[i]);
        }
    }
}

/* ---- paths ---- */

/* What the answer holds beside meta, errors and warnings: the last word of the path says it. */
static const struct {
    const char *word, *key, *schema;
} holds[] = {
    { "jobs", "jobs", "job_info" },
    { "job", "jobs", "job_info" },
    { "nodes", "nodes", "node" },
    { "node", "nodes", "node" },
    { "partitions", "partitions", "partition_info" },
    { "partition", "partitions", "partition_info" },
};

static void add_answer(struct jsonw *json, const struct route *route, const char *word)
{
    jsonw_object(json, "schema");
    jsonw_text(json, "type", "object");
    jsonw_object(json, "properties");
    for (size_t i = 0; route->method == HTTP_GET && i < ARRAY_LEN(holds); i++) {
        if (strcmp(word, holds[i].word) == 0)
            add_list_of(json, holds[i].key, holds[i].schema);
    }
    add_simple(json, "meta", "object");
    add_list_of(json, "errors", "error");
    add_list_of(json, "warnings", "error");
    jsonw_object_end(json);
    jsonw_object_end(json);
}

static void add_contents(struct jsonw *json, const struct route *route, const char *word)
{
    static const char *const types[] = { "application/json", "application/yaml" };

    jsonw_object(json, "content");
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        jsonw_object(json, types[i]);
        add_answer(json, route, word);
        jsonw_object_end(json);
    }
    jsonw_object_end(json);
}

static void add_body(struct jsonw *json, const char *path)
{
    bool submits = str_ends(path, "job/submit") || str_ends(path, "job/allocate");

    jsonw_object(json, "requestBody");
    jsonw_object(json, "content");
    jsonw_object(json, "application/json");
    jsonw_object(json, "schema");
    jsonw_text(json, "type", "object");
    if (submits) {
        jsonw_object(json, "properties");
        add_ref(json, "job", "job_desc_msg");
        add_simple(json, "script", "string");
        jsonw_object_end(json);
    }
    jsonw_object_end(json);
    jsonw_object_end(json);
    jsonw_object_end(json);
    jsonw_object_end(json);
}

static void add_path_parameters(struct jsonw *json, const char *path)
{
    for (const char *at = strchr(path, '{'); at; at = strchr(at + 1, '{')) {
        char name[64];
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(at + 1, "}"), at + 1);
        jsonw_object(json, NULL);
        jsonw_text(json, "name", name);
        jsonw_text(json, "in", "path");
        jsonw_bool(json, "required", true);
        add_simple(json, "schema", "string");
        jsonw_object_end(json);
    }
}

/* slurm_v0042_get_job: as Slurm calls its operations. *word becomes the last word of the path that is not in braces. */
static void operation_id(const struct route *route, const char *path, struct str *out, char *word,
                         size_t room)
{
    const char *cursor = path;
    struct span part;
    bool first = true;
    unsigned seen = 0;

    word[0] = '\0';
    while (str_next(&cursor, "/", &part)) {
        if (part.ptr[0] == '{')
            continue;
        if (seen++ == 2) {
            str_add_char(out, '_');
            for (const char *c = http_method_name(route->method); *c; c++)
                str_add_char(out, (char)(*c + 32));
        }
        if (!first)
            str_add_char(out, '_');
        for (size_t i = 0; i < part.len; i++) {
            if (part.ptr[i] != '.')
                str_add_char(out, part.ptr[i]);
        }
        snprintf(word, room, "%.*s", (int)part.len, part.ptr);
        first = false;
    }
}

/* "slurm_{v}_get_job" is slurm_v0042_get_job. */
static void add_slurm_id(struct str *out, const char *id, unsigned version)
{
    const char *at = strstr(id, "{v}");

    if (!at)
        str_add(out, id);
    else
        str_addf(out, "%.*sv00%u%s", (int)(at - id), id, version, at + 3);
}

static void add_query_parameters(struct jsonw *json, const char *names)
{
    const char *cursor = names;
    struct span word;

    while (cursor && str_next(&cursor, ",", &word)) {
        jsonw_object(json, NULL);
        jsonw_text_len(json, "name", word.ptr, word.len);
        jsonw_text(json, "in", "query");
        jsonw_bool(json, "required", false);
        add_simple(json, "schema", "string");
        jsonw_object_end(json);
    }
}

static void add_slurm_contents(struct jsonw *json, unsigned version, const char *type)
{
    static const char *const types[] = { "application/json", "application/yaml" };

    jsonw_object(json, "content");
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        jsonw_object(json, types[i]);
        add_type_ref(json, "schema", version, type);
        jsonw_object_end(json);
    }
    jsonw_object_end(json);
}

/* An operation of Slurm, as slurm_api.tsv has it. */
static void add_slurm_operation(struct jsonw *json, const struct route *route, const char *path,
                                unsigned version, const struct api_operation *operation)
{
    static const struct {
        const char *status, *text;
    } answers[] = { { "200", "It was done, and this is what was asked for." },
                    { "default", "It was refused; errors say why." } };
    struct str id = { 0 }, method = { 0 };

    str_add(&method, http_method_name(route->method));
    for (size_t i = 0; i < method.len; i++)
        method.data[i] = (char)(method.data[i] + 32);
    add_slurm_id(&id, operation->id, version);
    jsonw_object(json, str_text(&method));
    jsonw_text(json, "operationId", str_text(&id));
    jsonw_text(json, "summary", route->help);
    jsonw_list(json, "parameters");
    add_path_parameters(json, path);
    add_query_parameters(json, operation->params);
    jsonw_list_end(json);
    if (operation->body) {
        jsonw_object(json, "requestBody");
        add_slurm_contents(json, version, operation->body);
        jsonw_object_end(json);
    }
    jsonw_object(json, "responses");
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        jsonw_object(json, answers[i].status);
        jsonw_text(json, "description", answers[i].text);
        if (operation->answer)
            add_slurm_contents(json, version, operation->answer);
        jsonw_object_end(json);
    }
    jsonw_object_end(json);
    jsonw_object_end(json);
    str_done(&id);
    str_done(&method);
}

static void add_operation(struct jsonw *json, const struct route *route, const char *path,
                          unsigned version)
{
    const struct api_operation *operation =
        api_operation_of(version, http_method_name(route->method), route->path);

    if (operation) {
        add_slurm_operation(json, route, path, version, operation);
        return;
    }
    struct str id = { 0 };
    char word[64], method[16];
    size_t len = strlen(http_method_name(route->method));
    snprintf(method, sizeof(method), "%s", http_method_name(route->method));
    for (size_t i = 0; i < len; i++)
        method[i] = (char)(method[i] + 32);
    operation_id(route, path, &id, word, sizeof(word));
    jsonw_object(json, method);
    jsonw_text(json, "operationId", str_text(&id));
    jsonw_text(json, "summary", route->help);
    jsonw_list(json, "parameters");
    add_path_parameters(json, path);
    jsonw_list_end(json);
    if (route->method == HTTP_POST)
        add_body(json, path);
    jsonw_object(json, "responses");
    jsonw_object(json, "200");
    jsonw_text(json, "description", "It was done, and this is what was asked for.");
    add_contents(json, route, word);
    jsonw_object_end(json);
    jsonw_object(json, "default");
    jsonw_text(json, "description", "It was refused; errors say why.");
    add_contents(json, route, "");
    jsonw_object_end(json);
    jsonw_object_end(json);
    jsonw_object_end(json);
    str_done(&id);
}

/* The path of one version; false: that version does not have the route. */
static bool spell(const struct route *route, unsigned version, char *out, size_t room)
{
    const char *at = strstr(route->path, "{v}");

    if (!at) {
        snprintf(out, room, "%s", route->path);
        return version == SLURM_VERSION_FIRST;
    }
    snprintf(out, room, "%.*sv0.0.%u%s", (int)(at - route->path), route->path, version, at + 3);
    return (!route->since || version >= route->since) && (!route->until || version <= route->until);
}

/* Methods of one path stand together: rows of a path need not. */
static void add_paths(struct jsonw *json)
{
    char path[128], other[128];

    jsonw_object(json, "paths");
    for (unsigned version = SLURM_VERSION_FIRST; version <= SLURM_VERSION_LAST; version++) {
        for (size_t i = 0; i < route_count; i++) {
            bool again = false;
            if (!spell(&routes[i], version, path, sizeof(path)))
                continue;
            for (size_t k = 0; k < i && !again; k++)
                again =
                    spell(&routes[k], version, other, sizeof(other)) && strcmp(path, other) == 0;
            if (again)
                continue;
            jsonw_object(json, path);
            for (size_t k = i; k < route_count; k++) {
                if (spell(&routes[k], version, other, sizeof(other)) && strcmp(path, other) == 0)
                    add_operation(json, &routes[k], path, version);
            }
            jsonw_object_end(json);
        }
    }
    jsonw_object_end(json);
}

static void add_security(struct jsonw *json)
{
    static const struct {
        const char *name, *header;
    } keys[] = { { "user", "X-SLURM-USER-NAME" }, { "token", "X-SLURM-USER-TOKEN" } };

    jsonw_object(json, "securitySchemes");
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        jsonw_object(json, keys[i].name);
        jsonw_text(json, "type", "apiKey");
        jsonw_text(json, "in", "header");
        jsonw_text(json, "name", keys[i].header);
        jsonw_object_end(json);
    }
    jsonw_object(json, "bearerAuth");
    jsonw_text(json, "type", "http");
    jsonw_text(json, "scheme", "bearer");
    jsonw_text(json, "bearerFormat", "JWT");
    jsonw_object_end(json);
    jsonw_object_end(json);
}

void get_openapi(struct exchange *x)
{
    struct str out = { 0 };
    struct jsonw json;

    if (str_ends(x->path, ".yaml"))
        x->format = FORMAT_YAML;
    (x->format == FORMAT_YAML ? jsonw_init_yaml : jsonw_init)(&json, &out);
    jsonw_object(&json, NULL);
    jsonw_text(&json, "openapi", "3.0.3");
    jsonw_object(&json, "info");
    jsonw_text(&json, "title", "Spur REST API");
    jsonw_text(&json, "version", SPUR_VERSION);
    jsonw_text(&json, "description",
               "The native API (/api/v1) and Slurm's (/slurm, /slurmdb, /util).");
    jsonw_object_end(&json);
    add_paths(&json);
    jsonw_object(&json, "components");
    add_schemas(&json);
    add_security(&json);
    jsonw_object_end(&json);
    jsonw_list(&json, "security");
    jsonw_object(&json, NULL);
    jsonw_list(&json, "bearerAuth");
    jsonw_list_end(&json);
    jsonw_object_end(&json);
    jsonw_object(&json, NULL);
    jsonw_list(&json, "user");
    jsonw_list_end(&json);
    jsonw_list(&json, "token");
    jsonw_list_end(&json);
    jsonw_object_end(&json);
    jsonw_list_end(&json);
    jsonw_object_end(&json);
    str_add_char(&out, '\n');
    exchange_reply(x, 200, answer_type(x), &out);
}
