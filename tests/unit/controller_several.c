/* SPDX-License-Identifier: Apache-2.0 */
/* controller_several.c -- several creates, deletes and defines at once: what ends one ends all of
 * its kind. */
#include <string.h>

#include "controller_two.h"

/* A worker assigns it. */
static void define_assigned(struct definition *definition, const char *name)
{
    define(definition, name);
    definition->initializer.kind = SUMAC__V1__INITIALIZER__KIND__KIND_ASSIGNED;
}

static void assert_failed(
    const struct world *world, const uint64_t *calls, size_t count, enum sumac_reason reason)
{
    for (size_t i = 0; i < count; i++) {
        const struct world_answer *const answer = world_answer(world, calls[i]);
        assert_non_null(answer);
        assert_int_equal(answer->reason, reason);
    }
}

TEST(all_calls_of_a_session_that_is_closed_fail)
{
    struct two two = two_workers();
    struct definition v, w;
    uint64_t calls[3];

    define(&v, "v");
    define(&w, "w");
    two.world->ps[1].silent = true;
    calls[0] = world_create(two.world, two.first, &v.variable, 0);
    calls[1] = world_create(two.world, two.first, &w.variable, 0);
    calls[2] = world_define(two.world, two.first, "mine", "value = g");

    world_leave(two.world, two.first, false);

    assert_failed(two.world, calls, 3, SUMAC_REASON_SESSION_CLOSED);
    world_free(two.world);
}

/* One of a list among them. */
TEST(all_creates_of_a_variable_that_a_ps_cannot_make_fail)
{
    struct two two = two_workers();
    struct definition v, w;
    wire_variable *list[] = {&v.variable, &w.variable};
    uint64_t calls[4];

    define(&v, "v");
    define(&w, "w");
    two.world->ps[1].bad_add = 2; /* w */
    for (size_t i = 0; i < 4; i++)
        calls[i] = i < 2 ? world_create_many(two.world, two.first, list, 2)
                         : world_create(two.world, two.second, &w.variable, 0);
    world_settle_down(two.world);

    assert_failed(two.world, calls, 4, SUMAC_REASON_OUT_OF_MEMORY);
    world_free(two.world);
}

TEST(all_creates_that_wait_for_a_value_fail_as_the_variable_is_deleted)
{
    struct two two = two_workers();
    struct definition v;
    uint64_t calls[2];

    define_assigned(&v, "v");
    (void)created(&two, &v);
    for (size_t i = 0; i < 2; i++)
        calls[i] = world_create(two.world, two.second, &v.variable, 0);
    world_delete(two.world, two.first, "v");

    assert_failed(two.world, calls, 2, SUMAC_REASON_UNKNOWN_VARIABLE);
    assert_true(world_logged(two.world, "worker 0 deletes v"));
    world_settle_down(two.world);
    world_free(two.world);
}

/* The one that has waited longest assigns each instead. */
TEST(all_that_a_settled_session_was_to_assign_goes_to_others)
{
    struct two two = two_workers();
    struct definition v, w;
    uint64_t calls[2];

    define_assigned(&v, "v");
    define_assigned(&w, "w");
    (void)created(&two, &v);
    (void)created(&two, &w);
    calls[0] = world_create(two.world, two.second, &v.variable, 0);
    calls[1] = world_create(two.world, two.second, &w.variable, 0);

    world_leave(two.world, two.first, false);
    world_settle_down(two.world);

    assert_failed(two.world, calls, 2, SUMAC_REASON_UNSPECIFIED); /* they are answered */
    world_free(two.world);
}

/* ps 1 has closed the session, and has yet to say that the variable is deleted. */
TEST(a_delete_waits_on_though_the_session_that_was_to_assign_is_settled)
{
    struct two two = two_workers();
    struct definition v;

    define_assigned(&v, "v");
    (void)created(&two, &v);
    two.world->ps[1].mute = true;
    const uint64_t call = world_delete(two.world, two.second, "v");
    world_leave(two.world, two.first, false);
    world_settle_down(two.world);
    world_report_answer(two.world, 1, world_told(two.world, 1, ORDER_CLOSE)->number);
    world_settle_down(two.world);
    world_report_answer(two.world, 1, world_told(two.world, 1, ORDER_DECIDE)->number);
    assert_null(world_answer(two.world, call));

    world_report_answer(two.world, 1, world_told(two.world, 1, ORDER_DELETE)->number);

    assert_int_equal(world_answer(two.world, call)->status, SUMAC_OK);
    world_free(two.world);
}
