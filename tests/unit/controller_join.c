/* SPDX-License-Identifier: Apache-2.0 */
/* controller_join.c -- joining: what it waits for, and that a retry is the same join. */

#include "unit.h"
#include "controller_world.h"
#include "silence.h"

TEST(a_join_is_answered_once_every_ps_has_opened_the_session)
{
    struct world *world = world_new(2, 1); /* given */

    world_all_up(world);
    world_forget(world);
    world->ps[1].silent = true;

    const uint64_t join = world_join(world, "worker", 0, 1); /* when */
    world_settle_down(world);
    world_expect(
        world, "ps 0, 1: members 1 epoch 1\n"
               "ps 0: open 1\n");
    world->ps[1].silent = false;
    world_settle_down(world);

    world_expect(
        world, "ps 1: open 1\n"
               "1: joined 1 attempt 1 of 2 ps epoch 1\n");
    assert_int_equal(
        world_answer(world, join)->cluster_id, controller_cluster_id(world->controller));
    world_free(world);
}

TEST(a_cluster_of_one_ps_joins_without_any_stream)
{
    struct world *world = world_new(1, 1);

    world_forget(world);

    world_joined(world, "worker", 0, 1);

    world_expect(
        world, "ps 0: members 1 epoch 1\n"
               "ps 0: open 1\n"
               "1: joined 1 attempt 1 of 1 ps epoch 1\n");
    world_free(world);
}

TEST(a_retry_with_the_same_nonce_gives_the_same_session)
{
    struct world *world = world_new(2, 1);

    world_all_up(world);
    const uint32_t first = world_joined(world, "worker", 0, 1);

    world_forget(world);

    const uint32_t again = world_joined(world, "worker", 0, 1);

    assert_int_equal(again, first);
    world_expect(world, "2: joined 1 attempt 1 of 2 ps epoch 1\n");
    world_free(world);
}

TEST(a_retry_takes_the_place_of_a_join_that_still_waits)
{
    struct world *world = world_new(2, 1);

    world_forget(world);

    world_join(world, "worker", 0, 1);
    world_join(world, "worker", 0, 1);
    world_all_up(world);

    world_expect(
        world, "1: ABORTED TIMED_OUT a retry of this join took its place\n"
               "ps 1: hello 0 of 2 ps\n"
               "ps 0, 1: members 1 epoch 1\n"
               "ps 0, 1: open 1\n"
               "2: joined 1 attempt 1 of 2 ps epoch 1\n");
    world_free(world);
}

TEST(a_retry_of_a_join_whose_session_was_closed_is_told_so)
{
    struct world *world = world_new(1, 1);

    world_joined(world, "worker", 0, 1);
    world_forget(world);
    world_pass(world, 12 * SECOND);

    world_join(world, "worker", 0, 1);

    world_expect(
        world, "ps 0: close 1: its lease ran out, no ps had heard from it for 10.2 s\n"
               "ps 0: decide 1 at 0\n"
               "2: FAILED_PRECONDITION SESSION_CLOSED the session of worker 0 is closed: its "
               "lease ran out, no ps had heard from it for 10.2 s; start this process again\n");
    world_free(world);
}

/* Its program has given up: nobody would use the session, or leave it. */
TEST(a_join_that_was_given_up_opens_no_session_once_its_lease_is_over)
{
    struct world *world = world_new(2, 2);

    world_forget(world);

    world_cancel(world, world_join(world, "worker", 0, 1));

    world_pass(world, 12 * SECOND);
    world_up(world, 1);
    world_settle_down(world);

    world_expect(world, "ps 1: hello 0 of 2 ps\n");
    world_joined(world, "worker", 1, 2);
    world_expect(
        world, "ps 0, 1: members 2 epoch 1\n"
               "ps 0, 1: open 1\n"
               "2: joined 1 attempt 1 of 2 ps epoch 1\n");
    world_free(world);
}

