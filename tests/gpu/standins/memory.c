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
    struct allocation *pinned; /* of the host's */
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

/* ---- the host's, pinned: its context's, which takes what is left of it along */

CUresult cuMemHostAlloc(void **host, size_t bytes, unsigned int flags)
{
    const CUresult result = standin_enter(__func__, true);

    if (result != CUDA_SUCCESS)
        return result;
    if (bytes == 0 || flags != CU_MEMHOSTALLOC_PORTABLE)
        return CUDA_ERROR_INVALID_VALUE;
    struct allocation *made = calloc(1, sizeof *made);
    void *data = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
    if (made == NULL || data == NULL) {
        free(made);
        free(data);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memset(data, GARBAGE, bytes);
    struct space *space = &spaces[standin_current()->device];
    pthread_mutex_lock(&mutex);
    *made = (struct allocation){space->pinned, (uint64_t)(uintptr_t)data, bytes};
    space->pinned = made;
    pthread_mutex_unlock(&mutex);
    *host = data;
    return CUDA_SUCCESS;
}

/* Under the mutex. False: it is none of theirs. */
static bool free_pinned(struct space *space, uint64_t address)
{
    struct allocation **at = &space->pinned;

    while (*at != NULL && (*at)->address != address)
        at = &(*at)->next;
    struct allocation *gone = *at;
    if (gone == NULL)
        return false;
    *at = gone->next;
    free((void *)(uintptr_t)gone->address);
    free(gone);
    return true;
}

CUresult cuMemFreeHost(void *host)
{
    const CUresult result = standin_enter(__func__, true);
    bool is_freed = false;

    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&mutex);
    for (int i = 0; !is_freed && i < STANDIN_DEVICES_MAX; i++)
        is_freed = free_pinned(&spaces[i], (uint64_t)(uintptr_t)host);
    pthread_mutex_unlock(&mutex);
    if (!is_freed)
        standin_object("pinned memory is freed that is none, or not any more");
    return CUDA_SUCCESS;
}

unsigned standin_pinned_forget(int device)
{
    unsigned count = 0;

    pthread_mutex_lock(&mutex);
    while (spaces[device].pinned != NULL) {
        (void)free_pinned(&spaces[device], spaces[device].pinned->address);
        count++;
    }
    pthread_mutex_unlock(&mutex);
    return count;
}
