/* SPDX-License-Identifier: Apache-2.0 */
/* ps_step.c -- what a ps tells its core, and what it does for it: bytes that are lent, the streams
 * to the other ps, when it wakes, how it ends.
 *
 * There is no core, and no clock but the process's own.
 */

#include <arpa/inet.h>
#include "unit.h"
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ps_state.h"

/* What the core would have been told. */
static struct lane_event told[8];
static uint32_t told_count;
static bool goes_on; /* it asks for the next tick at once */

void __wrap_ps_core_step(
    struct ps_core *core, const struct lane_event *event, struct lane_effects *effects);

void __wrap_ps_core_step(
    struct ps_core *core, const struct lane_event *event, struct lane_effects *effects)
{
    static struct lane_effect wake;
    (void)core;

    wake = (struct lane_effect){.kind = LANE_EFFECT_WAKE, .at_us = event->now_us};
    *effects = (struct lane_effects){.items = &wake, .count = goes_on};
    assert_true(told_count < sizeof told / sizeof *told);
    told[told_count++] = *event;
}

static bool calls_fail;                   /* for want of memory, and so does vector work */
static int channels;                      /* that are open */
static const struct rpc_handler *dialled; /* the handler of the last stream to a ps */

enum sumac_status __real_rpc_channel_call(
    struct rpc_channel *channel, const struct rpc_start *start, struct rpc_call **call);
enum sumac_status __wrap_rpc_channel_call(
    struct rpc_channel *channel, const struct rpc_start *start, struct rpc_call **call);

enum sumac_status __wrap_rpc_channel_call(
    struct rpc_channel *channel, const struct rpc_start *start, struct rpc_call **call)
{
    dialled = start->handler;
    if (calls_fail)
        return SUMAC_RESOURCE_EXHAUSTED;
    return __real_rpc_channel_call(channel, start, call);
}

enum sumac_status __real_rpc_channel_open(
    struct rpc_poller *poller, const char *target, struct rpc_channel **channel);
enum sumac_status __wrap_rpc_channel_open(
    struct rpc_poller *poller, const char *target, struct rpc_channel **channel);

enum sumac_status
__wrap_rpc_channel_open(struct rpc_poller *poller, const char *target, struct rpc_channel **channel)
{
    channels++;
    return __real_rpc_channel_open(poller, target, channel);
}

void __real_rpc_channel_close(struct rpc_channel *channel);
void __wrap_rpc_channel_close(struct rpc_channel *channel);

void __wrap_rpc_channel_close(struct rpc_channel *channel)
{
    channels -= channel != NULL;
    __real_rpc_channel_close(channel);
}

bool __wrap_compute_pool_submit(
    struct compute_pool *pool, uint64_t job, struct update_slice *slices,
    const struct combine_slice *combines, uint32_t slice_count);

bool __wrap_compute_pool_submit(
    struct compute_pool *pool, uint64_t job, struct update_slice *slices,
    const struct combine_slice *combines, uint32_t slice_count)
{
    (void)pool;
    (void)job;
    (void)slices;
    (void)combines;
    (void)slice_count;
    return !calls_fail;
}

static uint32_t looks, arrivals; /* at the network, in a round; what they find */

enum rpc_polled __real_rpc_poll(struct rpc_poller *poller, uint64_t until_us);
enum rpc_polled __wrap_rpc_poll(struct rpc_poller *poller, uint64_t until_us);

enum rpc_polled __wrap_rpc_poll(struct rpc_poller *poller, uint64_t until_us)
{
    if (poller != NULL)
        return __real_rpc_poll(poller, until_us);
    looks++;
    if (arrivals == 0)
        return RPC_POLLED_NOTHING;
    arrivals--;
    return RPC_POLLED_EVENT;
}

enum rpc_polled __wrap_rpc_listen(struct rpc_poller *poller);

enum rpc_polled __wrap_rpc_listen(struct rpc_poller *poller)
{
    assert_null(poller);
    return __wrap_rpc_poll(poller, 0);
}

static char no_call; /* stands for one that takes whatever is sent on it */
static uint32_t sent_count;

bool __real_rpc_call_writable(const struct rpc_call *call);
bool __wrap_rpc_call_writable(const struct rpc_call *call);