TEST(without_the_rule_join_nonce_a_retry_opens_another_session)
{
    struct world *world = world_prepare(1, 1);

    world->config.broken = rule_bit(RULE_join_nonce);
    world_begin(world);

    const uint32_t first = world_joined(world, "worker", 0, 1);
    const uint32_t again = world_joined(world, "worker", 0, 1);

    assert_int_not_equal(again, first);
    world_free(world);
}

TEST(a_join_waits_for_a_ps_and_a_line_names_it)
{
    struct world *world = world_new(2, 1);

    world_forget(world);
    world_join(world, "worker", 0, 1);

    world_pass(world, 6 * SECOND);

    world_expect(world, "");
    assert_true(world_logged(world, "ps 0 waits for ps 1 at h1:1, never heard from"));
    world_free(world);
}

TEST(before_the_first_join_a_ps_waits_without_limit_and_names_the_members)
{
    struct world *world = world_new(2, 3);

    world_forget(world);

    world_pass(world, 300 * SECOND);
    world_expect(world, "");
    assert_true(world_logged(
        world, "ps 0 waits for ps 1 at h1:1, never heard from; until a member joins this wait has "
               "no limit, so far 255 s"));
    assert_true(world_logged(
        world, "ps 0 waits for the first join, of worker 0, worker 1, worker 2; this wait has no "
               "limit, so far 255 s"));
    assert_true(world_waits(
        world, "ps 0 waits for the first join, of worker 0, worker 1, worker 2; this wait has no "
               "limit, so far 300 s"));

    world_all_up(world);
    world_joined(world, "worker", 0, 1);
    assert_false(world_waits(world, "ps 0 waits for the first join"));
    world_free(world);
}

TEST(a_ps_that_lists_nobody_waits_for_anybody)
{
    struct world *world = world_new(1, 0);

    world_pass(world, 6 * SECOND);

    assert_true(world_logged(
        world, "ps 0 waits for the first join, of any chief or worker, its configuration lists "
               "none; this wait has no limit"));
    world_free(world);
}

static unsigned lines_with(const struct world *world, const char *text)
{
    unsigned lines = 0;

    for (const char *at = world->log; (at = strstr(at, text)) != NULL; at++)
        lines++;
    return lines;
}

TEST(a_wait_without_limit_says_so_less_and_less_often)
{
    struct world *world = world_new(1, 1);

    world_pass(world, 6 * SECOND); /* after 5 s, */
    assert_int_equal(lines_with(world, "waits for the first join"), 1);
    world_pass(world, 8 * SECOND);
    assert_int_equal(lines_with(world, "waits for the first join"), 1);
    world_pass(world, 2 * SECOND); /* 15, */
    assert_int_equal(lines_with(world, "waits for the first join"), 2);
    world_pass(world, 61 * SECOND); /* 35, 75, */
    assert_int_equal(lines_with(world, "waits for the first join"), 4);
    world_pass(world, 600 * SECOND); /* and then every 60 s */
    assert_int_equal(lines_with(world, "waits for the first join"), 14);
    world_free(world);
}

TEST(a_wait_for_a_ps_has_a_limit_once_somebody_has_joined)
{
    struct world *world = world_new(2, 1);

    world_pass(world, 200 * SECOND);
    const unsigned before = lines_with(world, "waits for ps 1");

    world_join(world, "worker", 0, 1);
    world_pass(world, 21 * SECOND);

    assert_int_equal(lines_with(world, "waits for ps 1") - before, 4); /* every 5 s */
    assert_true(
        world_logged(world, "ps 0 waits for ps 1 at h1:1, never heard from; gives up in 55 s"));
    assert_true(
        world_logged(world, "ps 0 waits for ps 1 at h1:1, never heard from; gives up in 40 s"));
    world_free(world);
}

