/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - runs one target over the files of its corpus, without libFuzzer
 *
 * So that what the fuzzer found once is tested by every build: put the file into corpus/NAME/.
 */
#include <dirent.h>
#include <limits.h>

#include "fuzz/fuzz.h"

enum { MOST_BYTES = 1024 * 1024 };

static void replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = mem_new(MOST_BYTES);

    CHECK(file);
    size_t size = fread(data, 1, MOST_BYTES, file);
    CHECK(!ferror(file));
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
}

int main(int argc, char **argv)
{
    char path[PATH_MAX];
    struct dirent *entry;
    unsigned files = 0;

    if (argc != 2) {
        fprintf(stderr, "usage: %s CORPUS-FOLDER\n", argv[0]);
        return 2;
    }
    DIR *folder = opendir(argv[1]);
    CHECK(folder);
    while ((entry = readdir(folder))) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
        replay(path);
        files++;
    }
    closedir(folder);
    printf("%u files replayed\n", files);
    return files ? 0 : 1;
}