bool __wrap_rpc_call_writable(const struct rpc_call *call)
{
    return (const void *)call == &no_call || __real_rpc_call_writable(call);
}

void __wrap_rpc_call_send(
    struct rpc_call *call, const wire_message *message, const struct rpc_payload *payload,
    size_t payload_count);

void __wrap_rpc_call_send(
    struct rpc_call *call, const wire_message *message, const struct rpc_payload *payload,
    size_t payload_count)
{
    (void)message;
    (void)payload;
    (void)payload_count;
    assert_ptr_equal(call, &no_call);
    sent_count++;
}

static uint64_t refused_count; /* connections, as the server counts them */
static uint32_t logged_count;

struct rpc_connections __wrap_rpc_server_connections(const struct rpc_server *server);

struct rpc_connections __wrap_rpc_server_connections(const struct rpc_server *server)
{
    (void)server;
    return (struct rpc_connections){.refused = refused_count};
}

void __wrap_rpc_server_tick(struct rpc_server *server, uint64_t now_us);

void __wrap_rpc_server_tick(struct rpc_server *server, uint64_t now_us)
{
    (void)server;
    (void)now_us;
}

void __wrap_ps_log(uint32_t index, const char *format, ...);

void __wrap_ps_log(uint32_t index, const char *format, ...)
{
    (void)index;
    (void)format;
    logged_count++;
}

/* ---- what is lent, and the other ps */

/* Its stream has ended while the lane was at work. */
TEST(bytes_that_cannot_be_sent_are_let_go_of)
{
    struct ps *const ps = calloc(1, sizeof *ps);
    const struct lane_bytes payload[] = {{.hold = 0}, {.hold = 77}};
    const wire_pull_answer answer = WIRE_PULL_ANSWER_INIT;
    const struct lane_effect pulled = {
        .kind = LANE_EFFECT_PULLED,
        .stream = 5,
        .pull_answer = &answer,
        .payload = payload,
        .payload_count = 2};

    assert_non_null(ps);
    assert_true(ps_links_init(&ps->links));
    release_queue_init(&ps->released);
    pool_init(&ps->helds, &memory_heap, sizeof(struct ps_held), 4);

    ps_carry_out(ps, &pulled);

    struct release_node *const node = release_queue_take(&ps->released);
    assert_non_null(node);
    assert_int_equal(node->id, 77);
    assert_null(node->next);
    pool_give(&ps->helds, node);
    pool_deinit(&ps->helds);
    ps_links_deinit(&ps->links);
    free(ps);
}

/* "127.0.0.1:PORT" of a port that nobody listens on while the socket is kept. */
static int take_dead_port(char *address, size_t bytes)
{
    struct sockaddr_in any = {.sin_family = AF_INET};

    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof any;
    const int taken = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(taken, (struct sockaddr *)&any, sizeof any), 0);
    assert_int_equal(getsockname(taken, (struct sockaddr *)&any, &length), 0);
    snprintf(address, bytes, "127.0.0.1:%d", ntohs(any.sin_port));
    return taken;
}

/* Its ps 1 is told to be there. */
static struct ps *ps_that_dials_a_dead_port(int *taken)
{
    struct ps *const ps = calloc(1, sizeof *ps);
    char address[32];

    assert_non_null(ps);
    rpc_init();
    assert_int_equal(rpc_poller_create(&ps->poller), SUMAC_OK);
    assert_true(ps_random_init(&ps->random));
    *taken = take_dead_port(address, sizeof address);
    ps_peer_dial(ps, 1, address);
    return ps;
}

static void give_back(struct ps *ps, int taken)
{
    ps_peers_close(ps);
    rpc_poller_destroy(ps->poller);
    rpc_deinit();
    close(taken);
    free(ps);
}