/* An observer begins no run, so it ends none; its own join has its limit all the same. */
TEST(an_observer_that_waits_for_a_ps_ends_no_run)
{
    struct world *world = world_new(2, 1);

    world_forget(world);
    world_join(world, NULL, 0, 1);

    world_pass(world, 60 * SECOND - SECOND / 4);
    world_expect(world, "");
    world_pass(world, SECOND / 4);

    world_expect(
        world,
        "1: UNAVAILABLE PS_MISSING the join of observer 1 has "
        "waited 60 s for ps 1 at h1:1, never heard from; start it, or correct its address\n");
    assert_false(world_waits(world, "join of observer 1"));
    world_pass(world, 200 * SECOND);
    world_expect(world, "");
    world_free(world);
}

/* No start of ps 1 mends a ps 0 without memory, or a ps 1 that is there and suspended. */
TEST(a_join_that_waited_for_a_ps_has_a_remedy_that_fits_why)
{
    static const char *const whys[] = {SILENCE_NO_MEMORY, SILENCE_MUTE};
    static const char *const ends[] = {
        "(" SILENCE_NO_MEMORY ")\n", "(" SILENCE_MUTE "); " SILENCE_MUTE_REMEDY "\n"};

    for (size_t i = 0; i < 2; i++) {
        struct world *world = world_new(2, 1);
        world_forget(world);
        world_join(world, NULL, 0, 1);
        world_ended(world, 1, SUMAC_REASON_UNSPECIFIED, whys[i]);
        world_pass(world, 60 * SECOND);

        char expected[SUMAC_ERROR_TEXT_BYTES];
        (void)snprintf(
            expected, sizeof expected,
            "1: UNAVAILABLE PS_MISSING the join of observer 1 has waited 60 s for ps 1 at h1:1, "
            "never heard from %s",
            ends[i]);
        world_expect(world, expected);
        world_free(world);
    }
}

TEST(a_ps_that_never_appears_ends_those_who_wait_for_it)
{
    struct world *world = world_new(2, 1);

    world_forget(world);
    world_join(world, "worker", 0, 1);

    world_pass(world, 59 * SECOND);
    world_expect(world, "");
    world_pass(world, 2 * SECOND);

    world_expect(
        world, "1: UNAVAILABLE PS_MISSING ps 1 at h1:1, never heard from, did not appear within 60 "
               "s; start it, "
               "or correct its address\n"
               "ps 0: end 138 PS_MISSING …\n"
               "exit 138 PS_MISSING …\n");
    world_free(world);
}

TEST(the_reason_why_a_ps_is_not_reached_is_said)
{
    struct world *world = world_new(2, 1);

    world_down(world, 1);

    world_pass(world, 6 * SECOND);

    assert_true(world_logged(world, "never heard from (connection refused)"));
    world_free(world);
}

TEST(a_ps_that_was_told_only_itself_learns_the_others_from_the_first_join)
{
    struct world *world = world_prepare(0, 0); /* given */
    char *addresses[] = {(char *)"h0:1", (char *)"h1:1"};
    uint8_t nonce[16] = {1};
    wire_task_name task = WIRE_TASK_NAME_INIT;
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;

    task.job = (char *)"worker";
    request.protocol_version = WIRE_PROTOCOL_VERSION;
    request.nonce = (wire_bytes){16, nonce};
    request.role = SUMAC__V1__ROLE__ROLE_MEMBER;
    request.task = &task;
    request.ps_addresses = addresses;
    request.n_ps_addresses = 2;
    world_begin(world);
    world_expect(world, "");
    world_join(world, NULL, 0, 9); /* an observer knows no better */
    world_expect(
        world, "1: UNAVAILABLE PS_MISSING join of an observer: ps 0 was told only "
               "itself, and no member has joined yet that names the ps\n");

    world_join_as(world, &request); /* when */
    world_expect(
        world, "dial ps 0\n"
               "dial ps 1\n"
               "ps 0: hello 70 of 2 ps\n");
    world_up(world, 1);
    world_settle_down(world);

    world_expect(
        world, "ps 1: hello 0 of 2 ps\n"
               "ps 0, 1: members 1 epoch 1\n"
               "ps 0, 1: open 1\n"
               "2: joined 1 attempt 1 of 2 ps epoch 1\n");
    world_free(world);
}

