/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c -- device memory that the host cannot touch.
 *
 *     addresses that are handed out   [ guard | a | guard | b | …       ]  PROT_NONE
 *     what is there                   [       | a |       | b | …       ]  somewhere else
 *
 * No address is handed out twice, so what was given back is known when it comes again.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "standin.h"

#define SPAN (UINT64_C(64) << 30) /* addresses of a device */
#define PAGE UINT64_C(4096)
#define GARBAGE 0xa5 /* what new memory holds */

struct allocation {
    struct allocation *next;
    uint64_t address, bytes;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static struct space {
    char *addresses, *contents; /* (SPAN) of each */
    uint64_t next;              /* address that was not handed out yet, from the first on */
    uint64_t live_bytes;
    struct allocation *live;
} spaces[STANDIN_DEVICES_MAX];

static char *map(int protection)
{
    void *mapped = mmap(NULL, SPAN, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (mapped == MAP_FAILED)
        standin_object("no addresses for the memory of a device");
    return mapped;
}

static void prepare(struct space *space)
{
    if (space->addresses != NULL)
        return;
    space->addresses = map(PROT_NONE);
    space->contents = map(PROT_READ | PROT_WRITE);
    space->next = PAGE;
}

static struct space *space_of(uint64_t address)
{
    for (int i = 0; i < STANDIN_DEVICES_MAX; i++) {
        const uint64_t first = (uint64_t)(uintptr_t)spaces[i].addresses;
        if (first != 0 && address >= first && address - first < SPAN)
            return &spaces[i];
    }
    return NULL;
}

bool standin_is_devices(uint64_t address)
{
    pthread_mutex_lock(&mutex);
    const bool is = space_of(address) != NULL;
    pthread_mutex_unlock(&mutex);
    return is;
}

void *standin_memory(uint64_t address, uint64_t bytes)
{
    void *found = NULL;

    pthread_mutex_lock(&mutex);
    struct space *space = space_of(address);
    if (space == NULL)
        found = (void *)(uintptr_t)address;
    for (struct allocation *a = space == NULL ? NULL : space->live; a != NULL; a = a->next)
        if (address >= a->address && address - a->address <= a->bytes &&
            bytes <= a->bytes - (address - a->address))
            found = space->contents + (address - (uint64_t)(uintptr_t)space->addresses);
    pthread_mutex_unlock(&mutex);
    return found;
}

uint64_t standin_memory_forget(int device)
{
    struct space *space = &spaces[device];

    pthread_mutex_lock(&mutex);
    const uint64_t bytes = space->live_bytes;
    while (space->live != NULL) {
        struct allocation *gone = space->live;
        space->live = gone->next;
        free(gone);
    }
    space->live_bytes = 0;
    pthread_mutex_unlock(&mutex);
    return bytes;
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes)
{
    CUresult result = standin_enter(__func__, true);

    if (result != CUDA_SUCCESS)
        return result;
    if (bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct allocation *made = calloc(1, sizeof *made);
    struct space *space = &spaces[standin_current()->device];
    pthread_mutex_lock(&mutex);
    prepare(space);
    const uint64_t most = standin_number("SUMAC_STANDIN_MEMORY", UINT64_C(4) << 30);
    if (made == NULL || bytes > most - space->live_bytes || bytes > SPAN - space->next - 2 * PAGE) {
        free(made);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    } else {
        *made = (struct allocation){
            space->live, (uint64_t)(uintptr_t)space->addresses + space->next, bytes};
        memset(space->contents + space->next, GARBAGE, bytes);
        space->next += (bytes / PAGE + 2) * PAGE; /* one that nobody gets lies between */
        space->live_bytes += bytes;
        space->live = made;
        *address = made->address;
    }
    pthread_mutex_unlock(&mutex);
    return result;
}

/* Whoever reads or writes it afterwards is told: it is no allocation's. */
CUresult cuMemFree(CUdeviceptr address)
{
    const CUresult result = standin_enter(__func__, true);

    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&mutex);
    struct space *space = space_of(address);
    struct allocation **at = space == NULL ? NULL : &space->live;
    while (at != NULL && *at != NULL && (*at)->address != address)
        at = &(*at)->next;
    if (at == NULL || *at == NULL)
        standin_object("memory is freed that is not a device's, or not any more");
    struct allocation *gone = *at;
    *at = gone->next;
    space->live_bytes -= gone->bytes;
    const uint64_t offset = address - (uint64_t)(uintptr_t)space->addresses;
    (void)madvise(space->contents + offset, (gone->bytes / PAGE + 1) * PAGE, MADV_DONTNEED);
    pthread_mutex_unlock(&mutex);
    free(gone);
    return CUDA_SUCCESS;
}

/* ---- the host's, pinned */

CUresult cuMemHostAlloc(void **host, size_t bytes, unsigned int flags)
{
    const CUresult result = standin_enter(__func__, true);

    if (result != CUDA_SUCCESS)
        return result;
    if (bytes == 0 || flags != CU_MEMHOSTALLOC_PORTABLE)
        return CUDA_ERROR_INVALID_VALUE;
    void *made = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
    if (made == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memset(made, GARBAGE, bytes);
    atomic_fetch_add(&standin_current()->pinned, 1);
    *host = made;
    return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void *host)
{
    const CUresult result = standin_enter(__func__, true);

    if (result != CUDA_SUCCESS)
        return result;
    atomic_fetch_sub(&standin_current()->pinned, 1);
    free(host);
    return CUDA_SUCCESS;
}
