/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.c (test) -- words that name variables. */

#include "unit.h"
#include "pattern.h"

TEST(a_word_that_was_given_before_is_dropped_and_the_others_stay_in_order)
{
    char a[] = "a", again[] = "a", b[] = "b", c[] = "c", b_again[] = "b";
    char *words[] = {a, again, b, c, b_again, a};

    assert_int_equal(pattern_drop_repeated(words, 6), 3);

    assert_ptr_equal(words[0], a);
    assert_ptr_equal(words[1], b);
    assert_ptr_equal(words[2], c);
    assert_int_equal(pattern_drop_repeated(words, 0), 0);
}

TEST(a_star_or_a_question_mark_makes_a_pattern)
{
    assert_true(pattern_is_one("w*"));
    assert_true(pattern_is_one("?"));
    assert_false(pattern_is_one("w[0]"));
    assert_false(pattern_is_one(""));
}

TEST(a_word_names_a_variable_by_its_letters_or_as_a_pattern)
{
    assert_true(pattern_matches("layer*", "layer1/kernel"));
    assert_true(pattern_matches("w?", "w1"));
    assert_true(pattern_matches("w[0-3]*", "w2"));
    assert_true(pattern_matches("w*", "w*"));
    assert_true(pattern_matches("w[0]", "w[0]"));
    assert_false(pattern_matches("w[0]", "w0"));
    assert_false(pattern_matches("w", "w1"));
    assert_false(pattern_matches("w?", "w"));
}
