/* SPDX-License-Identifier: Apache-2.0 */
/* session_collective.c -- contributions to rounds of collectives as conversations: what goes out
 * with them, and where the result is asked for. */
#include "session_talk.h"
#include "sumac/tensor.h"

#define NAME "grads"
#define TOKEN 5u
#define PULL_TOKEN (TOKEN + 1)
#define SEVERAL 3u
#define TELL_MS 50u

struct given {
    float value[2], into[2];
    wire_collective header;
    wire_collective_round round;
    struct session_piece pushed, pulled;
};

/* Of what `pushed` has. Its result goes where that says, or, without memory, to the session's own.
 */
static void contribute_as(
    struct talk *talk, struct given *given, uint64_t token, bool beside, struct session_piece into)
{
    const wire_bytes name = {.len = strlen(NAME), .data = (uint8_t *)(uintptr_t)NAME};

    given->header = (wire_collective)WIRE_COLLECTIVE_INIT;
    given->round = (wire_collective_round)WIRE_COLLECTIVE_ROUND_INIT;
    given->header.name = given->round.name = name;
    given->header.round = given->round.round = 1;
    given->pulled = into;
    const struct session_push push = {
        .token = token,
        .pieces = &given->pushed,
        .piece_count = 1,
        .weight = 1,
        .collective = &given->header};
    const struct session_pull pull = {
        .token = token + 1,
        .pieces = &given->pulled,
        .piece_count = 1,
        .collective = &given->round,
        .has_rows = into.data == NULL,
        .beside = beside};
    talk_step(
        talk,
        (struct session_event){.kind = SESSION_EVENT_COLLECTIVE, .push = &push, .pull = &pull});
}

static void
contribute_for(struct talk *talk, struct given *given, bool beside, struct session_piece into)
{
    given->pushed =
        (struct session_piece){.data = (uint8_t *)given->value, .bytes = sizeof given->value};
    contribute_as(talk, given, TOKEN, beside, into);
}

static void contribute_with(struct talk *talk, struct given *given, struct session_piece pushed)
{
    given->pushed = pushed;
    contribute_as(
        talk, given, TOKEN, false,
        (struct session_piece){.data = (uint8_t *)given->into, .bytes = sizeof given->into});
}

static void contribute(struct talk *talk, struct given *given, bool beside)
{
    contribute_for(
        talk, given, beside,
        (struct session_piece){.data = (uint8_t *)given->into, .bytes = sizeof given->into});
}

/* It was asked for there under that number. */
static uint64_t asked_beside(const struct talk *talk)
{
    const wire_push_request *request = talk_request(talk, 0);

    return request == NULL || request->n_pulls == 0 ? 0 : request->pulls[0]->request;
}

/* What the session refuses at once has no pull, and stands in no later one's way. */
TALK_TEST(one_above_the_grant_is_refused_with_its_pull)
{
    talk_open(talk, 1);
    struct given given;
    static uint8_t data[GRANT + 1];

    contribute_with(talk, &given, (struct session_piece){.data = data, .bytes = sizeof data});

    const struct session_effect *pushed = talk_find(talk, SESSION_EFFECT_PUSHED);
    assert_int_equal(pushed->error.reason, SUMAC_REASON_PART_TOO_LARGE);
    assert_null(talk_find(talk, SESSION_EFFECT_PULLED));
    assert_null(talk_find(talk, SESSION_EFFECT_OPEN_STREAM)); /* that it would go out on */
    contribute(talk, &given, true);
    assert_int_equal(asked_beside(talk), 1);
}

static void
answer_beside(struct talk *talk, uint64_t number, const float values[2], enum sumac_reason reason)
{
    wire_collective_result result = WIRE_COLLECTIVE_RESULT_INIT;
    uint64_t shape = 2;
    wire_pull_answer pulled = WIRE_PULL_ANSWER_INIT;
    wire_pull_answer *list[] = {&pulled};
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;

    result.data_type = (Sumac__V1__DataType)SUMAC_FLOAT32;
    result.shape = &shape;
    result.n_shape = 1;
    pulled.request = number;
    pulled.last = true;
    if (reason == SUMAC_REASON_UNSPECIFIED) {
        pulled.collective = &result;
        pulled.payload =
            (wire_bytes){.data = (uint8_t *)(uintptr_t)values, .len = 2 * sizeof *values};
    } else {
        pulled.status = SUMAC_OUT_OF_RANGE;
        pulled.reason = (Sumac__V1__Reason)reason;
        pulled.message = "it is so";
    }
    answer.pulled = list;
    answer.n_pulled = 1;
    talk_answer(talk, 0, &answer);
}

