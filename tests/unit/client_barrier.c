/* SPDX-License-Identifier: Apache-2.0 */
/* client_barrier.c -- a client that comes to barriers: what it asks ps 0 for, and which round it
 * means when it is called again. */
#include "client_played.h"

static enum sumac_status come(struct played *played, uint64_t *round, struct sumac_error *error)
{
    return sumac_client_barrier(
        &played->client, &(struct sumac_collective_options){.name = "epoch"}, round, error);
}

/* It has heard of no round at first, and then asks for the one after the last. */
PLAYED_TEST(each_call_names_the_round_after_the_last_that_was_heard_of)
{
    struct played_barrier *const barrier = &played->barrier;
    uint64_t round = 0;

    barrier->round = 7;
    assert_int_equal(come(played, &round, NULL), SUMAC_OK);

    assert_int_equal(barrier->asked_round, 0);
    assert_int_equal(round, 7);
    assert_int_equal(barrier->session, 7);
    assert_string_equal(barrier->name, "epoch");
    assert_string_equal(barrier->tasks, "");
    barrier->round = 8;
    assert_int_equal(come(played, NULL, NULL), SUMAC_OK);
    assert_int_equal(barrier->asked_round, 8);
    barrier->round = 9;
    assert_int_equal(come(played, &round, NULL), SUMAC_OK);
    assert_int_equal(barrier->asked_round, 9);
    assert_int_equal(round, 9);
}

PLAYED_TEST(each_name_has_rounds_of_its_own)
{
    const struct sumac_collective_options other = {.name = "start"};

    played->barrier.round = 3;
    assert_int_equal(come(played, NULL, NULL), SUMAC_OK);
    assert_int_equal(sumac_client_barrier(&played->client, &other, NULL, NULL), SUMAC_OK);
    assert_int_equal(played->barrier.asked_round, 0);
    assert_string_equal(played->barrier.name, "start");
    assert_int_equal(come(played, NULL, NULL), SUMAC_OK);
    assert_int_equal(played->barrier.asked_round, 4);
}

/* The call is made again by itself, as the same arrival. */
PLAYED_TEST(a_call_whose_answer_is_lost_names_the_same_round)
{
    played->barrier.round = 3;
    assert_int_equal(come(played, NULL, NULL), SUMAC_OK);
    played->barrier.breaks = 1;
    played->barrier.round = 4;

    assert_int_equal(come(played, NULL, NULL), SUMAC_OK);

    assert_int_equal(played->barrier.calls, 3);
    assert_int_equal(played->barrier.asked_round, 4);
}

/* ps 0 cannot know that it was: another client might always say 0. */
PLAYED_TEST(a_first_round_whose_answer_is_lost_is_asked_for_by_its_number)
{
    uint64_t round = 0;

    played->barrier.round = 7;
    played->barrier.asks_for_number = true;

    assert_int_equal(come(played, &round, NULL), SUMAC_OK);

    assert_int_equal(played->barrier.calls, 2);
    assert_int_equal(played->barrier.asked_round, 7);
    assert_int_equal(round, 7);
}

PLAYED_TEST(a_round_that_ended_badly_is_over_and_its_sentence_is_the_error)
{
    struct sumac_error error = {0};
    uint64_t round = 77;

    played->barrier.round = 2;
    played->barrier.status = SUMAC_ABORTED;
    played->barrier.reason = SUMAC_REASON_MEMBER_GONE;
    assert_int_equal(come(played, &round, &error), SUMAC_ABORTED);

    assert_int_equal(round, 77);
    assert_int_equal(error.status, SUMAC_ABORTED);
    assert_int_equal(error.reason, SUMAC_REASON_MEMBER_GONE);
    assert_string_equal(error.text, "worker 1 is missing");
    assert_int_equal(sumac_exit_code(&error), 138);
    assert_int_equal(come(played, NULL, NULL), SUMAC_ABORTED);
    assert_int_equal(played->barrier.asked_round, 3);
}

PLAYED_TEST(a_status_that_there_is_none_of_is_unknown)
{
    played->barrier.round = 2;
    played->barrier.reason = SUMAC_REASON_MEMBER_GONE;

    played->barrier.status = SUMAC_UNAUTHENTICATED; /* the last */
    assert_int_equal(come(played, NULL, NULL), SUMAC_UNAUTHENTICATED);
    played->barrier.status = SUMAC_UNAUTHENTICATED + 1;
    assert_int_equal(come(played, NULL, NULL), SUMAC_UNKNOWN);
}

