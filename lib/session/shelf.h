/* SPDX-License-Identifier: Apache-2.0 */
/* shelf.h -- blocks of any size from a memory source, kept by powers of two for the next taker.
 *
 * A push's and a pull's pieces are of any number; what one has given back serves the next, so that
 * a session in its stride asks the source for nothing. The shelf never holds more than what was out
 * at once, by size.
 */
#ifndef SESSION_SHELF_H
#define SESSION_SHELF_H

#include <stddef.h>
#include <stdint.h>

#include "memory.h"

#define SHELF_CLASSES 48

struct shelf_block;

struct shelf {
    const struct memory *memory;
    struct shelf_block *all;                 /* singly linked, for deinit */
    struct shelf_block *free[SHELF_CLASSES]; /* by the power of two of their bytes */
};

void shelf_init(struct shelf *shelf, const struct memory *memory);
/* Gives everything back to the source, what is still out included. */
void shelf_deinit(struct shelf *shelf);
/* 64-byte aligned, not zeroed; NULL when the source has no more. */
void *shelf_take(struct shelf *shelf, size_t bytes);
void shelf_give(struct shelf *shelf, void *data);

#endif
