/* SPDX-License-Identifier: Apache-2.0 */
/* schedule.c (test) -- learning rates by a shard's versions: Keras' formulas, written down once
 * more with libm, and what of a schedule is refused. */
#include <math.h>

#include "unit.h"
#include "assert_number.h"
#include "each_byte.h"
#include "update.h"

#define PI 3.14159265358979323846

static struct update_schedule read(wire_schedule given)
{
    struct update_schedule schedule;
    struct sumac_error error = {0};

    if (update_schedule_read(&given, &schedule, &error) != SUMAC_OK)
        fail_msg("%s", error.text);
    return schedule;
}

static wire_schedule give(int kind)
{
    wire_schedule given = WIRE_SCHEDULE_INIT;

    given.kind = (Sumac__V1__Schedule__Kind)kind;
    if (kind != UPDATE_SCHEDULE_CONSTANT)
        given.decay_steps = 10;
    if (kind == UPDATE_SCHEDULE_EXPONENTIAL_DECAY)
        given.decay_rate = 0.5;
    return given;
}

/* The functions that are used are right to 2^-46, and a libm to its last bit. */
static void assert_near(double given, double expected)
{
    if (!(fabs(given - expected) <= 0x1p-44 * fabs(expected)))
        fail_msg("%.17g is given, and %.17g was expected", given, expected);
}

/* ---- the formulas ---- */

TEST(no_schedule_is_the_rate_itself)
{
    const struct update_schedule none = {0};

    for (uint64_t version = 0; version < 3; version++)
        assert_number_equal(update_schedule_rate(&none, 0.1, version), 0.1);
    assert_false(update_schedule_is_any(&none));
}

TEST(exponential_decay_is_a_power_of_its_rate)
{
    wire_schedule given = give(UPDATE_SCHEDULE_EXPONENTIAL_DECAY);

    given.decay_rate = 0.96;
    const struct update_schedule schedule = read(given);
    assert_number_equal(update_schedule_rate(&schedule, 0.1, 0), 0.1);
    for (uint64_t version = 1; version < 200; version++)
        assert_near(
            update_schedule_rate(&schedule, 0.1, version), 0.1 * pow(0.96, (double)version / 10));
}

TEST(a_staircase_goes_down_at_whole_decays)
{
    wire_schedule given = give(UPDATE_SCHEDULE_EXPONENTIAL_DECAY);

    given.staircase = true;
    const struct update_schedule schedule = read(given);
    for (uint64_t version = 0; version < 40; version++)
        assert_near(
            update_schedule_rate(&schedule, 8, version), 8 / pow(2, floor((double)version / 10)));
}

TEST(cosine_decay_ends_at_alpha_and_stays_there)
{
    wire_schedule given = give(UPDATE_SCHEDULE_COSINE_DECAY);

    given.alpha = 0.25;
    const struct update_schedule schedule = read(given);
    assert_number_equal(update_schedule_rate(&schedule, 2, 0), 2);
    for (uint64_t version = 0; version < 10; version++) {
        const double turned = cos(PI * (double)version / 10);
        assert_near(
            update_schedule_rate(&schedule, 2, version), 2 * (0.75 * 0.5 * (1 + turned) + 0.25));
    }
    assert_number_equal(update_schedule_rate(&schedule, 2, 10), 0.5);
    assert_number_equal(update_schedule_rate(&schedule, 2, UINT64_MAX), 0.5);
}

TEST(a_rate_may_be_warmed_up_to_nothing)
{
    wire_schedule given = give(UPDATE_SCHEDULE_CONSTANT);

    given.warmup_steps = 2;
    const struct update_schedule schedule = read(given);
    assert_number_equal(update_schedule_rate(&schedule, 1, 1), 0.5);
    assert_number_equal(update_schedule_rate(&schedule, 1, 9), 0);
}

