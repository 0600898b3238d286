/* SPDX-License-Identifier: Apache-2.0 */
/* session_limits.c -- what a session may take: of a ps, as its greeting says, where that is less
 * than its own bounds; and of memory. */
#include "session_talk.h"

/* A stream of the next generation whose greeting says what this ps takes. */
static void greet_from(struct talk *talk, uint32_t ps, const wire_limits *limits)
{
    talk_broke(talk, ps, SESSION_PUSH_STREAM);
    talk_hello(talk, ps);
    wire_greeting greeting = WIRE_GREETING_INIT;
    greeting.epoch = 1;
    greeting.ps_incarnation = 100 + ps;
    greeting.cluster_id = 42;
    greeting.staging_grant_bytes = GRANT;
    greeting.limits = (wire_limits *)limits;
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;
    answer.greeting = &greeting;
    talk_answer(talk, ps, &answer);
}

static void greet_with(struct talk *talk, const wire_limits *limits)
{
    greet_from(talk, 0, limits);
}

/* Of three pushes the third waits, and goes out when the first is done. */
static const wire_push_request *third_waits_for_first(struct talk *talk, const wire_limits *limits)
{
    talk_open(talk, 1);
    greet_with(talk, limits);

    for (uint64_t token = 1; token <= 3; token++)
        talk_push_out(talk, token, 1);
    assert_null(talk_sent(talk, 0));
    talk_done(talk, 0, 1);

    const wire_push_request *request = talk_request(talk, 0);
    assert_int_equal(request->parts[0]->sequence, 3);
    return request;
}

TALK_TEST(no_more_parts_are_under_way_than_the_ps_takes)
{
    wire_limits limits = WIRE_LIMITS_INIT;

    limits.parts_in_flight_max = 2;

    (void)third_waits_for_first(talk, &limits);
}

/* Each may be refused, and the ps has to remember it until it hears that we know. */
TALK_TEST(no_more_pushes_are_in_flight_than_the_ps_can_remember_as_refused)
{
    wire_limits limits = WIRE_LIMITS_INIT;

    limits.voided_max = 2;

    const wire_push_request *request = third_waits_for_first(talk, &limits);

    assert_int_equal(request->commit->acked_through, 1);
}

/* A push may be refused on any ps, so the one that remembers least binds all of them. */
TALK_TEST(the_ps_that_remembers_least_counts_whichever_greets_last)
{
    talk_open(talk, 2);
    wire_limits limits = WIRE_LIMITS_INIT;

    limits.voided_max = 2;
    greet_from(talk, 0, &limits);
    limits.voided_max = 9;
    greet_from(talk, 1, &limits);

    for (uint64_t token = 1; token <= 3; token++) {
        talk_push_out(talk, token, 1);
    }

    assert_null(talk_sent(talk, 0)); /* the third waits */
    assert_int_equal(talk_state(talk).last_sequence, 2);
}

TALK_TEST(a_part_is_cut_into_messages_that_the_ps_takes)
{
    talk_open(talk, 1);
    wire_limits limits = WIRE_LIMITS_INIT;

    limits.message_bytes_max = 512;
    greet_with(talk, &limits);
    static uint8_t data[1000];
    const struct session_piece piece = talk_piece(0, 10, data, sizeof data);

    talk_push(talk, 1, &piece, 1);

    assert_int_equal(talk_request(talk, 0)->parts[0]->pieces[0]->bytes, 256);
    assert_false(talk_request(talk, 0)->parts[0]->last);
}

