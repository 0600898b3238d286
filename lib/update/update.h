/* SPDX-License-Identifier: Apache-2.0 */
/* update.h -- the update functions: a table of rules, and one plain loop per data type written for
 * the vectoriser.
 *
 * The rules, hyperparameters, ranges, defaults and slots are those of TensorFlow's ResourceApply…
 * kernels (tensorflow/core/kernels/training_ops.cc). Another function is a row of the table and a
 * loop. Nothing here allocates, locks or knows a shard: leaf functions of restrict pointers and a
 * count. Compiled with -ffp-contract=off and -fno-math-errno, every compiler and instruction set
 * gives the same bits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "expression.h"
#include "scalars.h"
#include "schedule.h"
#include "sumac/status.h"
#include "sumac/tensor.h"
#include "wire.h"

/* What there is, in the order of the numbers on the wire, which have no gaps: a row of functions.c
 * for each function, of hyperparameters.c for each hyperparameter. */
#define UPDATE_FUNCTION_LIST(X)                                                                    \
    X(ASSIGN)                                                                                      \
    X(ASSIGN_ADD)                                                                                  \
    X(ASSIGN_SUB)                                                                                  \
    X(SGD)                                                                                         \
    X(MOMENTUM)                                                                                    \
    X(ADAM)                                                                                        \
    X(ADAGRAD)                                                                                     \
    X(RMSPROP)                                                                                     \
    X(ADAMW)                                                                                       \
    X(FTRL)                                                                                        \
    X(NADAM)                                                                                       \
    X(ADAMAX)                                                                                      \
    X(ADADELTA)                                                                                    \
    X(LION)                                                                                        \
    X(YOGI)                                                                                        \
    X(DELAYED_NESTEROV)                                                                            \
    X(MULTIPLY)                                                                                    \
    X(DIVIDE)                                                                                      \
    X(MIN)                                                                                         \
    X(MAX)
#define UPDATE_HYPERPARAMETER_LIST(X)                                                              \
    X(LEARNING_RATE)                                                                               \
    X(MOMENTUM)                                                                                    \
    X(NESTEROV)                                                                                    \
    X(BETA_1)                                                                                      \
    X(BETA_2)                                                                                      \
    X(EPSILON)                                                                                     \
    X(RHO)                                                                                         \
    X(CENTERED)                                                                                    \
    X(INITIAL_ACCUMULATOR_VALUE)                                                                   \
    X(WEIGHT_DECAY)                                                                                \
    X(LEARNING_RATE_POWER)                                                                         \
    X(L1)                                                                                          \
    X(L2)                                                                                          \
    X(L2_SHRINKAGE)                                                                                \
    X(BIAS_CORRECTION)                                                                             \
    X(BUFFER_SIZE)                                                                                 \
    X(MOMENTUM_ACTIVATION)                                                                         \
    X(CLIP_VALUE)

/* The numbers of UpdateFunction and HyperparameterName on the wire. */
enum {
#define X(name) UPDATE_##name = SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_##name,
    UPDATE_FUNCTION_LIST(X)
#undef X
};
enum {
#define X(name)                                                                                    \
    UPDATE_HYPERPARAMETER_##name = SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_##name,
    UPDATE_HYPERPARAMETER_LIST(X)
#undef X
};

/* How many there are: the largest number. */
#define X(name) +1
enum {
    UPDATE_FUNCTIONS_MAX = 0 UPDATE_FUNCTION_LIST(X),
    UPDATE_HYPERPARAMETERS_MAX = 0 UPDATE_HYPERPARAMETER_LIST(X),
};
#undef X

struct update_hyperparameters {
    double value[UPDATE_HYPERPARAMETERS_MAX + 1]; /* by HyperparameterName's number */
    uint32_t set; /* bit per number that is set; UPDATE_SCHEDULE_SET: the schedule */
    struct update_schedule schedule; /* of learning_rate */
};
#define UPDATE_SCHEDULE_SET 1u

/* A row for each hyperparameter. */
struct update_hyperparameter {
    const char *name; /* "learning_rate" */
    double least, most;
    bool least_excluded, most_excluded, whole;
    const char *range;  /* "in [0, 1)" */
    const char *symbol; /* its letter in a function's rule, "η"; "" for one that has none */
};

struct update_slice;
typedef void update_loop(const struct update_slice *slice);

