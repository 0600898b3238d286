/* SPDX-License-Identifier: Apache-2.0 */
/* update_plugged.c (test) -- a plug-in's function does what the table's does, in every way in which
 * a slice may come; and what is refused of a table. */
#include <math.h>

#include "unit.h"
#include "described.h"
#include "plugged.h"

#define COUNT 700u
#define OCCURRENCES 5u
#define ROW 100u
#define BIT(dtype) SUMAC_PLUGIN_DTYPE(dtype)

/* ---- a plug-in, and the table's function that it is held against ---- */

#define LOOP(type)                                                                                 \
    static void momentum_##type(const struct sumac_plugin_tile *tile)                              \
    {                                                                                              \
        const type rate = (type)tile->hyperparameters[0], mu = (type)tile->hyperparameters[1];     \
        const type *value = tile->value_in, *slot = tile->slot_in[0], *g = tile->gradient;         \
        type *out = tile->value_out, *slot_out = tile->slot_out[0];                                \
                                                                                                   \
        for (uint64_t i = 0; i < tile->count; i++) {                                               \
            slot_out[i] = mu * slot[i] + g[i];                                                     \
            out[i] = value[i] - rate * slot_out[i];                                                \
        }                                                                                          \
    }
LOOP(float)
LOOP(double)

static uint64_t steps_seen;

static void momentum(const struct sumac_plugin_tile *tile)
{
    steps_seen = tile->step;
    assert_int_equal((uintptr_t)tile->gradient % (tile->dtype == SUMAC_FLOAT64 ? 8 : 4), 0);
    const double rate = tile->hyperparameters[0];
    assert_true(rate == (tile->dtype == SUMAC_FLOAT64 ? 0.3 : (double)0.3F));
    if (tile->dtype == SUMAC_FLOAT64)
        momentum_double(tile);
    else
        momentum_float(tile);
}

static const struct sumac_plugin_hyperparameter hyperparameters[] = {
    {.name = "learning_rate", .default_value = 0.01, .most = INFINITY},
    {.name = "own", .default_value = 0, .most = 1, .flags = SUMAC_PLUGIN_BELOW_MOST},
};
static const struct sumac_plugin_slot slots[] = {{.name = "m"}};

static struct sumac_plugin_function row(void)
{
    return (struct sumac_plugin_function){
        .name = "mine",
        .rule = "m = μ·m + g; θ −= η·m",
        .hyperparameters = hyperparameters,
        .hyperparameter_count = 2,
        .slots = slots,
        .slot_count = 1,
        .dtypes = BIT(SUMAC_FLOAT32) | BIT(SUMAC_FLOAT64),
        .counts_steps = true,
        .loop = momentum};
}

static struct update_plugged plugged;

static enum sumac_status plug(const struct sumac_plugin_function *given, struct sumac_error *error)
{
    return update_plug(UPDATE_PLUGGED_FIRST, "lib 1.0", given, &plugged, error);
}

static void plug_row(void)
{
    const struct sumac_plugin_function given = row();
    struct sumac_error error;

    if (plug(&given, &error) != SUMAC_OK)
        fail_msg("%s", error.text);
}

static void draw(enum sumac_dtype dtype, uint64_t seed, uint64_t count, void *out)
{
    wire_initializer initializer = WIRE_INITIALIZER_INIT;

    initializer.kind = (Sumac__V1__Initializer__Kind)WIRE_INITIALIZER_NORMAL;
    initializer.b = 1;
    initializer.seed = seed;
    initializer_fill(&initializer, dtype, 0, count, out);
}

struct state {
    _Alignas(64) uint8_t value[COUNT * 8], slot[COUNT * 8];
};

struct way {
    const char *name;
    enum sumac_dtype dtype;
    double scale, clip;
    bool sums, by_rows, apart, unaligned;
};

static const uint8_t *find_source(
    const void *context, uint32_t source, const struct update_slice *slice, uint64_t at,
    uint64_t *together_bytes)
{
    const uint8_t(*sources)[COUNT * 8] = context;

    *together_bytes =
        slice->count * sumac_dtype_bytes(update_contribution_dtype(slice->dtype)) - at;
    return sources[source] + at;
}

static struct update_hyperparameters chosen(const struct update_function *function, double clip)
{
    struct update_hyperparameters values = {0};
    const char *const names[] = {"learning_rate", "own", "momentum", "clip_value"};
    const double numbers[] = {0.3, 0.7, 0.7, clip};

