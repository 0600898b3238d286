/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_acceptor.c -- the thread that lets clients in looks again and again whether it is to stop.
 *
 * The linker hands its poll and what it gives to gRPC to this program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <grpc/grpc_posix.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "acceptor.h"

#define CLIENTS (ACCEPTED_AT_ONCE + 8u)

static sem_t accepted;
static atomic_uint since_poll, most_since_poll; /* clients let in */

int __real_poll(struct pollfd *polled, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *polled, nfds_t count, int timeout_ms);
void __wrap_grpc_server_add_channel_from_fd(
    grpc_server *server, int descriptor, grpc_server_credentials *credentials);

/* Of more than one is the thread's that accepts. */
int __wrap_poll(struct pollfd *polled, nfds_t count, int timeout_ms)
{
    if (count > 1)
        since_poll = 0;
    return __real_poll(polled, count, timeout_ms);
}

void __wrap_grpc_server_add_channel_from_fd(
    grpc_server *server, int descriptor, grpc_server_credentials *credentials)
{
    (void)server;
    (void)credentials;
    close(descriptor);
    since_poll++;
    if (since_poll > most_since_poll)
        most_since_poll = since_poll;
    sem_post(&accepted);
}

/* A client that has acknowledged the settings. */
static int connect_to(uint32_t port)
{
    static const char greeting[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                                   "\0\0\0\4\0\0\0\0\0"  /* SETTINGS */
                                   "\0\0\0\4\1\0\0\0\0"; /* its acknowledgement */
    const struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int made = socket(AF_INET, SOCK_STREAM, 0);

    assert_true(made >= 0);
    assert_int_equal(connect(made, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(send(made, greeting, sizeof greeting - 1, 0), sizeof greeting - 1);
    return made;
}

/* Else a flood of them would hold up the end of the server. */
static void clients_without_end_do_not_keep_it_from_looking_whether_to_stop(void **state)
{
    (void)state;
    const struct rpc_server_options options = {.bind_host = "127.0.0.1"};
    struct acceptor *acceptor = NULL;
    struct reader reader = {0};
    struct sumac_error error = {0};
    int clients[CLIENTS];

    rpc_init();
    assert_int_equal(sem_init(&accepted, 0, 0), 0);
    assert_int_equal(acceptor_open(&options, &acceptor, &error), SUMAC_OK);
    for (unsigned i = 0; i < CLIENTS; i++) /* given: they wait */
        clients[i] = connect_to(acceptor_port(acceptor));

    assert_true(acceptor_start(acceptor, NULL, &reader)); /* when */
    for (unsigned i = 0; i < CLIENTS; i++)
        assert_int_equal(sem_wait(&accepted), 0);
    acceptor_stop(acceptor);

    assert_int_equal(most_since_poll, ACCEPTED_AT_ONCE); /* then */
    acceptor_close(acceptor);
    for (unsigned i = 0; i < CLIENTS; i++)
        close(clients[i]);
    sem_destroy(&accepted);
    rpc_deinit();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_without_end_do_not_keep_it_from_looking_whether_to_stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
