/* SPDX-License-Identifier: Apache-2.0 */
/* standin.h -- a driver without a GPU: what the stand-ins for libcuda.so.1 and libnccl.so.2 share.
 *
 * Programs that were built as ever find them by LD_LIBRARY_PATH, and run as on a machine with GPUs
 * that is as unkind as it may be: each stream is a thread that runs late and in no order with the
 * others, device memory lies in pages that the host cannot touch and begins as garbage, and
 * whatever the rules of the driver forbid is an error, or, where a driver would keep silent, the
 * end of the program.
 *
 * The environment says what there is, and what fails:
 *
 *     SUMAC_STANDIN_DEVICES   how many; 2. CUDA_VISIBLE_DEVICES hides and orders them
 *     SUMAC_STANDIN_VERSION   of CUDA; that of cuda.h
 *     SUMAC_STANDIN_MEMORY    bytes that a device has; 4 GiB
 *     SUMAC_STANDIN_FAIL      FUNCTION:N:RESULT, the N-th call of it fails so; FUNCTION may be
 *                             "stream", what streams do; it fails later, and all that follows
 *     SUMAC_STANDIN_SEED      of how late streams are
 *     SUMAC_STANDIN_KERNELS   a library with the twins of a program's own kernels
 */
#pragma once

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define STANDIN_DEVICES_MAX 8

/* Of a device there is one context, the primary one. */
struct CUctx_st {
    int device; /* by its place among those that are visible */
    int retained;
    int streams, events; /* that are there */
    atomic_int modules;
    atomic_int failed; /* what ran on it, a CUresult; all calls say it then */
};

/* ---- calls (driver.c) */

/* May the function be called, here and now? Each begins with it. */
CUresult standin_enter(const char *function, bool needs_context);
/* The N-th call from now on of that function, "cuMemAlloc_v2", comes to `result`. For a test that
 * opens the library itself. */
void standin_fail_at(const char *function, uint64_t nth, int result);
/* The N-th call from now on of that function calls `call` first, which may take its time. */
void standin_call_at(const char *function, uint64_t nth, void (*call)(void *), void *context);
/* How often it was called since then. */
uint64_t standin_calls(void);
/* Has a call come to what it was to come to? Then something may be left of it. */
bool standin_has_failed(void);
struct CUctx_st *standin_context(int device);
struct CUctx_st *standin_current(void);
int standin_devices(void);
/* A program that does what a driver would not notice ends here. */
_Noreturn void standin_object(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t standin_number(const char *variable, uint64_t otherwise);

/* ---- memory (memory.c) */

/* Where the host finds what is at a device's address; of the host's own memory that itself. Both,
 * and all between them, have to be of one allocation. NULL: they are not. */
void *standin_memory(uint64_t address, uint64_t bytes);
bool standin_is_devices(uint64_t address);
/* All of a device; returns how many bytes there were. */
uint64_t standin_memory_forget(int device);
/* All of the host's that it pinned; returns how many pieces. */
unsigned standin_pinned_forget(int device);

/* ---- streams (streams.c) */

typedef CUresult standin_work(void *context);

/* Put it into the stream. `context` is freed after it. */
void standin_put(CUstream stream, standin_work *work, void *context);
int standin_stream_device(CUstream stream);

/* ---- kernels (modules.c; twins.c and update_twins.c, or source/source_twins.c) */

struct CUfunc_st {
    char name[64];
    CUresult (*run)(const struct CUfunc_st *function, const void *argument);
    uint64_t argument_bytes; /* of the only one: of its struct of kernel_arguments.h */
    const void *twin;        /* the row of a table, whose it is; … */
    int number;              /* … of update functions, and the type */
    atomic_int shared_bytes_max;
    struct CUfunc_st *next; /* of its module */
};

/* The twin of the kernel of that name, without its "sumac_". False: there is none. */
bool standin_twin_find(const char *name, struct CUfunc_st *function);
bool standin_update_twin_find(const char *name, struct CUfunc_st *function);
/* Where the host finds a kernel's array; NULL: it is not there. A program that gives a kernel
 * memory of the host's ends here. */
void *standin_array(const char *kernel, uint64_t address, uint64_t bytes);