/* What is left of a message takes no piece before its time, and no part that does not fit. */
TALK_TEST(a_message_takes_what_it_has_room_for_and_all_of_the_last_piece)
{
    talk_open(talk, 1);
    static uint8_t data[200];
    const struct session_piece cut[] = {talk_piece(0, 10, data, 200), talk_piece(0, 11, data, 8)};
    const uint64_t whole[] = {72, 72, 100};
    wire_limits limits = WIRE_LIMITS_INIT;

    limits.message_bytes_max = 200; /* given: chunks of 100 bytes */
    greet_with(talk, &limits);
    talk_push(talk, 1, cut, 2);
    assert_int_equal(talk_request(talk, 0)->parts[0]->n_pieces, 1);
    assert_int_equal(talk_request(talk, 0)->parts[0]->pieces[0]->bytes, 64);
    talk_writable(talk, 0);
    assert_int_equal(talk_request(talk, 0)->parts[0]->pieces[0]->offset_bytes, 64);
    talk_writable(talk, 0); /* 72 bytes and 8 */
    assert_int_equal(talk_request(talk, 0)->parts[0]->n_pieces, 2);
    assert_true(talk_request(talk, 0)->parts[0]->last);

    for (uint64_t i = 0; i < 3; i++) { /* when */
        const struct session_piece piece = talk_piece(0, 10, data, whole[i]);
        talk_push(talk, 2 + i, &piece, 1);
    }
    for (uint64_t i = 0; i < 3; i++) { /* then */
        talk_writable(talk, 0);
        assert_int_equal(talk_request(talk, 0)->n_parts, 1);
        assert_int_equal(talk_request(talk, 0)->parts[0]->sequence, 2 + i);
        assert_int_equal(talk_request(talk, 0)->parts[0]->pieces[0]->bytes, whole[i]);
    }
}

/* A ps that says a few bytes gets chunks all the same, and not one for each element. */
TALK_TEST(no_part_is_cut_smaller_than_64_bytes)
{
    talk_open(talk, 1);
    wire_limits limits = WIRE_LIMITS_INIT;

    limits.message_bytes_max = 2;
    greet_with(talk, &limits);
    static uint8_t data[1000];
    const struct session_piece piece = talk_piece(0, 10, data, sizeof data);

    talk_push(talk, 1, &piece, 1);

    assert_int_equal(talk_request(talk, 0)->parts[0]->pieces[0]->bytes, 64);
}

/* ---- memory */

static size_t budget_bytes;

static void *take_some(void *context, size_t bytes)
{
    (void)context;
    if (bytes > budget_bytes)
        return NULL;
    budget_bytes -= bytes;
    return memory_heap.take(memory_heap.context, bytes);
}

static void give_all(void *context, void *data, size_t bytes)
{
    (void)context;
    memory_heap.give(memory_heap.context, data, bytes);
}

/* Did it end in the last step for want of memory? */
static bool ended_exhausted(const struct talk *talk)
{
    const struct session_effect *end = talk_find(talk, SESSION_EFFECT_ENDED);

    return end != NULL && end->error.reason == SUMAC_REASON_OUT_OF_MEMORY;
}

/* Opened as far as memory goes. True: it has ended on the way. */
static bool open_exhausted(struct talk *talk)
{
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_START});
    bool is_over = ended_exhausted(talk);
    talk_known(talk, 0);
    is_over = is_over || ended_exhausted(talk);
    talk_joined(talk, 1);
    is_over = is_over || ended_exhausted(talk);
    talk_writable(talk, 0);
    is_over = is_over || ended_exhausted(talk);
    talk_writable(talk, 0);
    is_over = is_over || ended_exhausted(talk);
    talk_greet(talk, 0);
    return is_over || ended_exhausted(talk);
}

/* That is said once, and whoever pushes later is answered. */
TEST(a_session_without_memory_ends_and_says_so)
{
    const struct memory scarce = {.take = take_some, .give = give_all};
    const struct session_config config = talk_member(1);
    bool ended = false, refused = false, refused_later = false;

    for (size_t budget = 0; budget < 600000; budget += 3001) {
        budget_bytes = budget;
        struct talk talk = {.now_us = 1000};
        talk.session = session_create(&config, &scarce);
        if (talk.session == NULL)
            continue;
        bool is_over = open_exhausted(&talk);
        for (uint64_t n = 1; n < 200; n++) {
            talk_push_to(&talk, n, 1);
            const struct session_effect *pushed = talk_find(&talk, SESSION_EFFECT_PUSHED);
            if (is_over) {
                assert_false(ended_exhausted(&talk));
                assert_non_null(pushed);
                assert_int_equal(pushed->token, n);
                assert_int_equal(pushed->error.reason, SUMAC_REASON_OUT_OF_MEMORY);
                refused_later = true;
            }
            is_over = is_over || ended_exhausted(&talk);
            refused =
                refused || (pushed != NULL && pushed->error.reason == SUMAC_REASON_OUT_OF_MEMORY);
        }
        ended = ended || is_over;
        talk_close(&talk);
    }
    assert_true(ended);
    assert_true(refused);
    assert_true(refused_later);
}

