/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c -- run a fuzz target over the files of folders, each whole and cut at every place. */
#include <dirent.h>
#include <string.h>

#include "fuzz.h"

#define SEED_BYTES_MAX 65536u

static void run_cuts(const uint8_t *seed, size_t bytes)
{
    for (size_t cut = 0; cut <= bytes; cut++) {
        /* A copy of its own, so that the address sanitizer sees a read past the cut. */
        uint8_t *copy = malloc(cut > 0 ? cut : 1);
        MUST(copy != NULL);
        memcpy(copy, seed, cut);
        LLVMFuzzerTestOneInput(copy, cut);
        free(copy);
    }
}

static void run_file(const char *path)
{
    uint8_t *seed = malloc(SEED_BYTES_MAX);
    FILE *file = fopen(path, "rb");

    MUST(seed != NULL);
    MUST(file != NULL);
    const size_t bytes = fread(seed, 1, SEED_BYTES_MAX, file);
    fclose(file);
    run_cuts(seed, bytes);
    free(seed);
}

static size_t run_folder(const char *path)
{
    size_t files = 0;
    DIR *folder = opendir(path);

    if (folder == NULL) {
        perror(path);
        return 0;
    }
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (entry->d_name[0] == '.')
            continue;
        char name[4096];
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        run_file(name);
        files++;
    }
    closedir(folder);
    return files;
}

int main(int argc, char **argv)
{
    size_t files = 0;

    for (int i = 1; i < argc; i++)
        files += run_folder(argv[i]);
    printf("%zu seeds, whole and cut at every place\n", files);
    return files > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