/* What becomes of a row that occurs several times in one push by rows (SEMANTICS decision 21). */
enum update_repeats {
    UPDATE_REPEATS_SUM,     /* its occurrences are summed, in their order, and the sum is applied */
    UPDATE_REPEATS_IN_TURN, /* they are applied one after the other: products, quotients, extremes
                             */
    UPDATE_REPEATS_LAST_WINS /* of them the last one is applied */
};

struct update_function {
    uint32_t number;  /* UpdateFunction on the wire */
    const char *name; /* "adam" */
    const char *rule; /* one line, in the symbols of its hyperparameters; NULL: its text says it */
    uint32_t slot_count;
    const char *slot_names[UPDATE_SLOTS_MAX];
    /* What every element of a slot starts from: a hyperparameter's number; 0: slot_initial. */
    uint32_t slot_from[UPDATE_SLOTS_MAX];
    double slot_initial[UPDATE_SLOTS_MAX];
    uint32_t last_slot_if; /* a hyperparameter without which there is no last slot; 0: it is */
    bool counts_steps;     /* its rule has t: a shard counts the pushes it was applied in */
    enum update_repeats repeats;                     /* of a row in one push by rows */
    uint32_t dtypes;                                 /* bit per sumac_dtype it may be applied to */
    uint32_t hyperparameters;                        /* bit per HyperparameterName it takes */
    uint32_t above_zero;                             /* of these, those that must not be 0 */
    double defaults[UPDATE_HYPERPARAMETERS_MAX + 1]; /* by HyperparameterName's number */
    /* What its loops need beside the hyperparameters: these as their type rounds them, (1 +
     * UPDATE_HYPERPARAMETERS_MAX), and t (1, 2, …) if it counts_steps. NULL: nothing. */
    void (*prepare)(const double *rounded, uint64_t step, struct update_slice *slice);
    /* Of a function that is not of the table, and NULL of one that is: its hyperparameters, by
     * number (without a name: as the table has it), the numbers of those that have a scalar each,
     * in their order, and what runs a slice. */
    const struct update_hyperparameter *own;
    const uint8_t *own_numbers; /* (own_count) */
    uint32_t own_count;
    update_loop *loop;
    const struct expression *expression;  /* of a text; … */
    const struct update_plugged *plugged; /* … of a plug-in (plugged.h) */
};

/* What scalar[] has room for: what scalars.h says; a function that is not of the table has its
 * hyperparameters here, in its own order, and an expression unrounded. */
enum { UPDATE_SCALARS = EXPRESSION_HYPERPARAMETERS_MAX };

/* Contributions that become one gradient, in the order in which they are added up. */
struct update_sources {
    uint32_t count; /* at least 1 */
    /* Where byte `at` of one of them lies, in the run that the slice is of, and how many bytes lie
     * together from there on: whole elements, at least one. Threads  any. */
    const uint8_t *(*find)(
        const void *context, uint32_t source, const struct update_slice *slice, uint64_t at,
        uint64_t *together_bytes);
    /* What a source is multiplied by before it is added. NULL: none is. Threads  any. */
    double (*scale_of)(const void *context, uint32_t source);
    const void *context;
};

/* Of a push by rows, one occurrence of a row: where its value and slots lie, and its gradient.
 * Where `wide` rows come of several parts, it is multiplied by its own part's scale before it is
 * summed. */
struct __attribute__((may_alias)) update_row {
    uint8_t *at[1 + UPDATE_SLOTS_MAX];
    const uint8_t *gradient;
    double scale; /* 0 or 1: none; of a float type */
};

/* One contiguous run of elements: out = f(in, gradient). The outputs may be the inputs (in place),
 * or spare blocks; of sources the first may be where `value_out` is; no other pointers may overlap.
 * No pointer need be aligned. With `sources` the gradient is (source 0 + source 1 + …) ÷ divisor,
 * in the type of update_contribution_dtype: summed in that order, whatever the slice's size, and
 * never whole in memory. What the function sees is min(max(scale·gradient, −clip), clip), in the
 * type of the arithmetic. */
