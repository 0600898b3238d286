/* SPDX-License-Identifier: Apache-2.0 */
/* The standard health and reflection services, asked by a C client. */
#include "unit/rpc_fixture.h"

#include "grpc/reflection/v1/reflection.pb-c.h"
#include "server.h"

static struct rpc_call *begin_health(struct fixture *fixture, unsigned method, const char *service)
{
    struct rpc_call *call;
    Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;

    request.service = (char *)(uintptr_t)service;
    assert_int_equal(
        rpc_channel_call(
            fixture->channel,
            &(struct rpc_start){
                .service = &grpc__health__v1__health__descriptor,
                .method = method,
                .message = &request.base,
                .wait_for_ready = true,
                .handler = &client_handler,
                .user = fixture},
            &call),
        SUMAC_OK);
    return call;
}

RPC_TEST(health_check_answers_for_the_server_and_each_service)
{
    begin_health(fixture, 0, "");
    poll_until(fixture, &fixture->client.closed, 1);
    assert_int_equal(fixture->client.sequence, 1); /* SERVING */
    rpc_server_set_serving(fixture->server, false);
    begin_health(fixture, 0, "sumac.v1.Transfer");
    poll_until(fixture, &fixture->client.closed, 2);
    assert_int_equal(fixture->client.sequence, 2); /* NOT_SERVING */
    begin_health(fixture, 0, "sumac.v1.Nothing");
    poll_until(fixture, &fixture->client.closed, 3);
    assert_int_equal(fixture->client.error.status, SUMAC_NOT_FOUND);
}

RPC_TEST(a_health_watcher_hears_of_every_change_and_of_the_end)
{
    begin_health(fixture, 1, "sumac.v1.Observe");
    poll_until(fixture, &fixture->client.messages, 1);
    assert_int_equal(fixture->client.sequence, 1);
    rpc_server_set_serving(fixture->server, false);
    poll_until(fixture, &fixture->client.messages, 2);
    assert_int_equal(fixture->client.sequence, 2);
    rpc_server_set_serving(fixture->server, true);
    poll_until(fixture, &fixture->client.messages, 3);
    assert_int_equal(fixture->client.sequence, 1);
    rpc_server_drain(fixture->server);
    poll_until(fixture, &fixture->client.closed, 1);
    assert_int_equal(fixture->client.messages, 4);
    assert_int_equal(fixture->client.sequence, 2);
    assert_int_equal(fixture->client.error.status, SUMAC_UNAVAILABLE);
}

/* Before the client, or even the network, has taken the change before. */
RPC_TEST(the_end_comes_behind_a_change_that_is_on_its_way)
{
    begin_health(fixture, 1, "");
    poll_until(fixture, &fixture->client.messages, 1);
    rpc_server_set_serving(fixture->server, false);
    poll_until(fixture, &fixture->client.messages, 2);
    rpc_server_set_serving(fixture->server, true);

    rpc_server_drain(fixture->server);

    poll_until(fixture, &fixture->client.closed, 1);
    assert_int_equal(fixture->client.sequence, 2);
    assert_int_equal(fixture->client.error.status, SUMAC_UNAVAILABLE);
}

/* Those of unary calls, and what watchers are told. */
RPC_TEST(answers_count_until_they_are_taken)
{
    const struct unread *const unread = &fixture->server->unread;

    for (unsigned i = 1; i <= 3; i++) {
        begin_stats(fixture, 0);
        poll_until(fixture, &fixture->client.closed, i);
        poll_until(fixture, &fixture->at_server.closed, i);
        assert_int_equal(unread->held_bytes, 0);
    }
    begin_health(fixture, 1, "");
    poll_until(fixture, &fixture->client.messages, 4);
    while (unread->held_bytes > 0)
        assert_int_not_equal(rpc_poll(fixture->poller, now_us() + PATIENCE_US), RPC_POLLED_NOTHING);

    rpc_server_set_serving(fixture->server, false);

    assert_true(unread->held_bytes > 0);
    poll_until(fixture, &fixture->client.messages, 5);
    while (unread->held_bytes > 0)
        assert_int_not_equal(rpc_poll(fixture->poller, now_us() + PATIENCE_US), RPC_POLLED_NOTHING);
    fixture->server->unread_cut = 3;
    assert_int_equal(rpc_server_connections(fixture->server).unread, 3);
}