/* After 20 ms, then 40 and so on up to a second, and up to a quarter more. */
TEST(a_ps_that_is_not_there_is_dialled_less_and_less_often)
{
    int taken;
    struct ps *const ps = ps_that_dials_a_dead_port(&taken);
    struct ps_peer *const peer = &ps->peers[1];

    ps->exiting = true; /* there is no lane to tell */

    for (uint64_t ms = 20; ms < 4000; ms *= 2) {
        const uint64_t least_us = (ms < 1000 ? ms : 1000) * 1000, before_us = ps_now_us();
        ps_peers_tick(ps, peer->redial_us);
        assert_non_null(peer->call);
        while (peer->call != NULL)
            rpc_poll(ps->poller, UINT64_MAX);
        assert_true(peer->redial_us >= before_us + least_us);
        assert_true(peer->redial_us <= ps_now_us() + least_us / 4 * 5);
        assert_int_equal(channels, 1);
    }

    give_back(ps, taken);
}

TEST(without_memory_for_a_call_a_ps_is_dialled_later)
{
    int taken;
    struct ps *const ps = ps_that_dials_a_dead_port(&taken);
    struct ps_peer *const peer = &ps->peers[1];
    const uint64_t before_us = ps_now_us();

    calls_fail = true;
    ps_peers_tick(ps, before_us);
    calls_fail = false;

    assert_null(peer->call);
    assert_int_equal(peer->failures, 1);
    assert_in_range(peer->redial_us, before_us + 20000, before_us + 25000);
    assert_int_equal(ps->redial_us, peer->redial_us);
    give_back(ps, taken);
}

TEST(without_memory_to_queue_vector_work_the_ps_ends)
{
    struct ps *const ps = calloc(1, sizeof *ps);
    struct update_slice slice = {.count = 0};
    const struct lane_compute work = {.job = 7, .slices = &slice};
    const struct lane_effect compute = {.kind = LANE_EFFECT_COMPUTE, .compute = &work};

    assert_non_null(ps);
    ps_carry_out(ps, &compute);
    assert_false(ps->exiting);
    calls_fail = true;
    ps_carry_out(ps, &compute);
    calls_fail = false;

    assert_true(ps->exiting);
    assert_int_equal(ps->exit_code, PS_EXIT_NO_MEMORY);
    free(ps);
}

/* One that was reached, and is lost, is dialled again as soon as one that was never tried. */
TEST(a_ps_that_was_reached_is_dialled_soon_when_it_is_lost)
{
    int taken;
    struct ps *const ps = ps_that_dials_a_dead_port(&taken);
    struct ps_peer *const peer = &ps->peers[1];

    peer->failures = 10; /* given */
    told_count = 0;
    ps_peers_tick(ps, peer->redial_us);

    dialled->writable(peer->call); /* when */
    ps->exiting = true;
    while (peer->call != NULL)
        rpc_poll(ps->poller, UINT64_MAX);

    assert_int_equal(told_count, 1); /* then */
    assert_int_equal(told[0].kind, LANE_EVENT_PEER_UP);
    assert_int_equal(told[0].ps, 1);
    assert_int_equal(peer->failures, 1);
    give_back(ps, taken);
}

/* Its client still waits: it is ended only a while after the last answer. */
TEST(an_answer_on_a_half_closed_stream_lets_it_live_on)
{
    struct ps *const ps = calloc(1, sizeof *ps);
    const wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;

    assert_non_null(ps);
    assert_true(ps_links_init(&ps->links));
    struct ps_link *const link = ps_links_add(&ps->links, ps, (struct rpc_call *)(void *)&no_call);
    const struct lane_effect answered = {
        .kind = LANE_EFFECT_ANSWER, .stream = link->id, .push_answer = &answer};
    link->half_closed = true;
    const uint64_t before_us = ps_now_us();
    link->spoke_us = before_us - 1;
    sent_count = 0;

    ps_carry_out(ps, &answered);

    assert_int_equal(sent_count, 1);
    assert_true(link->spoke_us >= before_us);
    ps_links_deinit(&ps->links);
    free(ps);
}

/* ---- a step */

/* Sessions are made of them: nobody may guess the next one's. */
TEST(a_call_comes_with_fresh_random_bits)
{
    struct ps *const ps = calloc(1, sizeof *ps);

    assert_non_null(ps);
    assert_true(ps_random_init(&ps->random));
    told_count = 0;
    for (int i = 0; i < 3; i++) {
        struct lane_event event = {.kind = i == 0 ? LANE_EVENT_START : LANE_EVENT_CALL};
        ps_step(ps, &event);
    }

    assert_int_equal(told_count, 3);
    for (int i = 0; i < 3; i++) {
        assert_true(told[i].random[0] != 0 && told[i].random[1] != 0);
        assert_true(told[i].random[0] != told[i].random[1]);
        assert_true(told[i].random[0] != told[(i + 1) % 3].random[0]);
        assert_true(told[i].now_us != 0);
    }
    free(ps);
}