struct update_slice {
    const struct update_function *function;
    enum sumac_dtype dtype;
    uint64_t count; /* elements */
    void *value_out;
    const void *value_in;
    const void *gradient;
    void *slot_out[UPDATE_SLOTS_MAX];
    const void *slot_in[UPDATE_SLOTS_MAX];
    double scalar[UPDATE_SCALARS];      /* as update_prepare made them */
    uint64_t step;                      /* t, of a function that is not of the table, … */
    const struct expression_plan *plan; /* … of an expression what update_run makes of these: NULL
                                         * at first */
    bool flag;                          /* which of the function's two loops it is */
    bool wide;                          /* the gradient is of update_contribution_dtype */
    const struct update_sources *sources; /* NULL: `gradient` it is */
    uint64_t source_at;                   /* its first byte in their run, … */
    uint32_t source_run;                  /* … which find knows by this number */
    double divisor;                       /* 1: none */
    /* Not NULL: it is of rows of `count` elements each, and the pointers above are none. Of one row
     * all occurrences lie together, in their order; with `wide` a half type's gradient is in
     * float32. More of the last row comes with a later slice: then `carries`, and its sum so far is
     * left in `carry`, (count, update_contribution_dtype), from which the slice goes on that is
     * `carried`. What `scale` and `clip` apply to is the sum of a row's occurrences. */
    const struct update_row *rows;
    void *carry;
    uint32_t row_count; /* occurrences */
    bool carried, carries;
    double scale; /* 0 or 1: none; of a float type, without `sources` */
    double clip;  /* 0: none */
};

/* The row with this number on the wire, or with this name; NULL: there is none. update_at gives the
 * rows in the order of their numbers, for listing: index from 0 until NULL. */
const struct update_function *update_find(uint32_t number);
const struct update_function *update_find_by_name(const char *name);
const struct update_function *update_at(uint32_t index);

/* Fill in every hyperparameter that `function` takes: those `given` in a message (NULL: none), else
 * those of `base` (the variable's own; NULL: none), else the function's defaults. Checks names and
 * ranges. Fails  INVALID_ARGUMENT (BAD_HYPERPARAMETER) naming the hyperparameter; *merged is left
 * alone. */
enum sumac_status update_hyperparameters_read(
    const struct update_function *function, const struct update_hyperparameters *base,
    const wire_function *given, struct update_hyperparameters *merged, struct sumac_error *error);

/* Are they still in range once they are rounded to the type of `dtype`'s arithmetic? (β₂ = 1 − 1e-9
 * is 1 in float32.) Fails  INVALID_ARGUMENT (BAD_HYPERPARAMETER) naming the hyperparameter. */
enum sumac_status update_hyperparameters_check(
    const struct update_function *function, enum sumac_dtype dtype,
    const struct update_hyperparameters *merged, struct sumac_error *error);

/* Lay what `given` sets over `own`, which has the same function. A learning rate that is given
 * alone goes by no schedule. */
void update_hyperparameters_lay(
    struct update_hyperparameters *own, const struct update_hyperparameters *given);
/* learning_rate as it is in a push to a shard of that version: its own, or as its schedule has it;
 * of a function that divides by it at least 2^-64. */
double update_learning_rate(
    const struct update_function *function, const struct update_hyperparameters *hyperparameters,
    uint64_t version);

/* Of the table's hyperparameters: "learning_rate"; NULL for an unknown number. The number of a
 * name; 0 for an unknown name. */
const char *update_hyperparameter_name(uint32_t number);
uint32_t update_hyperparameter_find(const char *name);
/* Number `count` names: as the table has them, and those that it does not have by the largest
 * numbers below clip_value's that are left, in their order. Returns a bit for each number. */
uint32_t update_hyperparameters_number(
    const char (*names)[EXPRESSION_NAME_BYTES_MAX + 1], uint32_t count, uint8_t *numbers);
/* Of those that the function has: the row of a number, and the number of a name, 0 for one that it
 * does not have. */
const struct update_hyperparameter *
update_hyperparameter_of(const struct update_function *function, uint32_t number);
uint32_t update_hyperparameter_find_of(const struct update_function *function, const char *name);
/* Its range for that function, "in [0, 1)". */
const char *update_hyperparameter_range(const struct update_function *function, uint32_t number);
/* "learning_rate, momentum": those that the function has, "none" of one that has none, into `text`.
 * Lends  text. */
const char *
update_hyperparameters_list(const struct update_function *function, char *text, size_t text_bytes);

/* May `function` be applied to a variable of `dtype` that was created with `own` (NULL: assign)?
 * Fails  INVALID_ARGUMENT: not on this dtype. FAILED_PRECONDITION (MISSING_SLOTS): it keeps slots
 * that `own` does not. */
enum sumac_status update_check(
    const struct update_function *function, const struct update_function *own,
    enum sumac_dtype dtype, const char *variable, struct sumac_error *error);

/* How many slots a variable has that is created with `function` and these hyperparameters, and what
 * their elements are: float32 where the variable is of a half type, else as the variable's. */
