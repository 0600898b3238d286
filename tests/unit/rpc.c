/* SPDX-License-Identifier: Apache-2.0 */
/* What lib/rpc promises both ends of a call: statuses, deadlines, bounds, the order in which a
 * server ends. */
#include "call.h"
#include "text.h"
#include "unit/rpc_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

RPC_TEST(a_unary_call_is_answered_and_ends_with_ok)
{
    begin_stats(fixture, 0); /* when */
    poll_until(fixture, &fixture->client.closed, 1);
    assert_int_equal(fixture->client.error.status, SUMAC_OK); /* then */
    assert_int_equal(fixture->client.messages, 1);
    assert_int_equal(fixture->client.sequence, 7);
    poll_until(fixture, &fixture->at_server.closed, 1);
    assert_int_equal(fixture->at_server.error.status, SUMAC_OK);
    assert_int_equal(rpc_server_calls(fixture->server), 0);
}

RPC_TEST(a_stream_carries_payloads_over_many_slices_both_ways)
{
    struct rpc_call *call = begin_stream(fixture, WIRE_TRANSFER_PULL);
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;

    for (unsigned i = 1; i <= 5; i++) { /* when */
        request.request = i;
        rpc_call_send(call, &request.base, NULL, 0);
        poll_until(fixture, &fixture->client.messages, i);
        poll_until(fixture, &fixture->client.writable, i);
        poll_until(fixture, &fixture->at_server.writable, i); /* it answers without asking */
        assert_int_equal(fixture->client.sequence, i);        /* then */
        assert_int_equal(fixture->client.payload_bytes, 200100);
        for (size_t j = 0; j < 200100; j++)
            assert_int_equal(fixture->client.payload[j], j % 251);
    }
    rpc_call_end(call);
    poll_until(fixture, &fixture->client.closed, 1);
    assert_int_equal(__atomic_load_n(&fixture->released, __ATOMIC_SEQ_CST), 5);
}

RPC_TEST(a_status_arrives_with_its_reason_and_text)
{
    struct rpc_call *call = begin_stream(fixture, WIRE_TRANSFER_PUSH);

    rpc_call_end(call); /* when: the server's handler answers the half-close with a status */
    poll_until(fixture, &fixture->client.closed, 1);
    assert_int_equal(fixture->at_server.half_closed, 1); /* then */
    assert_int_equal(fixture->client.error.status, SUMAC_FAILED_PRECONDITION);
    assert_int_equal(fixture->client.error.reason, SUMAC_REASON_RUN_ENDED);
    assert_string_equal(fixture->client.error.text, "the run is over");
}

/* In time to come, and in the last fifth of a second. */
static uint64_t late_in_a_second(uint64_t from_us)
{
    const uint64_t late_us = from_us / 1000000 * 1000000 + 900000;

    return late_us >= from_us ? late_us : late_us + 1000000;
}

/* A busy machine may let a short deadline pass before the server has the call: then a longer one is
 * tried. gRPC rounds to a millisecond. */
RPC_TEST(a_deadline_ends_a_call_at_both_ends)
{
    fixture->parks = true;
    unsigned calls = 0;
    for (uint64_t us = 50000; fixture->at_server.messages == 0 && us < PATIENCE_US; us *= 2) {
        const uint64_t until_us = late_in_a_second(now_us() + us);
        begin_stats(fixture, until_us);
        poll_until(fixture, &fixture->client.closed, ++calls);
        assert_int_equal(fixture->client.error.status, SUMAC_DEADLINE_EXCEEDED);
        assert_true(now_us() + 2000 >= until_us); /* and not before */
    }
    poll_until(fixture, &fixture->at_server.closed, 1);
    assert_int_equal(fixture->at_server.error.status, SUMAC_CANCELLED);
}

