/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_unread.c -- how the answers that nobody takes are counted, and which connection gives way. */

#include "unit.h"
#include "unread.h"

static const struct unread_key one = {3, 30}, two = {4, 40}, three = {3, 50};

static bool is_one(const struct unread_key *key) { return key->inode == one.inode; }

static int set_up(void **state)
{
    static struct unread unread;

    *state = &unread;
    return unread_init(&unread, 2) ? 0 : -1;
}

static int tear_down(void **state)
{
    unread_deinit(*state);
    return 0;
}

#define UNREAD_TEST(name) FIXTURE_TEST(name, struct unread *unread, set_up, tear_down)

UNREAD_TEST(what_is_taken_counts_no_more)
{
    const uint64_t ticket = unread_add(unread, &one, 10);

    assert_int_equal(unread->bytes, 10);
    unread_end(unread, &one, ticket, 10, true);
    assert_int_equal(unread->bytes + unread->held_bytes + unread->count, 0);
}

UNREAD_TEST(what_is_sent_to_a_connection_that_was_cut_counts_only_as_held)
{
    unread_add(unread, &one, 10);
    unread_note_cut(unread, unread_find_greedy(unread, 0, 0));
    unread_add(unread, &one, 5);

    assert_int_equal(unread->bytes, 0);
    assert_int_equal(unread->held_bytes, 15);
}

UNREAD_TEST(what_was_cancelled_counts_until_a_later_answer_is_taken)
{
    const uint64_t earlier = unread_add(unread, &one, 1), cancelled = unread_add(unread, &one, 10);

    unread_end(unread, &one, cancelled, 10, false);
    unread_end(unread, &one, earlier, 1, true);
    assert_int_equal(unread->bytes, 10);
    assert_int_equal(unread->held_bytes, 10);
    unread_end(unread, &one, unread_add(unread, &one, 1), 1, true);
    assert_int_equal(unread->bytes + unread->held_bytes + unread->count, 0);
}

/* One that was sent before the other was cancelled may have gone out without it. */
FIXTURE_TEST(
    what_was_cancelled_counts_though_the_last_one_sent_before_that_is_taken, struct unread *unread,
    set_up, tear_down)
{
    const uint64_t cancelled = unread_add(unread, &one, 10), last = unread_add(unread, &one, 1);

    unread_end(unread, &one, cancelled, 10, false);
    unread_end(unread, &one, last, 1, true);
    assert_int_equal(unread->bytes, 10);
    assert_int_equal(unread->held_bytes, 10);
}

UNREAD_TEST(what_was_cancelled_counts_until_its_connection_is_gone)
{
    const uint64_t ticket = unread_add(unread, &one, 10), late = unread_add(unread, &one, 5);

    unread_end(unread, &one, ticket, 10, false);
    unread_add(unread, &two, 3);
    unread_look(unread, is_one);
    assert_int_equal(unread->bytes, 3);
    assert_int_equal(unread->held_bytes, 8);
    unread_end(unread, &one, late, 5, false);
    assert_int_equal(unread->held_bytes, 3);
}

static bool is_any(const struct unread_key *key) { return key->descriptor > 0; }

UNREAD_TEST(connections_that_are_gone_together_are_forgotten_together)
{
    unread_end(unread, &one, unread_add(unread, &one, 10), 10, false);
    unread_end(unread, &two, unread_add(unread, &two, 3), 3, false);

    unread_look(unread, is_any);

    assert_int_equal(unread->bytes, 0);
    assert_int_equal(unread->held_bytes, 0);
}

FIXTURE_TEST(
    the_connection_with_most_gives_way_to_all_and_one_with_too_much_by_itself,
    struct unread *unread, set_up, tear_down)
{
    unread_add(unread, &one, 10);
    unread_add(unread, &two, 11);
    assert_null(unread_find_greedy(unread, 21, 11));
    assert_int_equal(unread_find_greedy(unread, 20, 11)->key.inode, two.inode);
    assert_int_equal(unread_find_greedy(unread, 21, 10)->key.inode, two.inode);
}

UNREAD_TEST(what_a_cut_connection_has_is_held_and_makes_no_other_give_way)
{
    const uint64_t ticket = unread_add(unread, &one, 10);

    unread_note_cut(unread, unread_find_greedy(unread, 9, 10));
    unread_add(unread, &two, 9);
    assert_null(unread_find_greedy(unread, 9, 9));
    assert_true(unread_is_cut(unread, &one));
    assert_false(unread_is_cut(unread, &three)); /* the number was given to another */
    unread_end(unread, &one, ticket, 10, false);
    assert_int_equal(unread->held_bytes, 19);
    unread_look(unread, is_one);
    assert_int_equal(unread->held_bytes, 9);
}

UNREAD_TEST(one_connection_too_many_is_not_noted)
{
    assert_true(unread_add(unread, &one, 1) != 0);
    assert_true(unread_add(unread, &two, 1) != 0);
    assert_true(unread_add(unread, &three, 1) == 0);
    assert_int_equal(unread->held_bytes, 2);
}