/* With that header, and so many bytes. */
static const struct session_effect *
answer_as(struct talk *talk, wire_collective_result *result, const void *data, size_t bytes)
{
    wire_pull_answer pulled = WIRE_PULL_ANSWER_INIT;
    wire_pull_answer *list[] = {&pulled};
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;

    result->data_type = (Sumac__V1__DataType)SUMAC_FLOAT32;
    pulled.request = asked_beside(talk);
    pulled.last = true;
    pulled.collective = result;
    pulled.payload = (wire_bytes){.data = (uint8_t *)(uintptr_t)data, .len = bytes};
    answer.pulled = list;
    answer.n_pulled = 1;
    talk_answer(talk, 0, &answer);
    const struct session_effect *effect = talk_find(talk, SESSION_EFFECT_PULLED);
    assert_non_null(effect);
    return effect;
}

static void hear_of(struct talk *talk, uint64_t token)
{
    talk_step(
        talk, (struct session_event){.kind = SESSION_EVENT_COLLECTIVE_RESULT, .token = token});
}

static void hear(struct talk *talk) { hear_of(talk, TOKEN); }

static void pull_writable(struct talk *talk) { talk_pull_writable(talk, 0); }

/* What it asks for on the pull stream, which is opened for that; 0: nothing. */
static uint64_t asked_on_the_pull_stream(struct talk *talk)
{
    if (talk->generation[0][SESSION_PULL_STREAM] == 0)
        return 0;
    pull_writable(talk);
    const struct session_effect *sent = talk_find(talk, SESSION_EFFECT_SEND_PULL);
    return sent == NULL ? 0 : sent->pull_request->request;
}

TALK_TEST(the_contribution_and_the_question_are_one_message)
{
    talk_open(talk, 1);
    struct given given;
    const float sums[] = {3, 4};

    contribute(talk, &given, true);
    assert_int_equal(talk_request(talk, 0)->n_parts, 1);
    assert_ptr_equal(talk_request(talk, 0)->parts[0]->collective, &given.header);
    const uint64_t number = asked_beside(talk);
    assert_int_not_equal(number, 0);
    assert_memory_equal(talk_request(talk, 0)->pulls[0]->collective->name.data, NAME, strlen(NAME));
    assert_null(talk_find(talk, SESSION_EFFECT_OPEN_STREAM)); /* none for pulls */

    answer_beside(talk, number, sums, SUMAC_REASON_UNSPECIFIED);

    const struct session_effect *pulled = talk_find(talk, SESSION_EFFECT_PULLED);
    assert_non_null(pulled);
    assert_int_equal(pulled->token, PULL_TOKEN);
    assert_int_equal(pulled->error.status, SUMAC_OK);
    assert_memory_equal(given.into, sums, sizeof sums);
}

TALK_TEST(what_is_long_is_asked_for_on_the_pull_stream)
{
    talk_open(talk, 1);
    struct given given;

    contribute(talk, &given, false);

    assert_int_equal(asked_beside(talk), 0);
    assert_int_not_equal(asked_on_the_pull_stream(talk), 0);
}

TALK_TEST(so_is_what_turns_out_to_be)
{
    talk_open(talk, 1);
    struct given given;

    contribute(talk, &given, true);

    answer_beside(talk, asked_beside(talk), NULL, SUMAC_REASON_MESSAGE_TOO_LARGE);

    assert_null(talk_find(talk, SESSION_EFFECT_PULLED));
    assert_int_not_equal(asked_on_the_pull_stream(talk), 0);
}

TALK_TEST(when_the_push_stream_breaks_it_is_asked_for_on_the_pull_stream)
{
    talk_open(talk, 1);
    struct given given;

    contribute(talk, &given, true);
    const uint64_t number = asked_beside(talk);

    talk_lost(talk, 0, SESSION_PUSH_STREAM);

    assert_int_equal(asked_on_the_pull_stream(talk), number);
}