/* A map of ps from index to address may leave some out. */
TEST(a_ps_whose_address_ps_0_lacks_is_learnt_from_the_first_join_that_names_all)
{
    static const char *const told[] = {"h0:1", NULL, "h2:1"};
    struct world *world = world_prepare(3, 0); /* given */
    char *addresses[] = {(char *)"h0:1", (char *)"h1:1", (char *)"h2:1"};
    uint8_t nonce[16] = {1};
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;

    world->config.ps_addresses = told;
    request.protocol_version = WIRE_PROTOCOL_VERSION;
    request.nonce = (wire_bytes){16, nonce};
    request.role = SUMAC__V1__ROLE__ROLE_OBSERVER;
    request.ps_addresses = addresses;
    world_begin(world);
    world_up(world, 2);
    world_settle_down(world);
    world_expect(
        world, "dial ps 0\n"
               "dial ps 2\n"
               "ps 0: hello 70 of 3 ps\n"
               "ps 2: hello 0 of 3 ps\n");
    request.n_ps_addresses = 1; /* this one knows no other */
    world_join_as(world, &request);
    world_expect(world, "");
    nonce[0]++;
    request.n_ps_addresses = 3;

    world_join_as(world, &request); /* when */

    world_expect(
        world, "dial ps 1\n"
               "ps 0: hello 70 of 3 ps\n"); /* then */
    world_settle_down(world);
    nonce[0]++;
    world_join_as(world, &request);
    world_expect(world, ""); /* nothing is new */
    world_free(world);
}

TEST(a_joiner_starts_at_the_largest_of_the_slowest_clocks)
{
    struct world *world = world_new(2, 2);

    world->ps[0].clock = 4;
    world->ps[1].clock = 6;
    world_all_up(world);

    world_forget(world);
    world_joined(world, "worker", 0, 1);
    world_expect(
        world, "ps 0, 1: members 2 epoch 1\n"
               "ps 0, 1: open 1\n"
               "1: joined 1 attempt 1 of 2 ps clock 6 epoch 1\n");
    world_free(world);
}

TEST(an_observer_joins_without_a_task_and_settles_nobody)
{
    struct world *world = world_new(1, 1);

    world_joined(world, "worker", 0, 1);

    world_forget(world);

    world_joined(world, NULL, 0, 2); /* attempts tell them apart, in logs and statistics */
    world_joined(world, NULL, 0, 3);

    world_expect(
        world, "ps 0: open 2\n"
               "2: joined 2 attempt 1 of 1 ps epoch 1\n"
               "ps 0: open 3\n"
               "3: joined 3 attempt 2 of 1 ps epoch 1\n");
    world_free(world);
}

TEST(without_a_list_a_task_that_was_not_known_is_a_new_membership)
{
    struct world *world = world_new(1, 0);

    world_forget(world);

    world_joined(world, "worker", 0, 1);
    world_expect(
        world, "ps 0: members 1 epoch 1\n"
               "ps 0: open 1\n"
               "1: joined 1 attempt 1 of 1 ps epoch 1\n");

    world_joined(world, "worker", 7, 2);

    world_expect(
        world, "ps 0: members 2 epoch 2\n"
               "ps 0: open 2\n"
               "2: joined 2 attempt 1 of 1 ps epoch 2\n");
    world_free(world);
}

TEST(a_join_after_sigterm_is_refused)
{
    struct world *world = world_new(2, 1);

    world_forget(world);
    world_join(world, "worker", 0, 1);

    world_terminate(world);

    world_expect(
        world, "1: UNAVAILABLE TERMINATED ps 0 was told to stop and takes no more joins\n"
               "ps 0: end 143 TERMINATED ps 0 was terminated before the "
               "run ended, and its state goes with it; "
               "to go on, start the whole run again, ps and workers\n");
    world_join(world, "worker", 0, 2);
    world_expect(
        world, "2: UNAVAILABLE TERMINATED the run is over: ps 0 was terminated "
               "before the run ended, and its state goes with it; "
               "to go on, start the whole run again, ps and workers\n");
    world_free(world);
}

