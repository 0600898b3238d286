/* SPDX-License-Identifier: Apache-2.0 */
/* source.c -- pieces of memory with a header each, so that what a core forgot to give back can be
 * counted and dropped. */
#include "source.h"

#include <stdlib.h>
#include <string.h>

#define RUBBISH 0xa5
#define RUBBISH_BYTES_MAX 65536u /* of a piece; the rest of a large one is whatever it was */

#if defined(__SANITIZE_ADDRESS__)
#define KEEP_PIECES 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KEEP_PIECES 0
#endif
#endif
#ifndef KEEP_PIECES
#define KEEP_PIECES 1
#endif

struct source_piece {
    struct source_piece *previous, *next;
    size_t bytes;
    uint32_t size_class;
    void *base; /* as it was allocated: of a slab, whose bytes are aligned, more than the piece */
    _Alignas(64) uint8_t data[];
};

#define SLAB_CLASS SOURCE_CLASSES

/* Size classes: 4 to each power of two from 64 bytes on, so that little is wasted; and slabs. */
static uint32_t class_of(size_t bytes, size_t *class_bytes)
{
    *class_bytes = bytes;
    if (bytes == MEMORY_SLAB_BYTES)
        return SLAB_CLASS;
    size_t size = 64;
    uint32_t size_class = 0;
    while (size < bytes && size_class + 1 < SOURCE_CLASSES) {
        size += size / 2;
        size = (size + 63) / 64 * 64;
        size_class++;
    }
    *class_bytes = size < bytes ? bytes : size;
    return size_class;
}

static void rubbish(struct source_piece *piece)
{
    memset(
        piece->data, RUBBISH, piece->bytes < RUBBISH_BYTES_MAX ? piece->bytes : RUBBISH_BYTES_MAX);
}

static struct source_piece *make(size_t bytes, uint32_t size_class)
{
    const bool slab = size_class == SLAB_CLASS;
    const size_t before = slab ? MEMORY_SLAB_BYTES : sizeof(struct source_piece);
    uint8_t *base = aligned_alloc(slab ? MEMORY_SLAB_BYTES : 64, before + bytes);

    if (base == NULL)
        return NULL;
    struct source_piece *piece =
        (struct source_piece *)(void *)(base + before - sizeof(struct source_piece));
    piece->base = base;
    piece->size_class = size_class;
    return piece;
}

static bool is_kept(uint32_t size_class) { return KEEP_PIECES && size_class + 1 != SOURCE_CLASSES; }

static void *take(void *context, size_t bytes)
{
    struct source *source = context;
    size_t class_bytes;
    const uint32_t size_class = class_of(bytes, &class_bytes);
    struct source_piece *piece = source->free[size_class];

    if (is_kept(size_class) && piece != NULL)
        source->free[size_class] = piece->next;
    else
        piece = make(KEEP_PIECES ? class_bytes : (bytes + 63) / 64 * 64, size_class);
    if (piece == NULL)
        return NULL;
    piece->bytes = bytes;
    piece->previous = NULL;
    piece->next = source->out;
    if (source->out != NULL)
        source->out->previous = piece;
    source->out = piece;
    source->taken++;
    source->bytes_out += bytes;
    rubbish(piece);
    return piece->data;
}

static void keep(struct source *source, struct source_piece *piece)
{
    if (!is_kept(piece->size_class)) {
        free(piece->base);
        return;
    }
    piece->next = source->free[piece->size_class];
    source->free[piece->size_class] = piece;
}

static void give(void *context, void *data, size_t bytes)
{
    struct source *source = context;
    struct source_piece *piece =
        (struct source_piece *)((uint8_t *)data - offsetof(struct source_piece, data));

    if (piece->bytes != bytes)
        source->sizes_wrong++;
    if (piece->previous != NULL)
        piece->previous->next = piece->next;
    else
        source->out = piece->next;
    if (piece->next != NULL)
        piece->next->previous = piece->previous;
    source->given++;
    source->bytes_out -= piece->bytes;
    rubbish(piece);
    keep(source, piece);
}

void source_init(struct source *source)
{
    *source = (struct source){.memory = {.take = take, .give = give, .context = source}};
}

uint64_t source_drop(struct source *source)
{
    uint64_t dropped = 0;

    while (source->out != NULL) {
        struct source_piece *piece = source->out;
        source->out = piece->next;
        keep(source, piece);
        dropped++;
    }
    source->taken = source->given = source->bytes_out = source->sizes_wrong = 0;
    return dropped;
}

void source_deinit(struct source *source)
{
    source_drop(source);
    for (uint32_t size_class = 0; size_class <= SLAB_CLASS; size_class++) {
        while (source->free[size_class] != NULL) {
            struct source_piece *piece = source->free[size_class];
            source->free[size_class] = piece->next;
            free(piece->base);
        }
    }
}