    for (int i = 0; i < 4; i++)
        values.value[update_hyperparameter_find_of(function, names[i])] = numbers[i];
    return values;
}

static void push(const struct way *way, const struct update_function *function, struct state *state)
{
    static uint8_t drawn[2][COUNT * 8], moved[COUNT * 8 + 1];
    const struct update_hyperparameters numbers = chosen(function, way->clip);
    const struct update_sources sources = {.count = 2, .find = find_source, .context = drawn};
    const size_t row_bytes = ROW * sumac_dtype_bytes(way->dtype);
    const size_t slot_bytes = ROW * sumac_dtype_bytes(update_slot_dtype(way->dtype));
    static const uint32_t rows[OCCURRENCES] = {0, 2, 2, 2, 5};
    struct update_row occurrences[OCCURRENCES];
    static struct state out;
    struct update_slice slice = {
        .function = function,
        .dtype = way->dtype,
        .count = way->by_rows ? ROW : COUNT,
        .divisor = way->sums ? 2 : 1};

    draw(way->sums ? update_contribution_dtype(way->dtype) : way->dtype, 7, COUNT, drawn[0]);
    draw(update_contribution_dtype(way->dtype), 8, COUNT, drawn[1]);
    memcpy(moved + 1, drawn[0], sizeof drawn[0]);
    const uint8_t *const gradient = way->unaligned ? moved + 1 : drawn[0];
    update_prepare(function, way->dtype, &numbers, 9, &slice);
    slice.gradient = gradient;
    slice.scale = way->scale;
    slice.sources = way->sums ? &sources : NULL;
    slice.value_in = state->value;
    slice.slot_in[0] = state->slot;
    slice.value_out = way->apart ? out.value : state->value;
    slice.slot_out[0] = way->apart ? out.slot : state->slot;
    for (uint32_t i = 0; i < OCCURRENCES; i++)
        occurrences[i] = (struct update_row){
            .at = {state->value + rows[i] * row_bytes, state->slot + rows[i] * slot_bytes},
            .gradient = gradient + i * row_bytes};
    if (way->by_rows) {
        slice.rows = occurrences;
        slice.row_count = OCCURRENCES;
    }
    update_run(&slice);
    if (way->apart)
        *state = out;
}

STATE_TEST(it_does_what_the_tables_function_does, NULL, NULL)
{
    static const struct way ways[] = {
        {.name = "float32", .dtype = SUMAC_FLOAT32},
        {.name = "float32 at an odd place", .dtype = SUMAC_FLOAT32, .unaligned = true},
        {.name = "float64", .dtype = SUMAC_FLOAT64, .apart = true},
        {.name = "float64 at an odd place", .dtype = SUMAC_FLOAT64, .unaligned = true},
        {.name = "bfloat16", .dtype = SUMAC_BFLOAT16},
        {.name = "float16", .dtype = SUMAC_FLOAT16, .apart = true},
        {.name = "contributions", .dtype = SUMAC_FLOAT32, .sums = true},
        {.name = "contributions of a half type", .dtype = SUMAC_FLOAT16, .sums = true},
        {.name = "scaled", .dtype = SUMAC_FLOAT64, .scale = 0.25},
        {.name = "clipped", .dtype = SUMAC_BFLOAT16, .scale = 0.25, .clip = 0.125},
        {.name = "clipped, float32", .dtype = SUMAC_FLOAT32, .clip = 0.5, .apart = true},
        {.name = "rows", .dtype = SUMAC_FLOAT32, .by_rows = true},
        {.name = "rows at odd places", .dtype = SUMAC_FLOAT32, .by_rows = true, .unaligned = true},
        {.name = "rows of a half type", .dtype = SUMAC_FLOAT16, .by_rows = true},
        {.name = "rows, clipped", .dtype = SUMAC_BFLOAT16, .by_rows = true, .clip = 0.5},
    };
    static struct state one, other, before;

    plug_row();
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        memset(&one, 0, sizeof one); /* given */
        draw(ways[i].dtype, 3, COUNT, one.value);
        before = other = one;

        for (int pushes = 0; pushes < 3; pushes++) { /* when */
            push(&ways[i], update_find(UPDATE_MOMENTUM), &one);
            push(&ways[i], &plugged.function, &other);
        }

        if (memcmp(&one, &other, sizeof one) != 0) /* then */
            fail_msg("%s: other bits", ways[i].name);
        assert_memory_not_equal(&one, &before, sizeof one);
        assert_int_equal(steps_seen, 9);
    }
}

