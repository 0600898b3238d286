/* SPDX-License-Identifier: Apache-2.0 */
/* scarce_heap.h -- a heap of which one take fails: the linker puts these functions between the
 * library and the C library's (--wrap). One file of a program includes it.
 */
#pragma once

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

static atomic_int live, fails_in; /* the take that fails, from now on; 0: none does */
static atomic_bool has_failed;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
char *__real_strdup(const char *text);
int __real_posix_memalign(void **memory, size_t alignment, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
char *__wrap_strdup(const char *text);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes);
void __wrap_free(void *memory);

static bool fails(void)
{
    if (fails_in == 0 || atomic_fetch_sub(&fails_in, 1) != 1)
        return false;
    has_failed = true;
    return true;
}

static void *count(void *memory)
{
    live += memory != NULL;
    return memory;
}

void *__wrap_malloc(size_t bytes) { return fails() ? NULL : count(__real_malloc(bytes)); }

void *__wrap_calloc(size_t number, size_t bytes)
{
    return fails() ? NULL : count(__real_calloc(number, bytes));
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    if (fails())
        return NULL;
    void *const grown = __real_realloc(memory, bytes);
    live += memory == NULL && grown != NULL;
    return grown;
}

char *__wrap_strdup(const char *text) { return fails() ? NULL : count(__real_strdup(text)); }

int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    const int failed = fails() ? ENOMEM : __real_posix_memalign(memory, alignment, bytes);

    live += failed == 0;
    return failed;
}

void __wrap_free(void *memory)
{
    live -= memory != NULL;
    __real_free(memory);
}
