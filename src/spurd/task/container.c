/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container.c - the words that make a program run inside an image
 */
#include "spurd/task/container.h"

#include "base/util.h"

enum { MOST_WORDS = 32 };

struct words {
    char **list;
    size_t count;
};

static void add(struct words *words, const char *word)
{
    words->list[words->count++] = (char *)word;
}

static void add_text(struct words *words, const char *option, const char *value)
{
    if (str_is_empty(value))
        return;
    add(words, option);
    add(words, value);
}

static void add_flag(struct words *words, const char *option, bool on)
{
    if (on)
        add(words, option);
}

char **container_words(const char *program, const StepContainer *container, const char *visible,
                       const char *too, struct arena *arena, size_t *count)
{
    struct words words = { .list = ARENA_ARRAY(arena, char *, MOST_WORDS) };

    add(&words, program);
    add(&words, "run");
    if (!str_is_empty(container->image))
        add_text(&words, "--image", container->image);
    else
        add_text(&words, "--bundle", container->bundle);
    add_text(&words, "--mounts", container->mounts);
    add_text(&words, "--workdir", container->workdir);
    add_text(&words, "--name", container->name);
    add_text(&words, "--env", container->env);
    if (!str_is_empty(visible) && !str_is_empty(too))
        visible = arena_printf(arena, "%s,%s", visible, too);
    add_text(&words, "--visible", str_is_empty(visible) ? too : visible);
    add_flag(&words, "--mount-home", container->mount_home);
    add_flag(&words, "--entrypoint", container->entrypoint);
    add_flag(&words, "--readonly", container->readonly);
    add_flag(&words, "--remap-root", container->remap_root);
    add(&words, "--");
    *count = words.count;
    return words.list;
}