static void times_three(const struct sumac_plugin_tile *tile)
{
    const int16_t *value = tile->value_in, *gradient = tile->gradient;
    int16_t *out = tile->value_out;

    assert_int_equal(tile->dtype, SUMAC_INT16);
    for (uint64_t i = 0; i < tile->count; i++)
        out[i] = (int16_t)(3 * value[i] + gradient[i]);
}

TEST(integers_and_rows_in_turn)
{
    static const struct sumac_plugin_function given = {
        .name = "triple",
        .rule = "θ = 3·θ + g",
        .dtypes = BIT(SUMAC_INT16),
        .repeats = SUMAC_PLUGIN_REPEATS_IN_TURN,
        .loop = times_three};
    int16_t value[2] = {1, 10}, gradients[2] = {5, 7}; /* given */
    const struct update_hyperparameters none = {0};
    const struct update_row rows[] = {
        {.at = {(uint8_t *)&value[1]}, .gradient = (const uint8_t *)&gradients[0]},
        {.at = {(uint8_t *)&value[1]}, .gradient = (const uint8_t *)&gradients[1]}};
    struct update_slice slice = {
        .function = &plugged.function,
        .dtype = SUMAC_INT16,
        .count = 1,
        .rows = rows,
        .row_count = 2,
        .divisor = 1};

    assert_int_equal(plug(&given, NULL), SUMAC_OK);
    assert_int_equal(update_hyperparameter_find_of(&plugged.function, "clip_value"), 0);
    update_prepare(&plugged.function, SUMAC_INT16, &none, 1, &slice);

    update_run(&slice); /* when */

    assert_int_equal(value[0], 1); /* then */
    assert_int_equal(value[1], 3 * (3 * 10 + 5) + 7);
}

/* It is longer than the tile beside which a half type is widened. */
STATE_TEST(a_long_row_may_be_pushed_to_a_half_type_in_float32, NULL, NULL)
{
    static struct state states[2];
    static float gradient[COUNT];
    const struct update_function *const functions[] = {
        update_find(UPDATE_MOMENTUM), &plugged.function};

    plug_row(); /* given */
    draw(SUMAC_FLOAT32, 7, COUNT, gradient);
    for (int i = 0; i < 2; i++) {
        const struct update_hyperparameters numbers = chosen(functions[i], 0);
        const struct update_row one = {
            .at = {states[i].value, states[i].slot}, .gradient = (const uint8_t *)gradient};
        struct update_slice slice = {
            .function = functions[i],
            .dtype = SUMAC_FLOAT16,
            .count = COUNT,
            .divisor = 1,
            .rows = &one,
            .row_count = 1,
            .wide = true};
        draw(SUMAC_FLOAT16, 3, COUNT, states[i].value);
        update_prepare(functions[i], SUMAC_FLOAT16, &numbers, 9, &slice);
        update_run(&slice); /* when */
    }
    assert_memory_equal(&states[0], &states[1], sizeof states[0]); /* then */
}

/* ---- its row ---- */

/* The number that its own would have first is another one's, by its name. */
TEST(a_number_that_a_later_name_has_is_left_to_it)
{
    static const struct sumac_plugin_hyperparameter takes[] = {
        {.name = "own", .most = 1}, {.name = "momentum_activation", .most = 1}};
    struct sumac_plugin_function given = row();

    given.hyperparameters = takes;
    assert_int_equal(plug(&given, NULL), SUMAC_OK);
    assert_int_equal(
        update_hyperparameter_find_of(&plugged.function, "momentum_activation"),
        UPDATE_HYPERPARAMETER_MOMENTUM_ACTIVATION);
    assert_int_equal(
        update_hyperparameter_find_of(&plugged.function, "own"),
        UPDATE_HYPERPARAMETER_CLIP_VALUE - 2);
}

