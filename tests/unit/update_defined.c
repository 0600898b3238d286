/* SPDX-License-Identifier: Apache-2.0 */
/* update_defined.c (test) -- a function made of a text does what the table's does, in every way in
 * which a slice may come. */
#include <float.h>

#include "unit.h"
#include "defined.h"

#define COUNT 700u
#define OCCURRENCES 5u
#define ROW 100u

static const char momentum_text[] = "hyperparameters: learning_rate = 0.01, momentum = 0\n"
                                    "slots: momentum_slot = 0\n"
                                    "momentum_slot = momentum * momentum_slot + g\n"
                                    "value = value - learning_rate * momentum_slot\n";

static struct update_defined defined;

static void define(const char *name, const char *text)
{
    struct sumac_error error;

    if (update_define(UPDATE_DEFINED_FIRST, name, text, strlen(text), &defined, &error) != SUMAC_OK)
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

static struct update_hyperparameters chosen(void)
{
    struct update_hyperparameters hyperparameters = {0};

    hyperparameters.value[UPDATE_HYPERPARAMETER_LEARNING_RATE] = 0.3;
    hyperparameters.value[UPDATE_HYPERPARAMETER_MOMENTUM] = 0.7;
    return hyperparameters;
}

TEST(hyperparameters_have_the_numbers_of_their_names)
{
    /* given, when */
    define(
        "mine/of-2.0", "hyperparameters: own = 2, beta_2 = -3, other = 4, clip_value = 5\n"
                       "slots: s = own, t = -2.5, u = other\n"
                       "s = own + beta_2 + s\n"
                       "t = t + g\n"
                       "u = u + g\n"
                       "value = clip(value + other + step + s + t, -clip_value, clip_value)\n");

    /* then */
    const struct update_function *const function = &defined.function;
    assert_int_equal(function->number, UPDATE_DEFINED_FIRST);
    assert_string_equal(function->name, "mine/of-2.0");
    assert_int_equal(function->slot_count, 3);
    assert_true(function->counts_steps);
    assert_int_equal(
        update_hyperparameter_find_of(function, "beta_2"), UPDATE_HYPERPARAMETER_BETA_2);
    assert_int_equal(
        update_hyperparameter_find_of(function, "clip_value"), UPDATE_HYPERPARAMETER_CLIP_VALUE);
    assert_int_equal(
        update_hyperparameter_find_of(function, "own"), UPDATE_HYPERPARAMETER_CLIP_VALUE - 1);
    assert_int_equal(
        update_hyperparameter_find_of(function, "other"), UPDATE_HYPERPARAMETER_CLIP_VALUE - 2);
    assert_int_equal(update_hyperparameter_find_of(function, "learning_rate"), 0);
    struct update_hyperparameters merged;
    assert_int_equal(update_hyperparameters_read(function, NULL, NULL, &merged, NULL), SUMAC_OK);
    assert_true(merged.value[UPDATE_HYPERPARAMETER_BETA_2] == -3);
    const struct update_hyperparameter *const own =
        update_hyperparameter_of(function, UPDATE_HYPERPARAMETER_CLIP_VALUE - 1);
    assert_string_equal(own->name, "own");
    assert_true(own->least == -DBL_MAX);
    assert_true(own->most == DBL_MAX);
    float slots[3] = {0};
    update_fill_slot(function, 0, SUMAC_FLOAT32, &merged, 1, &slots[0]);
    update_fill_slot(function, 1, SUMAC_FLOAT32, &merged, 1, &slots[1]);
    update_fill_slot(function, 2, SUMAC_FLOAT32, &merged, 1, &slots[2]);
    assert_true(slots[0] == 2);
    assert_true(slots[1] == -2.5F);
    assert_true(slots[2] == 4);
    char list[64];
    assert_string_equal(
        update_hyperparameters_list(function, list, sizeof list), "beta_2, other, own, clip_value");
}

/* The number that its own would have first is another one's, by its name. */
TEST(a_number_that_a_later_name_has_is_left_to_it)
{
    define(
        "mine", "hyperparameters: own = 2, momentum_activation = 3\n"
                "value = value - own * momentum_activation * g\n");

    const struct update_function *const function = &defined.function;
    assert_int_equal(
        update_hyperparameter_find_of(function, "momentum_activation"),
        UPDATE_HYPERPARAMETER_MOMENTUM_ACTIVATION);
    assert_int_equal(
        update_hyperparameter_find_of(function, "own"), UPDATE_HYPERPARAMETER_CLIP_VALUE - 2);
}

TEST(sixteen_of_its_own_leave_the_rate_alone)
{
    /* given */
    char text[1024] = "hyperparameters: a0 = 1";
    size_t used = strlen(text);
    for (unsigned i = 1; i < EXPRESSION_HYPERPARAMETERS_MAX; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, ", a%u = 1", i);
    used += (size_t)snprintf(text + used, sizeof text - used, "\nvalue = g + value");
    for (unsigned i = 0; i < EXPRESSION_HYPERPARAMETERS_MAX; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, " + a%u", i);

    define("many", text); /* when */

    /* then */
    const uint32_t has = defined.function.hyperparameters;
    assert_int_equal(__builtin_popcount(has), EXPRESSION_HYPERPARAMETERS_MAX);
    assert_int_equal(has >> UPDATE_HYPERPARAMETER_LEARNING_RATE & 1u, 0);
    assert_int_equal(has >> UPDATE_HYPERPARAMETER_CLIP_VALUE & 1u, 0);
}

/* The slice was used for a function of the table, which clips and counts. */
STATE_TEST(a_slice_that_was_used_before_is_prepared_anew, NULL, NULL)
{
    const struct expression_plan *const plan = (const struct expression_plan *)state;
    const struct update_hyperparameters none = {0};
    struct update_slice slice = {.clip = 1, .flag = true, .step = 9, .plan = plan};

    define("plain", "value = value - g\n"); /* given */

    update_prepare(&defined.function, SUMAC_FLOAT32, &none, 2, &slice); /* when */

    assert_true(slice.clip == 0); /* then */
    assert_false(slice.flag);
    assert_int_equal(slice.step, 2);
    assert_null(slice.plan);
}

TEST(names_and_texts_are_refused_with_a_reason)
{
    static const struct {
        const char *name, *text;
        enum sumac_reason reason;
    } refused[] = {
        {"", "value = g", SUMAC_REASON_BAD_NAME},
        {"1st", "value = g", SUMAC_REASON_BAD_NAME},
        {"two words", "value = g", SUMAC_REASON_BAD_NAME},
        {"adam", "value = g", SUMAC_REASON_BAD_NAME},
        {"fine", "value = h", SUMAC_REASON_BAD_EXPRESSION},
        {"fine", "", SUMAC_REASON_BAD_EXPRESSION},
    };

    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct sumac_error error = {0}; /* given */

        const enum sumac_status status = update_define(
            UPDATE_DEFINED_FIRST, refused[i].name, refused[i].text, strlen(refused[i].text),
            &defined, &error); /* when */

        assert_int_equal(status, SUMAC_INVALID_ARGUMENT); /* then */
        assert_int_equal(error.reason, refused[i].reason);
    }
    char name[EXPRESSION_NAME_BYTES_MAX + 2] = {0};
    memset(name, 'n', EXPRESSION_NAME_BYTES_MAX);
    assert_int_equal(update_defined_name_check(name, NULL), SUMAC_OK);
    assert_int_equal(update_defined_name_check("azAZ09_-./", NULL), SUMAC_OK);
    assert_int_equal(update_defined_name_check("Za", NULL), SUMAC_OK);
    name[EXPRESSION_NAME_BYTES_MAX] = 'n';
    assert_int_equal(update_defined_name_check(name, NULL), SUMAC_INVALID_ARGUMENT);
}

