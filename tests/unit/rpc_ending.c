/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_ending.c -- of the calls whose last word nobody takes, which one gives way; and how much of
 * what nobody takes is kept. */

#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <grpc/support/string_util.h>

#include "connections.h"
#include "server.h"

#define CALLS_MAX 8u

/* Calls that were answered, oldest first, as the server lists them. */
struct answered {
    struct rpc_server server;
    struct rpc_call calls[CALLS_MAX];
};

static void add(struct answered *answered, uint32_t connection, struct method *method)
{
    struct rpc_server *const server = &answered->server;
    struct rpc_call *const call = &answered->calls[server->ending.count];

    assert_true(server->ending.count < CALLS_MAX);
    *call = (struct rpc_call){.connection = connection, .method = method};
    call_queue_add(&server->ending, call);
    server->ending_of[connection % SERVER_CONNECTION_SLOTS]++;
}

TEST(the_oldest_call_of_the_connection_with_most_gives_way)
{
    static struct answered answered;
    struct method list = {.calls = 1};

    assert_null(server_find_unread(&answered.server, NULL));
    add(&answered, 1, &list);
    assert_ptr_equal(server_find_unread(&answered.server, NULL), &answered.calls[0]);
    add(&answered, 2, &list);
    add(&answered, 2, &list);

    assert_ptr_equal(server_find_unread(&answered.server, NULL), &answered.calls[1]);
    assert_ptr_equal(server_find_unread(&answered.server, &list), &answered.calls[1]);

    add(&answered, 1, &list);
    add(&answered, 3, &list);
    add(&answered, 1, &list);
    assert_ptr_equal(server_find_unread(&answered.server, NULL), &answered.calls[0]);
}

/* Its connection counts with all that it has; what gives way is of the method that needs a
 * place. */
TEST(another_methods_call_does_not_give_way)
{
    static struct answered answered;
    struct method list = {.calls = 1}, stats = {.calls = 1}, none = {.calls = 1};

    add(&answered, 1, &list);
    add(&answered, 2, &stats);
    add(&answered, 2, &list);
    add(&answered, 2, &list);

    assert_ptr_equal(server_find_unread(&answered.server, &list), &answered.calls[2]);
    assert_ptr_equal(server_find_unread(&answered.server, &stats), &answered.calls[1]);
    assert_null(server_find_unread(&answered.server, &none));
}

/* As the server has them while their last word is out. */
static void take_answer(struct answered *answered, uint32_t index)
{
    struct rpc_call *const call = &answered->calls[index];

    call->waits = WAITS_FOR_READER;
    calls_link(&answered->server.calls, call);
    answered->server.call_count++;
    server_forget(&answered->server, call);
}

TEST(who_takes_its_answers_is_not_taken_for_one_who_does_not)
{
    static struct answered answered;
    struct method list = {.calls = 5};

    for (uint32_t i = 0; i < 3; i++)
        add(&answered, 1, &list);
    add(&answered, 2, &list);
    add(&answered, 2, &list);
    assert_ptr_equal(server_find_unread(&answered.server, NULL), &answered.calls[0]);

    take_answer(&answered, 0);
    take_answer(&answered, 1);

    assert_ptr_equal(server_find_unread(&answered.server, NULL), &answered.calls[3]);
    assert_int_equal(list.calls, 3); /* and their places are others' */
    assert_int_equal(answered.server.call_count, 0);
}

static uint32_t cancelled_count;

grpc_call_error __wrap_grpc_call_cancel(grpc_call *call, void *reserved);

grpc_call_error __wrap_grpc_call_cancel(grpc_call *call, void *reserved)
{
    (void)call;
    (void)reserved;
    cancelled_count++;
    return GRPC_CALL_OK;
}

/* Five seconds after a tick has found them: their places are free at once, and not once more when
 * the calls are gone. */