TEST(a_default_is_in_its_range_as_the_flags_have_it)
{
    static const struct sumac_plugin_hyperparameter refused[] = {
        {.name = "own", .default_value = 1, .most = 1, .flags = SUMAC_PLUGIN_BELOW_MOST},
        {.name = "own", .default_value = 0, .most = 1, .flags = SUMAC_PLUGIN_ABOVE_LEAST},
        {.name = "own", .default_value = 0.5, .most = 1, .flags = SUMAC_PLUGIN_WHOLE},
    };

    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct sumac_plugin_function given = row();
        struct sumac_error error = {0};
        given.hyperparameters = &refused[i];
        given.hyperparameter_count = 1;
        given.dtypes = BIT(SUMAC_FLOAT64);
        assert_int_equal(plug(&given, &error), SUMAC_INVALID_ARGUMENT);
        assert_non_null(strstr(error.text, "by default; it must be"));
    }
}

/* It is of integers: what clips and begins as a float does not concern it. */
TEST(a_function_of_integers_clips_nothing_and_begins_with_integers)
{
    static const struct sumac_plugin_hyperparameter takes[] = {
        {.name = "own", .default_value = 0.5, .most = 1}};
    static const struct sumac_plugin_slot kept[] = {{.name = "m", .initial_from = "own"}};
    struct sumac_plugin_function given = row();
    struct update_hyperparameters defaults = {0};
    struct update_slice slice = {.clip = 1, .flag = true}; /* as another function left it */

    given.dtypes = BIT(SUMAC_INT32);
    given.hyperparameters = takes;
    given.hyperparameter_count = 1;
    given.slots = kept;
    assert_int_equal(plug(&given, NULL), SUMAC_OK);
    memcpy(defaults.value, plugged.function.defaults, sizeof plugged.function.defaults);

    update_prepare(&plugged.function, SUMAC_INT32, &defaults, 1, &slice);

    assert_true(slice.clip == 0);
    assert_int_equal(
        update_hyperparameters_check(&plugged.function, SUMAC_INT32, &defaults, NULL),
        SUMAC_INVALID_ARGUMENT);
}

TEST(its_row_has_what_the_table_says)
{
    const struct update_function *const function = &plugged.function;

    plug_row(); /* given, when */

    /* then */
    assert_string_equal(function->name, "mine");
    assert_string_equal(plugged.plugin, "lib 1.0");
    assert_int_equal(
        update_hyperparameter_find_of(function, "learning_rate"),
        UPDATE_HYPERPARAMETER_LEARNING_RATE);
    const uint32_t own = update_hyperparameter_find_of(function, "own");
    assert_int_equal(own, UPDATE_HYPERPARAMETER_CLIP_VALUE - 1);
    assert_string_equal(update_hyperparameter_range(function, own), "in [0, 1)");
    assert_string_equal(
        update_hyperparameter_range(function, UPDATE_HYPERPARAMETER_LEARNING_RATE),
        "finite and at least 0");
    assert_int_equal(
        function->dtypes,
        BIT(SUMAC_FLOAT32) | BIT(SUMAC_FLOAT64) | BIT(SUMAC_FLOAT16) | BIT(SUMAC_BFLOAT16));
    char list[64];
    assert_string_equal(
        update_hyperparameters_list(function, list, sizeof list), "learning_rate, own, clip_value");
}

struct range {
    double least, most;
    uint32_t flags;
    double in, out;
    const char *text;
};

