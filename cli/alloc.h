/* SPDX-License-Identifier: Apache-2.0 */
/* alloc.h -- memory that lives as long as the command does. No caller frees it or checks it: a
 * command without memory says so, and its process exits.
 *
 * What `sumac run` has started does not outlive its exit: the kernel kills the ps, and a keeper
 * kills its worker (run_children.c).
 */
#pragma once

#include <stddef.h>

/* Zeroed memory for `count` items of `bytes` bytes. */
void *cli_alloc(size_t count, size_t bytes);
/* A copy of the first `bytes` bytes of the text, and a NUL. */
char *cli_copy(const char *text, size_t bytes);
/* The `count` items, with room for one more behind them; NULL has none. */
void *cli_grow(void *items, size_t count, size_t bytes);

/* The memory that the C library gave, for its caller to free, unless it gave none. */
void *cli_need(void *memory);
