/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_acceptor.c -- the thread that lets clients in, and the addresses that they connect to.
 *
 * The linker hands its poll and what it gives to gRPC to this program.
 */

#include <arpa/inet.h>
#include "unit.h"
#include <errno.h>
#include <grpc/grpc_posix.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "acceptor.h"
#include "listener.h"

#define CLIENTS (ACCEPTED_AT_ONCE + 8u)
#define HELD_S_MAX 60

static sem_t accepted;
static atomic_uint since_poll, most_since_poll; /* clients let in */
static atomic_uint polls;
static bool reads_on; /* from the first connection, and from the second one without an end */
static int first = -1;

static atomic_uint shortages; /* to come */

int __real_accept4(int listener, struct sockaddr *address, socklen_t *bytes, int flags);
int __wrap_accept4(int listener, struct sockaddr *address, socklen_t *bytes, int flags);

int __wrap_accept4(int listener, struct sockaddr *address, socklen_t *bytes, int flags)
{
    if (shortages == 0)
        return __real_accept4(listener, address, bytes, flags);
    shortages--;
    errno = EMFILE;
    return -1;
}

int __real_poll(struct pollfd *polled, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *polled, nfds_t count, int timeout_ms);
void __wrap_grpc_server_add_channel_from_fd(
    grpc_server *server, int descriptor, grpc_server_credentials *credentials);

/* Of more than one is the thread's that accepts. */
int __wrap_poll(struct pollfd *polled, nfds_t count, int timeout_ms)
{
    if (count > 1) {
        since_poll = 0;
        polls++;
    }
    return __real_poll(polled, count, timeout_ms);
}

/* Until the second one is cut, or for much longer than that takes. */
static void read_without_end(int second)
{
    static char bytes[65536];
    const time_t end = time(NULL) + HELD_S_MAX;

    do
        (void)recv(first, bytes, sizeof bytes, MSG_DONTWAIT);
    while ((recv(second, bytes, sizeof bytes, MSG_DONTWAIT) > 0 || errno == EAGAIN) &&
           time(NULL) < end);
}

void __wrap_grpc_server_add_channel_from_fd(
    grpc_server *server, int descriptor, grpc_server_credentials *credentials)
{
    (void)server;
    (void)credentials;
    if (reads_on && first < 0) {
        first = descriptor;
        sem_post(&accepted);
        return;
    }
    if (reads_on)
        read_without_end(descriptor);
    close(descriptor);
    since_poll++;
    if (since_poll > most_since_poll)
        most_since_poll = since_poll;
    sem_post(&accepted);
}

static int connect_to(uint32_t port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int made = socket(AF_INET, SOCK_STREAM, 0);

    assert_true(made >= 0);
    assert_int_equal(connect(made, (const struct sockaddr *)&address, sizeof address), 0);
    return made;
}