TEST(a_range_is_what_its_ends_and_flags_say)
{
    static const struct range ranges[] = {
        {0, 1, 0, 1, 1.5, "in [0, 1]"},
        {0, 1, SUMAC_PLUGIN_BELOW_MOST, 0, 1, "in [0, 1)"},
        {0, 1, SUMAC_PLUGIN_ABOVE_LEAST, 1, 0, "in (0, 1]"},
        {1, 9, SUMAC_PLUGIN_WHOLE, 4, 4.5, "whole and in [1, 9]"},
        {-INFINITY, INFINITY, 0, -1e30, INFINITY, "finite"},
        {-INFINITY, INFINITY, 0, 1e30, -INFINITY, "finite"},
        {-INFINITY, 2, SUMAC_PLUGIN_BELOW_MOST, 1, 2, "finite and below 2"},
        {-INFINITY, 2, 0, 2, 3, "finite and at most 2"},
        {0, INFINITY, SUMAC_PLUGIN_ABOVE_LEAST, 1, 0, "finite and above 0"},
        {0, INFINITY, 0, 0, NAN, "finite and at least 0"},
    };

    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const struct range *const range = &ranges[i]; /* given */
        const struct sumac_plugin_hyperparameter takes = {
            .name = "x",
            .default_value = range->in,
            .least = range->least,
            .most = range->most,
            .flags = range->flags};
        struct sumac_plugin_function given = row();
        given.hyperparameters = &takes;
        given.hyperparameter_count = 1;
        struct update_hyperparameters merged;
        wire_hyperparameter x = WIRE_HYPERPARAMETER_INIT, *pointer = &x;
        wire_function message = WIRE_FUNCTION_INIT;

        assert_int_equal(plug(&given, NULL), SUMAC_OK); /* when */
        x.name =
            (Sumac__V1__HyperparameterName)update_hyperparameter_find_of(&plugged.function, "x");
        message.n_hyperparameters = 1;
        message.hyperparameters = &pointer;

        /* then */
        x.value = range->in;
        assert_int_equal(
            update_hyperparameters_read(&plugged.function, NULL, &message, &merged, NULL),
            SUMAC_OK);
        x.value = range->out;
        assert_int_equal(
            update_hyperparameters_read(&plugged.function, NULL, &message, &merged, NULL),
            SUMAC_INVALID_ARGUMENT);
        assert_string_equal(
            update_hyperparameter_range(&plugged.function, (uint32_t)x.name), range->text);
    }
}

/* A row that is refused, and what is said of it. */
struct refused {
    struct sumac_plugin_function row;
    const char *words;
};

#define HYPERPARAMETER(...)                                                                        \
    .hyperparameter_count = 1, .hyperparameters = &(const struct sumac_plugin_hyperparameter)      \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define SLOT(...)                                                                                  \
    .slot_count = 1, .slots = &(const struct sumac_plugin_slot) { __VA_ARGS__ }
#define ROW_OF(...)                                                                                \
    {                                                                                              \
        .name = "mine", .rule = "r", .dtypes = BIT(SUMAC_FLOAT32), .loop = momentum, __VA_ARGS__   \
    }

