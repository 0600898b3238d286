/* SPDX-License-Identifier: Apache-2.0 */
/* lane_ends_waits.c -- a ps that is to end waits for some of its clients, and for no others. */
#include <stdio.h>

#include "lane_opened.h"

static const struct lane_event terminate = {.kind = LANE_EVENT_TERMINATE};

static void end_with(struct talk *talk, int exit_code, enum sumac_reason reason)
{
    wire_end end = WIRE_END_INIT;

    end.exit_code = (uint32_t)exit_code;
    end.message = "the run is over";
    end.reason = (Sumac__V1__Reason)reason;
    talk_order_of(talk, end, &end);
}

/* Its connection broke, and the run goes on elsewhere. */
TALK_TEST(sigterm_waits_for_a_client_that_comes_back)
{
    const uint64_t stream = begin(talk);

    send(talk, stream, 1, 0); /* given */
    talk_step(talk, &terminate);
    talk_hang_up(talk, stream);
    assert_null(strstr(talk->text, "exit"));

    const uint64_t again = talk_push_stream(talk, 1, 2); /* when */
    talk_forget(talk);
    talk_commit(talk, again, 1, 0, 0);

    talk_expect(talk, "done 1 [1]\nexit 143 TERMINATED\n"); /* then */
}

/* Its first message names what is not there. */
TALK_TEST(sigterm_waits_until_a_refused_part_is_whole)
{
    const uint64_t stream = begin(talk);
    struct talk_part refused = part(1, 0);

    refused.shard = 4711; /* given */
    talk_part_step(talk, stream, &refused, 0, 2);
    talk_step(talk, &terminate);
    talk_expect(talk, "");

    talk_part_step(talk, stream, &refused, 2, 2); /* when */

    talk_expect(talk, "refused 1 UNKNOWN_SHARD\n"); /* then */
    talk_commit(talk, stream, 1, 1, 0);
    talk_expect(talk, "done 1 voided\nexit 143 TERMINATED\n");
}

/* No client waits for it. */
TALK_TEST(a_run_whose_state_is_lost_ends_after_its_vector_work)
{
    struct lane_config config = talk_config();
    struct talk_part sent = part(1, 0);

    config.inline_bytes = 8;
    const uint64_t stream = begin_with(talk, &config);
    talk->holds_compute = true; /* given */
    sent.eager = true;
    talk_part(talk, stream, &sent);

    end_with(talk, LANE_EXIT_PS_LOST, SUMAC_REASON_STATE_LOST); /* when */

    assert_null(strstr(talk->text, "exit")); /* then */
    talk_compute(talk);
    assert_non_null(strstr(talk->text, "exit 138 STATE_LOST\n"));
}

TALK_TEST(a_run_whose_state_is_lost_ends_within_a_part)
{
    const uint64_t stream = begin(talk);
    const struct talk_part sent = part(1, 0);

    talk_part_step(talk, stream, &sent, 0, 2);

    end_with(talk, LANE_EXIT_PS_LOST, SUMAC_REASON_STATE_LOST);

    assert_non_null(strstr(talk->text, "exit 138 STATE_LOST\n"));
}

TALK_TEST(sigterm_waits_until_a_pull_is_read)
{
    (void)begin(talk);
    talk_variable(talk, 6, 64, UPDATE_ASSIGN_ADD); /* given: it takes several messages */
    const uint64_t stream = talk_pull_stream(talk, 1);
    talk->deaf = stream;
    talk_pull(talk, stream, 1, 6, 1, 0);

    talk_step(talk, &terminate); /* when */

    assert_null(strstr(talk->text, "exit")); /* then */
    talk->deaf = 0;
    talk_writable(talk, stream);
    assert_non_null(strstr(talk->text, "exit 143 TERMINATED\n"));
}

/* ps 0 has ended, too, and says nothing more. */
TALK_TEST(after_the_end_a_silent_ps_0_is_not_lost)
{
    struct lane_config config = talk_config();

    config.ps_lost_ms = 2000;
    config.report_ms = 1000;
    const uint64_t stream = begin_with(talk, &config);
    send(talk, stream, 1, 0); /* given: it holds the exit up */
    end_with(talk, 0, SUMAC_REASON_RUN_ENDED);

    for (int i = 0; i < 4; i++) /* when */
        talk_tick(talk, 900);

    assert_null(strstr(talk->text, "exit"));        /* then */
    assert_int_equal(talk_stats(talk)->n_waits, 1); /* that of push 1 */
}

/* Nor does it wait any longer. */
TALK_TEST(of_two_ends_the_first_says_how_a_ps_exits)
{
    const uint64_t stream = begin(talk);

    send(talk, stream, 1, 0); /* given: it holds the exit up */
    end_with(talk, 0, SUMAC_REASON_RUN_ENDED);
    talk_tick(talk, 3000);

    end_with(talk, 143, SUMAC_REASON_TERMINATED); /* when */
    assert_null(strstr(talk->text, "exit"));
    talk_tick(talk, 2000);

    assert_non_null(strstr(talk->text, "exit 0 RUN_ENDED\n")); /* then */
}

/* ---- what is not taken any more */

/* Push 1 of session 2 is staged, so this ps does not exit before its commit. */
static void hold_up(struct talk *talk)
{
    talk_open(talk, 2);
    send(talk, talk_push_stream(talk, 2, 1), 1, 0);
    talk_forget(talk);
}

TALK_TEST(after_sigterm_a_client_whose_push_is_not_taken_hears_of_the_end_at_once)
{
    const uint64_t stream = begin(talk);

    hold_up(talk); /* given */
    talk_step(talk, &terminate);

    send(talk, stream, 1, 0); /* when */

    talk_expect(talk, "end of stream TERMINATED\n"); /* then */
    assert_int_equal(talk->closed.status, SUMAC_UNAVAILABLE);
    assert_non_null(strstr(talk->closed.text, "ps 1 was terminated before the run ended"));
}

/* The end was ordered by ps 0. */
TALK_TEST(a_client_whose_push_is_not_taken_hears_why_the_run_has_ended)
{
    const uint64_t stream = begin(talk);

    hold_up(talk); /* given */
    end_with(talk, 130, SUMAC_REASON_TERMINATED);

    send(talk, stream, 1, 0); /* when */

    talk_expect(talk, "end of stream TERMINATED\n"); /* then */
    assert_string_equal(talk->closed.text, "the run is over");
}

TALK_TEST(a_client_hears_of_the_end_after_all_that_was_taken_from_it)
{
    const uint64_t stream = begin(talk);

    hold_up(talk);
    send(talk, stream, 1, 0); /* given */
    talk_step(talk, &terminate);
    talk_forget(talk);
    send(talk, stream, 2, 1);
    talk_expect(talk, "");

    talk_commit(talk, stream, 1, 0, 0); /* when */

    talk_expect(talk, "done 1 [1]\nend of stream TERMINATED\n"); /* then */
}

TALK_TEST(a_client_that_waits_for_nothing_keeps_its_stream_until_the_exit)
{
    const uint64_t stream = begin(talk);

    hold_up(talk); /* given */
    send(talk, stream, 1, 0);
    talk_commit(talk, stream, 1, 0, 0);
    talk_forget(talk);

    talk_step(talk, &terminate); /* when */

    talk_expect(talk, ""); /* then */
}