/* Else each push stream that breaks would open a pull stream at once to a ps that is away. */
TALK_TEST(a_pull_stream_that_broke_is_not_opened_before_its_time_for_that)
{
    struct given before, given;

    talk_open(talk, 1); /* given */
    contribute(talk, &before, false);
    assert_int_equal(talk->generation[0][SESSION_PULL_STREAM], 1);
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_CANCEL_PULL, .token = PULL_TOKEN});
    talk_lost(talk, 0, SESSION_PULL_STREAM);
    given.pushed = before.pushed;
    contribute_as(
        talk, &given, TOKEN + SEVERAL, true,
        (struct session_piece){.data = (uint8_t *)given.into, .bytes = sizeof given.into});

    talk_lost(talk, 0, SESSION_PUSH_STREAM); /* when */

    assert_int_equal(talk->generation[0][SESSION_PULL_STREAM], 1); /* then */
    talk_tick_after(talk, 20);
    assert_int_equal(talk->generation[0][SESSION_PULL_STREAM], 2);
}

TALK_TEST(without_a_push_stream_it_is_asked_for_on_the_pull_stream)
{
    talk_open(talk, 1);
    struct given given;

    talk_broke(talk, 0, SESSION_PUSH_STREAM);
    contribute(talk, &given, true);

    assert_int_not_equal(asked_on_the_pull_stream(talk), 0);
}

TALK_TEST(before_the_push_stream_is_greeted_it_is_asked_for_on_the_pull_stream)
{
    talk_join_member(talk, 1);
    struct given given;

    contribute(talk, &given, false); /* the contribution waits for the greeting */

    assert_int_not_equal(asked_on_the_pull_stream(talk), 0);
}

TALK_TEST(what_is_more_than_a_message_takes_is_asked_for_on_the_pull_stream)
{
    talk_open(talk, 1);
    static struct given collectives[WIRE_PUSH_PULLS_MAX + 1];

    for (uint32_t i = 0; i <= WIRE_PUSH_PULLS_MAX; i++) {
        const struct session_piece into = {
            .data = (uint8_t *)collectives[i].into, .bytes = sizeof collectives[i].into};
        collectives[i].pushed = into;
        contribute_as(talk, &collectives[i], TOKEN + 2 * i, true, into);

        assert_int_equal(
            talk_find(talk, SESSION_EFFECT_OPEN_STREAM) != NULL, i == WIRE_PUSH_PULLS_MAX);
    }
}

TALK_TEST(what_is_cancelled_is_cancelled_where_it_was_asked)
{
    talk_open(talk, 1);
    struct given given;

    contribute(talk, &given, true);
    const uint64_t number = asked_beside(talk);
    talk_writable(talk, 0);

    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_CANCEL_PULL, .token = PULL_TOKEN});

    assert_int_equal(asked_beside(talk), number);
    assert_true(talk_request(talk, 0)->pulls[0]->cancel);
}

TALK_TEST(what_was_cancelled_is_not_asked_for_on_another_stream)
{
    talk_open(talk, 1);
    struct given given;

    contribute(talk, &given, true);
    assert_int_not_equal(asked_beside(talk), 0);
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_CANCEL_PULL, .token = PULL_TOKEN});

    talk_lost(talk, 0, SESSION_PUSH_STREAM);

    assert_int_equal(asked_on_the_pull_stream(talk), 0);
}

/* The answer to a pull that is over may be on its way, and a ps may leave out the header. */
TALK_TEST(an_answer_to_no_question_or_without_a_header_is_survived)
{
    talk_open(talk, 1);
    struct given given;
    const float sums[] = {3, 4};
    wire_pull_answer pulled = WIRE_PULL_ANSWER_INIT, *list[] = {&pulled};
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;

    contribute_for(talk, &given, true, (struct session_piece){0});
    const uint64_t number = asked_beside(talk);
    answer_beside(talk, number + 1, sums, SUMAC_REASON_UNSPECIFIED);
    assert_null(talk_find(talk, SESSION_EFFECT_PULLED));
    pulled.request = number;
    pulled.last = true;
    answer.pulled = list;
    answer.n_pulled = 1;

    talk_answer(talk, 0, &answer);

    assert_int_equal(talk_find(talk, SESSION_EFFECT_PULLED)->error.reason, SUMAC_REASON_MALFORMED);
}

