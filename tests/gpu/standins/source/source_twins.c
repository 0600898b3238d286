/* SPDX-License-Identifier: Apache-2.0 */
/* source_twins.c -- in the place of twins.c and update_twins.c: a kernel's twin is its own source,
 * compiled for the CPU, and its threads are calls, one after the other.
 *
 * So what a kernel does with heads, tiles and tails is seen where there is no GPU; what nvcc makes
 * of it is not.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "kernel_arguments.h"
#include "standin.h"

#define BLOCKS 2
#define NAME_BYTES 64

struct source_index {
    unsigned x;
};
extern __thread struct source_index blockIdx, threadIdx;
extern const struct source_index gridDim, blockDim;
__thread struct source_index blockIdx, threadIdx;
const struct source_index gridDim = {BLOCKS}, blockDim = {CUDA_KERNEL_THREADS};

/* The next thread of the grid. False: that was the last one. */
static bool next_thread(void)
{
    if (++threadIdx.x < blockDim.x)
        return true;
    threadIdx.x = 0;
    if (++blockIdx.x < gridDim.x)
        return true;
    blockIdx.x = 0;
    return false;
}

/* Put where the host finds it in the place of an array's address. False: it is not there. */
static bool find(const char *name, uint64_t *address, uint64_t bytes)
{
    *address = (uint64_t)(uintptr_t)standin_array(name, *address, bytes);
    return *address != 0;
}

/* What an element has, by a kernel's name: that of a half type is 2 bytes. */
static uint64_t bytes_of(const char *name)
{
    return strstr(name, "64") != NULL ? 8 : strstr(name, "32") != NULL ? 4 : 2;
}

static CUresult run(const struct CUfunc_st *function, const void *argument)
{
    struct cuda_kernel_arguments given = *(const struct cuda_kernel_arguments *)argument;
    const bool widens = strstr(function->name, "widen") != NULL;
    const bool narrows = strstr(function->name, "narrow") != NULL;
    const bool adds = strstr(function->name, "accumulate") != NULL;
    const uint64_t bytes = bytes_of(function->name), wide = bytes == 2 ? 4 : bytes;
    const uint64_t to_bytes = given.count * (widens || adds ? wide : bytes);
    const bool is_check = strstr(function->name, "finite") != NULL;
    void (*called)(struct cuda_kernel_arguments given) = NULL;

    if (!find(function->name, &given.to, is_check ? sizeof(uint32_t) : to_bytes) ||
        !find(function->name, &given.from, given.count * (narrows ? wide : bytes)))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    memcpy(&called, &function->twin, sizeof called);
    do
        called(given);
    while (next_thread());
    return CUDA_SUCCESS;
}

static CUresult run_update(const struct CUfunc_st *function, const void *argument)
{
    struct cuda_update_arguments given = *(const struct cuda_update_arguments *)argument;
    const char *const name = function->name;
    const uint64_t bytes = bytes_of(name), slot = given.count * (bytes == 2 ? 4 : bytes);
    void (*called)(struct cuda_update_arguments given) = NULL;
    bool found = find(name, &given.value_out, given.count * bytes) &&
                 find(name, &given.value_in, given.count * bytes) &&
                 find(name, &given.gradient, given.is_wide ? slot : given.count * bytes);

    for (int i = 0; found && i < UPDATE_SLOTS_MAX && given.slot_out[i] != 0; i++)
        found = find(name, &given.slot_out[i], slot) && find(name, &given.slot_in[i], slot);
    if (!found)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    memcpy(&called, &function->twin, sizeof called);
    do
        called(given);
    while (next_thread());
    return CUDA_SUCCESS;
}

/* This library is the driver of the program that it runs in. */
static const void *find_kernel(const char *name)
{
    char symbol[NAME_BYTES];
    void *own = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

    (void)snprintf(symbol, sizeof symbol, "sumac_%s", name);
    const void *found = own == NULL ? NULL : dlsym(own, symbol);
    if (own != NULL)
        (void)dlclose(own);
    return found;
}

bool standin_twin_find(const char *name, struct CUfunc_st *function)
{
    const void *found = find_kernel(name);

    if (strncmp(name, "update_", 7) == 0 || found == NULL)
        return false;
    *function = (struct CUfunc_st){
        .run = run, .argument_bytes = sizeof(struct cuda_kernel_arguments), .twin = found};
    return true;
}

bool standin_update_twin_find(const char *name, struct CUfunc_st *function)
{
    const void *found = find_kernel(name);

    if (strncmp(name, "update_", 7) != 0 || found == NULL)
        return false;
    *function = (struct CUfunc_st){
        .run = run_update, .argument_bytes = sizeof(struct cuda_update_arguments), .twin = found};
    return true;
}
