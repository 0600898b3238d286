/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.h -- update functions of your own, in C, that a ps loads: `sumac ps --plugin libmine.so`.
 *
 * A plug-in is a shared library with one object, `sumac_plugin`: a table of functions, each with
 * what a row of Sumac's own table has, and the loop that applies it. On every ps of a cluster the
 * same plug-ins are loaded; then each of their functions is one like those that are built in,
 * for every client, by its name: dense and by rows of an index, in synchronous steps, on half
 * types, by a schedule. It needs this header to be built, and no library.
 *
 *     static void step(const struct sumac_plugin_tile *tile) { … }
 *     static const struct sumac_plugin_function functions[] = {{.name = "mine", … .loop = step}};
 *     SUMAC_PLUGIN_EXPORT const struct sumac_plugin sumac_plugin = {
 *         .abi_version = SUMAC_PLUGIN_ABI_VERSION,
 *         .name = "mine", .version = "1.0", .functions = functions, .function_count = 1};
 *
 * examples/plugin has a whole one. Its code is run in the ps's own process: what it breaks is
 * broken. A function that elementwise arithmetic says is better sent as a text
 * (docs/EXPRESSIONS.md), which can break nothing.
 */
#ifndef SUMAC_PLUGIN_H
#define SUMAC_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#include "sumac/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Grows with every change of this header that a library built before would not survive. */
#define SUMAC_PLUGIN_ABI_VERSION 1u

#define SUMAC_PLUGIN_FUNCTIONS_MAX 64u /* of one ps, all of its plug-ins together */
#define SUMAC_PLUGIN_HYPERPARAMETERS_MAX 16u
#define SUMAC_PLUGIN_SLOTS_MAX 3u
/* Of a name: a letter, then letters, digits, '_', '-', '.' and '/'. */
#define SUMAC_PLUGIN_NAME_BYTES_MAX 63u
#define SUMAC_PLUGIN_VERSION_BYTES_MAX 63u
#define SUMAC_PLUGIN_RULE_BYTES_MAX 511u

/* The one symbol that Sumac looks for. */
#if defined(__GNUC__)
#define SUMAC_PLUGIN_EXPORT __attribute__((visibility("default")))
#else
#define SUMAC_PLUGIN_EXPORT
#endif

/* `count` elements of a variable, with their gradient and slots: as many of each, contiguous, and
 * each aligned as its type is. value_out[i], slot_out[s][i] = f(value_in[i], gradient[i],
 * slot_in[s][i]): an output is its input, or apart from it; nothing else overlaps.
 *
 * float32 computes for the half types, too: value and gradient are widened before, and the value is
 * rounded once after. */
struct sumac_plugin_tile {
    enum sumac_dtype dtype; /* of value, gradient and slots: never a half type */
    uint64_t count;
    void *value_out;
    const void *value_in;
    const void *gradient; /* summed, scaled and clipped, as the push or the step wants it */
    void *slot_out[SUMAC_PLUGIN_SLOTS_MAX];
    const void *slot_in[SUMAC_PLUGIN_SLOTS_MAX];
    /* In the order of the function's table, rounded to float32 for every type but float64; a
     * learning_rate as its schedule has it. */
    const double *hyperparameters;
    /* Of a function that counts_steps: the pushes to this shard that such functions applied, this
     * one, too. A shard has one count for all of them, Sumac's own (adam) among them. */
    uint64_t step;
};

/* Apply the function to one tile. Several threads call it at a time, each with another tile, while
 * clients wait. So it must not allocate or lock, and may touch only the memory that the tile names.
 * Each element of a variable is in one tile of a push. The result must not depend on the cuts. */
typedef void sumac_plugin_loop(const struct sumac_plugin_tile *tile);

/* What values of a hyperparameter are not taken, beside NaN and infinities. */
enum {
    SUMAC_PLUGIN_ABOVE_LEAST = 1, /* `least` itself */
    SUMAC_PLUGIN_BELOW_MOST = 2,  /* `most` itself */
    SUMAC_PLUGIN_WHOLE = 4,       /* a fraction */
};

/* A hyperparameter named learning_rate can go by a schedule. None is named clip_value: a function
 * that takes float types alone has that, and its gradient is clipped before the loop. */
struct sumac_plugin_hyperparameter {
    const char *name;
    double default_value; /* within the range, rounded to float32, too, but for float64 alone */
    double least, most;   /* -INFINITY, INFINITY: no bound on that side. Else least < most */
    uint32_t flags;       /* SUMAC_PLUGIN_… */
};

/* What is kept of each element beside its value, in the same type; float32 of a half type. */
struct sumac_plugin_slot {
    const char *name;
    /* What it starts from: finite in float32, or, if not NULL, the hyperparameter of that
     * name as it is when the variable is created. */
    double initial;
    const char *initial_from;
};

/* What becomes of a row that one push by rows names several times. */
enum sumac_plugin_repeats {
    SUMAC_PLUGIN_REPEATS_SUM = 0,       /* its gradients are summed, in their order */
    SUMAC_PLUGIN_REPEATS_IN_TURN = 1,   /* they are applied one after the other */
    SUMAC_PLUGIN_REPEATS_LAST_WINS = 2, /* the last one is applied */
};

struct sumac_plugin_function {
    const char *name; /* none that Sumac has, or another plug-in of the ps */
    const char *rule; /* one line that says what it does: `sumac functions` shows it */
    const struct sumac_plugin_hyperparameter *hyperparameters; /* (hyperparameter_count) */
    const struct sumac_plugin_slot *slots;                     /* (slot_count) */
    uint32_t hyperparameter_count;
    uint32_t slot_count;
    /* SUMAC_PLUGIN_DTYPE of each type that the loop takes, ORed. Half types come with float32. */
    uint32_t dtypes;
    enum sumac_plugin_repeats repeats;
    bool counts_steps; /* a push that it applies is counted, and it is told the count: step */
    sumac_plugin_loop *loop;
};
#define SUMAC_PLUGIN_DTYPE(dtype) (1u << (unsigned)(dtype))

/* The library's table. Everything that it points to stays as it is while the ps runs. */
struct sumac_plugin {
    uint32_t abi_version;    /* SUMAC_PLUGIN_ABI_VERSION; always comes first */
    uint32_t function_count; /* at least 1 */
    const char *name;        /* "mine" */
    const char *version;     /* "1.0": of another one is another table */
    const struct sumac_plugin_function *functions; /* (function_count) */
};

/* What the library defines. */
extern SUMAC_PLUGIN_EXPORT const struct sumac_plugin sumac_plugin;

#ifdef __cplusplus
}
#endif
#endif