TEST(a_row_that_is_none_is_refused_with_what_is_wrong)
{
    static const struct sumac_plugin_hyperparameter twice[] = {
        {.name = "a", .most = 1}, {.name = "a", .most = 1}};
    static const struct sumac_plugin_slot both[] = {{.name = "s"}, {.name = "s"}};
    static char long_rule[SUMAC_PLUGIN_RULE_BYTES_MAX + 2];

    memset(long_rule, 'r', sizeof long_rule - 1);
    const struct refused rows[] = {
        {{.name = NULL}, "a function of lib 1.0 has no name"},
        {{.name = ""}, "has no name"},
        {{.name = "1st"}, "has no name"},
        {{.name = "mín"}, "has no name"},
        {{.name = "lion", .rule = "r"}, "lion is a function that every ps has"},
        {{.name = "mine", .rule = NULL}, "mine has no rule"},
        {{.name = "mine", .rule = "two\nlines"}, "mine has no rule"},
        {{.name = "mine", .rule = "\xff"}, "mine has no rule"},
        {{.name = "mine", .rule = long_rule}, "mine has no rule"},
        {ROW_OF(.repeats = (enum sumac_plugin_repeats)3), "number 3 for its repeats"},
        {ROW_OF(.hyperparameter_count = 17), "mine has 17 hyperparameters, at NULL"},
        {ROW_OF(.hyperparameter_count = UINT32_MAX, .hyperparameters = twice), "it has 0 to 16"},
        {ROW_OF(HYPERPARAMETER(.name = NULL, .most = 1)), "hyperparameter 0 of mine has no name"},
        {ROW_OF(HYPERPARAMETER(.name = "clip_value", .most = 1)), "clip_value of mine"},
        {ROW_OF(.hyperparameter_count = 2, .hyperparameters = twice), "hyperparameter a twice"},
        {ROW_OF(HYPERPARAMETER(.name = "a", .least = 1, .most = 1)), "a range that is none"},
        {ROW_OF(HYPERPARAMETER(.name = "a", .least = NAN, .most = 1)), "a range that is none"},
        {ROW_OF(HYPERPARAMETER(.name = "a", .most = 1, .flags = 8)), "with the flags 0x8"},
        {ROW_OF(HYPERPARAMETER(.name = "a", .most = 1, .default_value = 2)), "2 by default"},
        {ROW_OF(HYPERPARAMETER(.name = "a", .most = INFINITY, .default_value = NAN)), "nan by"},
        {ROW_OF(HYPERPARAMETER(.name = "a", .most = INFINITY, .default_value = INFINITY)), "inf"},
        {ROW_OF(HYPERPARAMETER(.name = "a", .most = 1, .flags = SUMAC_PLUGIN_ABOVE_LEAST)),
         "a of mine is 0 by default; it must be in (0, 1]"},
        {ROW_OF(HYPERPARAMETER(
                 .name = "a", .most = 1, .flags = SUMAC_PLUGIN_BELOW_MOST,
                 .default_value = 0.99999999999)),
         "which is 1 in the arithmetic of a float32 variable; it must be in [0, 1)"},
        {ROW_OF(.slot_count = 4, .slots = both), "mine has 4 slots"},
        {ROW_OF(.slot_count = 1), "1 slots, at NULL"},
        {ROW_OF(.slot_count = 2, .slots = both), "mine has the slot s twice"},
        {ROW_OF(SLOT(.name = "")), "slot 0 of mine has no name"},
        {ROW_OF(SLOT(.name = "s", .initial = 1e300)), "which is no number of float32"},
        {ROW_OF(SLOT(.name = "s", .initial = NAN)), "which is no number of float32"},
        {ROW_OF(SLOT(.name = "s", .initial_from = "a")), "starts from a, which is no"},
        {ROW_OF(SLOT(.name = "s", .initial_from = "?")), "starts from ?, which is no"},
        {{.name = "mine", .rule = "r", .dtypes = 0}, "mine has the data types 0x0"},
        {{.name = "mine", .rule = "r", .dtypes = 1}, "the data types 0x1"},
        {{.name = "mine", .rule = "r", .dtypes = 1u << 14}, "the data types 0x4000"},
        {{.name = "mine", .rule = "r", .dtypes = BIT(SUMAC_FLOAT16)}, "for half types that of"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sumac_error error = {0};

        const enum sumac_status status = plug(&rows[i].row, &error); /* given, when */

        if (status != SUMAC_INVALID_ARGUMENT || strstr(error.text, rows[i].words) == NULL)
            fail_msg("row %zu: %s, and not “%s”", i, error.text, rows[i].words); /* then */
    }
}

TEST(a_library_that_is_none_is_refused)
{
    const struct sumac_plugin_function function = row();
    const struct sumac_plugin good = {
        .abi_version = SUMAC_PLUGIN_ABI_VERSION,
        .function_count = 1,
        .name = "lib",
        .version = "1.0",
        .functions = &function};

    const struct {
        struct sumac_plugin plugin;
        const char *words;
    } refused[] = {
        {{.abi_version = 2, .name = (const char *)1}, "its ABI version is 2, and that of this"},
        {{.abi_version = 1, .name = NULL}, "its name is none"},
        {{.abi_version = 1, .name = "a b"}, "its name is none"},
        {{.abi_version = 1, .name = "lib", .version = ""}, "its version is none"},
        {{1, 1, "lib", "1.0", NULL}, "its table has 1 functions, at NULL"},
        {{1, 0, "lib", "1.0", &function}, "its table has 0 functions"},
        {{1, 65, "lib", "1.0", &function}, "its table has 65 functions; it has 1 to 64"},
    };
    struct sumac_error error;

    assert_int_equal(update_plugin_check(&good, NULL), SUMAC_OK);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_int_not_equal(update_plugin_check(&refused[i].plugin, &error), SUMAC_OK);
        if (strstr(error.text, refused[i].words) == NULL)
            fail_msg("%s, and not “%s”", error.text, refused[i].words);
    }
}

/* ---- as a message ---- */

static struct arena arena;

static void assert_same_row(const struct update_function *a, const struct update_function *b)
{
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->rule, b->rule);
    assert_int_equal(a->number, b->number);
    assert_int_equal(a->dtypes, b->dtypes);
    assert_int_equal(a->repeats, b->repeats);
    assert_int_equal(a->counts_steps, b->counts_steps);
    assert_int_equal(a->hyperparameters, b->hyperparameters);
    assert_int_equal(a->slot_count, b->slot_count);
    for (uint32_t i = 0; i < a->slot_count; i++) {
        assert_string_equal(a->slot_names[i], b->slot_names[i]);
        assert_int_equal(a->slot_from[i], b->slot_from[i]);
        assert_true(a->slot_initial[i] == b->slot_initial[i]);
    }
    for (uint32_t i = 1; i <= UPDATE_HYPERPARAMETERS_MAX; i++) {
        if ((a->hyperparameters >> i & 1u) == 0)
            continue;
        assert_true(a->defaults[i] == b->defaults[i]);
        assert_string_equal(update_hyperparameter_range(a, i), update_hyperparameter_range(b, i));
        assert_string_equal(
            update_hyperparameter_of(a, i)->name, update_hyperparameter_of(b, i)->name);
    }
    assert_int_equal(update_digest(a), update_digest(b));
}