TALK_TEST(a_push_that_is_refused_at_once_asks_for_nothing)
{
    const struct session_config config = talk_member(1);
    struct given given;

    talk_config(talk, &config); /* before it joins */

    contribute(talk, &given, true);

    assert_non_null(talk_find(talk, SESSION_EFFECT_PUSHED));
    assert_null(talk_find(talk, SESSION_EFFECT_PULLED));
}

/* ---- what a ps need not keep any more */

TALK_TEST(what_is_heard_of_is_said_with_the_next_contribution)
{
    talk_open(talk, 1);
    struct given given, next;

    contribute(talk, &given, true);
    talk_writable(talk, 0);
    talk_done(talk, 0, 1);
    hear(talk);
    assert_null(talk_request(talk, 0));

    contribute(talk, &next, true);

    assert_non_null(talk_request(talk, 0)->commit);
    assert_int_equal(talk_request(talk, 0)->commit->collectives_through, 1);
}

TALK_TEST(or_after_a_while)
{
    talk_open(talk, 1);
    struct given given;

    contribute(talk, &given, true);
    talk_writable(talk, 0);
    talk_done(talk, 0, 1);
    hear(talk);

    talk_tick_after(talk, TELL_MS);

    assert_int_equal(talk_request(talk, 0)->commit->collectives_through, 1);
}

TALK_TEST(and_no_later_for_another_that_is_heard_of_meanwhile)
{
    talk_open(talk, 1);
    struct given first, second;

    contribute(talk, &first, true);
    talk_writable(talk, 0);
    second.pushed = first.pushed;
    contribute_as(talk, &second, TOKEN + 2, true, first.pulled);
    talk_writable(talk, 0);
    talk_done(talk, 0, 1);
    talk_done(talk, 0, 2);
    hear(talk);
    talk_tick_after(talk, TELL_MS / 2);
    hear_of(talk, TOKEN + 2);

    talk_tick_after(talk, TELL_MS / 2);

    assert_non_null(talk_request(talk, 0));
    assert_int_equal(talk_request(talk, 0)->commit->collectives_through, 2);
}

TALK_TEST(not_what_is_still_waited_for)
{
    talk_open(talk, 1);
    struct given given;

    contribute(talk, &given, true);
    talk_writable(talk, 0);
    talk_done(talk, 0, 1);

    talk_tick_after(talk, TELL_MS);

    assert_null(talk_request(talk, 0));
}

/* ---- what is answered ---- */

static void contribute_next(struct talk *talk, struct given *given, uint64_t token)
{
    given->pushed =
        (struct session_piece){.data = (uint8_t *)given->value, .bytes = sizeof given->value};
    contribute_as(
        talk, given, token, false,
        (struct session_piece){.data = (uint8_t *)given->into, .bytes = sizeof given->into});
    talk_writable(talk, 0);
}

TALK_TEST(a_round_that_waits_is_named_beside_later_ones_that_are_over)
{
    struct given collectives[4];

    talk_open(talk, 1); /* given */
    for (uint64_t i = 0; i < 4; i++)
        contribute_next(talk, &collectives[i], TOKEN + 2 * i);

    hear_of(talk, TOKEN + 2); /* when */
    talk_tick_after(talk, TELL_MS);

    const wire_commit *commit = talk_request(talk, 0)->commit; /* then */
    assert_int_equal(commit->collectives_through, 2);
    assert_int_equal(commit->n_waiting, 1);
    assert_int_equal(commit->waiting[0], 1);
    talk_writable(talk, 0);

    hear_of(talk, TOKEN); /* when */
    talk_tick_after(talk, TELL_MS);

    commit = talk_request(talk, 0)->commit; /* then */
    assert_int_equal(commit->collectives_through, 2);
    assert_int_equal(commit->n_waiting, 0);
}

TALK_TEST(a_round_that_is_over_is_told_once)
{
    struct given collectives[3];

    talk_open(talk, 1); /* given */
    for (uint64_t i = 0; i < 2; i++)
        contribute_next(talk, &collectives[i], TOKEN + 2 * i);
    hear_of(talk, TOKEN + 2);
    talk_tick_after(talk, TELL_MS);
    assert_non_null(talk_request(talk, 0)->commit);
    talk_writable(talk, 0);

    collectives[2].pushed = collectives[1].pushed;
    contribute_as(talk, &collectives[2], TOKEN + 4, false, collectives[1].pulled); /* when */

    assert_int_equal(talk_request(talk, 0)->n_parts, 1); /* then */
    assert_null(talk_request(talk, 0)->commit);
}