/* From learning_rate to warmup_target in a line; the decay begins behind it, from there. */
TEST(each_kind_is_warmed_up)
{
    for (int kind = UPDATE_SCHEDULE_CONSTANT; kind <= UPDATE_SCHEDULE_COSINE_DECAY; kind++) {
        wire_schedule given = give(kind);
        const struct update_schedule cold = read(given);
        given.warmup_steps = 4;
        given.warmup_target = 3;
        const struct update_schedule warm = read(given);
        assert_true(update_schedule_is_any(&warm));
        for (uint64_t version = 0; version < 4; version++)
            assert_number_equal(
                update_schedule_rate(&warm, 1, version), 1 + 2 * (double)version / 4);
        for (uint64_t version = 4; version < 30; version++)
            assert_number_equal(
                update_schedule_rate(&warm, 1, version),
                update_schedule_rate(&cold, 3, version - 4));
    }
}

TEST(a_schedule_begins_with_its_first_version)
{
    wire_schedule given = give(UPDATE_SCHEDULE_EXPONENTIAL_DECAY);

    const struct update_schedule from_zero = read(given);
    given.first_version = 1000;
    const struct update_schedule later = read(given);
    assert_number_equal(update_schedule_rate(&later, 1, 7), 1);
    for (uint64_t version = 0; version < 30; version++)
        assert_number_equal(
            update_schedule_rate(&later, 1, 1000 + version),
            update_schedule_rate(&from_zero, 1, version));
}

/* What a rate grows to has a place in every type. */
TEST(a_rate_that_grows_stays_finite)
{
    wire_schedule given = give(UPDATE_SCHEDULE_EXPONENTIAL_DECAY);

    given.decay_rate = 1e300;
    const struct update_schedule schedule = read(given);
    assert_number_equal(update_schedule_rate(&schedule, 1, 100), 0x1p127);
    assert_number_equal(update_schedule_rate(&schedule, 1, UINT64_MAX), 0x1p127);
    assert_number_equal(update_schedule_rate(&schedule, 0, 1), 0);
}

/* ---- what is given ---- */

