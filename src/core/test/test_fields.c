/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_fields.c - every field that the log or a snapshot can hold has a level
 *
 * recorded/level1-fields has those that were there before levels, one "Message.field number" a line. A field
 * that is not among them needs a row in level.c, or older builds would be given what they cannot read. Fields
 * of a message that is new as a whole need none: the field that leads to it has one.
 * CORE_RECORD=DIR writes the list of this build.
 */
#include "core/level.h"
#include "core/test/fixture.h"

enum { MESSAGES = 256 };

struct walk {
    const ProtobufCMessageDescriptor *seen[MESSAGES];
    size_t count;
};

static void visit(struct walk *walk, const ProtobufCMessageDescriptor *type)
{
    for (size_t i = 0; i < walk->count; i++) {
        if (walk->seen[i] == type)
            return;
    }
    assert_true(walk->count < MESSAGES);
    walk->seen[walk->count++] = type;
    for (unsigned i = 0; i < type->n_fields; i++) {
        if (type->fields[i].type == PROTOBUF_C_TYPE_MESSAGE)
            visit(walk, type->fields[i].descriptor);
    }
}

static void walk_all(struct walk *walk)
{
    *walk = (struct walk){ 0 };
    visit(walk, &command__descriptor);
    visit(walk, &snapshot_record__descriptor);
}

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = mem_new(1 << 20);

    if (!file)
        fail_msg("%s cannot be read", path);
    size_t len = fread(text, 1, (1 << 20) - 1, file);
    fclose(file);
    text[len] = '\0';
    return text;
}

/* Names may change; numbers are what is written. */
static bool has_field(const char *text, const char *message, unsigned number)
{
    char start[128], name[128];
    unsigned id;

    snprintf(start, sizeof(start), "%s.", message);
    for (const char *at = text; at && *at; at = strchr(at, '\n'), at += at != NULL) {
        if (strncmp(at, start, strlen(start)) == 0 &&
            sscanf(at + strlen(start), "%127s %u", name, &id) == 2 && id == number)
            return true;
    }
    return false;
}

static bool has_message(const char *text, const char *name)
{
    char start[128];

    snprintf(start, sizeof(start), "\n%s.", name);
    return strstr(text, start) || strncmp(text, start + 1, strlen(start + 1)) == 0;
}

static void write_list(const struct walk *walk, const char *dir)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/level1-fields", dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (size_t i = 0; i < walk->count; i++) {
        for (unsigned k = 0; k < walk->seen[i]->n_fields; k++)
            fprintf(file, "%s.%s %u\n", walk->seen[i]->short_name, walk->seen[i]->fields[k].name,
                    walk->seen[i]->fields[k].id);
    }
    assert_int_equal(fclose(file), 0);
}

static void every_field_has_a_level(void **unused)
{
    struct walk walk;
    size_t known = 0;

    walk_all(&walk);
    if (getenv("CORE_RECORD")) {
        write_list(&walk, getenv("CORE_RECORD"));
        return;
    }
    char *text = read_text(CORE_RECORDED "/level1-fields");
    for (size_t i = 0; i < walk.count; i++) {
        const ProtobufCMessageDescriptor *type = walk.seen[i];
        for (unsigned k = 0; has_message(text, type->short_name) && k < type->n_fields; k++) {
            const ProtobufCFieldDescriptor *field = &type->fields[k];
            bool old = has_field(text, type->short_name, field->id);
            if (!old && !level_of_field(type, field->id))
                fail_msg("%s.%s is new and has no row in core/level.c", type->short_name,
                         field->name);
            if (old && level_of_field(type, field->id))
                fail_msg("%s.%s is of level 1 and has a row in core/level.c", type->short_name,
                         field->name);
            known += old;
        }
    }
    assert_true(known > 500);
    free(text);
}

UNIT_MAIN(UNIT(every_field_has_a_level))