PLAYED_TEST(an_error_of_the_call_says_nothing_of_the_round)
{
    struct sumac_error error = {0};

    played->barrier.round = 5;
    assert_int_equal(come(played, NULL, NULL), SUMAC_OK);
    played->barrier.refusal = SUMAC_FAILED_PRECONDITION;
    assert_int_equal(come(played, NULL, &error), SUMAC_FAILED_PRECONDITION);
    assert_string_equal(error.text, "no");
    played->barrier.refusal = SUMAC_OK;
    assert_int_equal(come(played, NULL, NULL), SUMAC_OK);
    assert_int_equal(played->barrier.asked_round, 6);
}

PLAYED_TEST(an_answer_without_a_round_is_none)
{
    struct sumac_error error = {0};

    assert_int_equal(come(played, NULL, &error), SUMAC_INTERNAL);
    assert_int_equal(error.reason, SUMAC_REASON_MALFORMED);
    played->barrier.round = 1;
    played->barrier.status = 99;
    assert_int_equal(come(played, NULL, NULL), SUMAC_UNKNOWN);
    assert_int_equal(played->barrier.asked_round, 0);
}

/* In the order that all members say them in. */
PLAYED_TEST(tasks_are_sorted)
{
    const struct sumac_member tasks[] = {{"worker", 12}, {"worker", 2}, {"chief", 7}};
    const struct sumac_collective_options options = {
        .name = "some", .tasks = tasks, .task_count = 3};

    played->barrier.round = 1;
    assert_int_equal(sumac_client_barrier(&played->client, &options, NULL, NULL), SUMAC_OK);
    assert_string_equal(played->barrier.tasks, "chief 7 worker 2 worker 12 ");
}

/* ps 0 waits for less than the caller does, so that its sentence comes in time. */
PLAYED_TEST(the_time_is_the_calls_own_or_the_clients)
{
    struct sumac_collective_options options = {.name = "some", .timeout_ms = 90000};

    played->barrier.round = 1;
    assert_int_equal(sumac_client_barrier(&played->client, &options, NULL, NULL), SUMAC_OK);
    assert_int_equal(played->barrier.timeout_ms, 89000);
    options.timeout_ms = 0;
    assert_int_equal(sumac_client_barrier(&played->client, &options, NULL, NULL), SUMAC_OK);
    assert_int_equal(played->barrier.timeout_ms, 59000);
    options.timeout_ms = 100;
    assert_int_equal(sumac_client_barrier(&played->client, &options, NULL, NULL), SUMAC_OK);
    assert_int_equal(played->barrier.timeout_ms, 50);
}

PLAYED_TEST(a_ps_that_says_nothing_is_named_when_the_time_is_over)
{
    const struct sumac_collective_options options = {.name = "epoch", .timeout_ms = 300};
    struct sumac_error error = {0};

    played->barrier.mute = true;
    const uint64_t began_us = client_now_us();
    assert_int_equal(
        sumac_client_barrier(&played->client, &options, NULL, &error), SUMAC_DEADLINE_EXCEEDED);
    assert_in_range(client_now_us() - began_us, 250000, 30000000); /* not the client's 60 s */

    assert_int_equal(error.reason, SUMAC_REASON_TIMED_OUT);
    if (strstr(error.text, "which may itself wait for other members: sumac stats says for whom") ==
        NULL)
        fail_msg("%s", error.text);
}

/* Its program may exit for that error. */
PLAYED_TEST(a_replaced_client_returns_when_ps_0_has_heard_that_it_lives)
{
    struct sumac_error error = {0};

    played->barrier.refusal = SUMAC_FAILED_PRECONDITION;
    played->barrier.reason = SUMAC_REASON_REPLACED;

    assert_int_equal(come(played, NULL, &error), SUMAC_FAILED_PRECONDITION);

    assert_int_equal(error.reason, SUMAC_REASON_REPLACED);
    assert_int_equal(played->leaves, 1);
}

