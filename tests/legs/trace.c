/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c -- gcc and clang call the two functions at its end around every function of the tree. */
#include "trace.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>

#define FUNCTIONS_MAX 1024u
#define UNTRACED __attribute__((no_instrument_function))

static struct {
    const char *leg;
    const void *step; /* waited for, or entered */
    bool entered;
    const void *seen[FUNCTIONS_MAX];
    unsigned count;
} trace;

UNTRACED void trace_next(const char *leg, void (*step)(void))
{
    trace.leg = leg;
    trace.step = (const void *)step;
    trace.entered = false;
    trace.count = 0;
}

UNTRACED static void see(const void *function)
{
    for (unsigned i = 0; i < trace.count; i++)
        if (trace.seen[i] == function)
            return;
    assert(trace.count < FUNCTIONS_MAX);
    trace.seen[trace.count++] = function;
}

UNTRACED void __cyg_profile_func_enter(void *function, void *caller);
UNTRACED void __cyg_profile_func_exit(void *function, void *caller);

UNTRACED void __cyg_profile_func_enter(void *function, void *caller)
{
    (void)caller;
    if (function == trace.step)
        trace.entered = true;
    if (trace.entered)
        see(function);
}

UNTRACED void __cyg_profile_func_exit(void *function, void *caller)
{
    (void)caller;
    if (!trace.entered || function != trace.step)
        return;
    trace.entered = false;
    trace.step = NULL;
    for (unsigned i = 0; i < trace.count; i++)
        (void)printf("%s\t%p\n", trace.leg, trace.seen[i]);
}
