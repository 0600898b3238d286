/* SPDX-License-Identifier: Apache-2.0 */
/* ps_loop.c -- the loop of a ps: when it ticks and how long it waits, what it looks at every
 * second, what it does with what was computed, whose turn it is.
 *
 * The clock and the processor's time go as the test says; the network brings nothing.
 */

#include "unit.h"
#include "ps_state.h"
#include "text.h"

#define BEGIN_US UINT64_C(1000000000)
#define TICK_US ((uint64_t)PS_TICK_MS_MAX * 1000u)
#define TOLD_MAX 64u

static struct machine {
    struct ps *ps;
    uint64_t now_us, cpu_us, resident_bytes;
    uint64_t each_look_us;          /* what asking for the time takes */
    uint32_t trims, looks, listens; /* of the looks those that ask for nothing */
    uint64_t waited_until_us;       /* by the last look at the network */
    uint32_t arrivals; /* that the next looks find; the core exits with the last of them */
    bool endless;      /* there is always a message for who asks for one */
    struct rpc_connections connections;
    uint32_t server_ticks, logs;
    char logged[1024];
    int signal;
    struct lane_event told[TOLD_MAX];
    uint32_t told_count;
    enum lane_event_kind exits_at; /* the core exits with the event of that kind; START: never */
    uint64_t wakes_us;             /* what it wants with each event; 0: nothing */
} machine;

uint64_t __wrap_ps_now_us(void);

uint64_t __wrap_ps_now_us(void)
{
    machine.now_us += machine.each_look_us;
    return machine.now_us;
}

uint64_t __wrap_ps_cpu_us(void);

uint64_t __wrap_ps_cpu_us(void) { return machine.cpu_us; }

uint64_t __wrap_ps_resident_bytes(void);

uint64_t __wrap_ps_resident_bytes(void) { return machine.resident_bytes; }

void __wrap_ps_heap_trim(void);

void __wrap_ps_heap_trim(void) { machine.trims++; }

int __wrap_ps_signals_take(const struct ps *ps);

int __wrap_ps_signals_take(const struct ps *ps)
{
    const int number = machine.signal;
    (void)ps;

    machine.signal = 0;
    return number;
}

enum rpc_polled __wrap_rpc_poll(struct rpc_poller *poller, uint64_t until_us);

static enum rpc_polled look(void)
{
    machine.looks++;
    if (machine.arrivals == 0)
        return RPC_POLLED_NOTHING;
    if (--machine.arrivals == 0)
        ps_exit(machine.ps, 138);
    return RPC_POLLED_EVENT;
}

enum rpc_polled __wrap_rpc_poll(struct rpc_poller *poller, uint64_t until_us)
{
    (void)poller;
    machine.waited_until_us = until_us;
    const enum rpc_polled polled = look();
    return machine.endless ? RPC_POLLED_EVENT : polled;
}

enum rpc_polled __wrap_rpc_listen(struct rpc_poller *poller);

enum rpc_polled __wrap_rpc_listen(struct rpc_poller *poller)
{
    (void)poller;
    machine.listens++;
    return look();
}

struct rpc_connections __wrap_rpc_server_connections(const struct rpc_server *server);

struct rpc_connections __wrap_rpc_server_connections(const struct rpc_server *server)
{
    (void)server;
    return machine.connections;
}

void __wrap_rpc_server_tick(struct rpc_server *server, uint64_t now_us);

void __wrap_rpc_server_tick(struct rpc_server *server, uint64_t now_us)
{
    (void)server;
    assert_int_equal(now_us, machine.now_us);
    machine.server_ticks++;
}

static char no_call; /* a stream's that takes whatever is sent; any other's takes nothing */

bool __wrap_rpc_call_writable(const struct rpc_call *call);

bool __wrap_rpc_call_writable(const struct rpc_call *call)
{
    return (const void *)call == &no_call;
}

void __wrap_ps_log(uint32_t index, const char *format, ...);

void __wrap_ps_log(uint32_t index, const char *format, ...)
{
    va_list arguments;
    (void)index;

    va_start(arguments, format);
    (void)text_print_values(machine.logged, sizeof machine.logged, format, arguments);
    va_end(arguments);
    machine.logs++;
}

void __wrap_ps_core_step(
    struct ps_core *core, const struct lane_event *event, struct lane_effects *effects);

void __wrap_ps_core_step(
    struct ps_core *core, const struct lane_event *event, struct lane_effects *effects)
{
    static struct lane_effect says[2];
    (void)core;