uint32_t update_slot_count(
    const struct update_function *function, const struct update_hyperparameters *hyperparameters);
static inline enum sumac_dtype update_slot_dtype(enum sumac_dtype dtype)
{
    return sumac_dtype_kind(dtype) == SUMAC_KIND_HALF ? SUMAC_FLOAT32 : dtype;
}

/* May a push that is applied with `merged` be applied to a variable that was created with the same
 * function and `own`? Fails  FAILED_PRECONDITION (MISSING_SLOTS): it needs a slot that `own` does
 * not. */
enum sumac_status update_check_slots(
    const struct update_function *function, const struct update_hyperparameters *own,
    const struct update_hyperparameters *merged, const char *variable, struct sumac_error *error);

/* Fill in scalar[] and flag: hyperparameters rounded to the type of the arithmetic (float64 for
 * float64 variables, else float32). `step` is t of a function that counts_steps: 1 in the first
 * push that applies it to a shard. */
void update_prepare(
    const struct update_function *function, enum sumac_dtype dtype,
    const struct update_hyperparameters *hyperparameters, uint64_t step,
    struct update_slice *slice);

/* Give `count` elements of a slot (0 … update_slot_count() - 1) of a variable of `dtype` what they
 * start from: elements of update_slot_dtype. */
void update_fill_slot(
    const struct update_function *function, uint32_t slot, enum sumac_dtype dtype,
    const struct update_hyperparameters *hyperparameters, uint64_t count, void *out);

/* Run one slice. Threads  any; touches only what the slice names. */
void update_run(const struct update_slice *slice);

/* The dtype of a contribution to a variable of that type: float32 for half types, too. */
static inline enum sumac_dtype update_contribution_dtype(enum sumac_dtype dtype)
{
    return update_slot_dtype(dtype);
}
/* Can contributions of that type be added up? Can their sum be divided? */
bool update_can_add(enum sumac_dtype dtype);
bool update_can_divide(enum sumac_dtype dtype);
/* sum.c: run one whose gradient has to be made first. As update_run, which calls it. */
void update_run_made(const struct update_slice *slice);

/* update_rows.c: run one that is of rows. As update_run, which calls it. */
void update_run_rows(const struct update_slice *slice);

/* A row's occurrence in what one message brings: the row, and its place there, as a number by which
 * they are put in order. */
#define UPDATE_ROW_PLACE_BITS 16u
#define UPDATE_ROWS_TOGETHER_MAX (1u << UPDATE_ROW_PLACE_BITS)
#define UPDATE_ROW_MAX (UINT64_MAX >> UPDATE_ROW_PLACE_BITS)
static inline uint64_t update_row_key(uint64_t row, uint32_t place)
{
    return row << UPDATE_ROW_PLACE_BITS | place;
}
static inline uint64_t update_row_of(uint64_t key) { return key >> UPDATE_ROW_PLACE_BITS; }
static inline uint32_t update_place_of(uint64_t key)
{
    return (uint32_t)(key & (UPDATE_ROWS_TOGETHER_MAX - 1));
}
/* Put keys whose places ascend in the order of their rows; those of one row keep theirs. `scratch`
 * has as many. */
void update_rows_order(uint64_t *restrict keys, uint64_t *restrict scratch, uint32_t count);

/* Copy received bytes to staging; false if the data type is a float and any element is not finite.
 * `bytes` are whole elements: one that straddles two spans is put together by the caller. No
 * pointer need be aligned. */
bool update_copy_finite(
    enum sumac_dtype dtype, void *restrict out, const void *restrict in, size_t bytes);
bool update_all_finite(enum sumac_dtype dtype, const void *data, size_t bytes);

/* initializers: fill elements first … first + count - 1 of the whole variable (row-major
 * numbering); every split into runs gives the same values. ASSIGNED fills with zeros. Philox
 * 4x32-10 (Salmon et al., SC'11) keyed by `seed`; the counter is the element's number halved, since
 * two elements share a block of four words: the random values are computed in float64 and rounded
 * to the type. Fails  INVALID_ARGUMENT: a random kind on a dtype that is no float, uniform with b
 * <= a or b − a not finite, normal with b <= 0, a or b not finite or beyond the type, a constant
 * that the type cannot hold, an unknown kind. */
enum sumac_status initializer_check(
    const wire_initializer *initializer, enum sumac_dtype dtype, struct sumac_error *error);
void initializer_fill(
    const wire_initializer *initializer, enum sumac_dtype dtype, uint64_t first, uint64_t count,
    void *out);