/* Nothing is on its way to it: it ends with the draining, as a stream of reflection does. */
RPC_TEST(who_has_heard_all_is_ended_with_the_server)
{
    struct rpc_call *call;

    rpc_server_set_serving(fixture->server, false);
    begin_health(fixture, 1, "");
    poll_until(fixture, &fixture->client.messages, 1);
    const unsigned opened = fixture->client.opened;
    assert_int_equal(
        rpc_channel_call(
            fixture->channel,
            &(struct rpc_start){
                .service = &grpc__reflection__v1__server_reflection__descriptor,
                .wait_for_ready = true,
                .handler = &client_handler,
                .user = fixture},
            &call),
        SUMAC_OK);
    poll_until(fixture, &fixture->client.opened, opened + 1);
    while (rpc_server_calls(fixture->server) < 2)
        assert_int_not_equal(rpc_poll(fixture->poller, now_us() + PATIENCE_US), RPC_POLLED_NOTHING);

    rpc_server_drain(fixture->server);
    rpc_server_drain(fixture->server); /* once is enough */

    poll_until(fixture, &fixture->client.closed, 2);
    assert_int_equal(fixture->client.messages, 1);
    assert_int_equal(fixture->client.error.status, SUMAC_UNAVAILABLE);
    assert_int_equal(fixture->client.error.reason, SUMAC_REASON_TERMINATED);
}

static int set_up_for_two_of_a_method(void **state)
{
    const struct rpc_server_options options = {.bind_host = "127.0.0.1", .calls_max = 64};

    return set_up_with(state, &options);
}

/* Whoever watches takes no places of calls and streams. */
FIXTURE_TEST(
    watchers_have_a_part_of_all_calls, struct fixture *fixture, set_up_for_two_of_a_method,
    tear_down)
{
    begin_health(fixture, 1, "");
    begin_health(fixture, 1, "");
    poll_until(fixture, &fixture->client.messages, 2);

    begin_health(fixture, 1, "");

    poll_until(fixture, &fixture->client.closed, 1);
    assert_int_equal(fixture->client.error.reason, SUMAC_REASON_BUSY);
    assert_non_null(strstr(fixture->client.error.text, "2 calls of Watch are open"));
}

RPC_TEST(watching_an_unknown_service_says_so_and_stays_open)
{
    begin_health(fixture, 1, "sumac.v1.Nothing");
    poll_until(fixture, &fixture->client.messages, 1);
    assert_int_equal(fixture->client.sequence, 3); /* SERVICE_UNKNOWN */
    assert_int_equal(fixture->client.closed, 0);
}

/* One more of them, one after the other, than there are places; who comes before the server has
 * heard of an end may be refused, and comes again. */
RPC_TEST(a_watcher_that_has_left_gives_its_place_to_another)
{
    unsigned watched = 0;

    for (unsigned tries = 1; watched <= SERVER_WATCHERS_MAX; tries++) {
        assert_in_range(tries, 1, 10 * SERVER_WATCHERS_MAX);
        struct rpc_call *call = begin_health(fixture, 1, "");
        while (fixture->client.messages == watched && fixture->client.closed < tries)
            assert_int_not_equal(
                rpc_poll(fixture->poller, now_us() + PATIENCE_US), RPC_POLLED_NOTHING);
        if (fixture->client.messages > watched) {
            watched++;
            rpc_call_cancel(call);
        }
        poll_until(fixture, &fixture->client.closed, tries);
    }
    assert_int_equal(fixture->client.messages, watched);
}

/* What the reflection tests look at in an answer. */
struct reflected {
    struct fixture *fixture;
    unsigned answers, services, files;
    int32_t error_code;
    bool has_transfer;
};

typedef Grpc__Reflection__V1__ServerReflectionRequest reflection_request;
typedef Grpc__Reflection__V1__ServerReflectionResponse reflection_response;

