/* SPDX-License-Identifier: Apache-2.0 */
/* roster.c -- what is said of ps that do not answer, and which of their words are their last. */

#include "unit.h"
#include "ask.h"
#include "last_word.h"
#include "memory.h"
#include "roster.h"

static uint64_t second_cluster_id; /* that the second ps answers with */

enum sumac_status __wrap_ask(
    struct roster *roster, const struct inquiry *inquiry, struct answers *answers,
    struct sumac_error *error);

/* The first ps knows of itself alone; only the second is asked besides. */
enum sumac_status __wrap_ask(
    struct roster *roster, const struct inquiry *inquiry, struct answers *answers,
    struct sumac_error *error)
{
    static char *addresses[] = {"a:1"};
    static wire_list_reply replies[2];

    (void)error;
    assert_int_equal(roster->count, 2);
    *answers = (struct answers){.count = 2, .replies = calloc(2, sizeof *answers->replies)};
    arena_init(&answers->arena, &memory_heap, WIRE_ARENA_BYTES_MAX);
    for (uint32_t i = 0; i < 2; i++) {
        replies[i] = (wire_list_reply)WIRE_LIST_REPLY_INIT;
        replies[i].ps_addresses = addresses;
        replies[i].n_ps_addresses = 1;
        replies[i].cluster_id = i == 0 ? 7 : second_cluster_id;
        if (inquiry->one_is_enough ? i == 0 : !roster->ps[i].left_out)
            answers->replies[i] = &replies[i].base;
    }
    return SUMAC_OK;
}

TEST(a_ps_that_exits_says_one_of_five_reasons)
{
    static const enum sumac_reason last[] = {
        SUMAC_REASON_RUN_ENDED, SUMAC_REASON_STATE_LOST, SUMAC_REASON_PS_MISSING,
        SUMAC_REASON_TERMINATED, SUMAC_REASON_WRONG_CLUSTER};
    static const enum sumac_reason others[] = {
        SUMAC_REASON_UNSPECIFIED, SUMAC_REASON_BUSY, SUMAC_REASON_TIMED_OUT,
        SUMAC_REASON_UNKNOWN_VARIABLE, SUMAC_REASON_SESSION_CLOSED};

    for (size_t i = 0; i < sizeof last / sizeof last[0]; i++)
        assert_true(last_word_is(&(struct sumac_error){.reason = last[i]}));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(last_word_is(&(struct sumac_error){.reason = others[i]}));
}

static void
assert_silence(uint64_t silent_us, enum sumac_status status, const char *why, const char *said)
{
    struct roster_ps ps = {.silent_us = 7000000, .told_us = 7000000 + silent_us};

    ps.why.status = status;
    (void)snprintf(ps.why.text, sizeof ps.why.text, "%s", why);
    assert_string_equal(roster_silence(&ps).text, said);
}

TEST(a_silence_is_as_long_as_it_lasted_with_its_cause)
{
    static const char refused[] = "Connection refused";

    assert_silence(999999, SUMAC_UNAVAILABLE, refused, "no answer (Connection refused)");
    assert_silence(1000000, SUMAC_UNAVAILABLE, refused, "no answer for 1 s (Connection refused)");
    assert_silence(5500000, SUMAC_DEADLINE_EXCEEDED, "Deadline Exceeded", "no answer for 5.5 s");
    assert_silence(0, SUMAC_CANCELLED, "CANCELLED", "no answer");
}

/* How many do not answer. */
static uint32_t count_missing(const struct roster *roster)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < roster->count; i++)
        count += roster->ps[i].missing;
    return count;
}

TEST(of_a_roster_the_missing_are_counted_and_decide_the_exit_code)
{
    static const struct command stats = {.name = "stats"};
    struct roster_ps ps[3] = {
        {.address = (char[]){"a:1"}}, {.address = (char[]){"b:1"}}, {.address = (char[]){"c:1"}}};
    const struct roster roster = {.count = 3, .ps = ps};

    assert_int_equal(count_missing(&roster), 0);
    assert_false(roster_has_last_word(&roster));
    assert_int_equal(roster_report(&stats, &roster, "all else is shown"), EXIT_FINE);

    ps[1].missing = true;
    ps[1].why = (struct sumac_error){.status = SUMAC_UNAVAILABLE, .text = "gone"};
    ps[2].why = (struct sumac_error){.status = SUMAC_UNAVAILABLE, .reason = SUMAC_REASON_RUN_ENDED};
    assert_int_equal(count_missing(&roster), 1);
    assert_false(roster_has_last_word(&roster)); /* ps 2 answers */
    assert_int_equal(roster_report(&stats, &roster, "all else is shown"), 138);

    ps[2].missing = true;
    assert_int_equal(count_missing(&roster), 2);
    assert_true(roster_has_last_word(&roster));
    ps[2].why.reason = SUMAC_REASON_WRONG_CLUSTER; /* of several the first decides */
    assert_int_equal(roster_report(&stats, &roster, "all else is shown"), 138);
    ps[1].missing = false;
    assert_int_equal(roster_report(&stats, &roster, "all else is shown"), 2);
}

TEST(a_ps_that_has_another_index_than_its_place_in_the_list_is_refused)
{
    struct roster_ps ps[2] = {{.address = (char[]){"a:1"}}, {.address = (char[]){"b:1"}}};
    struct roster roster = {.count = 2, .ps = ps, .by_index = true};
    struct sumac_error error;

    assert_int_equal(roster_check_index(&roster, 1, 1, &error), SUMAC_OK);
    assert_int_equal(roster_check_index(&roster, 0, 1, &error), SUMAC_FAILED_PRECONDITION);
    assert_int_equal(error.reason, SUMAC_REASON_WRONG_CLUSTER);
    assert_string_equal(
        error.text, "ps 1 answers at a:1, which the list of the ps calls ps 0: correct the index "
                    "of that ps, or the order of the ps addresses");
    roster.by_index = false; /* as --ps gives them: in any order */
    assert_int_equal(roster_check_index(&roster, 0, 1, &error), SUMAC_OK);
}

/* A ps knows of no cluster before ps 0 has greeted it. */
TEST(a_ps_of_another_cluster_is_told_from_one_that_knows_of_none)
{
    static const struct {
        uint64_t cluster_id;
        enum sumac_status status;
    } cases[] = {{0, SUMAC_OK}, {7, SUMAC_OK}, {8, SUMAC_FAILED_PRECONDITION}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct roster roster = {0};
        struct sumac_error error;
        second_cluster_id = cases[i].cluster_id;

        assert_int_equal(roster_find("a:1,b:1", &roster, &error), cases[i].status);

        if (cases[i].status != SUMAC_OK)
            assert_int_equal(error.reason, SUMAC_REASON_WRONG_CLUSTER);
    }
}