static void assert_refused(wire_schedule given, const char *words)
{
    struct update_schedule schedule = {.kind = 2, .decay_steps = 7};
    struct sumac_error error = {0};

    assert_int_equal(update_schedule_read(&given, &schedule, &error), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(error.reason, SUMAC_REASON_BAD_HYPERPARAMETER);
    if (strstr(error.text, words) == NULL)
        fail_msg("%s: it lacks %s", error.text, words);
    assert_int_equal(schedule.decay_steps, 7); /* left alone */
}

#define REFUSED(its_kind, words, ...)                                                              \
    do {                                                                                           \
        wire_schedule given = give(UPDATE_SCHEDULE_##its_kind);                                    \
        __VA_ARGS__;                                                                               \
        assert_refused(given, words);                                                              \
    } while (false)

TEST(numbers_out_of_range_are_refused)
{
    REFUSED(COSINE_DECAY, "decay_steps of the schedule cosine_decay is 0", given.decay_steps = 0);
    REFUSED(EXPONENTIAL_DECAY, "in [1, 2^53]", given.decay_steps = UPDATE_SCHEDULE_STEPS_MAX + 1);
    wire_schedule longest = give(UPDATE_SCHEDULE_EXPONENTIAL_DECAY);
    longest.decay_steps = longest.warmup_steps = UPDATE_SCHEDULE_STEPS_MAX;
    assert_number_equal((double)read(longest).decay_steps, 0x1p53);
    assert_number_equal((double)read(longest).warmup_steps, 0x1p53);
    REFUSED(
        EXPONENTIAL_DECAY, "decay_rate of the schedule exponential_decay is 0",
        given.decay_rate = 0);
    REFUSED(EXPONENTIAL_DECAY, "finite and above 0", given.decay_rate = -1);
    REFUSED(EXPONENTIAL_DECAY, "finite and above 0", given.decay_rate = (double)NAN);
    REFUSED(EXPONENTIAL_DECAY, "finite and above 0", given.decay_rate = (double)INFINITY);
    REFUSED(COSINE_DECAY, "in [0, 1]", given.alpha = 1.5);
    REFUSED(COSINE_DECAY, "in [0, 1]", given.alpha = -0.5);
    REFUSED(COSINE_DECAY, "in [0, 1]", given.alpha = (double)NAN);
    REFUSED(CONSTANT, "at most 2^53", given.warmup_steps = UINT64_MAX);
    REFUSED(CONSTANT, "at least 0", given.warmup_steps = 1; given.warmup_target = -1);
    REFUSED(CONSTANT, "finite", given.warmup_steps = 1; given.warmup_target = (double)INFINITY);
    REFUSED(CONSTANT, "schedule number 3 is not known", given.kind = (Sumac__V1__Schedule__Kind)3);
}

TEST(what_a_kind_does_not_have_is_refused)
{
    REFUSED(
        CONSTANT, "decay_steps of the schedule constant is 5; it must be left out",
        given.decay_steps = 5);
    REFUSED(CONSTANT, "decay_rate", given.decay_rate = 0.5);
    REFUSED(COSINE_DECAY, "decay_rate", given.decay_rate = (double)NAN);
    REFUSED(COSINE_DECAY, "staircase", given.staircase = true);
    REFUSED(EXPONENTIAL_DECAY, "alpha", given.alpha = 0.5);
    REFUSED(
        CONSTANT, "warmup_target of the schedule constant is 2; it must be 0 without",
        given.warmup_target = 2);
}

TEST(what_is_written_is_read_again)
{
    wire_schedule given = give(UPDATE_SCHEDULE_EXPONENTIAL_DECAY), written;
    char text[UPDATE_SCHEDULE_TEXT_BYTES];

    given.staircase = true;
    given.warmup_steps = 3;
    given.warmup_target = 0.5;
    given.first_version = 9;
    const struct update_schedule schedule = read(given);
    update_schedule_write(&schedule, &written);
    const struct update_schedule again = read(written);
    assert_true(update_schedule_same(&schedule, &again));
    assert_string_equal(
        update_schedule_print(&schedule, text, sizeof text),
        "exponential_decay(decay_steps 10, decay_rate 0.5, staircase, warmup_steps 3, "
        "warmup_target 0.5, first_version 9)");
    given = give(UPDATE_SCHEDULE_COSINE_DECAY);
    given.alpha = 0.5;
    const struct update_schedule cosine = read(given);
    update_schedule_write(&cosine, &written);
    assert_number_equal(written.alpha, 0.5);
    assert_number_equal(written.decay_rate, 0);
    assert_false(update_schedule_same(&schedule, &cosine));
    assert_string_equal(update_schedule_name(UPDATE_SCHEDULE_COSINE_DECAY), "cosine_decay");
    assert_null(update_schedule_name(3));
}

/* In whichever number they differ, first_version among them. */
TEST(schedules_that_differ_in_one_number_are_not_the_same)
{
    uint8_t holds[sizeof(struct update_schedule)], bytes[sizeof(struct update_schedule)];
    wire_schedule given = give(UPDATE_SCHEDULE_EXPONENTIAL_DECAY);
    struct update_schedule other;

    given.warmup_steps = 3;
    given.warmup_target = 0.5;
    given.first_version = 9;
    const struct update_schedule schedule = read(given);
    SAY_BYTES(struct update_schedule, holds);
    for (size_t i = 0; i < sizeof holds; i++) {
        memcpy(bytes, &schedule, sizeof bytes);
        bytes[i] ^= 1;
        memcpy(&other, bytes, sizeof other);
        if (update_schedule_same(&schedule, &other) && holds[i] != 0)
            fail_msg("byte %zu of a schedule is not compared", i);
    }
}

/* ---- of a function ---- */

static const wire_schedule *schedule_of(wire_function *function, wire_schedule *schedule)
{
    function->schedule = schedule;
    return schedule;
}

TEST(a_schedule_is_of_a_function_that_has_a_rate)
{
    wire_function given = WIRE_FUNCTION_INIT;
    wire_schedule schedule = give(UPDATE_SCHEDULE_COSINE_DECAY);
    struct update_hyperparameters read;
    struct sumac_error error = {0};

    (void)schedule_of(&given, &schedule);
    assert_int_equal(
        update_hyperparameters_read(update_find(UPDATE_SGD), NULL, &given, &read, &error),
        SUMAC_OK);
    assert_true((read.set & UPDATE_SCHEDULE_SET) != 0);
    assert_number_equal(update_learning_rate(update_find(UPDATE_SGD), &read, 5), 0.005);
    assert_int_equal(
        update_hyperparameters_read(update_find(UPDATE_ASSIGN_ADD), NULL, &given, &read, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "assign_add has no learning_rate"));
}

/* ftrl divides by its rate. */
TEST(a_rate_that_is_divided_by_does_not_come_to_nothing)
{
    wire_function given = WIRE_FUNCTION_INIT;
    wire_schedule schedule = give(UPDATE_SCHEDULE_COSINE_DECAY);
    struct update_hyperparameters read;
    struct sumac_error error = {0};

    (void)schedule_of(&given, &schedule);
    assert_int_equal(
        update_hyperparameters_read(update_find(UPDATE_FTRL), NULL, &given, &read, &error),
        SUMAC_OK);
    assert_number_equal(update_learning_rate(update_find(UPDATE_FTRL), &read, 10), 0x1p-64);
    assert_number_equal(update_learning_rate(update_find(UPDATE_SGD), &read, 10), 0);
}

/* The hyperparameters of a push count before those of its variable. */
TEST(a_push_with_its_own_rate_goes_by_no_schedule)
{
    wire_schedule schedule = give(UPDATE_SCHEDULE_COSINE_DECAY);
    wire_hyperparameter named = WIRE_HYPERPARAMETER_INIT, *pointer = &named;
    wire_function created = WIRE_FUNCTION_INIT, pushed = WIRE_FUNCTION_INIT;
    struct update_hyperparameters own, read;
    const struct update_function *momentum = update_find(UPDATE_MOMENTUM);

    created.schedule = &schedule;
    assert_int_equal(update_hyperparameters_read(momentum, NULL, &created, &own, NULL), SUMAC_OK);
    pushed.hyperparameters = &pointer;
    pushed.n_hyperparameters = 1;
    named.name = (Sumac__V1__HyperparameterName)UPDATE_HYPERPARAMETER_LEARNING_RATE;
    named.value = 2;
    assert_int_equal(update_hyperparameters_read(momentum, &own, &pushed, &read, NULL), SUMAC_OK);
    assert_number_equal(update_learning_rate(momentum, &read, 5), 2);

    pushed.schedule = &schedule; /* and by one that it names itself */
    assert_int_equal(update_hyperparameters_read(momentum, &own, &pushed, &read, NULL), SUMAC_OK);
    assert_number_equal(update_learning_rate(momentum, &read, 5), 1);

    pushed.schedule = NULL; /* another number leaves the variable's */
    named.name = (Sumac__V1__HyperparameterName)UPDATE_HYPERPARAMETER_MOMENTUM;
    named.value = 0.5;
    assert_int_equal(update_hyperparameters_read(momentum, &own, &pushed, &read, NULL), SUMAC_OK);
    assert_true(update_schedule_same(&read.schedule, &own.schedule));
}

/* What is laid over a variable's own: a rate alone ends its schedule, anything else leaves it. */
TEST(a_rate_that_is_given_alone_goes_by_no_schedule)
{
    const uint32_t rate = UPDATE_HYPERPARAMETER_LEARNING_RATE,
                   momentum = UPDATE_HYPERPARAMETER_MOMENTUM;
    const struct update_schedule cosine = read(give(UPDATE_SCHEDULE_COSINE_DECAY));
    const struct update_schedule steps = read(give(UPDATE_SCHEDULE_EXPONENTIAL_DECAY));
    const struct update_hyperparameters before = {.schedule = cosine};
    struct update_hyperparameters given = {.schedule = {0}};

    struct update_hyperparameters own = before;
    given.set = 1u << momentum;
    given.value[momentum] = 0.5;
    update_hyperparameters_lay(&own, &given);
    assert_true(update_schedule_same(&own.schedule, &cosine));
    assert_number_equal(own.value[momentum], 0.5);

    given.set = 1u << rate;
    given.value[rate] = 2;
    update_hyperparameters_lay(&own, &given);
    assert_false(update_schedule_is_any(&own.schedule));
    assert_number_equal(own.value[rate], 2);

    given.set = UPDATE_SCHEDULE_SET;
    given.schedule = steps;
    update_hyperparameters_lay(&own, &given);
    assert_true(update_schedule_same(&own.schedule, &steps));
    assert_number_equal(own.value[rate], 2);
}