RPC_TEST(a_cancelled_stream_is_closed_at_both_ends)
{
    struct rpc_call *call = begin_stream(fixture, WIRE_TRANSFER_PUSH);

    poll_until(fixture, &fixture->at_server.opened, 1);
    rpc_call_cancel(call);
    poll_until(fixture, &fixture->client.closed, 1);
    poll_until(fixture, &fixture->at_server.closed, 1);
    assert_int_equal(fixture->client.error.status, SUMAC_CANCELLED);
    assert_int_equal(fixture->at_server.error.status, SUMAC_CANCELLED);
    assert_int_equal(fixture->at_server.half_closed, 0);
}

RPC_TEST(a_server_can_cancel_a_stream)
{
    begin_stream(fixture, WIRE_TRANSFER_PUSH);
    poll_until(fixture, &fixture->at_server.opened, 1);
    rpc_call_cancel(fixture->parked);
    poll_until(fixture, &fixture->client.closed, 1);
    poll_until(fixture, &fixture->at_server.closed, 1);
    assert_int_not_equal(fixture->client.error.status, SUMAC_OK);
}

RPC_TEST(closing_a_channel_closes_its_calls)
{
    begin_stream(fixture, WIRE_TRANSFER_PUSH);
    begin_stream(fixture, WIRE_TRANSFER_PULL);
    rpc_channel_close(fixture->channel);
    fixture->channel = NULL;
    poll_until(fixture, &fixture->client.closed, 2);
    assert_int_equal(fixture->client.error.status, SUMAC_CANCELLED);
}

/* However often: there is always a place for the next one. */
RPC_TEST(an_unknown_method_is_unimplemented_and_named)
{
    const wire_list_request request = WIRE_LIST_REQUEST_INIT;
    const struct rpc_start unknown = {
        .service = WIRE_VARIABLES, /* which this server was not given */
        .method = WIRE_VARIABLES_LIST,
        .message = &request.base,
        .wait_for_ready = true,
        .handler = &client_handler,
        .user = fixture};
    struct rpc_call *call;

    for (unsigned i = 1; i <= 20; i++) {
        assert_int_equal(rpc_channel_call(fixture->channel, &unknown, &call), SUMAC_OK);
        poll_until(fixture, &fixture->client.closed, i);
        assert_int_equal(fixture->client.error.status, SUMAC_UNIMPLEMENTED);
        assert_int_equal(fixture->client.error.reason, SUMAC_REASON_UNSUPPORTED);
        assert_non_null(strstr(fixture->client.error.text, "/sumac.v1.Variables/List"));
    }
}

RPC_TEST(an_absent_server_is_said_at_once)
{
    struct rpc_channel *channel;
    char target[64];
    const uint32_t port = rpc_server_port(fixture->server);

    snprintf(target, sizeof target, "127.0.0.1:%u", port);
    rpc_server_close(fixture->server);
    fixture->server = NULL;
    assert_int_equal(rpc_channel_open(fixture->poller, target, &channel), SUMAC_OK);
    (void)begin_stats_on(channel, (struct rpc_start){.handler = &client_handler, .user = fixture});
    poll_until(fixture, &fixture->client.closed, 1);
    assert_int_equal(fixture->client.error.status, SUMAC_UNAVAILABLE);
    rpc_channel_close(channel);
}

/* A service under the real name whose types are others: how a foreign or broken client would look.
 */
static struct rpc_call *begin_foreign(
    struct fixture *fixture, const wire_service *real, wire_service *service,
    ProtobufCMethodDescriptor *method, const wire_message *message)
{
    struct rpc_call *call;

    *service = *real;
    service->methods = method;
    service->n_methods = 1;
    assert_int_equal(
        rpc_channel_call(
            fixture->channel,
            &(struct rpc_start){
                .service = service,
                .message = message,
                .wait_for_ready = true,
                .handler = &client_handler,
                .user = fixture},
            &call),
        SUMAC_OK);
    return call;
}

