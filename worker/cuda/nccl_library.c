/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_library.c -- opening NCCL: where it is looked for, and what can be missing. */
#include "nccl_library.h"

#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

#define LIBRARY "libnccl.so.2"
#define LIBRARY_VARIABLE "SUMAC_NCCL_LIBRARY"

struct nccl_function {
    const char *symbol;
    size_t offset; /* of the pointer in struct nccl_library */
};

static const struct nccl_function functions[] = {
#define X(function) {#function, offsetof(struct nccl_library, function)},
    NCCL_FUNCTION_LIST(X)
#undef X
};

/* Opening it again would find the same. */
static pthread_once_t opened = PTHREAD_ONCE_INIT;
static struct nccl_library the_library;
static struct sumac_error problem; /* its status is OK: there is none */

static enum sumac_status open_library(void **library, struct sumac_error *error)
{
    const char *variable = getenv(LIBRARY_VARIABLE), *why = NULL;
    const char *named = variable != NULL && variable[0] != '\0' ? variable : NULL;

    *library = dlopen(named != NULL ? named : LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (*library != NULL)
        return SUMAC_OK;
    why = dlerror();
    if (named != NULL)
        return fail_unsupported(
            error,
            LIBRARY_VARIABLE
            " is no library that can be opened (%s): name NCCL's file, or unset it",
            why == NULL ? named : why);
    return fail_unsupported(
        error,
        "there is no NCCL here, which several GPUs need (%s): install it, or name its file "
        "in " LIBRARY_VARIABLE,
        why == NULL ? LIBRARY : why);
}

/* Up to 2.8 a version had a digit less for what is major: 2804 is 2.8.4, 22809 is 2.28.9. */
static void split(int version, uint32_t *major, uint32_t *minor, uint32_t *patch)
{
    const uint32_t number = version > 0 ? (uint32_t)version : 0;
    const uint32_t ten_thousand = number < 10000 ? 1000 : 10000;

    *major = number / ten_thousand;
    *minor = number % ten_thousand / 100;
    *patch = number % 100;
    assert(*minor < 100);
}

static enum sumac_status
check_version(void *handle, struct nccl_library *library, struct sumac_error *error)
{
    ncclResult_t (*get_version)(int *) = NULL;
    void *const symbol = dlsym(handle, "ncclGetVersion");

    memcpy(&get_version, &symbol, sizeof get_version);
    if (get_version == NULL || get_version(&library->version) != ncclSuccess)
        return fail_unsupported(error, "NCCL does not say its version: install it again");
    if (library->version >= NCCL_LIBRARY_VERSION_MIN)
        return SUMAC_OK;
    uint32_t has[3], needs[3];
    split(library->version, &has[0], &has[1], &has[2]);
    split(NCCL_LIBRARY_VERSION_MIN, &needs[0], &needs[1], &needs[2]);
    return fail_unsupported(
        error,
        "NCCL here is %u.%u.%u, and several GPUs need %u.%u.%u or later: update it, name another "
        "in " LIBRARY_VARIABLE ", or run one process for each GPU",
        has[0], has[1], has[2], needs[0], needs[1], needs[2]);
}

static enum sumac_status
find_functions(void *handle, struct nccl_library *library, struct sumac_error *error)
{
    assert(library->version >= NCCL_LIBRARY_VERSION_MIN);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *const symbol = dlsym(handle, functions[i].symbol);
        if (symbol == NULL)
            return fail_unsupported(
                error, "NCCL here has no %s: update it, or name another in " LIBRARY_VARIABLE,
                functions[i].symbol);
        memcpy((char *)library + functions[i].offset, &symbol, sizeof symbol);
    }
    return SUMAC_OK;
}

static void open_once(void)
{
    void *handle = NULL; /* it stays open: threads of its own may run in it until the end */

    if (open_library(&handle, &problem) == SUMAC_OK &&
        check_version(handle, &the_library, &problem) == SUMAC_OK)
        (void)find_functions(handle, &the_library, &problem);
}

/* NCCL lets this variable win over what a program asks for, and an abort could hang then. */
static enum sumac_status check_blocking(struct sumac_error *error)
{
    const char *variable = getenv("NCCL_COMM_BLOCKING");

    if (variable == NULL || strtol(variable, NULL, 0) != 1)
        return SUMAC_OK;
    return fail_unsupported(
        error,
        "NCCL_COMM_BLOCKING is %.16s, and several GPUs need communicators that do not block: unset "
        "it, or run one process for each GPU",
        variable);
}

enum sumac_status nccl_library_open(const struct nccl_library **library, struct sumac_error *error)
{
    (void)pthread_once(&opened, open_once);
    if (problem.status != SUMAC_OK)
        return fail(error, problem.status, problem.reason, "%s", problem.text);
    if (check_blocking(error) != SUMAC_OK)
        return SUMAC_FAILED_PRECONDITION;
    *library = &the_library;
    return SUMAC_OK;
}

void nccl_library_version(uint32_t *major, uint32_t *minor, uint32_t *patch)
{
    (void)pthread_once(&opened, open_once);
    split(the_library.version, major, minor, patch);
}