/* The client greets, and acknowledges the settings. */
static void greet(int client)
{
    static const char greeting[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                                   "\0\0\0\4\0\0\0\0\0"  /* SETTINGS */
                                   "\0\0\0\4\1\0\0\0\0"; /* its acknowledgement */

    assert_int_equal(send(client, greeting, sizeof greeting - 1, 0), sizeof greeting - 1);
}

/* Else a flood of them would hold up the end of the server. */
TEST(clients_without_end_do_not_keep_it_from_looking_whether_to_stop)
{
    const struct rpc_server_options options = {.bind_host = "127.0.0.1"};
    struct acceptor *acceptor = NULL;
    struct reader reader = {0};
    struct sumac_error error = {0};
    int clients[CLIENTS];

    rpc_init();
    assert_int_equal(sem_init(&accepted, 0, 0), 0);
    assert_int_equal(acceptor_open(&options, &acceptor, &error), SUMAC_OK);
    for (unsigned i = 0; i < CLIENTS; i++) { /* given: they wait */
        clients[i] = connect_to(acceptor_port(acceptor));
        greet(clients[i]);
    }

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

/* The thread sleeps in poll(2) until the client sends its greeting. It must not spin until then. */
TEST(a_client_that_greets_later_is_accepted_at_once)
{
    const struct rpc_server_options options = {.bind_host = "127.0.0.1"};
    struct acceptor *acceptor = NULL;
    struct reader reader = {0};
    struct sumac_error error = {0};
    char byte;

    rpc_init();
    assert_int_equal(sem_init(&accepted, 0, 0), 0);
    assert_int_equal(acceptor_open(&options, &acceptor, &error), SUMAC_OK);
    assert_true(acceptor_start(acceptor, NULL, &reader));
    const int client = connect_to(acceptor_port(acceptor));
    assert_int_equal(recv(client, &byte, 1, 0), 1); /* given: the server has sent its settings */
    const int second = connect_to(acceptor_port(acceptor)),
              mute = connect_to(acceptor_port(acceptor));
    assert_int_equal(recv(second, &byte, 1, 0), 1);
    assert_int_equal(recv(mute, &byte, 1, 0), 1);

    polls = 0;
    greet(client); /* when */
    assert_int_equal(sem_wait(&accepted), 0);

    assert_in_range(polls, 0, 8); /* then */
    greet(second);                /* it has its place still */
    assert_int_equal(sem_wait(&accepted), 0);
    acceptor_stop(acceptor);
    while (recv(mute, &byte, 1, 0) > 0) /* what is not gRPC's yet ends with the thread */
        ;
    acceptor_close(acceptor);
    close(client);
    close(second);
    close(mute);
    sem_destroy(&accepted);
    rpc_deinit();
}

/* Send for as long as there is room. False: the connection has ended. */
static bool flood(int client)
{
    static const char bytes[65536];

    while (send(client, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        ;
    return errno == EAGAIN;
}

static int option_of(int socket, int level, int option)
{
    int value = -1;
    socklen_t bytes = sizeof value;

    assert_int_equal(getsockopt(socket, level, option, &value, &bytes), 0);
    return value;
}

/* Those that have ended are looked for every second. */
static void await_open(const struct acceptor *acceptor, uint32_t open)
{
    const time_t end = time(NULL) + HELD_S_MAX;

    while (acceptor_count(acceptor).open != open && time(NULL) < end)
        (void)__real_poll(NULL, 0, 10);
    assert_int_equal(acceptor_count(acceptor).open, open);
}

/* gRPC reads both. The thread that accepts is held by the one that it has just handed over. */
TEST(a_client_that_holds_the_thread_that_accepts_is_cut_and_no_other)
{
    const struct rpc_server_options options = {.bind_host = "127.0.0.1"};
    struct acceptor *acceptor = NULL;
    struct reader reader = {0};
    struct sumac_error error = {0};

    rpc_init();
    assert_int_equal(sem_init(&accepted, 0, 0), 0);
    assert_int_equal(acceptor_open(&options, &acceptor, &error), SUMAC_OK);
    reads_on = true;
    assert_true(acceptor_start(acceptor, NULL, &reader));
    const int honest = connect_to(acceptor_port(acceptor)); /* given */
    greet(honest);
    assert_int_equal(sem_wait(&accepted), 0);
    const int greedy = connect_to(acceptor_port(acceptor));
    greet(greedy);

    while (flood(greedy) && flood(honest)) { /* when */
        struct pollfd room = {.fd = greedy, .events = POLLOUT};
        (void)__real_poll(&room, 1, 1);
    }

    assert_int_equal(sem_wait(&accepted), 0); /* then */
    assert_int_equal(acceptor_count(acceptor).cut, 1);
    assert_true(flood(honest));
    assert_int_equal(option_of(first, IPPROTO_TCP, TCP_NODELAY), 1);
    assert_int_equal(option_of(first, IPPROTO_TCP, TCP_USER_TIMEOUT), 20000);
    assert_int_equal(option_of(first, SOL_SOCKET, SO_RCVLOWAT), 1); /* each byte wakes gRPC */
    await_open(acceptor, 1);
    acceptor_stop(acceptor);
    acceptor_close(acceptor);
    close(first);
    close(honest);
    close(greedy);
    reads_on = false;
    sem_destroy(&accepted);
    rpc_deinit();
}

/* It is counted once for each try, and over when there is a descriptor again. */
TEST(a_client_for_which_there_is_no_descriptor_is_let_in_later)
{
    const struct rpc_server_options options = {.bind_host = "127.0.0.1"};
    struct acceptor *acceptor = NULL;
    struct reader reader = {0};
    struct sumac_error error = {0};
    int clients[2];

    rpc_init();
    assert_int_equal(sem_init(&accepted, 0, 0), 0);
    assert_int_equal(acceptor_open(&options, &acceptor, &error), SUMAC_OK);
    shortages = 2; /* given */
    assert_true(acceptor_start(acceptor, NULL, &reader));

    for (size_t i = 0; i < 2; i++) { /* when */
        clients[i] = connect_to(acceptor_port(acceptor));
        greet(clients[i]);
        assert_int_equal(sem_wait(&accepted), 0);
    }

    acceptor_stop(acceptor);
    assert_int_equal(acceptor_count(acceptor).shortages, 2); /* then */
    acceptor_close(acceptor);
    close(clients[0]);
    close(clients[1]);
    sem_destroy(&accepted);
    rpc_deinit();
}

/* A socket on "::" accepts IPv4 clients, too. */
TEST(a_server_listens_on_all_addresses_and_on_one_in_brackets)
{
    static const char *const hosts[] = {"::", "[::]", "0.0.0.0", "[::1]"};
    struct sumac_error error = {0};
    struct listener listener;

    if (listener_open("::1", 0, &listener, &error) != SUMAC_OK)
        skip(); /* a machine may have no IPv6 */
    listener_close(&listener);
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        if (listener_open(hosts[i], 0, &listener, &error) != SUMAC_OK)
            fail_msg("%s: %s", hosts[i], error.text);
        if (i < 3)
            close(connect_to(listener.port));
        listener_close(&listener);
    }
}
