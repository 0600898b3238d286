/* SPDX-License-Identifier: Apache-2.0 */
/* session_answers.h -- answers of a ps on a push stream that say one thing. */
#pragma once

#include "wire.h"

/* An answer, with what it points to: it stays where it was made. */
struct said {
    wire_push_answer answer;
    uint64_t resend;
    wire_staged staged, *staged_list[1];
    wire_refused refused, *refused_list[1];
    wire_give_way give_way, *give_way_list[1];
};

static inline const wire_push_answer *
say_staged(struct said *said, uint64_t sequence, uint32_t resend)
{
    said->answer = (wire_push_answer)WIRE_PUSH_ANSWER_INIT;
    said->staged = (wire_staged)WIRE_STAGED_INIT;
    said->staged.sequence = sequence;
    said->staged.resend = resend;
    said->staged_list[0] = &said->staged;
    said->answer.staged = said->staged_list;
    said->answer.n_staged = 1;
    return &said->answer;
}

/* The elements of a large part are wanted. */
static inline const wire_push_answer *say_resend(struct said *said, uint64_t sequence)
{
    said->answer = (wire_push_answer)WIRE_PUSH_ANSWER_INIT;
    said->resend = sequence;
    said->answer.resend = &said->resend;
    said->answer.n_resend = 1;
    return &said->answer;
}

static inline const wire_push_answer *
say_give_way(struct said *said, uint64_t sequence, uint32_t resend)
{
    said->answer = (wire_push_answer)WIRE_PUSH_ANSWER_INIT;
    said->give_way = (wire_give_way)WIRE_GIVE_WAY_INIT;
    said->give_way.sequence = sequence;
    said->give_way.resend = resend;
    said->give_way_list[0] = &said->give_way;
    said->answer.give_way = said->give_way_list;
    said->answer.n_give_way = 1;
    return &said->answer;
}

static inline const wire_push_answer *say_refused(
    struct said *said, uint64_t sequence, enum sumac_status status, enum sumac_reason reason)
{
    said->answer = (wire_push_answer)WIRE_PUSH_ANSWER_INIT;
    said->refused = (wire_refused)WIRE_REFUSED_INIT;
    said->refused.sequence = sequence;
    said->refused.status = (uint32_t)status;
    said->refused.reason = (Sumac__V1__Reason)reason;
    said->refused.message = (char *)(uintptr_t) "W1 is not finite";
    said->refused.expected = (char *)(uintptr_t) "finite values";
    said->refused.given = (char *)(uintptr_t) "nan";
    said->refused_list[0] = &said->refused;
    said->answer.refused = said->refused_list;
    said->answer.n_refused = 1;
    return &said->answer;
}