static uint64_t takes, takes_max;
static bool once; /* that one fails alone */

static void *take_so_often(void *context, size_t bytes)
{
    const uint64_t before = takes++;

    (void)context;
    if (once ? before == takes_max : before >= takes_max)
        return NULL;
    return memory_heap.take(memory_heap.context, bytes);
}

/* What became of the push, the pull and the call of these tokens: each is answered once at most. */
struct fates {
    uint32_t answers[4];
    bool is_over;
};

/* After the step that began `token`: when the session was over before, that is refused at once. */
static void note_fates(const struct talk *talk, struct fates *fates, uint64_t token)
{
    const bool was_over = fates->is_over;

    for (uint32_t i = 0; i < talk->effects.count; i++) {
        const struct session_effect *effect = &talk->effects.items[i];
        const bool ends = effect->kind == SESSION_EFFECT_PUSHED ||
                          effect->kind == SESSION_EFFECT_PULLED ||
                          effect->kind == SESSION_EFFECT_ANSWERED;
        if (ends)
            assert_int_equal(++fates->answers[effect->token], 1);
        if (effect->kind == SESSION_EFFECT_ENDED)
            assert_false(fates->is_over);
        fates->is_over = fates->is_over || effect->kind == SESSION_EFFECT_ENDED;
        assert_true(
            effect->error.status == SUMAC_OK || effect->error.reason == SUMAC_REASON_OUT_OF_MEMORY);
    }
    if (was_over)
        assert_int_equal(fates->answers[token], 1);
}

/* A push, a pull and a call begin, as tokens 1, 2 and 3. */
static void begin_all(struct talk *talk, struct fates *fates)
{
    static uint8_t data[8];
    static const wire_list_request list = WIRE_LIST_REQUEST_INIT;
    const struct session_piece piece = talk_piece(0, 10, data, sizeof data);
    const struct session_pull pull = {.token = 2, .pieces = &piece, .piece_count = 1};
    const struct session_call call = {
        .token = 3,
        .service = WIRE_VARIABLES,
        .method = WIRE_VARIABLES_LIST,
        .request = &list.base,
        .timeout_ms = 1000};

    talk_push(talk, 1, &piece, 1);
    note_fates(talk, fates, 1);
    talk_pull(talk, &pull);
    note_fates(talk, fates, 2);
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_CALL, .wanted_call = &call});
    note_fates(talk, fates, 3);
}

/* Opened, and something begun, when that take of memory fails. True: there are more of them. */
static bool run_short(struct fates *fates)
{
    const struct memory scarce = {.take = take_so_often, .give = give_all};
    const struct session_config config = talk_member(1);
    struct talk talk = {.now_us = 1000};

    takes = 0;
    *fates = (struct fates){.is_over = false};
    talk.session = session_create(&config, &scarce);
    if (talk.session == NULL)
        return true;
    fates->is_over = open_exhausted(&talk);
    begin_all(&talk, fates);
    talk_close(&talk);
    return takes > takes_max;
}

/* Whichever take of memory is the first that fails, and whether or not it is the last: the end is
 * said once, what begins later is answered at once, and nothing twice. */
TEST(whenever_memory_is_short_the_end_is_said_once_and_what_begins_is_answered)
{
    for (int i = 0; i < 2; i++) {
        struct fates fates;
        uint32_t ended = 0, refused = 0;
        once = i == 1;
        for (takes_max = 0; run_short(&fates); takes_max++) {
            ended += fates.is_over;
            for (uint32_t token = 1; token <= 3; token++)
                refused += !fates.is_over && fates.answers[token] == 1;
        }
        assert_in_range(ended, 3, 1000);
        assert_in_range(refused, 3, 1000); /* the session goes on */
    }
}

