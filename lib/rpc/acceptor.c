/* SPDX-License-Identifier: Apache-2.0 */
/* acceptor.c -- see acceptor.h. */
#define _GNU_SOURCE
#include "acceptor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <grpc/grpc_posix.h>
#include <grpc/grpc_security.h>

#include "connections.h"
#include "error.h"
#include "greeting.h"
#include "memory.h"

#define CONNECTIONS_DEFAULT 1024u
#define LOOK_MS 1000 /* how often it looks who has ended, and whose greeting takes too long */
#define LOOK_AGAIN_US 10000 /* and how soon it looks again for a place that is not there yet */
#define SHORTAGE_MS                                                                                \
    100 /* until it is tried again, without a descriptor or memory for a connection */
#define WATCH_MS 100
#define HELD_US_MAX 300000u         /* of work within gRPC, for what one peer sends */
#define UNACKNOWLEDGED_MS_MAX 20000 /* what a client that is gone may be sent, as gRPC has it */

struct acceptor {
    struct listener listener;
    int stop_accepting, stop_watching; /* eventfds */
    pthread_t thread, watcher;
    bool running, watching;
    struct reader own,
        *poller; /* a new connection's first bytes are read by the thread that accepts */
    grpc_server *core;
    grpc_server_credentials *credentials;
    uint32_t streams_max;
    /* The accepting thread's: admitted connections that are not gRPC's yet, and what poll(2) waits
     * for. Each has a place for every connection. */
    struct greeting *greetings;
    uint32_t greeting_count;
    struct pollfd *polled;
    unsigned char *said;   /* GREETING_BYTES_MAX */
    pthread_mutex_t mutex; /* of the next three */
    struct connections connections;
    int handed_over; /* the descriptor that gRPC was given last */
    uint64_t looked_us;
    /* What other threads read. */
    atomic_uint_fast32_t open;
    atomic_uint_fast64_t refused, shortages, cut;
};

static uint64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

static void set(int socket, int level, int option, int value)
{
    (void)setsockopt(socket, level, option, &value, sizeof value);
}

/* With the mutex held. */
static void look(struct acceptor *acceptor, uint64_t now)
{
    acceptor->looked_us = now;
    connections_look(&acceptor->connections);
    atomic_store(&acceptor->open, acceptor->connections.count);
}

/* Is there a place for one more, perhaps of one that has ended? With the mutex held. */
static bool admit(struct acceptor *acceptor, const struct connection_host *host, uint64_t now)
{
    if (connections_admit(&acceptor->connections, host))
        return true;
    if (now - acceptor->looked_us < LOOK_AGAIN_US)
        return false;
    look(acceptor, now);
    return connections_admit(&acceptor->connections, host);
}

/* Closed at once, and nothing is kept of it, not even by the kernel. */
static void hang_up(int socket)
{
    const struct linger none = {.l_onoff = 1, .l_linger = 0};

    (void)setsockopt(socket, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    (void)close(socket);
}

static void enter(struct acceptor *acceptor, int socket, const struct connection_host *host)
{
    const uint64_t now = now_us();

    pthread_mutex_lock(&acceptor->mutex);
    const bool admitted =
        acceptor->greeting_count < acceptor->connections.max && admit(acceptor, host, now);
    if (admitted)
        connections_add(&acceptor->connections, socket, host);
    atomic_store(&acceptor->open, acceptor->connections.count);
    pthread_mutex_unlock(&acceptor->mutex);
    if (!admitted) {
        atomic_fetch_add(
            &acceptor->refused, 1); /* first: a client that sees the end finds it counted */
        hang_up(socket);
        return;
    }
    set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
    set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS_MAX);
    acceptor->greetings[acceptor->greeting_count++] =
        greeting_begin(socket, acceptor->streams_max, now);
}

static void hand_over(struct acceptor *acceptor, int socket)
{
    pthread_mutex_lock(&acceptor->mutex);
    acceptor->handed_over = socket;
    pthread_mutex_unlock(&acceptor->mutex);
    reader_cross(&acceptor->own);
    grpc_server_add_channel_from_fd(acceptor->core, socket, acceptor->credentials);
    greeting_hand_over(socket);
    reader_cross(&acceptor->own);
}

/* Go on with those whose client has said something, and, every so often, with all of them. */
static void greet(struct acceptor *acceptor, const struct pollfd *polled, bool all)
{
    const uint64_t now = now_us();
    uint32_t kept = 0, handed_over = 0;

    for (uint32_t i = 0; i < acceptor->greeting_count; i++) {
        struct greeting *const at = &acceptor->greetings[i];
        const bool has_time = handed_over < ACCEPTED_AT_ONCE;
        const short seen = has_time ? polled[i].revents : 0;
        const enum greeting_state state = seen != 0 || (all && has_time)
                                              ? greeting_look(at, acceptor->said, now)
                                              : GREETING_WAITS;
        if (state == GREETING_OVER) {
            hand_over(acceptor, at->socket);
            handed_over++;
        } else if (state == GREETING_FAILED || (seen & ~POLLIN) != 0) { /* it says nothing more */
            hang_up(at->socket);
        } else {
            acceptor->greetings[kept++] = *at;
        }
    }
    acceptor->greeting_count = kept;
}

