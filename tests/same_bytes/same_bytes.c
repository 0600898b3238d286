/* SPDX-License-Identifier: Apache-2.0 */
/* same_bytes.c -- `same_bytes FILE`: 1000 steps of every update function on every type it takes,
 * with fixed pseudo-random inputs, by every table of loops that this processor runs, and every
 * random initializer, and expressions likewise. Writes a line for each: function, type, and the
 * digests (XXH3-64) of the value and the slots after the last step.
 *
 * The file must not depend on the compiler that built the program, nor on the processor. It fails
 * at once when two tables of loops disagree.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "expression_loops.h"
#include "expression_rows.h"
#include "loops.h"
#include "random.h"

#define ELEMENTS 1027u
#define STEPS 1000u
#define EXPRESSION_STEPS 100u

struct state {
    uint64_t value[ELEMENTS], slots[UPDATE_SLOTS_MAX][ELEMENTS], gradient[ELEMENTS];
};

static void draw_elements(enum sumac_dtype dtype, uint64_t seed, void *out)
{
    if (sumac_dtype_is_float(dtype)) {
        wire_initializer draw = WIRE_INITIALIZER_INIT;
        draw.kind = (Sumac__V1__Initializer__Kind)WIRE_INITIALIZER_NORMAL;
        draw.b = 1;
        draw.seed = seed;
        initializer_fill(&draw, dtype, 0, ELEMENTS, out);
        return;
    }
    uint8_t *const bytes = out;
    for (uint32_t i = 0; i < ELEMENTS * sumac_dtype_bytes(dtype); i++) {
        const struct random_block counter = {{i, 0, 0, 0}};
        const uint32_t word = random_philox(counter, (uint32_t)seed, 0).word[0];
        bytes[i] = (uint8_t)(dtype == SUMAC_BOOL ? word & 1 : word);
    }
}

/* A hyperparameter that is not its function's default; no name: all are. */
struct variant {
    const char *function, *name;
    double value;
};

static const struct variant variants[] = {
    {"momentum", "nesterov", 1},
    {"rmsprop", "centered", 1},
    {"ftrl", "learning_rate_power", -0.3},
};

static void run_steps(
    const struct loops *table, const struct update_function *function, enum sumac_dtype dtype,
    const struct variant *variant, struct state *state)
{
    struct update_hyperparameters hyperparameters;

    if (update_hyperparameters_read(function, NULL, NULL, &hyperparameters, NULL) != SUMAC_OK)
        abort();
    if (variant->name != NULL)
        hyperparameters.value[update_hyperparameter_find(variant->name)] = variant->value;
    memset(state, 0, sizeof *state);
    draw_elements(dtype, 1, state->value);
    struct update_slice slice = {
        .function = function,
        .dtype = dtype,
        .count = ELEMENTS,
        .value_in = state->value,
        .value_out = state->value,
        .gradient = state->gradient,
        .slot_in = {state->slots[0], state->slots[1], state->slots[2]},
        .slot_out = {state->slots[0], state->slots[1], state->slots[2]},
    };
    for (uint64_t step = 1; step <= STEPS; step++) {
        draw_elements(dtype, step + 1, state->gradient);
        update_prepare(function, dtype, &hyperparameters, step, &slice);
        table->run[function->number][dtype](&slice);
    }
}

/* False: the tables disagree. */
static bool write_function(
    FILE *file, const struct update_function *function, enum sumac_dtype dtype,
    const struct variant *variant)
{
    static struct state states[2];
    const size_t bytes = ELEMENTS * sumac_dtype_bytes(dtype);
    const size_t slot_bytes = ELEMENTS * sumac_dtype_bytes(update_slot_dtype(dtype));
    const struct loops *table;

    run_steps(&loops_plain, function, dtype, variant, &states[0]);
    for (uint32_t t = 1; (table = loops_at(t)) != NULL; t++) {
        run_steps(table, function, dtype, variant, &states[1]);
        if (memcmp(&states[0], &states[1], sizeof states[0]) != 0) {
            fprintf(
                stderr, "%s of %s differs between the loops plain and %s\n", function->name,
                sumac_dtype_name(dtype), table->name);
            return false;
        }
    }
    fprintf(
        file, "%s %s %s %016" PRIx64, function->name, variant->name == NULL ? "" : variant->name,
        sumac_dtype_name(dtype), XXH3_64bits(states[0].value, bytes));
    for (uint32_t s = 0; s < function->slot_count; s++)
        fprintf(
            file, " %s %016" PRIx64, function->slot_names[s],
            XXH3_64bits(states[0].slots[s], slot_bytes));
    fprintf(file, "\n");
    return true;
}

