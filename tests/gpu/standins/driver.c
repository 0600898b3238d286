/* SPDX-License-Identifier: Apache-2.0 */
/* driver.c -- devices and contexts of the driver that has no GPU, and the calls that are to fail.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "standin.h"

#define CONTEXTS_MAX 16 /* on a thread's stack */

static pthread_once_t begun = PTHREAD_ONCE_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static bool initialised;
static int visible[STANDIN_DEVICES_MAX], visible_count;
static struct CUctx_st contexts[STANDIN_DEVICES_MAX];
static char failing[64]; /* the function */
static uint64_t failing_at, calls;
static CUresult failing_with;
static void (*hook)(void *context); /* NULL: none */
static void *hook_context;

static _Thread_local struct CUctx_st *stack[CONTEXTS_MAX];
static _Thread_local int depth;

void standin_object(const char *format, ...)
{
    va_list values;

    va_start(values, format);
    (void)fputs("stand-in for the NVIDIA driver: ", stderr);
    (void)vfprintf(stderr, format, values);
    (void)fputc('\n', stderr);
    va_end(values);
    abort();
}

uint64_t standin_number(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);

    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

/* As the driver reads it: up to the first that is no device. */
static void read_visible(int count)
{
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    char *end = NULL;

    for (int i = 0; text == NULL && i < count; i++)
        visible[visible_count++] = i;
    while (text != NULL && visible_count < count) {
        const long number = strtol(text, &end, 10);
        if (end == text || number < 0 || number >= count)
            break;
        visible[visible_count++] = (int)number;
        text = *end == ',' ? end + 1 : end;
    }
}

static void begin(void)
{
    const char *fails = getenv("SUMAC_STANDIN_FAIL");
    const uint64_t count = standin_number("SUMAC_STANDIN_DEVICES", 2);
    unsigned result = 0;

    read_visible(count < STANDIN_DEVICES_MAX ? (int)count : STANDIN_DEVICES_MAX);
    for (int i = 0; i < STANDIN_DEVICES_MAX; i++)
        contexts[i].device = i;
    if (fails != NULL && sscanf(fails, "%63[^:]:%lu:%u", failing, &failing_at, &result) != 3)
        standin_object("SUMAC_STANDIN_FAIL is %s, not FUNCTION:N:RESULT", fails);
    failing_with = (CUresult)result;
}

static void
arrange(const char *function, uint64_t nth, int result, void (*call)(void *), void *context)
{
    (void)pthread_once(&begun, begin);
    pthread_mutex_lock(&mutex);
    (void)snprintf(failing, sizeof failing, "%s", function);
    failing_at = nth;
    failing_with = (CUresult)result;
    hook = call;
    hook_context = context;
    calls = 0;
    pthread_mutex_unlock(&mutex);
}

void standin_fail_at(const char *function, uint64_t nth, int result)
{
    arrange(function, nth, result, NULL, NULL);
}

void standin_call_at(const char *function, uint64_t nth, void (*call)(void *), void *context)
{
    arrange(function, nth, CUDA_SUCCESS, call, context);
}

uint64_t standin_calls(void)
{
    pthread_mutex_lock(&mutex);
    const uint64_t count = calls;
    pthread_mutex_unlock(&mutex);
    return count;
}

CUresult standin_enter(const char *function, bool needs_context)
{
    CUresult result = CUDA_SUCCESS;
    void (*call)(void *context) = NULL;

    (void)pthread_once(&begun, begin);
    pthread_mutex_lock(&mutex);
    void *const context = hook_context;
    const bool is_chosen = strcmp(function, failing) == 0 && ++calls == failing_at;
    if (is_chosen)
        call = hook;
    if (is_chosen && call == NULL)
        result = failing_with;
    else if (needs_context && !initialised)
        result = CUDA_ERROR_NOT_INITIALIZED;
    else if (needs_context && standin_current() == NULL)
        result = CUDA_ERROR_INVALID_CONTEXT;
    else if (needs_context)
        result = (CUresult)atomic_load(&standin_current()->failed);
    pthread_mutex_unlock(&mutex);
    if (call != NULL)
        call(context);
    return result;
}

struct CUctx_st *standin_context(int device) { return &contexts[device]; }

struct CUctx_st *standin_current(void) { return depth == 0 ? NULL : stack[depth - 1]; }

int standin_devices(void) { return visible_count; }

/* ---- what the library calls */