/* One state of a variable of a half type, float32 or float64, and its slot. */
struct state {
    _Alignas(64) uint8_t value[COUNT * 8], slot[COUNT * 8];
};

struct way {
    const char *name;
    enum sumac_dtype dtype;
    bool sums, scales, clips, by_rows, apart;
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

static void push(const struct way *way, const struct update_function *function, struct state *state)
{
    static uint8_t gradients[2][COUNT * 8];
    const struct update_hyperparameters hyperparameters = chosen();
    const struct update_sources sources = {.count = 2, .find = find_source, .context = gradients};
    const size_t row_bytes = ROW * sumac_dtype_bytes(way->dtype);
    const size_t slot_bytes = ROW * sumac_dtype_bytes(update_slot_dtype(way->dtype));
    static const uint32_t rows[OCCURRENCES] = {0, 2, 2, 2, 5};
    struct update_row occurrences[OCCURRENCES] = {{.scale = 1}};
    static struct state out;
    struct state *const to = way->apart ? &out : state;
    struct update_slice slice = {
        .function = function,
        .dtype = way->dtype,
        .count = way->by_rows ? ROW : COUNT,
        .gradient = gradients[0],
        .divisor = way->sums ? 2 : 1};

    draw(way->sums ? update_contribution_dtype(way->dtype) : way->dtype, 7, COUNT, gradients[0]);
    draw(update_contribution_dtype(way->dtype), 8, COUNT, gradients[1]);
    update_prepare(function, way->dtype, &hyperparameters, 1, &slice);
    slice.clip = way->clips ? 0.5 : 0;
    slice.scale = way->scales ? 0.25 : 1;
    slice.sources = way->sums ? &sources : NULL;
    slice.value_in = state->value;
    slice.value_out = to->value;
    slice.slot_in[0] = state->slot;
    slice.slot_out[0] = to->slot;
    for (uint32_t i = 0; i < OCCURRENCES; i++)
        occurrences[i] = (struct update_row){
            .at = {state->value + rows[i] * row_bytes, state->slot + rows[i] * slot_bytes},
            .gradient = gradients[0] + i * row_bytes};
    if (way->by_rows) {
        slice.rows = occurrences;
        slice.row_count = OCCURRENCES;
    }
    update_run(&slice);
    *state = *to;
}

STATE_TEST(it_does_what_the_tables_function_does, NULL, NULL)
{
    static const struct way ways[] = {
        {.name = "float32", .dtype = SUMAC_FLOAT32},
        {.name = "float64", .dtype = SUMAC_FLOAT64},
        {.name = "to another place", .dtype = SUMAC_FLOAT32, .apart = true},
        {.name = "bfloat16", .dtype = SUMAC_BFLOAT16},
        {.name = "float16", .dtype = SUMAC_FLOAT16},
        {.name = "contributions", .dtype = SUMAC_FLOAT32, .sums = true},
        {.name = "contributions of a half type", .dtype = SUMAC_FLOAT16, .sums = true},
        {.name = "scaled", .dtype = SUMAC_FLOAT64, .scales = true},
        {.name = "clipped", .dtype = SUMAC_BFLOAT16, .scales = true, .clips = true},
        {.name = "rows", .dtype = SUMAC_FLOAT32, .by_rows = true},
        {.name = "rows of a half type", .dtype = SUMAC_FLOAT16, .by_rows = true},
        {.name = "rows, clipped", .dtype = SUMAC_BFLOAT16, .by_rows = true, .clips = true},
    };
    static struct state one, other, before;

    define("mine", momentum_text);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        memset(&one, 0, sizeof one); /* given */
        draw(ways[i].dtype, 3, COUNT, one.value);
        before = other = one;

        for (int pushes = 0; pushes < 3; pushes++) { /* when */
            push(&ways[i], update_find(UPDATE_MOMENTUM), &one);
            push(&ways[i], &defined.function, &other);
        }

        if (memcmp(&one, &other, sizeof one) != 0) /* then */
            fail_msg("%s: other bits", ways[i].name);
        assert_memory_not_equal(&one, &before, sizeof one);
    }
}