static bool write_all(FILE *file)
{
    const struct update_function *function;

    for (uint32_t f = 0; (function = update_at(f)) != NULL; f++) {
        for (int dtype = SUMAC_BOOL; dtype <= SUMAC_FLOAT64; dtype++) {
            if ((function->dtypes >> dtype & 1u) == 0)
                continue;
            const struct variant defaults = {.name = NULL};
            if (!write_function(file, function, (enum sumac_dtype)dtype, &defaults))
                return false;
            for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
                if (strcmp(variants[i].function, function->name) == 0 &&
                    !write_function(file, function, (enum sumac_dtype)dtype, &variants[i]))
                    return false;
        }
    }
    return true;
}

struct summed {
    struct state *parts;
    size_t element;
};

static const uint8_t *find_part(
    const void *context, uint32_t source, const struct update_slice *slice, uint64_t at,
    uint64_t *together_bytes)
{
    const struct summed *summed = context;

    (void)slice;
    *together_bytes = ELEMENTS * summed->element - at;
    return (const uint8_t *)summed->parts[source].gradient + at;
}

/* The mean of what six pushed, by the loops of this processor. */
static void write_means(FILE *file)
{
    static struct state parts[6]; /* more than are read at a time */

    for (int number = SUMAC_FLOAT16; number <= SUMAC_FLOAT64; number++) {
        const enum sumac_dtype dtype = (enum sumac_dtype)number;
        const enum sumac_dtype made_of = update_contribution_dtype(dtype);
        const struct summed summed = {parts, sumac_dtype_bytes(made_of)};
        const struct update_sources sources = {.count = 6, .find = find_part, .context = &summed};
        struct update_slice slice = {
            .function = update_find(UPDATE_ASSIGN_ADD),
            .dtype = dtype,
            .count = ELEMENTS,
            .value_in = parts[0].value,
            .value_out = parts[0].value,
            .sources = &sources,
            .divisor = 3.5};
        for (uint64_t i = 0; i < 6; i++)
            draw_elements(made_of, i + 1, parts[i].gradient);
        draw_elements(dtype, 9, parts[0].value);
        update_run(&slice);
        fprintf(
            file, "mean %s %016" PRIx64 "\n", sumac_dtype_name(dtype),
            XXH3_64bits(parts[0].value, ELEMENTS * (size_t)sumac_dtype_bytes(dtype)));
    }
}

/* Rates of each kind of schedule, over versions that no table has. */
static void write_schedules(FILE *file)
{
    static double rates[20000];
    const struct update_schedule schedules[] = {
        {.warmup_steps = 300, .warmup_target = 0.7},
        {.kind = UPDATE_SCHEDULE_EXPONENTIAL_DECAY, .decay_steps = 700, .decay = 0.96},
        {.kind = UPDATE_SCHEDULE_COSINE_DECAY, .decay_steps = 19000, .decay = 0.01}};

    for (size_t k = 0; k < 3; k++) {
        for (uint64_t version = 0; version < 20000; version++)
            rates[version] = update_schedule_rate(&schedules[k], 0.3, version);
        fprintf(
            file, "%s %016" PRIx64 "\n", update_schedule_name(schedules[k].kind),
            XXH3_64bits(rates, sizeof rates));
    }
}