RPC_TEST(a_malformed_message_is_an_invalid_argument)
{
    wire_service service;
    ProtobufCMethodDescriptor method = WIRE_TRANSFER->methods[WIRE_TRANSFER_PUSH];

    method.input = &sumac__v1__delete_request__descriptor;
    struct rpc_call *call = begin_foreign(fixture, WIRE_TRANSFER, &service, &method, NULL);
    poll_until(fixture, &fixture->client.opened, 1);
    wire_delete_request request = WIRE_DELETE_REQUEST_INIT;
    uint8_t no_hello[] = {0x08, 0xff}; /* a varint without its end */
    request.session_id = (wire_bytes){.len = sizeof no_hello, .data = no_hello};
    rpc_call_send(call, &request.base, NULL, 0); /* when */
    poll_until(fixture, &fixture->client.closed, 1);
    assert_int_equal(fixture->client.error.status, SUMAC_INVALID_ARGUMENT); /* then */
    assert_int_equal(fixture->client.error.reason, SUMAC_REASON_MALFORMED);
    assert_non_null(strstr(fixture->client.error.text, "malformed sumac.v1.PushRequest"));
    assert_int_equal(fixture->at_server.messages, 0);
}

RPC_TEST(a_malformed_answer_ends_the_call_with_internal)
{
    wire_service service;
    ProtobufCMethodDescriptor method = WIRE_OBSERVE->methods[WIRE_OBSERVE_STATS];

    method.output = &sumac__v1__push_request__descriptor; /* its fields are messages */
    wire_stats_request request = WIRE_STATS_REQUEST_INIT;
    begin_foreign(fixture, WIRE_OBSERVE, &service, &method, &request.base);
    poll_until(fixture, &fixture->client.closed, 1);
    assert_int_equal(fixture->client.error.status, SUMAC_INTERNAL);
    assert_int_equal(fixture->client.error.reason, SUMAC_REASON_MALFORMED);
    assert_int_equal(fixture->client.messages, 0);
}

/* Its stream is cancelled, which is not what its user is told. */
RPC_TEST(a_malformed_answer_on_a_stream_ends_it_with_internal)
{
    wire_service service;
    ProtobufCMethodDescriptor method = WIRE_TRANSFER->methods[WIRE_TRANSFER_PUSH];
    const wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    const struct rpc_payload payload = {.bytes = {(const uint8_t *)"12345", 5}};

    method.output = &sumac__v1__peer_order__descriptor; /* its field 9 is a message */
    struct rpc_call *call = begin_foreign(fixture, WIRE_TRANSFER, &service, &method, NULL);
    poll_until(fixture, &fixture->client.opened, 1);
    rpc_call_send(call, &request.base, NULL, 0);
    poll_until(fixture, &fixture->client.messages, 1); /* an empty answer is any message */
    poll_until(fixture, &fixture->client.writable, 1);
    poll_until(fixture, &fixture->at_server.writable, 1); /* it answers only when it may */

    rpc_call_send(call, &request.base, &payload, 1); /* when: this one says how many bytes came */

    poll_until(fixture, &fixture->client.closed, 1); /* then */
    assert_int_equal(fixture->client.error.status, SUMAC_INTERNAL);
    assert_int_equal(fixture->client.error.reason, SUMAC_REASON_MALFORMED);
    assert_int_equal(fixture->client.messages, 1);
    poll_until(fixture, &fixture->at_server.closed, 1);
}

RPC_TEST(a_message_above_the_bound_is_refused)
{
    struct rpc_call *call = begin_stream(fixture, WIRE_TRANSFER_PUSH);
    const size_t bytes = 5u << 20;
    uint8_t *values = calloc(1, bytes);
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    const struct rpc_payload payload = {.bytes = {values, bytes}};

    rpc_call_send(call, &request.base, &payload, 1);
    free(values); /* it was copied */
    poll_until(fixture, &fixture->client.closed, 1);
    assert_int_equal(fixture->client.error.status, SUMAC_RESOURCE_EXHAUSTED);
    assert_int_equal(fixture->at_server.messages, 0);
}