TEST(what_the_process_has_is_said_with_every_event)
{
    struct ps *const ps = calloc(1, sizeof *ps);
    struct lane_event event = {.kind = LANE_EVENT_CALL};

    assert_non_null(ps);
    assert_true(ps_random_init(&ps->random));
    ps->resident_bytes = 123456;
    ps->connections.open = 7;
    ps->connections.refused = 9;
    told_count = 0;

    ps_step(ps, &event);

    assert_int_equal(told[0].resident_bytes, 123456);
    assert_int_equal(told[0].connections, 7);
    assert_int_equal(told[0].connections_refused, 9);
    free(ps);
}

TEST(the_earliest_time_that_is_wanted_counts)
{
    struct ps *const ps = calloc(1, sizeof *ps);
    const uint64_t wanted_us[] = {9, 5, 7};

    assert_non_null(ps);
    ps->wake_us = UINT64_MAX;
    for (size_t i = 0; i < 3; i++) {
        const struct lane_effect wake = {.kind = LANE_EFFECT_WAKE, .at_us = wanted_us[i]};
        ps_carry_out(ps, &wake);
    }

    assert_int_equal(ps->wake_us, 5);
    free(ps);
}

/* A long step goes on with the next tick, which is due at once: between the two all that has come
 * is heard, and not one message. */
TEST(what_has_come_is_heard_between_the_steps_of_long_work)
{
    struct ps *const ps = calloc(1, sizeof *ps);

    assert_non_null(ps);
    assert_true(ps_random_init(&ps->random));
    assert_true(compute_pool_create(0, &ps->pool));
    release_queue_init(&ps->released);
    ps->redial_us = ps->probe.due_us = UINT64_MAX;
    ps->looked_round_us = ps_now_us();
    for (int i = 0; i < 2; i++) {
        goes_on = i == 1;
        told_count = looks = 0;
        arrivals = 20;
        ps->wake_us = 0;
        ps_turn(ps);

        assert_int_equal(told_count, 1);
        assert_int_equal(told[0].kind, LANE_EVENT_TICK);
        assert_int_equal(arrivals, goes_on ? 0 : 19);
        assert_in_range(looks, goes_on ? 21 : 1, goes_on ? 20 + PS_LOOKS_PER_TURN : 1);
    }
    goes_on = false;
    compute_pool_destroy(ps->pool);
    free(ps);
}

/* A round in which one more was refused, so long after the last line of it. Returns how many lines
 * there are. */
static uint32_t logged_after(struct ps *ps, uint64_t since_us)
{
    told_count = logged_count = 0;
    ps->wake_us = ps->looked_round_us = 0;
    refused_count++;
    if (ps->connections_told_us != 0)
        ps->connections_told_us = ps_now_us() - since_us;
    ps_turn(ps);
    return logged_count;
}

/* Thousands may be refused in a second. */
TEST(who_was_refused_is_not_logged_every_second)
{
    struct ps *const ps = calloc(1, sizeof *ps);
    const uint64_t between_us = (uint64_t)PS_CONNECTIONS_TOLD_MS * 1000u;

    assert_non_null(ps);
    assert_true(ps_random_init(&ps->random));
    assert_true(compute_pool_create(0, &ps->pool));
    release_queue_init(&ps->released);
    ps->redial_us = ps->probe.due_us = UINT64_MAX;

    assert_int_equal(logged_after(ps, 0), 1);
    assert_int_equal(logged_after(ps, 1000000), 0);
    assert_int_equal(logged_after(ps, between_us), 1);

    compute_pool_destroy(ps->pool);
    free(ps);
}

TEST(the_first_end_counts)
{
    struct ps *const ps = calloc(1, sizeof *ps);

    assert_non_null(ps);
    ps_exit(ps, 138);
    ps_exit(ps, 0);

    assert_true(ps->exiting);
    assert_int_equal(ps->exit_code, 138);
    free(ps);
}