CUresult cuInit(unsigned int flags)
{
    const CUresult result = standin_enter(__func__, false);

    if (result != CUDA_SUCCESS)
        return result;
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (visible_count == 0)
        return CUDA_ERROR_NO_DEVICE;
    pthread_mutex_lock(&mutex);
    initialised = true;
    pthread_mutex_unlock(&mutex);
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    *version = (int)standin_number("SUMAC_STANDIN_VERSION", CUDA_VERSION);
    return standin_enter(__func__, false);
}

static const char *name_of(CUresult result)
{
    switch (result) {
    case CUDA_SUCCESS:
        return "CUDA_SUCCESS";
    case CUDA_ERROR_INVALID_VALUE:
        return "CUDA_ERROR_INVALID_VALUE";
    case CUDA_ERROR_OUT_OF_MEMORY:
        return "CUDA_ERROR_OUT_OF_MEMORY";
    case CUDA_ERROR_ILLEGAL_ADDRESS:
        return "CUDA_ERROR_ILLEGAL_ADDRESS";
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
        return "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH";
    case CUDA_ERROR_UNKNOWN:
        return "CUDA_ERROR_UNKNOWN";
    default:
        return NULL;
    }
}

CUresult cuGetErrorName(CUresult result, const char **name)
{
    *name = name_of(result);
    return *name == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult result, const char **words)
{
    *words = result == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "as the test wants it";
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    *count = visible_count;
    return standin_enter(__func__, false);
}

CUresult cuDeviceGet(CUdevice *number, int index)
{
    if (index < 0 || index >= visible_count)
        return CUDA_ERROR_INVALID_DEVICE;
    *number = index;
    return standin_enter(__func__, false);
}

CUresult cuDeviceGetName(char *name, int bytes, CUdevice number)
{
    (void)snprintf(name, (size_t)bytes, "Stand-in %d", visible[number]);
    return standin_enter(__func__, false);
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice number)
{
    (void)number;
    *bytes = standin_number("SUMAC_STANDIN_MEMORY", UINT64_C(4) << 30);
    return standin_enter(__func__, false);
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice number)
{
    (void)number;
    if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
        *value = 9;
    else if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
        *value = 0;
    else
        standin_object("nothing is known of attribute %d", (int)attribute);
    return standin_enter(__func__, false);
}

/* Neighbours by their own number do: 0 and 1, 2 and 3. */
CUresult cuDeviceCanAccessPeer(int *can, CUdevice number, CUdevice peer)
{
    *can = number != peer && visible[number] / 2 == visible[peer] / 2;
    return standin_enter(__func__, false);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice number)
{
    const CUresult result = standin_enter(__func__, false);

    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&mutex);
    contexts[number].retained++;
    pthread_mutex_unlock(&mutex);
    *context = &contexts[number];
    return CUDA_SUCCESS;
}

bool standin_has_failed(void) { return failing_at > 0 && calls >= failing_at; }

/* A driver takes all that is left away, and whoever has it learns of it later. Of a call that was
 * to fail something may be left. */
CUresult cuDevicePrimaryCtxRelease(CUdevice number)
{
    pthread_mutex_lock(&mutex);
    struct CUctx_st *context = &contexts[number];
    if (context->retained == 0)
        standin_object("the context of GPU:%d is released once too often", number);
    context->retained--;
    const bool last = context->retained == 0;
    const int streams = context->streams, events = context->events;
    const int modules = atomic_load(&context->modules);
    const bool has_failed = standin_has_failed() || atomic_load(&context->failed) != CUDA_SUCCESS;
    if (last)
        atomic_store(&context->failed, CUDA_SUCCESS);
    pthread_mutex_unlock(&mutex);
    if (!last)
        return CUDA_SUCCESS;
    const uint64_t bytes = standin_memory_forget(number);
    const unsigned pinned = standin_pinned_forget(number);
    if (!has_failed && (streams > 0 || events > 0 || modules > 0 || pinned > 0 || bytes > 0))
        standin_object(
            "GPU:%d is left with %d streams, %d events, %d modules, %lu bytes of memory and %u "
            "pieces of the host's",
            number, streams, events, modules, (unsigned long)bytes, pinned);
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    if (depth == 0)
        depth = 1;
    stack[depth - 1] = context;
    return standin_enter(__func__, false);
}

CUresult cuCtxPushCurrent(CUcontext context)
{
    const CUresult result = standin_enter(__func__, false);

    if (result != CUDA_SUCCESS)
        return result;
    if (depth == CONTEXTS_MAX)
        standin_object("a thread has pushed %d contexts", depth);
    if (context->retained == 0)
        standin_object("a context is pushed that was released");
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *context)
{
    if (depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    *context = stack[--depth];
    return CUDA_SUCCESS;
}