RPC_TEST(a_small_payload_is_released_before_the_send_returns)
{
    struct rpc_call *call = begin_stream(fixture, WIRE_TRANSFER_PUSH);
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    uint8_t value[4] = {1, 2, 3, 4};
    const struct rpc_payload payload = {
        .bytes = {value, sizeof value}, .released = release, .context = fixture};

    rpc_call_send(call, &request.base, &payload, 1);
    assert_int_equal(fixture->released, 1);
    memset(value, 0, sizeof value);
    poll_until(fixture, &fixture->at_server.messages, 1);
    assert_int_equal(fixture->at_server.payload_bytes, 4);
    assert_int_equal(fixture->at_server.payload[3], 4);
}

/* As long as one that is copied may be, and longer ones between. */
RPC_TEST(payloads_that_are_copied_and_that_are_not_arrive_in_order)
{
    static uint8_t values[40000];
    struct rpc_call *call = begin_stream(fixture, WIRE_TRANSFER_PUSH);
    const wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    const struct rpc_payload payload[] = {
        {.bytes = {values, 7}},
        {.bytes = {values + 7, 9000}, .released = release, .context = fixture},
        {.bytes = {values + 9007, RPC_COPIED_BYTES_MAX}, .released = release, .context = fixture},
        {.bytes = {values + 9007 + RPC_COPIED_BYTES_MAX, 20000},
         .released = release,
         .context = fixture}};

    for (size_t i = 0; i < sizeof values; i++)
        values[i] = (uint8_t)(i % 251);
    rpc_call_send(call, &request.base, payload, 4);
    assert_true(fixture->released > 0); /* what was copied is free */
    poll_until(fixture, &fixture->at_server.messages, 1);

    assert_int_equal(fixture->at_server.payload_bytes, 29007 + RPC_COPIED_BYTES_MAX);
    assert_memory_equal(
        fixture->at_server.payload, values, (size_t)fixture->at_server.payload_bytes);
    poll_until(fixture, &fixture->released, 3);
}

static bool is_scarce;

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);

void *__wrap_malloc(size_t bytes) { return is_scarce ? NULL : __real_malloc(bytes); }

/* Then it is copied, as a small one is. */
RPC_TEST(a_payload_that_there_is_no_memory_to_lend_is_released_at_once)
{
    static uint8_t values[20000];
    struct rpc_call *call = begin_stream(fixture, WIRE_TRANSFER_PUSH);
    const wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    const struct rpc_payload payload = {
        .bytes = {values, sizeof values}, .released = release, .context = fixture};

    memset(values, 7, sizeof values);
    is_scarce = true; /* given */
    rpc_call_send(call, &request.base, &payload, 1);
    is_scarce = false;
    assert_int_equal(fixture->released, 1);
    memset(values, 0, sizeof values); /* when */
    poll_until(fixture, &fixture->at_server.messages, 1);

    assert_int_equal(fixture->at_server.payload_bytes, sizeof values); /* then */
    assert_int_equal(fixture->at_server.payload[sizeof values - 1], 7);
}

/* A stream whose first message its handler has paused, and whose second is held. */
static struct rpc_call *begin_paused(struct fixture *fixture, struct rpc_call **served)
{
    const unsigned messages = fixture->at_server.messages, writable = fixture->client.writable;
    const unsigned opened = fixture->at_server.opened;
    const wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    struct rpc_call *const call = begin_stream(fixture, WIRE_TRANSFER_PUSH);

    poll_until(fixture, &fixture->at_server.opened, opened + 1);
    *served = fixture->parked;
    rpc_call_send(call, &request.base, NULL, 0);
    poll_until(fixture, &fixture->at_server.messages, messages + 1);
    poll_until(fixture, &fixture->client.writable, writable + 1);
    rpc_call_send(call, &request.base, NULL, 0);
    poll_until(fixture, &fixture->client.writable, writable + 2);
    return call;
}