TEST(a_row_that_was_said_is_the_same_row)
{
    static struct update_plugged read;
    static const struct sumac_plugin_hyperparameter many[] = {
        {.name = "z", .default_value = 3, .least = 1, .most = 7, .flags = SUMAC_PLUGIN_WHOLE},
        {.name = "beta_1", .default_value = 0.5, .most = 1, .flags = SUMAC_PLUGIN_ABOVE_LEAST},
        {.name = "a", .default_value = -2, .least = -INFINITY, .most = -1},
        {.name = "learning_rate", .default_value = 0.1, .most = INFINITY}, /* number 1 */
    };
    static const struct sumac_plugin_slot kept[] = {
        {.name = "s", .initial = 0.25},
        {.name = "t", .initial_from = "a"},
        {.name = "u", .initial_from = "learning_rate"}};
    struct sumac_plugin_function given = row(); /* given */

    given.hyperparameters = many;
    given.hyperparameter_count = 4;
    given.slots = kept;
    given.slot_count = 3;
    given.repeats = SUMAC_PLUGIN_REPEATS_LAST_WINS;
    assert_int_equal(plug(&given, NULL), SUMAC_OK);

    arena_init(&arena, &memory_heap, 1u << 20); /* when */
    const wire_known_function *const said = update_describe(&plugged.function, &arena);
    assert_non_null(said);
    struct sumac_error error = {0};
    if (update_read_described(said, &read, &error) != SUMAC_OK)
        fail_msg("%s", error.text);

    assert_same_row(&read.function, &plugged.function); /* then */
    assert_string_equal(read.plugin, "lib 1.0");
    said->hyperparameters[1]->number = 5;
    assert_int_equal(update_read_described(said, &read, &error), SUMAC_FAILED_PRECONDITION);
    assert_non_null(strstr(error.text, "use the release of the ps"));
    arena_deinit(&arena);
}

