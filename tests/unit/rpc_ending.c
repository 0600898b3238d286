/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_ending.c -- of the calls whose last word nobody takes, which one gives way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

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

static void the_oldest_call_of_the_connection_with_most_gives_way(void **state)
{
    (void)state;
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
static void another_methods_call_does_not_give_way(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oldest_call_of_the_connection_with_most_gives_way),
        cmocka_unit_test(another_methods_call_does_not_give_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