static void assert_refused(
    struct played *played, const struct sumac_collective_options *options, enum sumac_reason reason,
    const char *text)
{
    struct sumac_error error = {0};

    assert_int_equal(
        sumac_client_barrier(&played->client, options, NULL, &error), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(error.reason, reason);
    assert_string_equal(error.text, text);
    assert_int_equal(played->barrier.calls, 0);
}

PLAYED_TEST(a_name_has_1_to_256_bytes_of_utf8_without_control_characters)
{
    char longest[258];

    memset(longest, 'x', sizeof longest);
    longest[257] = '\0';
    static const struct {
        const char *name, *text;
    } rows[] = {
        {NULL, "a barrier's name has 1 to 256 bytes, given none"},
        {"", "a barrier's name has 1 to 256 bytes, given none"},
        {"\xff", "a barrier's name is UTF-8, and this one is not"},
        {"a\nb", "the barrier's name has a control character, shown here as ?: a?b"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_refused(
            played, &(struct sumac_collective_options){.name = rows[i].name}, SUMAC_REASON_BAD_NAME,
            rows[i].text);
    assert_refused(
        played, &(struct sumac_collective_options){.name = longest}, SUMAC_REASON_BAD_NAME,
        "a barrier's name has 1 to 256 bytes, given more");
    longest[256] = '\0';
    played->barrier.round = 1;

    assert_int_equal(
        sumac_client_barrier(
            &played->client, &(struct sumac_collective_options){.name = longest}, NULL, NULL),
        SUMAC_OK);
}

PLAYED_TEST(tasks_are_members_and_each_is_named_once)
{
    static struct sumac_member tasks[SUMAC_COLLECTIVE_TASKS_MAX + 1];
    struct sumac_collective_options options = {.name = "some", .task_count = 2};
    struct sumac_error error = {0};
    char text[128];

    assert_refused(
        played, &options, SUMAC_REASON_UNSPECIFIED,
        "barrier \"some\": task_count is 2, and tasks is NULL");
    options.tasks = tasks;
    tasks[0] = tasks[1] = (struct sumac_member){"worker", 3};
    assert_refused(
        played, &options, SUMAC_REASON_UNSPECIFIED, "barrier \"some\": worker 3 is named twice");
    tasks[1].job = "ps";
    assert_refused(
        played, &options, SUMAC_REASON_BAD_NAME,
        "barrier \"some\": tasks[1] is of job ps; only tasks of the jobs chief and worker are "
        "members");
    tasks[1].job = NULL;
    assert_int_equal(
        sumac_client_barrier(&played->client, &options, NULL, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "tasks[1] is of job NULL; "));
    for (uint32_t i = 0; i <= SUMAC_COLLECTIVE_TASKS_MAX; i++)
        tasks[i] = (struct sumac_member){"worker", i};
    options.task_count = SUMAC_COLLECTIVE_TASKS_MAX + 1;
    snprintf(
        text, sizeof text, "barrier \"some\": task_count is %d, and %d are the most",
        SUMAC_COLLECTIVE_TASKS_MAX + 1, SUMAC_COLLECTIVE_TASKS_MAX);
    assert_refused(played, &options, SUMAC_REASON_UNSPECIFIED, text);
    options.task_count--;
    played->barrier.round = 1;
    assert_int_equal(sumac_client_barrier(&played->client, &options, NULL, NULL), SUMAC_OK);
    assert_int_equal(sumac_client_barrier(NULL, &options, NULL, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "sumac_client_barrier: client is NULL");
    assert_int_equal(
        sumac_client_barrier(&played->client, NULL, NULL, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "sumac_client_barrier: options is NULL");
}

/* The number that ps 0 names is that of a first call alone. */
PLAYED_TEST(a_later_round_that_is_over_is_not_asked_for_again)
{
    struct sumac_error error = {0};

    played->barrier.round = 4;
    assert_int_equal(come(played, NULL, NULL), SUMAC_OK);
    played->barrier.round = 9;
    played->barrier.status = SUMAC_FAILED_PRECONDITION;
    played->barrier.reason = SUMAC_REASON_ROUND_OVER;

    assert_int_equal(come(played, NULL, &error), SUMAC_FAILED_PRECONDITION);

    assert_int_equal(error.reason, SUMAC_REASON_ROUND_OVER);
    assert_int_equal(played->barrier.calls, 2);
    assert_int_equal(played->barrier.asked_round, 5);
}

PLAYED_TEST(an_error_is_left_alone_by_what_succeeds)
{
    struct sumac_error error = {.status = SUMAC_UNKNOWN, .text = "as it was"};

    played->barrier.round = 1;

    assert_int_equal(come(played, NULL, &error), SUMAC_OK);

    assert_int_equal(error.status, SUMAC_UNKNOWN);
    assert_string_equal(error.text, "as it was");
}

/* ---- two threads */

static void *come_beside(void *context)
{
    struct played *const played = context;

    (void)come(played, NULL, NULL);
    return NULL;
}

PLAYED_TEST(a_second_thread_at_the_same_name_is_refused)
{
    struct sumac_error error = {0};
    pthread_t beside;

    played->client.timeout_ms = 1000;
    played->barrier.mute = true;
    assert_int_equal(pthread_create(&beside, NULL, come_beside, played), 0);
    client_lock(&played->client);
    while (played->barrier.calls == 0) {
        client_unlock(&played->client);
        client_lock(&played->client);
    }
    client_unlock(&played->client);

    assert_int_equal(come(played, NULL, &error), SUMAC_FAILED_PRECONDITION);
    assert_string_equal(
        error.text,
        "another thread of this client waits at barrier \"epoch\"; one of a process comes to it");
    pthread_join(beside, NULL);
}
