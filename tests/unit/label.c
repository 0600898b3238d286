/* SPDX-License-Identifier: Apache-2.0 */
/* label.c (test) -- texts that tell calls apart, of any length. */
#include <math.h>
#include <stdbool.h>

#include "unit.h"
#include "variable.h"
#include "each_byte.h"

static bool same(const struct label *one, const struct label *other)
{
    return one->sum.bytes == other->sum.bytes && one->sum.digest == other->sum.digest;
}

static void fill(struct label *label, const char *last)
{
    label_init(label);
    for (uint32_t i = 0; i < 1000; i++)
        label_print(label, "item %u, ", 1000 + i);
    label_add(label, last);
}

TEST(a_short_text_is_kept_whole)
{
    struct label label;

    label_init(&label);
    label_add(&label, "w");
    label_print(&label, ", %d rows", 3);

    assert_string_equal(label.text, "w, 3 rows");
    assert_int_equal(label.sum.bytes, strlen("w, 3 rows"));
}

TEST(texts_that_differ_behind_what_is_kept_differ)
{
    struct label one, other, again;

    fill(&one, "2 1");
    fill(&other, "1 2");
    fill(&again, "2 1");

    assert_string_equal(one.text, other.text); /* what is kept of them */
    assert_int_equal(strlen(one.text), LABEL_BYTES_MAX - 1);
    assert_int_equal(one.sum.bytes, other.sum.bytes);
    assert_false(same(&one, &other));
    assert_true(same(&one, &again));
}

/* A character that does not fit leaves room for shorter ones, which do not follow. */
TEST(what_comes_behind_the_cut_is_not_kept)
{
    struct label label;

    label_init(&label);
    for (uint32_t i = 0; i < LABEL_BYTES_MAX - 2; i++)
        label_add(&label, "x");
    label_add(&label, "\xe2\x80\xa6");
    label_add(&label, "y");

    assert_int_equal(strlen(label.text), LABEL_BYTES_MAX - 2);
    assert_null(strchr(label.text, 'y'));
    assert_int_equal(label.sum.bytes, LABEL_BYTES_MAX - 2 + 3 + 1);
}

TEST(how_it_was_put_together_does_not_count)
{
    struct label one, other;

    label_init(&one);
    label_add(&one, "a variable");
    label_init(&other);
    label_add(&other, "a ");
    label_add(&other, "variable");

    assert_true(same(&one, &other));
    assert_string_equal(one.text, other.text);
}

static struct label label_of(const struct sumac_function *function)
{
    struct label label;

    label_init(&label);
    variable_label_function(function, &label);
    return label;
}

/* Workers compare what they create and apply by these labels. */
TEST(functions_that_differ_in_one_number_differ)
{
    uint8_t holds[sizeof(struct sumac_schedule)], bytes[sizeof(struct sumac_schedule)];
    const struct sumac_schedule schedule = {
        .kind = SUMAC_SCHEDULE_EXPONENTIAL_DECAY,
        .decay_steps = 10,
        .decay_rate = 0.5,
        .alpha = 0.25,
        .warmup_steps = 3,
        .warmup_target = 2,
        .first_version = 9};
    struct sumac_schedule other = schedule;
    struct sumac_function function = {"sgd", {{"learning_rate", 0.1}, {"momentum", 0.9}}, &other};
    struct sumac_hyperparameter *const rate = function.hyperparameters;
    const struct label before = label_of(&function);
    struct label after;

    SAY_BYTES(struct sumac_schedule, holds);
    for (size_t i = 0; i < sizeof holds; i++) {
        memcpy(bytes, &schedule, sizeof bytes);
        bytes[i] ^= 1;
        memcpy(&other, bytes, sizeof other);
        after = label_of(&function);
        if (same(&before, &after) && holds[i] != 0)
            fail_msg("byte %zu of a schedule is not in the label", i);
    }
    other = schedule;
    const struct sumac_function others[] = {
        {"sgd", {rate[0], rate[1]}, NULL},
        {"sgd", {rate[0]}, &other},
        {"adam", {rate[0], rate[1]}, &other},
        {NULL, {rate[0], rate[1]}, &other}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        after = label_of(&others[i]);
        assert_false(same(&before, &after));
    }
    for (size_t i = 0; i < 2; i++) {
        const struct sumac_hyperparameter own = rate[i];
        rate[i].value = nextafter(own.value, 1);
        after = label_of(&function);
        assert_false(same(&before, &after));
        rate[i] = (struct sumac_hyperparameter){"nesterov", own.value};
        after = label_of(&function);
        assert_false(same(&before, &after));
        rate[i] = own;
    }
    after = label_of(&function);
    assert_true(same(&before, &after));
}