static void note_reflected(struct rpc_call *call, const struct wire_received *received)
{
    struct reflected *reflected = rpc_call_user(call);

    const reflection_response *response =
        (const reflection_response *)(const void *)received->message;
    reflected->answers++;
    if (response->message_response_case ==
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ERROR_RESPONSE)
        reflected->error_code = response->error_response->error_code;
    if (response->message_response_case ==
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_FILE_DESCRIPTOR_RESPONSE)
        reflected->files = (unsigned)response->file_descriptor_response->n_file_descriptor_proto;
    if (response->message_response_case ==
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_LIST_SERVICES_RESPONSE) {
        reflected->services = (unsigned)response->list_services_response->n_service;
        for (size_t i = 0; i < response->list_services_response->n_service; i++)
            if (strcmp(response->list_services_response->service[i]->name, "sumac.v1.Transfer") ==
                0)
                reflected->has_transfer = true;
    }
}

static const struct rpc_handler reflection_handler = {.message = note_reflected};

static void
ask(struct rpc_call *call, struct reflected *reflected, const char *symbol, const char *file)
{
    const uint64_t end = now_us() + PATIENCE_US;

    while (!rpc_call_writable(call) && now_us() < end)
        rpc_poll(reflected->fixture->poller, end);
    reflection_request request = GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__INIT;
    request.message_request_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_LIST_SERVICES;
    request.list_services = (char *)(uintptr_t) "";
    if (symbol != NULL) {
        request.message_request_case =
            GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_SYMBOL;
        request.file_containing_symbol = (char *)(uintptr_t)symbol;
    } else if (file != NULL) {
        request.message_request_case =
            GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_BY_FILENAME;
        request.file_by_filename = (char *)(uintptr_t)file;
    }
    rpc_call_send(call, &request.base, NULL, 0);
}

static void reflect_under(struct fixture *fixture, const wire_service *service)
{
    struct reflected seen = {.fixture = fixture};
    struct rpc_call *call;

    assert_int_equal(
        rpc_channel_call(
            fixture->channel,
            &(struct rpc_start){
                .service = service,
                .wait_for_ready = true,
                .handler = &reflection_handler,
                .user = &seen},
            &call),
        SUMAC_OK);
    ask(call, &seen, NULL, NULL);
    poll_until(fixture, &seen.answers, 1);
    assert_int_equal(seen.services, 5); /* two of the fixture's, health, reflection twice */
    assert_true(seen.has_transfer);
    ask(call, &seen, "sumac.v1.Transfer.Push", NULL);
    poll_until(fixture, &seen.answers, 2);
    assert_int_equal(seen.files, 2); /* transfer.proto and types.proto */
    ask(call, &seen, NULL, "sumac/v1/types.proto");
    poll_until(fixture, &seen.answers, 3);
    assert_int_equal(seen.files, 1);
    ask(call, &seen, "sumac.v1.Piece.Kind", NULL);
    ask(call, &seen, "sumac.v1.Nothing", NULL);
    ask(call, &seen, NULL, NULL); /* three on their way: each is answered, in order */
    poll_until(fixture, &seen.answers, 6);
    assert_int_equal(seen.files, 2);
    assert_int_equal(seen.error_code, SUMAC_NOT_FOUND);
    rpc_call_cancel(call);
    rpc_channel_close(fixture->channel); /* before `seen` goes */
    fixture->channel = NULL;
    rpc_server_close(fixture->server);
    fixture->server = NULL;
}

RPC_TEST(reflection_v1_lists_services_and_gives_files)
{
    reflect_under(fixture, &grpc__reflection__v1__server_reflection__descriptor);
}

RPC_TEST(reflection_v1alpha_is_the_same)
{
    wire_service alpha = grpc__reflection__v1__server_reflection__descriptor;

    alpha.name = "grpc.reflection.v1alpha.ServerReflection";
    reflect_under(fixture, &alpha);
}

/* Reflection answers which extensions a message has, and refuses other names. */
TEST(a_field_or_enumeration_is_not_a_message)
{
    struct schema *const schema = schema_create();

    assert_non_null(schema);
    assert_true(schema_has_message(schema, "sumac.v1.Piece"));
    assert_true(schema_find_symbol(schema, "sumac.v1.Piece.kind") >= 0);
    assert_false(schema_has_message(schema, "sumac.v1.Piece.kind"));
    assert_true(schema_find_symbol(schema, "sumac.v1.Piece.Kind") >= 0);
    assert_false(schema_has_message(schema, "sumac.v1.Piece.Kind"));
    schema_destroy(schema);
}