    assert_true(machine.told_count < TOLD_MAX);
    machine.told[machine.told_count++] = *event;
    *effects = (struct lane_effects){.items = says};
    if (machine.wakes_us != 0)
        says[effects->count++] =
            (struct lane_effect){.kind = LANE_EFFECT_WAKE, .at_us = machine.wakes_us};
    if (machine.exits_at == event->kind)
        says[effects->count++] = (struct lane_effect){.kind = LANE_EFFECT_EXIT, .exit_code = 138};
}

static uint32_t count_of(enum lane_event_kind kind)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < machine.told_count; i++)
        count += machine.told[i].kind == kind;
    return count;
}

static int set_up(void **state)
{
    struct ps *const ps = calloc(1, sizeof *ps);

    assert_non_null(ps);
    machine = (struct machine){.ps = ps, .now_us = BEGIN_US, .exits_at = LANE_EVENT_START};
    ps->ticked_us = ps->looked_round_us = BEGIN_US;
    ps->wake_us = ps->redial_us = ps->probe.due_us = UINT64_MAX;
    release_queue_init(&ps->released);
    pool_init(&ps->helds, &memory_heap, sizeof(struct ps_held), 4);
    assert_true(ps_links_init(&ps->links));
    assert_true(ps_random_init(&ps->random));
    assert_true(compute_pool_create(0, &ps->pool));
    *state = ps;
    return 0;
}

static int tear_down(void **state)
{
    struct ps *const ps = *state;

    while (compute_pool_jobs(ps->pool) > 0) {
        (void)compute_pool_help(ps->pool);
        (void)compute_pool_finished(ps->pool);
    }
    compute_pool_destroy(ps->pool);
    pool_deinit(&ps->helds);
    ps_links_deinit(&ps->links);
    free(ps);
    return 0;
}

/* ---- ticks ---- */

#define LOOP_TEST(name) FIXTURE_TEST(name, struct ps *const ps, set_up, tear_down)

LOOP_TEST(a_tick_is_due_when_the_core_wants_it_and_every_tenth_of_a_second)
{
    static const struct {
        uint64_t wanted_us, later_us; /* after the last tick */
        bool ticks;
    } cases[] = {
        {0, TICK_US - 1, false},
        {0, TICK_US, true},
        {500, 499, false},
        {500, 500, true},
        {500, TICK_US / 2, true},
        {TICK_US * 3, TICK_US, true},
        {TICK_US * 3, TICK_US - 1, false}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        machine.told_count = 0;
        machine.now_us = ps->ticked_us + cases[i].later_us;
        ps->wake_us = cases[i].wanted_us != 0 ? ps->ticked_us + cases[i].wanted_us : UINT64_MAX;
        const uint64_t before_us = ps->ticked_us;

        ps_turn(ps);

        assert_int_equal(count_of(LANE_EVENT_TICK), cases[i].ticks);
        assert_int_equal(ps->ticked_us, cases[i].ticks ? machine.now_us : before_us);
        if (!cases[i].ticks)
            continue;
        assert_true(ps->wake_us == UINT64_MAX); /* what was wanted is done */
        ps_turn(ps);
        assert_int_equal(count_of(LANE_EVENT_TICK), 1);
    }
}

/* For a message, for as long as nothing is due; while there is vector work, not at all. */
LOOP_TEST(the_network_is_waited_for_until_something_is_due)
{
    static const struct {
        uint64_t wanted_us, redial_us, until_us; /* from now on; 0: never */
    } cases[] = {{0, 0, TICK_US}, {700, 0, 700},   {0, 300, 300},
                 {700, 300, 300}, {300, 700, 300}, {TICK_US * 2, TICK_US * 3, TICK_US}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ps->ticked_us = machine.now_us;
        ps->wake_us = cases[i].wanted_us != 0 ? BEGIN_US + cases[i].wanted_us : UINT64_MAX;
        ps->redial_us = cases[i].redial_us != 0 ? BEGIN_US + cases[i].redial_us : UINT64_MAX;

        ps_turn(ps);

        assert_int_equal(machine.looks, i + 1);
        assert_int_equal(machine.waited_until_us, BEGIN_US + cases[i].until_us);
    }
}

LOOP_TEST(other_ps_are_dialled_when_their_time_comes)
{
    ps->redial_us = BEGIN_US + 1;
    ps_turn(ps);
    assert_int_equal(ps->redial_us, BEGIN_US + 1);
    machine.now_us++;
    ps_turn(ps);
    assert_true(ps->redial_us == UINT64_MAX); /* there are none */
}