TALK_TEST(a_commit_names_no_more_rounds_that_wait_than_a_ps_takes)
{
    enum { most = WIRE_COMMIT_WAITING_MAX, count = 2 * (most + 2) };
    static struct given collectives[count];

    talk_open(talk, 1); /* given */
    for (uint64_t i = 0; i < count; i++) {
        contribute_next(talk, &collectives[i], TOKEN + 2 * i);
        talk_done(talk, 0, i + 1);
    }

    for (uint64_t i = 1; i < count; i += 2) /* when */
        hear_of(talk, TOKEN + 2 * i);
    talk_tick_after(talk, TELL_MS);

    const wire_commit *commit = talk_request(talk, 0)->commit; /* then */
    assert_int_equal(commit->n_waiting, most);
    for (uint64_t i = 0; i < most; i++)
        assert_int_equal(commit->waiting[i], 2 * i + 1);
    assert_int_equal(commit->collectives_through, 2 * most);
}

TALK_TEST(rows_come_with_their_indices_and_extents)
{
    talk_open(talk, 1);
    struct given given;
    wire_collective_result result = WIRE_COLLECTIVE_RESULT_INIT;
    uint64_t shape[] = {3, 2}, extents[] = {1, 2};
    static const uint8_t rows[3 * 8 + 3 * 2 * 4] = {7, [47] = 9};

    contribute_for(talk, &given, true, (struct session_piece){0});
    result.shape = shape;
    result.n_shape = 2;
    result.extents = extents;
    result.n_extents = 2;

    const struct session_effect *effect = answer_as(talk, &result, rows, sizeof rows);

    assert_int_equal(effect->error.status, SUMAC_OK);
    assert_int_equal(effect->joined.bytes, sizeof rows);
    assert_memory_equal(effect->joined.data, rows, sizeof rows);
    assert_int_equal(effect->result->n_extents, 2);
    assert_memory_equal(effect->result->extents, extents, sizeof extents);
    assert_ptr_not_equal(effect->result->extents, extents); /* which go with the answer */
    assert_memory_equal(effect->result->shape, shape, sizeof shape);
}

/* Contribute to several rounds at a time; `numbers` get their pulls' numbers. */
static void
contribute_several(struct talk *talk, struct given collectives[SEVERAL], uint64_t *numbers)
{
    const struct session_piece pushed = {
        .data = (uint8_t *)collectives->value, .bytes = sizeof collectives->value};
    uint32_t asked = 0;

    for (uint32_t i = 0; i < SEVERAL; i++) {
        collectives[i].pushed = pushed;
        contribute_as(talk, &collectives[i], TOKEN + 2 * i, true, (struct session_piece){0});
        const wire_push_request *request = talk_request(talk, 0);
        for (size_t k = 0; request != NULL && k < request->n_pulls; k++)
            numbers[asked++] = request->pulls[k]->request;
        talk_writable(talk, 0);
        request = talk_request(talk, 0);
        for (size_t k = 0; request != NULL && k < request->n_pulls; k++)
            numbers[asked++] = request->pulls[k]->request;
    }
    assert_int_equal(asked, SEVERAL);
}

TALK_TEST(several_results_in_one_answer_are_lent_together)
{
    struct given collectives[SEVERAL];
    uint64_t numbers[SEVERAL], shape = 1;
    uint8_t rows[SEVERAL][8 + 4];
    wire_collective_result result[SEVERAL];
    wire_pull_answer pulled[SEVERAL], *list[SEVERAL];
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;

    talk_open(talk, 1); /* given */
    contribute_several(talk, collectives, numbers);
    for (uint32_t i = 0; i < SEVERAL; i++) {
        memset(rows[i], (int)(1 + i), sizeof rows[i]);
        result[i] = (wire_collective_result)WIRE_COLLECTIVE_RESULT_INIT;
        result[i].data_type = (Sumac__V1__DataType)SUMAC_FLOAT32;
        result[i].shape = &shape;
        result[i].n_shape = 1;
        pulled[i] = (wire_pull_answer)WIRE_PULL_ANSWER_INIT;
        pulled[i].request = numbers[i];
        pulled[i].last = true;
        pulled[i].collective = &result[i];
        pulled[i].payload = (wire_bytes){.data = rows[i], .len = sizeof rows[i]};
        list[i] = &pulled[i];
    }
    answer.pulled = list;
    answer.n_pulled = SEVERAL;

    talk_answer(talk, 0, &answer); /* when */

    for (uint32_t i = 0; i < SEVERAL; i++) { /* then */
        const struct session_effect *effect = talk_nth(talk, SESSION_EFFECT_PULLED, i);
        assert_non_null(effect);
        assert_int_equal(effect->token, TOKEN + 2 * i + 1);
        assert_int_equal(effect->result->shape[0], shape);
        assert_int_equal(effect->joined.bytes, sizeof rows[i]);
        assert_memory_equal(effect->joined.data, rows[i], sizeof rows[i]);
    }
}