TEST(answers_that_nobody_takes_for_a_while_are_given_up_and_their_places_once)
{
    static struct answered answered;
    struct rpc_server *const server = &answered.server;
    struct method list = {.calls = 5};

    for (uint32_t i = 0; i < 3; i++) {
        add(&answered, 1, &list);
        answered.calls[i].waits = WAITS_FOR_READER;
        calls_link(&server->calls, &answered.calls[i]);
        server->call_count++;
    }
    cancelled_count = 0;

    rpc_server_tick(server, 1000);
    rpc_server_tick(server, 1000 + 4999999);
    assert_int_equal(cancelled_count, 0);
    rpc_server_tick(server, 1000 + 5000000);

    assert_int_equal(cancelled_count, 3);
    assert_int_equal(server->ending.count, 0);
    assert_int_equal(server->ending_of[1], 0);
    assert_int_equal(list.calls, 2);
    for (uint32_t i = 0; i < 3; i++)
        server_forget(server, &answered.calls[i]);
    assert_int_equal(list.calls, 2);
    assert_int_equal(server->call_count, 0);
}

/* ---- answers that nobody takes */

static int listen_here(struct sockaddr_in *address)
{
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t bytes = sizeof *address;

    *address = (struct sockaddr_in){.sin_family = AF_INET};
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(listener, (struct sockaddr *)address, bytes), 0);
    assert_int_equal(listen(listener, 4), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)address, &bytes), 0);
    return listener;
}

/* A connection, as a server knows it, and its client's end. */
static struct unread_key connect_here(int *client)
{
    struct sockaddr_in address;
    const int listener = listen_here(&address);

    *client = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(*client, (struct sockaddr *)&address, sizeof address), 0);
    const int served = accept(listener, NULL, NULL);
    assert_true(served >= 0);
    close(listener);
    return (struct unread_key){.descriptor = served, .inode = connection_inode(served)};
}

TEST(a_connection_that_takes_none_of_too_many_bytes_is_cut_and_counted)
{
    struct rpc_server server = {0};
    int client;
    char byte;
    struct rpc_call call = {.server = &server, .key = connect_here(&client)};

    assert_true(unread_init(&server.unread, 4));

    assert_true(server_note_unread(&server, &call, RPC_UNREAD_CONNECTION_BYTES_MAX));
    assert_int_equal(server.unread_cut, 0);
    call.unread_bytes = 0; /* another answer of the same size */
    assert_true(server_note_unread(&server, &call, 1));

    assert_int_equal(server.unread_cut, 1);
    assert_true(unread_is_cut(&server.unread, &call.key));
    assert_int_equal(server.unread.bytes, 0); /* nobody else is cut for them */
    assert_int_not_equal(recv(client, &byte, 1, MSG_DONTWAIT), 1);
    close(client);
    close(call.key.descriptor);
    unread_deinit(&server.unread);
}

/* With the next look, or when there is no place for another. */
TEST(connections_that_are_gone_hold_nothing)
{
    for (int i = 0; i < 2; i++) {
        struct rpc_server server = {0};
        int client;
        const struct unread_key gone = connect_here(&client);
        struct rpc_call call = {.server = &server, .key = connect_here(&client)};
        assert_true(unread_init(&server.unread, 1));
        assert_int_not_equal(unread_add(&server.unread, &gone, 5000), 0);
        unread_end(&server.unread, &gone, 1, 5000, false);
        close(gone.descriptor);
        assert_int_equal(server.unread.held_bytes, 5000);

        if (i == 0)
            rpc_server_tick(&server, 1000);
        else
            assert_true(server_note_unread(&server, &call, 70));

        assert_int_equal(server.unread.count, i);
        assert_int_equal(server.unread.held_bytes, i * 70);
        close(client);
        close(call.key.descriptor);
        unread_deinit(&server.unread);
    }
}

static const char *peer = "fd:7";

char *__wrap_grpc_call_get_peer(grpc_call *call);

char *__wrap_grpc_call_get_peer(grpc_call *call)
{
    (void)call;
    return gpr_strdup(peer);
}