LOOP_TEST(a_tick_says_what_the_thread_has_worked_since_the_last)
{
    static const uint64_t worked_us[] = {700, 0, 250};

    for (size_t i = 0; i < 3; i++) {
        machine.cpu_us += worked_us[i];
        machine.now_us += TICK_US;
        ps_turn(ps);
        assert_int_equal(machine.told_count, i + 1);
        assert_int_equal(machine.told[i].cpu_us, worked_us[i]);
        assert_int_equal(machine.told[i].now_us, machine.now_us);
    }
}

/* The core is not stepped once it has ended, and nothing more is waited for. */
LOOP_TEST(after_the_exit_nothing_is_told_or_waited_for)
{
    machine.exits_at = LANE_EVENT_TERMINATE;
    machine.signal = 15;
    machine.now_us += TICK_US;

    ps_turn(ps);

    assert_int_equal(machine.told_count, 1);
    assert_int_equal(machine.told[0].kind, LANE_EVENT_TERMINATE);
    assert_int_equal(machine.looks, 0);
    assert_int_equal(ps->exit_code, 138);
    assert_false(ps->hurried);
}

LOOP_TEST(the_first_signal_is_the_cores_and_the_second_ends_the_process)
{
    machine.signal = 15;
    machine.now_us += TICK_US;
    ps_turn(ps);
    assert_int_equal(count_of(LANE_EVENT_TERMINATE), 1);
    assert_false(ps->exiting);
    assert_false(ps->hurried);

    machine.signal = 2;
    machine.now_us += TICK_US;
    ps_turn(ps);

    assert_int_equal(count_of(LANE_EVENT_TERMINATE), 1);
    assert_true(ps->exiting);
    assert_true(ps->hurried);
    assert_int_equal(ps->exit_code, 130);
    assert_string_equal(machine.logged, "ps 0 exits at once: signal 2 came again");
}

/* ---- vector work ---- */

/* A job of so many slices, which read and write nothing. */
static void submit(struct ps *ps, uint64_t job, uint32_t slices)
{
    static struct update_slice nothing[8];

    assert_true(slices <= sizeof nothing / sizeof *nothing);
    assert_true(compute_pool_submit(ps->pool, job, nothing, NULL, slices));
}

void __wrap_update_run(const struct update_slice *slice);

void __wrap_update_run(const struct update_slice *slice) { (void)slice; }

LOOP_TEST(what_was_computed_is_told_in_order)
{
    submit(ps, 7, 3);
    submit(ps, 8, 1);

    ps_turn(ps);

    assert_int_equal(machine.told_count, 2);
    assert_int_equal(machine.told[0].kind, LANE_EVENT_COMPUTED);
    assert_int_equal(machine.told[0].job, 7);
    assert_int_equal(machine.told[1].job, 8);
    assert_int_equal(machine.waited_until_us, BEGIN_US + TICK_US);
}

/* Half a millisecond of it, and then what has come is heard, without waiting for it. */
LOOP_TEST(vector_work_does_not_keep_the_network_waiting)
{
    submit(ps, 7, 8);
    machine.each_look_us = 200; /* a slice */

    ps_turn(ps);

    assert_int_equal(machine.told_count, 0);
    assert_int_equal(compute_pool_jobs(ps->pool), 1);
    assert_int_equal(machine.looks, 1);
    assert_int_equal(machine.waited_until_us, 0);
    assert_in_range(machine.now_us, BEGIN_US + 500, BEGIN_US + 1200);
}

/* Other threads have done all of it. */
LOOP_TEST(all_that_is_finished_is_told_in_a_round)
{
    submit(ps, 7, 1);
    submit(ps, 8, 1);
    while (compute_pool_help(ps->pool))
        ;

    ps_turn(ps);

    assert_int_equal(machine.told_count, 2);
    assert_int_equal(compute_pool_jobs(ps->pool), 0);
}

LOOP_TEST(what_is_computed_after_the_exit_is_not_told)
{
    submit(ps, 7, 1);
    submit(ps, 8, 1);
    while (compute_pool_help(ps->pool))
        ;
    machine.exits_at = LANE_EVENT_COMPUTED;

    ps_turn(ps);

    assert_int_equal(machine.told_count, 1);
    assert_int_equal(machine.looks, 0);
}

/* ---- every second ---- */

/* Of a round a second after the last one. */
static void look_round(struct ps *ps)
{
    machine.now_us += (uint64_t)PS_LOOK_ROUND_MS * 1000u;
    machine.logs = machine.told_count = 0;
    ps_turn(ps);
}