/* It is longer than a tile of the plan, and of the loops. */
STATE_TEST(a_long_row_may_be_pushed_to_a_half_type_in_float32, NULL, NULL)
{
    static struct state states[2];
    static float gradient[COUNT];
    const struct update_function *const functions[] = {
        update_find(UPDATE_MOMENTUM), &defined.function};
    const struct update_hyperparameters numbers = chosen();

    define("mine", momentum_text); /* given */
    draw(SUMAC_FLOAT32, 7, COUNT, gradient);
    for (int i = 0; i < 2; i++) {
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
        update_prepare(functions[i], SUMAC_FLOAT16, &numbers, 1, &slice);
        update_run(&slice); /* when */
    }
    assert_memory_equal(&states[0], &states[1], sizeof states[0]); /* then */
}

TEST(a_slot_begins_with_a_number_of_its_type)
{
    struct update_hyperparameters merged;
    struct sumac_error error = {0};

    define("large", "slots: s = 1e300\ns = s + g\nvalue = value + s\n"); /* given */
    assert_int_equal(
        update_hyperparameters_read(&defined.function, NULL, NULL, &merged, NULL), SUMAC_OK);

    const enum sumac_status status = /* when */
        update_hyperparameters_check(&defined.function, SUMAC_BFLOAT16, &merged, &error);

    assert_int_equal(status, SUMAC_INVALID_ARGUMENT); /* then */
    assert_string_equal(
        error.text, "slot s of large starts from 1e+300, which is no number in the "
                    "arithmetic of a bfloat16 variable");
    assert_int_equal(
        update_hyperparameters_check(&defined.function, SUMAC_FLOAT64, &merged, NULL), SUMAC_OK);
}

TEST(it_counts_its_steps)
{
    const struct update_hyperparameters none = {0};

    define("steps", "value = value * 0 + step + g * 0\n");
    for (uint64_t step = 1; step < 4; step++) {
        float value = 9, gradient = 0; /* given */
        struct update_slice slice = {
            .function = &defined.function,
            .dtype = SUMAC_FLOAT32,
            .count = 1,
            .value_in = &value,
            .value_out = &value,
            .gradient = &gradient,
            .divisor = 1};

        update_prepare(&defined.function, SUMAC_FLOAT32, &none, step, &slice); /* when */
        update_run(&slice);

        assert_true(value == (float)step); /* then */
    }
}