RPC_TEST(streams_that_are_resumed_together_all_go_on)
{
    const wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    struct rpc_call *calls[2], *at_server[2];

    fixture->parks = true;
    for (int i = 0; i < 2; i++)
        calls[i] = begin_paused(fixture, &at_server[i]);
    begin_stats(fixture, 0); /* behind both, so that they have come */
    poll_until(fixture, &fixture->at_server.messages, 3);

    for (int i = 0; i < 2; i++) /* each has its second, is paused again, and answers neither */
        rpc_call_resume(at_server[i]);
    assert_int_equal(fixture->at_server.messages, 5);
    fixture->parks = false;
    for (int i = 0; i < 2; i++) {
        rpc_call_resume(at_server[i]);
        rpc_call_send(calls[i], &request.base, NULL, 0);
    }

    poll_until(fixture, &fixture->at_server.messages, 7);
}

RPC_TEST(a_paused_stream_hands_over_nothing_until_it_is_resumed)
{
    fixture->parks = true;
    struct rpc_call *call = begin_stream(fixture, WIRE_TRANSFER_PUSH);
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    rpc_call_send(call, &request.base, NULL, 0);
    poll_until(fixture, &fixture->at_server.messages, 1); /* given: its handler paused it */
    struct rpc_call *stream = fixture->parked;
    poll_until(fixture, &fixture->client.writable, 1);
    rpc_call_send(call, &request.base, NULL, 0);
    poll_until(fixture, &fixture->client.writable, 2);
    fixture->parks = false; /* a unary call goes through behind it, on the same connection */
    begin_stats(fixture, 0);
    poll_until(fixture, &fixture->client.closed, 1);
    assert_int_equal(fixture->at_server.messages, 2);     /* the first, and the unary call's */
    rpc_call_resume(stream);                              /* when */
    poll_until(fixture, &fixture->at_server.messages, 3); /* then */
}

/* Given: two messages of a stream are there. When the first has been handled, listening looks at
 * the network and not at the second. */
RPC_TEST(who_listens_is_handed_nothing_that_was_not_asked_for)
{
    const wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    struct rpc_call *at_server;

    fixture->parks = true;
    struct rpc_call *call = begin_paused(fixture, &at_server);
    rpc_call_send(call, &request.base, NULL, 0);
    poll_until(fixture, &fixture->client.writable, 3);
    begin_stats(fixture, 0); /* behind them */
    poll_until(fixture, &fixture->at_server.messages, 2);
    fixture->parks = false;
    rpc_call_resume(at_server);
    poll_until(fixture, &fixture->at_server.messages, 3);

    for (int i = 0; i < 100; i++)
        (void)rpc_listen(fixture->poller);

    assert_int_equal(fixture->at_server.messages, 3);
    poll_until(fixture, &fixture->at_server.messages, 4);
}

RPC_TEST(a_second_server_on_a_port_is_refused_and_told_which)
{
    struct rpc_server *second = NULL;
    struct sumac_error error;
    const struct rpc_server_options options = {
        .bind_host = "127.0.0.1", .port = rpc_server_port(fixture->server)};
    char address[64];

    snprintf(address, sizeof address, "127.0.0.1:%u", options.port);
    assert_int_equal(
        rpc_server_open(fixture->poller, &options, &second, &error), SUMAC_UNAVAILABLE);
    assert_null(second);
    assert_non_null(strstr(error.text, address));
}

RPC_TEST(a_method_that_the_descriptor_set_lacks_is_not_served)
{
    struct rpc_server *server;
    struct sumac_error error;
    const struct rpc_server_options options = {.bind_host = "127.0.0.1"};

    assert_int_equal(rpc_server_open(fixture->poller, &options, &server, &error), SUMAC_OK);
    ProtobufCMethodDescriptor method = WIRE_OBSERVE->methods[0];
    method.name = "Invent";
    wire_service service = *WIRE_OBSERVE;
    service.methods = &method;
    assert_int_equal(
        rpc_server_add(server, &service, observe_handlers, fixture, &error),
        SUMAC_FAILED_PRECONDITION);
    assert_non_null(strstr(error.text, "sumac.v1.Observe/Invent"));
    rpc_server_close(server);
}