LOOP_TEST(every_second_the_machine_is_looked_at)
{
    machine.resident_bytes = 1234;
    machine.connections.open = 5;
    machine.now_us += (uint64_t)PS_LOOK_ROUND_MS * 1000u - 1;
    ps_turn(ps);
    assert_int_equal(machine.server_ticks, 0);

    machine.now_us += TICK_US;
    ps_turn(ps);
    assert_int_equal(machine.server_ticks, 1);
    assert_int_equal(machine.told[1].resident_bytes, 1234);
    assert_int_equal(machine.told[1].connections, 5);

    machine.now_us += TICK_US;
    ps_turn(ps);
    assert_int_equal(machine.server_ticks, 1);
}

/* One line for each, and it says how many there were since the last one. */
LOOP_TEST(whoever_was_refused_or_cut_is_told_of_once)
{
    uint64_t *const counts[] = {
        &machine.connections.refused, &machine.connections.cut, &machine.connections.unread,
        &machine.connections.shortages};
    static const char *const lines[] = {
        "ps 0 refused 3 connections: ", "ps 0 cut 3 connections: what came there",
        "ps 0 cut 3 connections where its answers were not read",
        "ps 0 has no descriptor or no memory"};

    for (size_t i = 0; i < 4; i++) {
        *counts[i] += 3;
        ps->connections_told_us = 0;
        look_round(ps);
        assert_int_equal(machine.logs, 1);
        assert_ptr_equal(strstr(machine.logged, lines[i]), machine.logged);
        ps->connections_told_us = 0;
        look_round(ps);
        assert_int_equal(machine.logs, 0);
    }
}

/* The heap keeps what is between: it is told to give that back once, when the ps is quiet. */
LOOP_TEST(after_a_crowd_the_heap_is_trimmed_when_it_is_quiet)
{
    static const struct {
        uint64_t resident_mib, worked_us;
        uint32_t trims;
    } seconds[] = {{40, 50000, 0}, {40, 50000, 0}, {40, 49999, 1}, {40, 0, 1}, {71, 0, 1},
                   {72, 0, 2},     {10, 0, 2},     {41, 0, 2},     {42, 0, 3}};

    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        machine.resident_bytes = seconds[i].resident_mib << 20;
        machine.cpu_us += seconds[i].worked_us;
        look_round(ps);
        assert_int_equal(machine.trims, seconds[i].trims);
    }
}

/* What the lane has is no crowd's. */
LOOP_TEST(what_the_lane_has_is_not_trimmed_for)
{
    ps->config.lane.base_bytes = UINT64_C(20) << 20;
    ps->lane_bytes = ps->lane_bytes_most = UINT64_C(30) << 20;
    machine.resident_bytes = UINT64_C(81) << 20;
    look_round(ps);
    assert_int_equal(machine.trims, 0);
    machine.resident_bytes = UINT64_C(10) << 20; /* some of it is not touched, or swapped out */
    look_round(ps);
    assert_int_equal(machine.trims, 0);
}

/* As after variables were deleted: once for each time that it had much more. */
LOOP_TEST(the_heap_is_trimmed_when_the_lane_has_much_less_than_it_had)
{
    static const struct {
        uint64_t bytes;
        uint32_t trims;
    } ticks[] = {{(8u << 20) + 1, 0}, {8u << 20, 1}, {8u << 20, 1}, {1u << 20, 1}};

    ps->lane_bytes_most = UINT64_C(40) << 20;
    for (size_t i = 0; i < sizeof ticks / sizeof *ticks; i++) {
        ps->lane_bytes = ticks[i].bytes;
        machine.now_us += TICK_US;
        ps_turn(ps);
        assert_int_equal(machine.trims, ticks[i].trims);
    }
}

/* ---- whose turn it is ---- */

static struct ps_link *wait_for_turn(struct ps *ps, bool bulky, struct rpc_call *call)
{
    struct ps_link *const link = ps_links_add(&ps->links, ps, call);

    link->is_stream = true;
    link->stream_kind = LANE_STREAM_PULL;
    link->waits = true;
    ps_turns_note(&ps->turns, link, bulky);
    LIST_APPEND(&ps->turns.waiting, link, in_turns);
    return link;
}