static uint64_t ones[1000] = {1, 1}, huge[] = {UINT64_MAX, 2};

static const struct wrong {
    uint64_t *shape;
    size_t rank, bytes;
    bool joins;
} wrong[] = {
    {ones, 1, 12, false}, /* longer than what it goes to */
    {ones, 1, 4, false},  /* shorter */
    {ones, 9, 8, true},   /* of nine axes, or of very many */
    {ones, 1000, 8, true}, {huge, 2, 8, true}, {ones, 0, 4, true}, /* rows of a scalar */
    {ones, 1, 16, true},   {ones, 1, 4, true},                     /* without its index */
};

TEST(a_result_that_is_not_what_it_says_touches_no_memory)
{
    static const float values[4] = {1, 2, 3, 4};

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct talk talk;
        struct given given;
        wire_collective_result result = WIRE_COLLECTIVE_RESULT_INIT;
        struct session_piece into = {
            .data = (uint8_t *)given.into, .bytes = sizeof *given.into * 2};

        talk_open(&talk, 1);
        given.into[1] = -1;
        into.bytes = wrong[i].joins ? 0 : into.bytes;
        into.data = wrong[i].joins ? NULL : into.data;
        contribute_for(&talk, &given, true, into);
        result.shape = wrong[i].shape;
        result.n_shape = wrong[i].rank;

        const struct session_effect *effect = answer_as(&talk, &result, values, wrong[i].bytes);

        assert_int_equal(effect->error.status, SUMAC_INTERNAL);
        assert_null(effect->joined.data);
        assert_true(given.into[1] == -1);
        talk_close(&talk);
    }
}

enum { BLOCK_BYTES_MAX = 4 << 20 };

static void *take_small(void *context, size_t bytes)
{
    (void)context;
    return bytes > BLOCK_BYTES_MAX ? NULL : memory_heap.take(memory_heap.context, bytes);
}

static void give_small(void *context, void *data, size_t bytes)
{
    (void)context;
    memory_heap.give(memory_heap.context, data, bytes);
}

TEST(a_result_without_memory_fails_as_such)
{
    const struct memory small = {.take = take_small, .give = give_small};
    const struct session_config config = talk_member(1);
    struct talk talk = {.now_us = 1000, .wake_us = UINT64_MAX};
    struct given given;
    uint64_t shape = BLOCK_BYTES_MAX;
    static const float values[1];
    wire_collective_result result = WIRE_COLLECTIVE_RESULT_INIT;

    talk.session = session_create(&config, &small); /* given */
    assert_non_null(talk.session);
    talk_start(&talk);
    talk_joined(&talk, 1);
    talk_hello(&talk, 0);
    talk_greet(&talk, 0);
    contribute_for(&talk, &given, true, (struct session_piece){0});
    result.shape = &shape;
    result.n_shape = 1;

    const struct session_effect *effect =
        answer_as(&talk, &result, values, sizeof values); /* when */

    assert_int_equal(effect->error.status, SUMAC_RESOURCE_EXHAUSTED); /* then */
    assert_int_equal(effect->error.reason, SUMAC_REASON_OUT_OF_MEMORY);
    talk_close(&talk);
}

/* It takes no place among the pulls of the pull stream, and gives none back. */
TALK_TEST(a_round_that_failed_beside_a_push_ends_its_pull)
{
    talk_open(talk, 1);
    struct given given;

    contribute(talk, &given, true);

    answer_beside(talk, asked_beside(talk), NULL, SUMAC_REASON_ROUND_TIMED_OUT);

    assert_int_equal(
        talk_find(talk, SESSION_EFFECT_PULLED)->error.reason, SUMAC_REASON_ROUND_TIMED_OUT);
}