RPC_TEST(a_draining_server_finishes_what_it_has_and_takes_nothing_new)
{
    fixture->parks = true;
    begin_stats(fixture, 0); /* given: a call in flight */
    poll_until(fixture, &fixture->at_server.messages, 1);
    rpc_server_drain(fixture->server); /* when */
    assert_int_equal(rpc_server_calls(fixture->server), 1);
    wire_stats_reply reply = WIRE_STATS_REPLY_INIT;
    reply.ps = 9;
    rpc_call_send(fixture->parked, &reply.base, NULL, 0);
    poll_until(fixture, &fixture->client.closed, 1);
    assert_int_equal(fixture->client.error.status, SUMAC_OK); /* then */
    assert_int_equal(fixture->client.sequence, 9);
    poll_until(fixture, &fixture->at_server.closed, 1);
    assert_int_equal(rpc_server_calls(fixture->server), 0);
    (void)begin_stats_on(
        fixture->channel, (struct rpc_start){.handler = &client_handler, .user = fixture});
    poll_until(fixture, &fixture->client.closed, 2);
    assert_int_equal(fixture->client.error.status, SUMAC_UNAVAILABLE);
}

/* It may have been sent before its client could know. */
RPC_TEST(what_comes_after_a_stream_was_ended_is_not_handled)
{
    struct rpc_call *call = begin_stream(fixture, WIRE_TRANSFER_PUSH);
    const wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    poll_until(fixture, &fixture->at_server.opened, 1);
    rpc_call_send(call, &request.base, NULL, 0);
    rpc_call_finish(fixture->parked, SUMAC_ABORTED, SUMAC_REASON_BUSY, "enough");

    poll_until(fixture, &fixture->client.closed, 1);
    poll_until(fixture, &fixture->at_server.closed, 1);
    assert_int_equal(fixture->client.error.reason, SUMAC_REASON_BUSY);
    assert_int_equal(fixture->at_server.messages, 0);
}

static char ps0_address[64]; /* of the last call that closed; empty: its status had none */

static void note_ps0_address(struct rpc_call *call, const struct sumac_error *error)
{
    ps0_address[0] = '\0';
    for (size_t i = 0; i < call->trailing.count; i++) {
        const grpc_slice value = call->trailing.metadata[i].value;
        if (grpc_slice_str_cmp(call->trailing.metadata[i].key, PS0_ADDRESS_KEY) == 0)
            (void)text_print(
                ps0_address, sizeof ps0_address, "%.*s", (int)GRPC_SLICE_LENGTH(value),
                (const char *)GRPC_SLICE_START_PTR(value));
    }
    client_closed(call, error);
}

static void refuse_and_name_ps_0(struct fixture *fixture, const char *address)
{
    static const struct rpc_handler handler = {.closed = note_ps0_address};
    const unsigned calls = fixture->at_server.messages, closed = fixture->client.closed;

    fixture->parks = true;
    (void)begin_stats_on(
        fixture->channel,
        (struct rpc_start){.wait_for_ready = true, .handler = &handler, .user = fixture});
    poll_until(fixture, &fixture->at_server.messages, calls + 1);
    rpc_call_set_ps0_address(fixture->parked, address);
    rpc_call_finish(
        fixture->parked, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_NOT_CONTROLLER, "ask ps 0");
    poll_until(fixture, &fixture->client.closed, closed + 1);
    poll_until(fixture, &fixture->at_server.closed, closed + 1);
}

RPC_TEST(a_status_carries_the_address_of_ps_0_beside_its_reason)
{
    refuse_and_name_ps_0(fixture, "ps0.training:2222");

    assert_string_equal(ps0_address, "ps0.training:2222");
    assert_int_equal(fixture->client.error.reason, SUMAC_REASON_NOT_CONTROLLER);
}

