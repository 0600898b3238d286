/* SPDX-License-Identifier: Apache-2.0 */
/* session.c -- the client's two legs: a push of 16 bytes goes out at once, and its answer is
 * heard. */
#include "session_talk.h"
#include "trace.h"

TEST(a_push_and_its_answer_are_an_event_each)
{
    struct talk talk;
    uint8_t data[16] = {0};
    const struct session_piece piece = talk_piece(0, 10, data, sizeof data);

    talk_open(&talk, 1);
    talk_push(&talk, 1, &piece, 1);
    talk_writable(&talk, 0);
    talk_done(&talk, 0, 1);

    trace_next("push out", (void (*)(void))session_step);
    talk_push(&talk, 2, &piece, 1);
    assert_true(talk_request(&talk, 0)->parts[0]->eager);

    talk_writable(&talk, 0);
    trace_next("answer", (void (*)(void))session_step);
    talk_done(&talk, 0, 2);
    assert_int_equal(talk_state(&talk).pushes_in_flight, 0);
    talk_close(&talk);
}