LOOP_TEST(a_turn_is_one_message_of_a_long_pull_or_a_few_short_ones)
{
    struct rpc_call *const call = (struct rpc_call *)(void *)&no_call;
    static char another;

    (void)wait_for_turn(ps, true, call); /* given */
    (void)wait_for_turn(ps, true, call);
    (void)wait_for_turn(ps, false, (struct rpc_call *)(void *)&another); /* not writable */
    for (uint32_t i = 0; i < PS_UNASKED_PER_TURN_MAX; i++)
        (void)wait_for_turn(ps, false, call);
    ps->turns.unasked = PS_UNASKED_PER_TURN_MAX + 7;

    ps_turn(ps);                                               /* when */
    assert_int_equal(count_of(LANE_EVENT_STREAM_WRITABLE), 1); /* then */
    assert_int_equal(machine.looks, PS_LOOKS_PER_TURN);
    assert_int_equal(ps->turns.unasked, 0);
    ps_turn(ps);
    assert_int_equal(count_of(LANE_EVENT_STREAM_WRITABLE), 2);
    assert_true(machine.told[1].stream > machine.told[0].stream);
    ps_turn(ps);
    assert_int_equal(count_of(LANE_EVENT_STREAM_WRITABLE), 2 + PS_UNASKED_PER_TURN_MAX - 1);
    assert_non_null(ps->turns.waiting.first);
    machine.exits_at = LANE_EVENT_STREAM_WRITABLE;
    (void)wait_for_turn(ps, false, call);
    ps_turn(ps);
    assert_int_equal(count_of(LANE_EVENT_STREAM_WRITABLE), 2 + PS_UNASKED_PER_TURN_MAX);
}

/* What comes without a pause is heard so many times, and then others have their turn. */
LOOP_TEST(between_two_turns_so_much_is_heard)
{
    struct rpc_call *const call = (struct rpc_call *)(void *)&no_call;

    (void)wait_for_turn(ps, true, call);
    (void)wait_for_turn(ps, true, call);
    machine.arrivals = 2 * PS_EVENTS_PER_TURN_MAX;

    ps_turn(ps);
    assert_int_equal(machine.looks, PS_UNHEARD_US_MAX / PS_EVENT_US);
    assert_int_equal(count_of(LANE_EVENT_STREAM_WRITABLE), 1);

    machine.looks = 0;
    machine.arrivals = 3; /* with the last of them it exits */
    ps_turn(ps);
    assert_int_equal(machine.looks, 3);
    assert_int_equal(count_of(LANE_EVENT_STREAM_WRITABLE), 1);
}

/* So many turns until the network is looked at for others, and how many looks that takes. */
static uint32_t turns_until_listening(struct ps *ps)
{
    uint32_t turns = 0;

    machine.listens = 0;
    while (machine.listens == 0) {
        assert_true(turns <= PS_UNHEARD_US_MAX);
        ps_turn(ps);
        turns++;
    }
    return turns;
}

/* Given: one stream has more messages there than anybody could handle. */
LOOP_TEST(of_a_stream_that_never_pauses_so_much_is_handled_and_then_others_are_heard)
{
    const uint32_t quick = PS_UNHEARD_US_MAX / PS_EVENT_US;

    machine.endless = true;
    machine.connections.open = 3;
    assert_int_equal(turns_until_listening(ps), quick + 1);
    assert_int_equal(machine.listens, 3 + 1);
    assert_int_equal(turns_until_listening(ps), quick + 1); /* and so on */
    machine.connections.open = 1000;
    assert_int_equal(turns_until_listening(ps), quick + 1);
    assert_int_equal(machine.listens, PS_LOOKS_PER_TURN);

    ps->unheard_us = PS_UNHEARD_US_MAX - 1; /* what steps and unpacking take counts, too */
    assert_int_equal(turns_until_listening(ps), 2);

    (void)turns_until_listening(ps);
    ps->unheard_us = PS_UNHEARD_US_MAX - 1;
    machine.endless = false;
    ps_turn(ps); /* a look that finds nothing */
    machine.endless = true;
    assert_int_equal(turns_until_listening(ps), quick + 1);

    ps->unheard_us = PS_UNHEARD_US_MAX;
    machine.arrivals = 2 * PS_EVENTS_PER_TURN_MAX; /* of others: ticks are due meanwhile */
    (void)turns_until_listening(ps);
    assert_int_equal(machine.listens, PS_EVENTS_PER_TURN_MAX);
}

LOOP_TEST(what_was_released_is_told_before_more_is_heard)
{
    struct ps_held *const held = pool_take(&ps->helds);

    held->node.id = 77;
    release_queue_push(&ps->released, &held->node);
    machine.exits_at = LANE_EVENT_RELEASED;

    ps_turn(ps);

    assert_int_equal(machine.told_count, 1);
    assert_int_equal(machine.told[0].hold, 77);
    assert_int_equal(machine.looks, 0);
    assert_ptr_equal(pool_take(&ps->helds), held); /* its note is another's */
    release_queue_push(&ps->released, &held->node);
    ps_take_released(ps);
    assert_int_equal(machine.told_count, 1); /* the core has ended */
}