/* Small pushes of many functions each: a message is to be unpacked in bounded memory. */
TALK_TEST(a_message_has_no_more_functions_than_its_bound)
{
    talk_open(talk, 1);

    enum { pushes = 6, functions = 256, taken = 4 };
    static wire_function function = WIRE_FUNCTION_INIT;
    static wire_function *pointers[functions];
    static uint8_t data[1];
    const struct session_piece piece = talk_piece(0, 10, data, 1);

    for (uint32_t i = 0; i < functions; i++)
        pointers[i] = &function;
    for (uint64_t token = 1; token <= 1 + pushes; token++) {
        const struct session_push push = {
            .token = token,
            .pieces = &piece,
            .piece_count = 1,
            .functions = pointers,
            .function_count = functions,
            .weight = 1};
        talk_step(talk, (struct session_event){.kind = SESSION_EVENT_PUSH, .push = &push});
    }
    talk_writable(talk, 0); /* the first went out alone */

    assert_int_equal(talk_request(talk, 0)->n_parts, taken);
    talk_writable(talk, 0);
    assert_int_equal(talk_request(talk, 0)->n_parts, pushes - taken);
}

/* The answer to a join of ps_count ps, with that many bytes of session id and that lease: how it
 * ends. */
static struct sumac_error joined_with(size_t id_bytes, size_t ps_count, uint32_t lease_ms)
{
    static uint8_t id[17];
    static char *addresses[SESSION_PS_MAX + 1];
    struct talk talk;
    const struct session_config config = talk_member(1);
    wire_join_reply reply = WIRE_JOIN_REPLY_INIT;

    talk_config(&talk, &config);
    talk_start(&talk);
    for (size_t ps = 0; ps < ps_count; ps++)
        addresses[ps] = "h0:2222";
    reply.session_id = (wire_bytes){.data = id, .len = id_bytes};
    reply.n_ps_addresses = ps_count;
    reply.ps_addresses = addresses;
    reply.lease_ms = lease_ms;

    talk_called_back(&talk, WIRE_SESSIONS_JOIN, &reply.base);

    const struct session_effect *ended = talk_find(&talk, SESSION_EFFECT_ENDED);
    const struct sumac_error error =
        ended == NULL ? (struct sumac_error){.status = SUMAC_OK} : ended->error;
    assert_int_equal(talk_find(&talk, SESSION_EFFECT_JOINED) != NULL, ended == NULL);
    talk_close(&talk);
    return error;
}

TEST(an_answer_to_a_join_that_no_session_can_have_ends_it)
{
    static const struct {
        size_t id_bytes, ps_count;
        uint32_t lease_ms;
        const char *told;
    } rows[] = {
        {15, 1, 9000, "15 bytes of session id, 1 ps and a lease of 9000 ms"},
        {17, 1, 9000, "17 bytes of session id, 1 ps and a lease of 9000 ms"},
        {16, 0, 9000, "16 bytes of session id, 0 ps and a lease of 9000 ms"},
        {16, SESSION_PS_MAX + 1, 9000, "16 bytes of session id, 257 ps and a lease of 9000 ms"},
        {16, 1, 0, "16 bytes of session id, 1 ps and a lease of 0 ms"}, /* renewed without end */
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct sumac_error error =
            joined_with(rows[i].id_bytes, rows[i].ps_count, rows[i].lease_ms);
        static const char before[] = "ps 0 answered the join with ";
        assert_int_equal(error.status, SUMAC_INTERNAL);
        assert_int_equal(error.reason, SUMAC_REASON_MALFORMED);
        assert_memory_equal(error.text, before, strlen(before));
        assert_string_equal(error.text + strlen(before), rows[i].told);
    }
    assert_int_equal(joined_with(16, SESSION_PS_MAX, 1).status, SUMAC_OK);
}
