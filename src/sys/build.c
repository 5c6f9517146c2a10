/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.c - which build of Spur this program is
 */
#include "sys/build.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

enum { ID_BYTES = 4 };

struct found {
    char id[2 * ID_BYTES + 1];
};

static void read_notes(const char *at, const char *end, struct found *found)
{
    while ((size_t)(end - at) >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) head;
        memcpy(&head, at, sizeof(head));
        const char *name = at + sizeof(head);
        const char *id = name + ((head.n_namesz + 3u) & ~3u);
        if (head.n_type == NT_GNU_BUILD_ID && head.n_descsz >= ID_BYTES && head.n_namesz == 4 &&
            memcmp(name, "GNU", 4) == 0 && end - id >= ID_BYTES) {
            for (unsigned i = 0; i < ID_BYTES; i++)
                snprintf(found->id + 2 * i, 3, "%02x", (unsigned)(unsigned char)id[i]);
            return;
        }
        at = id + ((head.n_descsz + 3u) & ~3u);
    }
}

/* The first object is the program itself. */
static int look(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const char *at = (const char *)(uintptr_t)(info->dlpi_addr + part->p_vaddr);
        if (part->p_type == PT_NOTE && !((struct found *)data)->id[0])
            read_notes(at, at + part->p_memsz, data);
    }
    return 1;
}

const char *build_name(void)
{
    static char name[64];
    struct found found = { "" };

    if (!name[0]) {
        dl_iterate_phdr(look, &found);
        snprintf(name, sizeof(name), "%s%s%s", SPUR_VERSION, found.id[0] ? "-" : "", found.id);
    }
    return name;
}