/* Let in some of those that wait at a socket, and not all at once: so the order to stop is seen
 * while others come without a pause. False: the machine is short of something that a connection
 * needs; they go on waiting. */
static bool accept_some(struct acceptor *acceptor, int listener)
{
    for (unsigned count = 0; count < ACCEPTED_AT_ONCE; count++) {
        union {
            struct sockaddr any;
            struct sockaddr_in6 v6;
        } address = {0};
        socklen_t bytes = sizeof address;
        const int socket = accept4(listener, &address.any, &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (socket >= 0) {
            const struct connection_host host = connection_host_of(&address.any);
            enter(acceptor, socket, &host);
        } else if (errno == EAGAIN) {
            return true;
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            return false;
        }
        /* Else the one that waited is gone. */
    }
    return true;
}

static void look_round(struct acceptor *acceptor)
{
    const uint64_t now = now_us();

    pthread_mutex_lock(&acceptor->mutex);
    if (now - acceptor->looked_us >= LOOK_MS * 1000u)
        look(acceptor, now);
    pthread_mutex_unlock(&acceptor->mutex);
}

static void await(struct acceptor *acceptor, bool enough)
{
    struct pollfd *const polled = acceptor->polled;
    const unsigned listeners = acceptor->listener.count;
    nfds_t count = 0;

    polled[count++] = (struct pollfd){.fd = acceptor->stop_accepting, .events = POLLIN};
    for (unsigned i = 0; i < listeners; i++) /* a negative descriptor is not looked at */
        polled[count++] =
            (struct pollfd){.fd = enough ? acceptor->listener.sockets[i] : -1, .events = POLLIN};
    for (uint32_t i = 0; i < acceptor->greeting_count; i++)
        polled[count++] =
            (struct pollfd){.fd = acceptor->greetings[i].socket, .events = POLLIN | POLLRDHUP};
    (void)poll(polled, count, !enough ? SHORTAGE_MS : acceptor->greeting_count > 0 ? LOOK_MS : -1);
}

static void *run(void *context)
{
    struct acceptor *const acceptor = context;
    const unsigned listeners = acceptor->listener.count;
    uint64_t greeted_us = 0;
    bool enough = true;

    for (;;) {
        await(acceptor, enough);
        if (acceptor->polled[0].revents != 0)
            break;
        const bool all = now_us() - greeted_us >= LOOK_MS * 1000u;
        if (all)
            greeted_us = now_us();
        greet(acceptor, acceptor->polled + 1 + listeners, all);
        enough = true;
        for (unsigned i = 0; i < listeners; i++)
            enough = accept_some(acceptor, acceptor->listener.sockets[i]) && enough;
        if (!enough)
            atomic_fetch_add(&acceptor->shortages, 1);
    }
    for (uint32_t i = 0; i < acceptor->greeting_count; i++)
        hang_up(acceptor->greetings[i].socket);
    return NULL;
}

/* The poller reads all connections; while some of them hold it, it reads none but these. The thread
 * that accepts reads only the connection that it has handed over last, while the poller may go on
 * with all others. */
static uint32_t end_greedy(struct acceptor *acceptor, bool poller)
{
    return poller ? connections_end_greedy(&acceptor->connections)
                  : connections_end_greedy_one(&acceptor->connections, acceptor->handed_over);
}

/* A thread that is held reads only the connections that hold it: so those that were read from since
 * then are ended. */
static void watch(struct acceptor *acceptor, bool *noted)
{
    const bool own = reader_is_held(&acceptor->own, HELD_US_MAX);
    const bool poller = reader_is_held(acceptor->poller, HELD_US_MAX);

    if (!own && !poller) {
        *noted = false;
        return;
    }
    pthread_mutex_lock(&acceptor->mutex);
    if (*noted)
        atomic_fetch_add(&acceptor->cut, end_greedy(acceptor, poller));
    connections_note_read(&acceptor->connections);
    pthread_mutex_unlock(&acceptor->mutex);
    *noted = true;
}

static void *run_watch(void *context)
{
    struct acceptor *const acceptor = context;
    struct pollfd stop = {.fd = acceptor->stop_watching, .events = POLLIN};
    bool noted = false;

    while (poll(&stop, 1, WATCH_MS) <= 0) {
        watch(acceptor, &noted);
        look_round(acceptor);
    }
    return NULL;
}

static bool take_room(struct acceptor *acceptor)
{
    const size_t max = acceptor->connections.max;

    acceptor->greetings = memory_take(&memory_heap, max * sizeof *acceptor->greetings);
    acceptor->polled =
        memory_take(&memory_heap, (1 + LISTENER_SOCKETS_MAX + max) * sizeof *acceptor->polled);
    acceptor->said = memory_take(&memory_heap, GREETING_BYTES_MAX);
    return acceptor->greetings != NULL && acceptor->polled != NULL && acceptor->said != NULL;
}

static void give_room(struct acceptor *acceptor)
{
    const size_t max = acceptor->connections.max;

    memory_give(&memory_heap, acceptor->greetings, max * sizeof *acceptor->greetings);
    memory_give(
        &memory_heap, acceptor->polled,
        (1 + LISTENER_SOCKETS_MAX + max) * sizeof *acceptor->polled);
    memory_give(&memory_heap, acceptor->said, GREETING_BYTES_MAX);
}

enum sumac_status acceptor_open(
    const struct rpc_server_options *options, struct acceptor **acceptor, struct sumac_error *error)
{
    struct acceptor *const made = memory_take(&memory_heap, sizeof *made);

    if (made == NULL)
        return fail_for_memory(error, "no memory");
    *made = (struct acceptor){
        .streams_max = options->streams_max,
        .stop_accepting = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
        .stop_watching = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    pthread_mutex_init(&made->mutex, NULL);
    const uint32_t max =
        options->connections_max != 0 ? options->connections_max : CONNECTIONS_DEFAULT;
    enum sumac_status status =
        listener_open(options->bind_host, options->port, &made->listener, error);
    const bool has_events = made->stop_accepting >= 0 && made->stop_watching >= 0;
    if (status == SUMAC_OK &&
        (!has_events || !connections_init(&made->connections, max) || !take_room(made)))
        status = fail_for_memory(
            error, "no memory, or no descriptor, to accept %u connections with", max);
    if (status != SUMAC_OK) {
        acceptor_close(made);
        return status;
    }
    made->credentials = grpc_insecure_server_credentials_create();
    *acceptor = made;
    return SUMAC_OK;
}

uint32_t acceptor_port(const struct acceptor *acceptor) { return acceptor->listener.port; }

bool acceptor_lacks_ipv6(const struct acceptor *acceptor) { return acceptor->listener.lacks_ipv6; }

bool acceptor_start(struct acceptor *acceptor, grpc_server *core, struct reader *poller)
{
    sigset_t all, before;

    sigfillset(&all);
    acceptor->core = core;
    acceptor->poller = poller;
    (void)pthread_getcpuclockid(pthread_self(), &poller->cpu);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    acceptor->running = pthread_create(&acceptor->thread, NULL, run, acceptor) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!acceptor->running)
        return false;
    (void)pthread_setname_np(acceptor->thread, "sumac-accept");
    (void)pthread_getcpuclockid(acceptor->thread, &acceptor->own.cpu);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    acceptor->watching = pthread_create(&acceptor->watcher, NULL, run_watch, acceptor) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (acceptor->watching)
        (void)pthread_setname_np(acceptor->watcher, "sumac-watch");
    return acceptor->watching;
}

/* Tell a thread to end, and wait until it has. */
static void end_thread(pthread_t thread, int event)
{
    const uint64_t one = 1;

    while (write(event, &one, sizeof one) < 0 && errno == EINTR)
        ;
    (void)pthread_join(thread, NULL);
}

void acceptor_stop(struct acceptor *acceptor)
{
    if (acceptor->running)
        end_thread(acceptor->thread, acceptor->stop_accepting);
    acceptor->running = false;
    listener_close(&acceptor->listener);
}

static void close_event(int event)
{
    if (event >= 0)
        (void)close(event);
}

/* A peer that sends without a pause would hold up the end, too: such peers are cut until the very
 * last. */
void acceptor_close(struct acceptor *acceptor)
{
    if (acceptor == NULL)
        return;
    acceptor_stop(acceptor);
    if (acceptor->watching)
        end_thread(acceptor->watcher, acceptor->stop_watching);
    close_event(acceptor->stop_accepting);
    close_event(acceptor->stop_watching);
    if (acceptor->credentials != NULL)
        grpc_server_credentials_release(acceptor->credentials);
    give_room(acceptor);
    connections_deinit(&acceptor->connections);
    pthread_mutex_destroy(&acceptor->mutex);
    memory_give(&memory_heap, acceptor, sizeof *acceptor);
}

void acceptor_note_cancelled(struct acceptor *acceptor, int descriptor, ino_t inode)
{
    pthread_mutex_lock(&acceptor->mutex);
    if (connections_note_cancelled(&acceptor->connections, descriptor, inode, now_us()))
        atomic_fetch_add(&acceptor->cut, 1);
    pthread_mutex_unlock(&acceptor->mutex);
}

uint32_t acceptor_connections_max(const struct acceptor *acceptor)
{
    return acceptor->connections.max;
}

struct rpc_connections acceptor_count(const struct acceptor *acceptor)
{
    return (struct rpc_connections){
        .open = (uint32_t)atomic_load(&acceptor->open),
        .refused = atomic_load(&acceptor->refused),
        .cut = atomic_load(&acceptor->cut),
        .shortages = atomic_load(&acceptor->shortages)};
}
