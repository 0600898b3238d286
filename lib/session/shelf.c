/* SPDX-License-Identifier: Apache-2.0 */
/* shelf.c -- free lists by powers of two, each block under a header of one cache line. */
#include "shelf.h"

#include <assert.h>

#define CLASS_MIN 9 /* 512 bytes, header included */

struct shelf_block {
    struct shelf_block *next_free;
    struct shelf_block *next;
    uint32_t class;
};

#define HEADER_BYTES 64
_Static_assert(sizeof(struct shelf_block) <= HEADER_BYTES, "a block's header is one cache line");

void shelf_init(struct shelf *shelf, const struct memory *memory)
{
    *shelf = (struct shelf){.memory = memory};
}

void shelf_deinit(struct shelf *shelf)
{
    struct shelf_block *block = shelf->all;
    while (block != NULL) {
        struct shelf_block *next = block->next;
        memory_give(shelf->memory, block, (size_t)1 << block->class);
        block = next;
    }
    *shelf = (struct shelf){.memory = shelf->memory};
}

void *shelf_take(struct shelf *shelf, size_t bytes)
{
    uint32_t class = CLASS_MIN;
    while (class < SHELF_CLASSES && ((size_t)1 << class) - HEADER_BYTES < bytes)
        class ++;
    if (class == SHELF_CLASSES)
        return NULL;
    assert(class >= CLASS_MIN);
    struct shelf_block *block = shelf->free[class];
    if (block != NULL) {
        shelf->free[class] = block->next_free;
        return (uint8_t *)block + HEADER_BYTES;
    }
    block = memory_take(shelf->memory, (size_t)1 << class);
    if (block == NULL)
        return NULL;
    block->class = class;
    block->next = shelf->all;
    shelf->all = block;
    return (uint8_t *)block + HEADER_BYTES;
}

void shelf_give(struct shelf *shelf, void *data)
{
    if (data == NULL)
        return;
    struct shelf_block *block = (struct shelf_block *)(void *)((uint8_t *)data - HEADER_BYTES);
    assert(block->class < SHELF_CLASSES);
    block->next_free = shelf->free[block->class];
    shelf->free[block->class] = block;
}
