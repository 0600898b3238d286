/* lane_bounds.c -- every bound of a lane is reached, and said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lane_state.h"
#include "lane_talk.h"

#define VARIABLE 5u

static const float one[] = {1};

static uint64_t begin(struct talk *talk)
{
    struct lane_config config = talk_config();

    config.staging_bytes_max = 1u << 20;
    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_variable(talk, VARIABLE, 1, UPDATE_ASSIGN_ADD);
    const uint64_t stream = talk_push_stream(talk, 1, 1);
    talk_forget(talk);
    return stream;
}

static void send(struct talk *talk, uint64_t stream, uint64_t sequence, uint64_t previous)
{
    const struct talk_part part = {
        .sequence = sequence,
        .previous = previous,
        .shard = VARIABLE,
        .shards = 1,
        .values = one,
        .count = 1};

    talk_part(talk, stream, &part);
}

static void a_session_has_so_many_parts_that_are_not_done(void **state)
{
    struct talk *const talk = *state;
    const uint64_t stream = begin(talk);
    for (uint64_t sequence = 1; sequence <= PARTS_PER_SESSION_MAX; sequence++)
        send(talk, stream, sequence, sequence - 1);
    talk_forget(talk);

    send(talk, stream, PARTS_PER_SESSION_MAX + 1, PARTS_PER_SESSION_MAX);

    talk_expect(talk, "end of stream UNSPECIFIED\n");
}

static void a_session_has_so_many_voided_pushes(void **state)
{
    struct talk *const talk = *state;
    const uint64_t stream = begin(talk);
    for (uint64_t sequence = 1; sequence <= VOIDED_PER_SESSION_MAX; sequence++)
        talk_commit(talk, stream, 0, sequence, 0);
    talk_expect(talk, "");

    talk_commit(talk, stream, 0, VOIDED_PER_SESSION_MAX + 1, 0);

    talk_expect(talk, "end of stream UNSPECIFIED\n");
}

static void a_stream_has_so_many_answers_that_are_not_read(void **state)
{
    struct talk *const talk = *state;
    const uint64_t stream = begin(talk);
    send(talk, stream, 1, 0);
    talk->deaf = stream;
    for (uint32_t i = 0; i <= ANSWERS_PER_STREAM_MAX; i++)
        send(talk, stream, 1, 0); /* the first of them is written */
    talk_forget(talk);

    send(talk, stream, 1, 0);

    talk_expect(talk, "end of stream UNSPECIFIED\n");
}

static uint32_t count_refused(const struct talk *talk)
{
    uint32_t count = 0;

    for (const char *at = talk->text; (at = strstr(at, "refused ")) != NULL; at++)
        count++;
    return count;
}

/* A client takes messages of a few megabytes: answers with long texts go out in several. */
static void answers_that_fill_a_message_go_on_in_the_next(void **state)
{
    struct talk *const talk = *state;
    const uint64_t stream = begin(talk);
    const struct talk_part nobody = {.shard = 4711, .shards = 1, .values = one, .count = 1};
    const uint32_t parts = 1000, refusals = 2 * parts;
    talk->deaf = stream;
    for (uint32_t i = 0; i < refusals; i++) { /* each is sent twice, and refused twice */
        struct talk_part part = nobody;
        part.sequence = i % parts + 1;
        part.previous = i % parts;
        talk_part(talk, stream, &part);
    }
    const uint32_t first = count_refused(talk); /* the first of them was written at once */
    talk_forget(talk);

    talk_writable(talk, stream);
    const uint32_t second = count_refused(talk);
    talk_forget(talk);
    talk_writable(talk, stream);

    assert_int_equal(first, 1);
    assert_true(second < refusals - 1);
    assert_int_equal(first + second + count_refused(talk), refusals);
}

static void a_stream_has_so_many_pulls(void **state)
{
    struct talk *const talk = *state;
    (void)begin(talk);
    const uint64_t stream = talk_pull_stream(talk, 1);
    talk_forget(talk);
    for (uint64_t round = 0; round < 2; round++) { /* those that are cancelled do not count */
        for (uint64_t request = 1; request <= PULLS_PER_STREAM_MAX; request++)
            talk_pull(talk, stream, request, VARIABLE, 1, 1);
        for (uint64_t request = 1; round == 0 && request <= PULLS_PER_STREAM_MAX; request++)
            talk_cancel(talk, stream, request);
    }
    talk_expect(talk, "");

    talk_pull(talk, stream, PULLS_PER_STREAM_MAX + 1, VARIABLE, 1, 1);

    talk_expect(talk, "end of stream UNSPECIFIED\n");
}

static void a_part_names_so_many_functions(void **state)
{
    struct talk *const talk = *state;
    const uint64_t stream = begin(talk);
    wire_function function = WIRE_FUNCTION_INIT;
    wire_function *functions[FUNCTIONS_PER_PART_MAX + 1];
    wire_part header = WIRE_PART_INIT;
    wire_part *parts[] = {&header};
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    function.function = SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_SGD;
    for (uint32_t i = 0; i <= FUNCTIONS_PER_PART_MAX; i++)
        functions[i] = &function;
    header.sequence = 1;
    header.first = header.last = true;
    header.functions = functions;
    header.n_functions = FUNCTIONS_PER_PART_MAX + 1;
    request.parts = parts;
    request.n_parts = 1;

    talk_push(talk, stream, &request, NULL, 0);

    talk_expect(talk, "refused 1 TOO_MANY_PIECES\n");
}

/* A session with an id of its own, opened, closed and decided. */
static void come_and_go(struct talk *talk, uint32_t number)
{
    uint8_t id[16] = {0xFF};
    wire_open_session open = WIRE_OPEN_SESSION_INIT;
    wire_decide_session decide = WIRE_DECIDE_SESSION_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;

    memcpy(id + 4, &number, sizeof number);
    open.session_id = decide.session_id = (wire_bytes){.len = sizeof id, .data = id};
    order.open = &open;
    talk_order(talk, &order);
    order.open = NULL;
    order.decide = &decide;
    talk_order(talk, &order);
    talk_forget(talk);
}

static void a_ps_remembers_so_many_closed_sessions(void **state)
{
    struct talk *const talk = *state;
    (void)begin(talk);
    talk_close(talk, 1);
    talk_decide(talk, 1, 0, 0);
    for (uint32_t i = 1; i < CLOSED_SESSIONS_MAX; i++)
        come_and_go(talk, i);
    (void)talk_push_stream(talk, 1, 2);
    talk_expect(talk, "end of stream UNSPECIFIED\ngreeting\nclosed 0\n");

    come_and_go(talk, CLOSED_SESSIONS_MAX);

    (void)talk_push_stream(talk, 1, 3);
    talk_expect(talk, "greeting\nrejoin\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        talk_test(a_session_has_so_many_parts_that_are_not_done),
        talk_test(a_session_has_so_many_voided_pushes),
        talk_test(a_stream_has_so_many_answers_that_are_not_read),
        talk_test(answers_that_fill_a_message_go_on_in_the_next),
        talk_test(a_stream_has_so_many_pulls),
        talk_test(a_part_names_so_many_functions),
        talk_test(a_ps_remembers_so_many_closed_sessions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