static void write_initializers(FILE *file)
{
    static const int kinds[] = {WIRE_INITIALIZER_UNIFORM, WIRE_INITIALIZER_NORMAL};
    static uint64_t elements[100000];

    for (size_t k = 0; k < 2; k++) {
        for (int dtype = SUMAC_FLOAT16; dtype <= SUMAC_FLOAT64; dtype++) {
            wire_initializer draw = WIRE_INITIALIZER_INIT;
            draw.kind = (Sumac__V1__Initializer__Kind)kinds[k];
            draw.a = -0.1;
            draw.b = 0.3;
            draw.seed = 12345678901234567u;
            initializer_fill(&draw, (enum sumac_dtype)dtype, 1, 100000, elements);
            fprintf(
                file, "%s %s %016" PRIx64 "\n", k == 0 ? "uniform" : "normal",
                sumac_dtype_name((enum sumac_dtype)dtype),
                XXH3_64bits(
                    elements, 100000u * (size_t)sumac_dtype_bytes((enum sumac_dtype)dtype)));
        }
    }
}

/* Every function of the language, of elements that stay numbers. */
static const struct expression_row every_function = {
    .name = "every function",
    .text = "slots: m = 0, v = 1\n"
            "u = exp(-abs(g)) + tanh(value) * rsqrt(1 + g * g)\n"
            "w = log(1 + abs(value)) + pow(1 + abs(g), 0.3 * tanh(m)) / step\n"
            "m = clip(0.9 * m + u, min(g, -1), max(value, 1))\n"
            "v = where(g > value, v - 0.1 * w, sqrt(abs(v)) + sign(g) * 0.01)\n"
            "value = 0.99 * value - 0.01 * (m + v)\n"};

static void run_expression(
    const struct expression_loops *table, const struct expression_row *row, enum sumac_dtype dtype,
    struct state *state)
{
    static struct expression expression;
    static struct expression_plan plan;

    if (expression_read(row->text, strlen(row->text), &expression, NULL) != SUMAC_OK)
        abort();
    memset(state, 0, sizeof *state);
    draw_elements(dtype, 1, state->value);
    struct expression_slice slice = {
        .count = ELEMENTS,
        .value_in = state->value,
        .value_out = state->value,
        .gradient = state->gradient,
        .gradient_dtype = dtype};
    for (uint32_t s = 0; s < expression.slot_count; s++)
        slice.slot_in[s] = slice.slot_out[s] = state->slots[s];
    for (uint64_t step = 1; step <= EXPRESSION_STEPS; step++) {
        draw_elements(dtype, step + 1, state->gradient);
        expression_plan(&expression, dtype, expression.defaults, step, &plan);
        expression_run_with(table, &plan, &slice);
    }
}

/* False: the tables disagree. */
static bool write_expression(FILE *file, const struct expression_row *row, enum sumac_dtype dtype)
{
    static struct state states[2];
    const struct expression_loops *table;

    run_expression(&expression_loops_plain, row, dtype, &states[0]);
    for (uint32_t t = 1; (table = expression_loops_at(t)) != NULL; t++) {
        run_expression(table, row, dtype, &states[1]);
        if (memcmp(&states[0], &states[1], sizeof states[0]) != 0) {
            fprintf(
                stderr, "the expression %s of %s differs between the loops plain and %s\n",
                row->name, sumac_dtype_name(dtype), table->name);
            return false;
        }
    }
    fprintf(
        file, "expression %s%s%s %s %016" PRIx64 "\n", row->name, row->fixed_to > 0 ? " " : "",
        row->fixed_to > 0 ? row->fixed : "", sumac_dtype_name(dtype),
        XXH3_64bits(&states[0], sizeof states[0]));
    return true;
}

static bool write_expressions(FILE *file)
{
    bool agreed = true;

    for (int number = SUMAC_FLOAT16; number <= SUMAC_FLOAT64; number++) {
        const enum sumac_dtype dtype = (enum sumac_dtype)number;
        for (size_t i = 0; i < EXPRESSION_ROWS; i++)
            agreed = write_expression(file, &expression_rows[i], dtype) && agreed;
        agreed = write_expression(file, &every_function, dtype) && agreed;
    }
    return agreed;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: same_bytes FILE\n");
        return 2;
    }
    FILE *const file = fopen(argv[1], "w");
    if (file == NULL) {
        fprintf(stderr, "same_bytes: cannot write %s\n", argv[1]);
        return 2;
    }
    const bool agreed = write_all(file) && write_expressions(file);
    write_means(file);
    write_initializers(file);
    write_schedules(file);
    return fclose(file) == 0 && agreed ? 0 : 1;
}