/* Before ps 0 has ended: it waits for a settle that is under way. */
TEST(so_is_one_while_sigterm_waits_for_a_settle)
{
    struct world *world = world_new(2, 2);

    world_all_up(world);
    const uint32_t first = world_joined(world, "worker", 0, 1);

    world_forget(world);
    world->ps[1].silent = true;
    world_leave(world, first, true);
    world_settle_down(world);
    world_terminate(world);

    world_join(world, "worker", 1, 2);

    world_expect(
        world, "ps 0, 1: close 1: it has left\n"
               "3: UNAVAILABLE TERMINATED ps 0 was told to stop and takes no more joins\n");
    world_free(world);
}

TEST(the_statistics_say_what_is_waited_for)
{
    struct world *world = world_new(2, 2);
    struct controller_waits waits;

    world_join(world, "worker", 1, 1);
    world_pass(world, 2 * SECOND);

    controller_list_waits(world->controller, world->now_us, &waits);

    assert_int_equal(waits.count, 2);
    assert_int_equal(waits.left_out, 0);
    assert_string_equal(
        waits.items[0], "ps 0 waits for ps 1 at h1:1, never heard from; gives up in 58 s");
    assert_string_equal(
        waits.items[1], "join of worker 1 waits for ps 1 at h1:1, never heard from; so far 2 s");
    world_free(world);
}

TEST(joins_that_wait_for_one_ps_are_one_sentence)
{
    struct world *world = world_new(2, 3); /* given */
    struct controller_waits waits;

    world_join(world, "worker", 2, 1);
    world_pass(world, 3 * SECOND);
    world_join(world, "worker", 0, 2);

    controller_list_waits(world->controller, world->now_us, &waits); /* when */

    assert_int_equal(waits.count, 2); /* then */
    assert_string_equal(
        waits.items[1],
        "joins of worker 2, worker 0 wait for ps 1 at h1:1, never heard from; so far 3 s");
    world_free(world);
}

TEST(a_join_and_a_settle_say_how_long_they_have_waited)
{
    struct world *world = world_new(2, 3); /* given */

    world_all_up(world);
    const uint32_t joined = world_joined(world, "worker", 0, 1);
    world->ps[1].silent = true;

    world_join(world, "worker", 1, 2); /* when */
    world_pass(world, SECOND);
    world_leave(world, joined, true);
    world_pass(world, SECOND);

    assert_true(world_waits(/* then */
                            world, "join of worker 1 waits for ps 1 at h1:1, last heard from 2 s "
                                   "ago; so far 2 s"));
    assert_true(world_waits(
        world, "settle of worker 0 waits for ps 1 at h1:1, last heard from 2 s ago; so far 1 s"));
    world_free(world);
}

TEST(settles_that_wait_for_one_ps_are_one_sentence)
{
    struct world *world = world_new(2, 3); /* given */
    struct controller_waits waits;

    world_all_up(world);
    const uint32_t first = world_joined(world, "worker", 0, 1);
    const uint32_t second = world_joined(world, "worker", 1, 2);
    world_down(world, 1);
    world_leave(world, first, true);
    world_leave(world, second, true);

    controller_list_waits(world->controller, world->now_us, &waits); /* when */

    unsigned settles = 0; /* then */
    for (uint32_t i = 0; i < waits.count; i++)
        settles += strstr(waits.items[i], "settles of worker 0, worker 1 wait for ps 1 at") != NULL;
    assert_int_equal(settles, 1);
    world_free(world);
}

TEST(a_membership_that_memory_is_short_for_is_told_before_the_session_that_waits_for_it)
{
    struct world *world = world_prepare(2, 0); /* given */

    world->config.sessions_max = 200;
    world_begin(world);
    world_all_up(world);
    world_joined(world, "worker", 0, 1);
    world_forget(world);
    world_use_up_orders(world);
    world_forget(world);

    world_join(world, "worker", 1, 2); /* when */
    world_pass(world, SECOND);

    world_expect(world, "");
    world->out_of_pools = false;
    world_pass(world, SECOND);
    world_expect(
        world, "ps 0, 1: members 2 epoch 2\n"
               "ps 0, 1: open 66\n"
               "66: joined 66 attempt 1 of 2 ps epoch 2\n");
    world_free(world);
}

