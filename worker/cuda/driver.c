/* SPDX-License-Identifier: Apache-2.0 */
/* driver.c -- opening the driver: what can be missing, and what to do about it. */
#include "driver.h"

#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "text.h"

#define LIBRARY "libcuda.so.1"
#define QUOTED(name) #name
#define SYMBOL(function) QUOTED(function) /* with its version, as cuda.h says it */

struct driver_function {
    const char *symbol;
    size_t offset; /* of the pointer in struct cuda_driver */
};

static const struct driver_function functions[] = {
#define X(function) {SYMBOL(function), offsetof(struct cuda_driver, function)},
    CUDA_FUNCTION_LIST(X)
#undef X
};

/* There is one driver in a process, and opening it again would find the same. */
static pthread_once_t opened = PTHREAD_ONCE_INIT;
static struct cuda_driver the_driver;
static struct sumac_error problem; /* its status is OK: there is none */

static enum sumac_status
open_library(void **library, struct cuda_driver *driver, struct sumac_error *error)
{
    CUresult (*get_version)(int *) = NULL;

    *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (*library == NULL) {
        const char *why = dlerror();
        return fail_unsupported(
            error,
            "there is no NVIDIA driver here (%s): install one, or give the container the GPUs of "
            "its host",
            why == NULL ? LIBRARY : why);
    }
    void *const symbol = dlsym(*library, "cuDriverGetVersion");
    memcpy(&get_version, &symbol, sizeof get_version);
    if (get_version == NULL || get_version(&driver->version) != CUDA_SUCCESS)
        return fail_unsupported(
            error, "%s does not say its version: install the NVIDIA driver again", LIBRARY);
    if (driver->version < CUDA_DRIVER_VERSION_MIN)
        return fail_unsupported(
            error,
            "the NVIDIA driver here knows CUDA %d.%d, and this build needs one of CUDA %d.%d or "
            "later: update the driver, or build with an older toolkit",
            driver->version / 1000, driver->version % 1000 / 10, CUDA_DRIVER_VERSION_MIN / 1000,
            CUDA_DRIVER_VERSION_MIN % 1000 / 10);
    return SUMAC_OK;
}

static enum sumac_status
find_functions(void *library, struct cuda_driver *driver, struct sumac_error *error)
{
    assert(driver->version >= CUDA_DRIVER_VERSION_MIN);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *const symbol = dlsym(library, functions[i].symbol);
        if (symbol == NULL)
            return fail_unsupported(
                error, "the NVIDIA driver here (CUDA %d.%d) has no %s: update it",
                driver->version / 1000, driver->version % 1000 / 10, functions[i].symbol);
        memcpy((char *)driver + functions[i].offset, &symbol, sizeof symbol);
    }
    return SUMAC_OK;
}

static enum sumac_status no_device(struct sumac_error *error)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");

    if (visible != NULL)
        return fail_unsupported(
            error,
            "CUDA_VISIBLE_DEVICES is \"%s\", and no GPU is left to be seen: unset it, or name GPUs "
            "that `nvidia-smi -L` lists",
            visible);
    return fail_unsupported(
        error, "the NVIDIA driver here finds no GPU: `nvidia-smi` says which there are, and a "
               "container must be given them");
}

static enum sumac_status start(struct cuda_driver *driver, struct sumac_error *error)
{
    int count = 0;

    assert(driver->devices == 0);
    CUresult result = driver->cuInit(0);

    if (result == CUDA_SUCCESS)
        result = driver->cuDeviceGetCount(&count);
    if (result == CUDA_ERROR_NO_DEVICE || (result == CUDA_SUCCESS && count <= 0))
        return no_device(error);
    if (result != CUDA_SUCCESS) {
        (void)cuda_check(
            error, driver, result, "the NVIDIA driver here does not start (see `nvidia-smi`)");
        return SUMAC_FAILED_PRECONDITION;
    }
    driver->devices = (uint32_t)count;
    return SUMAC_OK;
}

static void open_once(void)
{
    void *library = NULL; /* it stays open: threads of the driver's may run in it until the end */

    if (open_library(&library, &the_driver, &problem) != SUMAC_OK ||
        find_functions(library, &the_driver, &problem) != SUMAC_OK ||
        start(&the_driver, &problem) != SUMAC_OK) {
        problem.status = SUMAC_FAILED_PRECONDITION;
        problem.reason = SUMAC_REASON_UNSUPPORTED;
        return;
    }
    assert(the_driver.devices > 0);
}

enum sumac_status cuda_driver_open(const struct cuda_driver **driver, struct sumac_error *error)
{
    (void)pthread_once(&opened, open_once);
    if (problem.status != SUMAC_OK)
        return fail(error, problem.status, problem.reason, "%s", problem.text);
    *driver = &the_driver;
    return SUMAC_OK;
}

int cuda_driver_version(void)
{
    (void)pthread_once(&opened, open_once);
    return the_driver.version;
}

/* ---- what it says */

enum sumac_status cuda_status(CUresult result)
{
    switch (result) {
    case CUDA_SUCCESS:
        return SUMAC_OK;
    case CUDA_ERROR_OUT_OF_MEMORY:
        return SUMAC_RESOURCE_EXHAUSTED;
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_DEVICE_UNAVAILABLE: /* another process has it for itself */
    case CUDA_ERROR_SYSTEM_NOT_READY:
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
    case CUDA_ERROR_MPS_CONNECTION_FAILED:
    case CUDA_ERROR_MPS_SERVER_NOT_READY:
    case CUDA_ERROR_MPS_MAX_CLIENTS_REACHED:
    case CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED:
        return SUMAC_FAILED_PRECONDITION;
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
        return SUMAC_DATA_LOSS;
    case CUDA_ERROR_NOT_READY: /* a wait that ran out of time */
        return SUMAC_DEADLINE_EXCEEDED;
    case CUDA_ERROR_CONTAINED: /* the device is void, and so is what follows */
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_MPS_RPC_FAILURE:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
        return SUMAC_ABORTED;
    default: /* of the hundred others, none is the caller's to mend */
        return SUMAC_INTERNAL;
    }
}

bool cuda_is_sticky(CUresult result)
{
    const enum sumac_status status = cuda_status(result);

    return status == SUMAC_ABORTED || status == SUMAC_DATA_LOSS;
}

void cuda_words(const struct cuda_driver *driver, CUresult result, char *text, size_t text_bytes)
{
    const char *name = NULL, *words = NULL;

    assert(result != CUDA_SUCCESS);
    if (driver->cuGetErrorName(result, &name) != CUDA_SUCCESS ||
        driver->cuGetErrorString(result, &words) != CUDA_SUCCESS)
        (void)text_print(
            text, text_bytes, "error %d, which the driver has no name for", (int)result);
    else
        (void)text_print_line(text, text_bytes, "%s (%s)", name, words);
}

enum sumac_status cuda_check(
    struct sumac_error *error, const struct cuda_driver *driver, CUresult result,
    const char *format, ...)
{
    const enum sumac_status status = cuda_status(result);
    char text[SUMAC_ERROR_TEXT_BYTES], words[160];
    va_list values;

    if (result == CUDA_SUCCESS)
        return SUMAC_OK;
    va_start(values, format);
    (void)text_print_line_values(text, sizeof text, format, values);
    va_end(values);
    cuda_words(driver, result, words, sizeof words);
    return fail(
        error, status,
        status == SUMAC_RESOURCE_EXHAUSTED ? SUMAC_REASON_OUT_OF_MEMORY : SUMAC_REASON_UNSPECIFIED,
        "%s: %s", text, words);
}