/* While it drains each call is told why it ends. */
TEST(so_many_last_words_wait_and_while_a_server_drains_any_number)
{
    for (int draining = 0; draining < 2; draining++) {
        struct rpc_server server = {.ending_max = 2, .draining = draining == 1};
        struct rpc_call calls[3];

        cancelled_count = 0;
        for (uint32_t i = 0; i < 3; i++) {
            assert_int_equal(cancelled_count, 0);
            calls[i] = (struct rpc_call){.server = &server, .says = SAYS_LAST_SOON};
            server_note_ending(&server, &calls[i]);
        }

        assert_int_equal(cancelled_count, draining == 1 ? 0 : 1);
        assert_int_equal(server.ending.count, draining == 1 ? 3 : 2);
        assert_int_equal(calls[0].waits, draining == 1 ? WAITS_FOR_READER : WAITS_FOR_NOTHING);
    }
}

TEST(each_connection_has_its_own_call_count)
{
    static const char *const peers[] = {"fd:7", "fd:17", "fd:27", "fd:7"};
    struct rpc_server server = {.ending_max = 4};
    struct rpc_call calls[4];

    for (uint32_t i = 0; i < 4; i++) {
        peer = peers[i];
        calls[i] = (struct rpc_call){.server = &server, .says = SAYS_LAST_SOON};
        server_note_ending(&server, &calls[i]);
    }

    assert_int_not_equal(calls[0].connection, calls[1].connection);
    assert_int_not_equal(calls[1].connection, calls[2].connection);
    assert_int_equal(calls[0].connection, calls[3].connection);
}

TEST(a_small_answer_goes_out_though_others_do_not_read_theirs)
{
    struct rpc_server server = {0};
    struct rpc_call call = {.server = &server, .key = {.descriptor = -1, .inode = 1}};

    assert_true(unread_init(&server.unread, 4));
    server.unread.held_bytes = RPC_UNREAD_BYTES_MAX; /* given */

    assert_false(server_note_unread(&server, &call, 4097)); /* when, then */
    assert_true(server_note_unread(&server, &call, 4096));

    assert_int_equal(call.unread_bytes, 4096);
    server_end_unread(&server, &call, true);
    assert_int_equal(server.unread.held_bytes, RPC_UNREAD_BYTES_MAX);
    assert_int_equal(call.unread_bytes, 0);
    unread_deinit(&server.unread);
}

TEST(answers_are_held_up_to_their_bound)
{
    struct rpc_server server = {0};
    struct rpc_call call = {.server = &server, .key = {.descriptor = -1, .inode = 1}};

    assert_true(unread_init(&server.unread, 4));
    server.unread.held_bytes = RPC_UNREAD_BYTES_MAX - 10000;

    assert_false(server_note_unread(&server, &call, 10001));
    assert_true(server_note_unread(&server, &call, 10000));

    unread_deinit(&server.unread);
}

TEST(on_a_call_that_is_over_nothing_is_written)
{
    struct rpc_call call = {.says = SAYS_WHAT_COMES};

    assert_true(rpc_call_writable(&call));
    call.over = true;
    assert_false(rpc_call_writable(&call));
    call = (struct rpc_call){.says = SAYS_A_MESSAGE};
    assert_false(rpc_call_writable(&call));
}

TEST(who_cancels_or_finishes_a_call_hears_nothing_more_of_it)
{
    struct rpc_server server = {.ending_max = 2};
    struct rpc_call calls[] = {
        {.says = SAYS_WHAT_COMES, .server = &server}, {.says = SAYS_A_MESSAGE, .server = &server}};

    rpc_call_cancel(&calls[0]);
    rpc_call_finish(&calls[1], SUMAC_ABORTED, SUMAC_REASON_BUSY, NULL);

    for (int i = 0; i < 2; i++) {
        assert_int_equal(calls[i].hears, HEARS_NOTHING);
        rpc_call_resume(&calls[i]);
        assert_int_equal(calls[i].hears, HEARS_NOTHING);
    }
    assert_int_equal(calls[1].says, SAYS_LAST_SOON); /* when its message is out */
}
