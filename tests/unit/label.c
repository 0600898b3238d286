/* SPDX-License-Identifier: Apache-2.0 */
/* label.c (test) -- texts that tell calls apart, of any length. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "label.h"

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

static void a_short_text_is_kept_whole(void **state)
{
    (void)state;
    struct label label;

    label_init(&label);
    label_add(&label, "w");
    label_print(&label, ", %d rows", 3);

    assert_string_equal(label.text, "w, 3 rows");
    assert_int_equal(label.sum.bytes, strlen("w, 3 rows"));
}

static void texts_that_differ_behind_what_is_kept_differ(void **state)
{
    (void)state;
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

static void how_it_was_put_together_does_not_count(void **state)
{
    (void)state;
    struct label one, other;

    label_init(&one);
    label_add(&one, "a variable");
    label_init(&other);
    label_add(&other, "a ");
    label_add(&other, "variable");

    assert_true(same(&one, &other));
    assert_string_equal(one.text, other.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_text_is_kept_whole),
        cmocka_unit_test(texts_that_differ_behind_what_is_kept_differ),
        cmocka_unit_test(how_it_was_put_together_does_not_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
