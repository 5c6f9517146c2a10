/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.c - recorded machines
 */
#include "spurd/test/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "sys/files.h"

static void write_below(const char *dir, const char *path, const struct str *text)
{
    char *full = mem_printf("%s%s", dir, path), *slash = strrchr(full, '/');

    *slash = '\0';
    if (file_make_dirs(full, 0755, NULL) < 0)
        abort();
    *slash = '/';
    if (file_write_quick(full, str_text(text), text->len, 0644, NULL) < 0)
        abort();
    free(full);
}

void tree_unpack(const char *name, char *dir)
{
    CLEANUP(freep) char *path = mem_printf("%s/%s", getenv("SPUR_TREES"), name);
    FILE *file = fopen(path, "r");
    char line[4096], current[512] = "";
    struct str text = { 0 };

    if (!file || !mkdtemp(dir)) {
        perror(path);
        abort();
    }
    while (fgets(line, sizeof(line), file)) {
        if (line[0] == '#' && !current[0])
            continue;
        if (strncmp(line, "== ", 3) != 0) {
            str_add(&text, line);
            continue;
        }
        if (current[0])
            write_below(dir, current, &text);
        str_clear(&text);
        snprintf(current, sizeof(current), "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
    }
    if (current[0])
        write_below(dir, current, &text);
    str_done(&text);
    fclose(file);
}

void tree_remove(const char *dir)
{
    file_remove_tree(dir, NULL);
}