/* Another process describes the function, and may describe it wrongly. */
TEST(what_no_plug_in_has_is_refused)
{
    enum { MANY = 64 };
    static struct update_plugged read;
    wire_known_hyperparameter *hyperparameters_said[MANY];
    wire_known_slot *slots_said[MANY];
    struct sumac_error error = {0};

    plug_row(); /* given */
    arena_init(&arena, &memory_heap, 1u << 20);
    wire_known_function *const said = update_describe(&plugged.function, &arena);
    assert_non_null(said);
    for (size_t i = 0; i < MANY; i++) {
        hyperparameters_said[i] = said->hyperparameters[0];
        slots_said[i] = said->slots[0];
    }
    wire_known_function more_hyperparameters = *said, more_slots = *said, more_types = *said;
    more_hyperparameters.hyperparameters = hyperparameters_said;
    more_hyperparameters.n_hyperparameters = MANY;
    more_slots.slots = slots_said;
    more_slots.n_slots = MANY;
    Sumac__V1__DataType types[] = {
        (Sumac__V1__DataType)SUMAC_FLOAT32, (Sumac__V1__DataType)(32 + (int)SUMAC_INT32)};
    more_types.data_types = types;
    more_types.n_data_types = 2;

    assert_int_equal(/* when, then */
                     update_read_described(&more_hyperparameters, &read, &error),
                     SUMAC_INVALID_ARGUMENT);
    assert_int_equal(update_read_described(&more_slots, &read, &error), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(update_read_described(&more_types, &read, &error), SUMAC_OK);
    assert_int_equal(read.function.dtypes & BIT(SUMAC_INT32), 0);
    said->slots[0]->initial_from = 9; /* which it does not take */
    assert_int_equal(update_read_described(said, &read, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "slot m of mine starts from a name"));
    arena_deinit(&arena);
}

static const wire_known_hyperparameter *said_of(const wire_known_function *said, uint32_t number)
{
    for (size_t i = 0; i < said->n_hyperparameters; i++)
        if (said->hyperparameters[i]->number == number)
            return said->hyperparameters[i];
    fail_msg("hyperparameter %u is not said", (unsigned)number);
    return NULL;
}

/* An end that no number reaches is an infinity, which needs no flag. */
TEST(the_ends_of_a_range_are_said)
{
    arena_init(&arena, &memory_heap, 1u << 20);
    const wire_known_function *const ftrl = update_describe(update_find(UPDATE_FTRL), &arena);
    const wire_known_function *const adam = update_describe(update_find(UPDATE_ADAM), &arena);

    const wire_known_hyperparameter *one = said_of(ftrl, UPDATE_HYPERPARAMETER_LEARNING_RATE);
    assert_true(one->least == 0 && one->above_least);
    assert_true(one->most == HUGE_VAL && !one->below_most);
    one = said_of(ftrl, UPDATE_HYPERPARAMETER_LEARNING_RATE_POWER);
    assert_true(one->least == -HUGE_VAL && !one->above_least);
    assert_true(one->most == 0 && !one->below_most);
    one = said_of(adam, UPDATE_HYPERPARAMETER_BETA_1);
    assert_true(one->least == 0 && !one->above_least);
    assert_true(one->most == 1 && one->below_most);
    assert_string_equal(
        update_hyperparameter_range(update_find(UPDATE_FTRL), UPDATE_HYPERPARAMETER_LEARNING_RATE),
        "finite and above 0");
    arena_deinit(&arena);
}

TEST(every_built_in_row_can_be_said)
{
    const struct update_function *function;

    arena_init(&arena, &memory_heap, 1u << 20);
    for (uint32_t i = 0; (function = update_at(i)) != NULL; i++) {
        const wire_known_function *const said = update_describe(function, &arena); /* when */

        assert_non_null(said); /* then */
        assert_int_equal(said->number, function->number);
        assert_string_equal(said->rule, function->rule);
        assert_int_equal(said->n_slots, function->slot_count);
        assert_int_equal(said->n_data_types, __builtin_popcount(function->dtypes));
        assert_int_equal(said->n_hyperparameters, __builtin_popcount(function->hyperparameters));
        assert_int_equal(update_check_described(function, said, NULL), SUMAC_OK);
    }
    arena_deinit(&arena);
}

TEST(whatever_differs_makes_another_digest)
{
    static struct sumac_plugin_hyperparameter takes[2];
    static struct sumac_plugin_slot keeps;
    uint64_t digests[16];

    for (int i = 0; i < 16; i++) {
        struct sumac_plugin_function given = row(); /* given */
        memcpy(takes, hyperparameters, sizeof takes);
        keeps = slots[0];
        given.hyperparameters = takes;
        given.slots = &keeps;
        const char *const plugin = i == 1 ? "lib 1.1" : "lib 1.0";
        if (i == 2)
            given.name = "mime";
        if (i == 3)
            given.rule = "another";
        if (i == 4)
            given.dtypes = BIT(SUMAC_FLOAT32);
        if (i == 5)
            given.counts_steps = false;
        if (i == 6)
            given.repeats = SUMAC_PLUGIN_REPEATS_IN_TURN;
        if (i == 7)
            takes[1].default_value = 0.5;
        if (i == 8)
            takes[1].most = 2;
        if (i == 9)
            takes[1].flags = 0;
        if (i == 10)
            takes[1].name = "other";
        if (i == 11)
            keeps.name = "n";
        if (i == 12)
            keeps.initial = 1;
        if (i == 13)
            keeps.initial_from = "own";
        if (i == 14) { /* as 7, with the other end left out */
            takes[1].default_value = 0.5;
            takes[1].flags = SUMAC_PLUGIN_ABOVE_LEAST;
        }
        if (i == 15) { /* the same bytes, in other texts */
            given.name = "mi";
            given.rule = "nem = μ·m + g; θ −= η·m";
        }

        assert_int_equal(
            update_plug(UPDATE_PLUGGED_FIRST, plugin, &given, &plugged, NULL), SUMAC_OK); /* when */
        digests[i] = update_digest(&plugged.function);

        for (int other = 0; other < i; other++) /* then */
            assert_int_not_equal(digests[other], digests[i]);
    }
}