RPC_TEST(an_address_that_metadata_cannot_carry_is_left_out)
{
    refuse_and_name_ps_0(
        fixture, "b\xc3\xbc"
                 "cher:2222");
    assert_string_equal(ps0_address, "");
    assert_int_equal(fixture->client.error.reason, SUMAC_REASON_NOT_CONTROLLER);

    refuse_and_name_ps_0(fixture, "h0:1\n");
    assert_string_equal(ps0_address, "");
    assert_string_equal(fixture->client.error.text, "ask ps 0");
}

/* Whoever finds nobody there goes elsewhere; whoever was let in would wait in vain. */
RPC_TEST(a_draining_server_lets_nobody_in)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    const int late = socket(AF_INET, SOCK_STREAM, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)rpc_server_port(fixture->server));

    rpc_server_drain(fixture->server);

    assert_int_not_equal(connect(late, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(errno, ECONNREFUSED);
    close(late);
}

/* Its messages may all have been none. */
RPC_TEST(a_stream_that_is_ended_before_it_is_open_is_half_closed_when_it_is)
{
    struct rpc_call *call;

    assert_int_equal(
        rpc_channel_call(
            fixture->channel,
            &(struct rpc_start){
                .service = WIRE_TRANSFER,
                .method = WIRE_TRANSFER_PUSH,
                .wait_for_ready = true,
                .handler = &client_handler,
                .user = fixture},
            &call),
        SUMAC_OK);
    rpc_call_end(call);

    poll_until(fixture, &fixture->at_server.half_closed, 1);
    poll_until(fixture, &fixture->client.closed, 1);
    assert_int_equal(fixture->client.error.reason, SUMAC_REASON_RUN_ENDED);
}

RPC_TEST(a_service_has_no_method_behind_its_last)
{
    const wire_stats_request request = WIRE_STATS_REQUEST_INIT;
    struct rpc_call *call;

    assert_int_equal(
        rpc_channel_call(
            fixture->channel,
            &(struct rpc_start){
                .service = WIRE_OBSERVE,
                .method = WIRE_OBSERVE->n_methods,
                .message = &request.base,
                .handler = &client_handler,
                .user = fixture},
            &call),
        SUMAC_UNIMPLEMENTED);
}

/* A long list is longer than what a client of gRPC takes where nothing is said. */
RPC_TEST(an_answer_may_have_many_megabytes)
{
    const size_t bytes = 6u << 20;
    uint8_t *const values = calloc(1, bytes);
    struct rpc_call *const call = begin_stream(fixture, WIRE_TRANSFER_PULL);
    const wire_pull_answer answer = WIRE_PULL_ANSWER_INIT;
    const struct rpc_payload payload = {
        .bytes = {values, bytes}, .released = release, .context = fixture};

    assert_non_null(values);
    poll_until(fixture, &fixture->at_server.opened, 1);
    rpc_call_send(fixture->parked, &answer.base, &payload, 1);
    poll_until(fixture, &fixture->client.messages, 1);

    assert_int_equal(fixture->client.payload_bytes, bytes);
    rpc_call_cancel(call);
    poll_until(fixture, &fixture->at_server.closed, 1);
    poll_until(fixture, &fixture->released, 1);
    free(values);
}

RPC_TEST(who_waits_for_nothing_waits_as_long_as_it_wants_to)
{
    for (uint64_t ms = 1; ms <= 20; ms += 19) {
        const uint64_t until_us = now_us() + ms * 1000;
        assert_int_equal(rpc_poll(fixture->poller, until_us), RPC_POLLED_NOTHING);
        assert_true(now_us() >= until_us);
    }
}

RPC_TEST(closing_a_server_cancels_the_calls_that_are_left)
{
    begin_stream(fixture, WIRE_TRANSFER_PUSH);
    poll_until(fixture, &fixture->at_server.opened, 1);
    rpc_server_close(fixture->server);
    fixture->server = NULL;
    assert_int_equal(fixture->at_server.closed, 1);
    poll_until(fixture, &fixture->client.closed, 1);
    assert_int_equal(fixture->client.error.status, SUMAC_UNAVAILABLE);
}
