/* SPDX-License-Identifier: Apache-2.0 */
/* alloc.c -- one arena for the whole process. */
#include "alloc.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "memory.h"

void *cli_need(void *memory)
{
    if (memory != NULL)
        return memory;
    fputs("sumac: there is no memory for this command\n", stderr);
    exit(EXIT_RETRYABLE);
}

void *cli_alloc(size_t count, size_t bytes)
{
    static struct arena arena;
    size_t all = 0;

    if (arena.memory == NULL)
        arena_init(&arena, &memory_heap, SIZE_MAX / 8);
    if (__builtin_mul_overflow(count, bytes, &all) || all > SIZE_MAX / 16)
        return cli_need(NULL);
    return cli_need(arena_take_zeroed(&arena, all + 1));
}

char *cli_copy(const char *text, size_t bytes)
{
    char *const copy = cli_alloc(bytes + 1, 1);

    memcpy(copy, text, bytes);
    return copy;
}

/* It has room for 1, 2, 4, 8, … items. */
void *cli_grow(void *items, size_t count, size_t bytes)
{
    if (count != 0 && (count & (count - 1)) != 0)
        return items;
    void *const grown = cli_alloc(count == 0 ? 1 : 2 * count, bytes);
    if (count != 0)
        memcpy(grown, items, count * bytes);
    return grown;
}