TEST(who_opens_a_session_is_told_whose_it_is_and_which_members_there_are)
{
    struct world *world = world_of_two();

    (void)world_joined(world, "worker", 1, 1);
    (void)world_joined(world, "worker", 1, 2);

    const struct world_order *member = world_told(world, 1, ORDER_OPEN);
    assert_string_equal(member->text, "worker 1");
    assert_int_equal(member->role, SUMAC__V1__ROLE__ROLE_MEMBER);
    assert_int_equal(member->attempt, 2);
    assert_int_equal(
        member->membership_epoch, world_told(world, 1, ORDER_MEMBERSHIP)->membership_epoch);

    (void)world_joined(world, NULL, 0, 3);

    world_renew(world, 1); /* it is closed; the present one hears of the members */
    world_renew(world, 2);
    assert_int_equal(world->renewed_membership_epoch, member->membership_epoch);
    const struct world_order *observer = world_told(world, 1, ORDER_OPEN);
    assert_string_equal(observer->text, "");
    assert_int_equal(observer->role, SUMAC__V1__ROLE__ROLE_OBSERVER);
    world_free(world);
}

/* After 5, 15, 35 and 75 s, and then each minute. */
TEST(a_wait_for_the_first_join_is_told_once_a_minute_at_least)
{
    struct world *world = world_new(1, 1);
    size_t lines = 0;

    world_pass(world, 316 * SECOND);

    for (const char *at = world->log; (at = strstr(at, "waits for the first join")) != NULL; at++)
        lines++;
    assert_int_equal(lines, 4 + 4);
    world_free(world);
}

/* Of ps 0 itself, which never is missing. */
TEST(a_wait_for_a_join_says_what_it_waits_for)
{
    struct world *world = world_new(1, 1);

    world->ps[0].mute = true;
    (void)world_join(world, "worker", 0, 1);
    world_settle_down(world);
    assert_true(world_waits(world, "join of worker 0 waits for every ps to open it; so far 0 µs"));
    (void)world_join(world, "worker", 0, 2);
    world_settle_down(world);

    assert_true(world_waits(
        world, "join of worker 0 waits for its earlier session to be settled; so far 0 µs"));
    assert_true(world_logged(
        world, "ps 0 closes the session of worker 0: another process has taken this task's place, "
               "attempt 2\n"));
    world_free(world);
}

/* The first member of the list is that of synchronous step 1: it is opened, not counted anew. */
TEST(a_first_member_whose_order_lacked_memory_is_opened_when_there_is_some)
{
    struct world *world = world_prepare(2, 1);

    world->config.sessions_max = 100;
    world_begin(world);
    world_all_up(world);
    (void)world_joined(world, NULL, 0, 1);
    world_use_up_orders(world);
    world_forget(world);

    (void)world_join(world, "worker", 0, 2);
    world_pass(world, SECOND);
    world_expect(world, "");
    world->out_of_pools = false;
    world_pass(world, SECOND);

    world_expect(
        world, "ps 0, 1: open 66\n"
               "66: joined 66 attempt 1 of 2 ps epoch 1\n");
    world_free(world);
}

TEST(without_the_rule_tell_acked_through_the_next_attempt_is_not_told)
{
    struct world *world = world_prepare(1, 1);

    world->config.broken = rule_bit(RULE_tell_acked_through);
    world_begin(world);
    world_joined(world, "worker", 0, 1);
    world->ps[0].commit_through = 9;
    world->ps[0].acked_through = 6;

    world_joined(world, "worker", 0, 2);

    assert_non_null(strstr(world->text, "joined 2 attempt 2 of 1 ps after 9 epoch 1\n"));
    world_free(world);
}
