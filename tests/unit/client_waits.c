/* SPDX-License-Identifier: Apache-2.0 */
/* client_waits.c -- who wakes a thread that waits in client_wait, if nothing else happens: its own
 * time, the session's timer, or the thread that polls.
 */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "client_state.h"
#include "session_talk.h"

#define SOON_US 30000u
#define LONG_US 20000000u  /* a wait that ends by its own time is a failure */
#define QUICK_US 10000000u /* "soon" on a machine that is busy */

struct fixture {
    struct talk talk;
    struct sumac_client *client;
    uint64_t due_us; /* the tick that the session wants */
    unsigned looks;
};

static void drop_line(void *context, const char *line) { (void)context, (void)line; }

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    struct sumac_client *client = calloc(1, sizeof *client);
    pthread_condattr_t monotonic;

    assert_non_null(fixture);
    assert_non_null(client);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&client->lock, NULL);
    pthread_cond_init(&client->happened, &monotonic);
    pthread_cond_init(&client->quiet, &monotonic);
    pthread_condattr_destroy(&monotonic);
    client_note_process(client);
    rpc_init();
    assert_int_equal(rpc_poller_create(&client->poller), SUMAC_OK);
    fixture->talk.now_us = client_now_us();
    talk_open(&fixture->talk, 1);
    client->session = fixture->talk.session;
    client->peer_count = 1;
    client->peers[0].address = ""; /* none is called */
    client->wake_us = NEVER_US;
    client->log = drop_line;
    fixture->client = client;
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    struct sumac_client *client = fixture->client;

    client_stop_background(client);
    rpc_poller_destroy(client->poller);
    rpc_deinit();
    talk_close(&fixture->talk);
    pthread_cond_destroy(&client->happened);
    pthread_cond_destroy(&client->quiet);
    pthread_mutex_destroy(&client->lock);
    free(client);
    free(fixture);
    return 0;
}

static bool is_never(void *fixture)
{
    (void)fixture;
    return false;
}

/* The session had its tick. */
static bool has_ticked(void *context)
{
    const struct fixture *fixture = context;

    return fixture->client->wake_us != fixture->due_us;
}

/* The thread has been woken up. */
static bool is_second_look(void *context)
{
    struct fixture *fixture = context;

    return ++fixture->looks > 1;
}

struct wait {
    bool other_polls; /* another thread, for as long as it likes */
    bool background;  /* it polls as this one begins to wait */
    bool timer;       /* the session wants a tick soon */
    uint64_t for_us;
    bool (*done)(void *context);
    bool ends_done;
};

static const struct wait waits[] = {
    {.for_us = SOON_US, .done = is_never},
    {.for_us = SOON_US, .done = is_never, .other_polls = true},
    {.for_us = SOON_US, .done = is_never, .background = true},
    {.for_us = LONG_US, .done = has_ticked, .timer = true, .ends_done = true},
    {.for_us = LONG_US, .done = has_ticked, .timer = true, .other_polls = true, .ends_done = true},
    {.for_us = LONG_US, .done = has_ticked, .timer = true, .background = true, .ends_done = true},
    {.for_us = LONG_US, .done = is_second_look, .background = true, .ends_done = true},
};

/* With the lock: until the background thread is in the network. */
static void wait_for_background(struct sumac_client *client)
{
    assert_true(client_start_background(client));
    while (!client->polling) {
        client_unlock(client);
        (void)sched_yield();
        client_lock(client);
    }
}

STATE_TEST(every_wait_is_woken, NULL, NULL)
{
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        const struct wait *wait = &waits[i];
        assert_int_equal(set_up(state), 0); /* given */
        struct fixture *fixture = *state;
        struct sumac_client *client = fixture->client;
        client_lock(client);
        if (wait->background)
            wait_for_background(client);
        client->polling |= wait->other_polls;
        const uint64_t began_us = client_now_us();
        if (wait->timer)
            client->wake_us = fixture->due_us = began_us + SOON_US;

        const bool done = client_wait(client, wait->done, fixture, began_us + wait->for_us);

        const uint64_t took_us = client_now_us() - began_us;
        client->polling &= !wait->other_polls;
        client_unlock(client);
        assert_int_equal(done, wait->ends_done);
        assert_in_range(took_us, 0, QUICK_US);
        assert_int_equal(tear_down(state), 0);
    }
}

/* ---- other threads */

static void *look_once(void *context)
{
    struct sumac_client *const client = context;

    client_lock(client);
    while (client->waiters == 0) {
        client_unlock(client);
        (void)sched_yield();
        client_lock(client);
    }
    client->polling = false; /* as one that polled, and was done before the other came */
    client_poll_once(client);
    client_unlock(client);
    return NULL;
}

/* It would sleep to its own end. */
FIXTURE_TEST(
    a_thread_that_only_looks_wakes_those_that_wait, struct fixture *const fixture, set_up,
    tear_down)
{
    struct sumac_client *const client = fixture->client;
    pthread_t other;

    client_lock(client);
    client->polling = true; /* given */
    assert_int_equal(pthread_create(&other, NULL, look_once, client), 0);
    const uint64_t began_us = client_now_us();

    const bool woken = client_wait(client, is_second_look, fixture, began_us + LONG_US); /* when */

    client_unlock(client); /* then */
    assert_true(woken);
    assert_in_range(client_now_us() - began_us, 0, QUICK_US);
    assert_int_equal(pthread_join(other, NULL), 0);
}

static volatile sig_atomic_t interrupted;

static void note_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

/* No other thread of this program takes it: they were begun while it was blocked. */
STATE_TEST(the_background_thread_takes_no_signal_of_the_programs, NULL, NULL)
{
    static const int numbers[] = {SIGINT, SIGTERM};
    const struct sigaction noting = {.sa_handler = note_interrupt};
    const struct timespec at_once = {0, 0};
    sigset_t both;
    struct sigaction before[2];

    sigemptyset(&both);
    for (size_t i = 0; i < 2; i++) {
        sigaddset(&both, numbers[i]);
        assert_int_equal(sigaction(numbers[i], &noting, &before[i]), 0);
    }
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &both, NULL), 0);
    assert_int_equal(set_up(state), 0);
    struct fixture *const fixture = *state;
    assert_int_equal(pthread_sigmask(SIG_UNBLOCK, &both, NULL), 0);
    client_lock(fixture->client);
    wait_for_background(fixture->client); /* given */
    client_unlock(fixture->client);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &both, NULL), 0);

    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(kill(getpid(), numbers[i]), 0);                   /* when */
        assert_int_equal(sigtimedwait(&both, NULL, &at_once), numbers[i]); /* then */
    }

    assert_int_equal(interrupted, 0);
    assert_int_equal(tear_down(state), 0);
    assert_int_equal(pthread_sigmask(SIG_UNBLOCK, &both, NULL), 0);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(sigaction(numbers[i], &before[i], NULL), 0);
}
