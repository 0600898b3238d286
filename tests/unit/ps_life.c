/* SPDX-License-Identifier: Apache-2.0 */
/* ps_life.c -- the life of a ps: why it does not start, what signals do to it, how it comes to its
 * exit code.
 *
 * It serves nobody, and its core does what the test says.
 */

#include "unit.h"
#include "ps_state.h"
#include "text.h"

#define SIGNALS_MAX 3u

static struct life {
    int signals[SIGNALS_MAX];      /* one each time that it looks for one; 0: none comes any more */
    uint32_t looks;                /* for signals */
    enum lane_event_kind exits_at; /* the core, with 143 */
    uint32_t streams;              /* of clients, that are told of the end */
    uint32_t steps, ends, drains;
    uint32_t looks_at_end, looks_at_drain;
    uint64_t bits; /* the next ones */
    uint64_t incarnation;
    enum sumac_status start; /* of its server */
    struct rpc_server_options server;
    bool computes;      /* the core has vector work with its first event */
    uint64_t had_bytes; /* the core, and has no more */
    uint32_t trims;
    uint32_t computed; /* slices */
    /* While it drains: how often streams to other ps and calls are found open, and whether clients
     * take their goodbye. Each look at the clock takes 10 ms. */
    uint32_t peers_found, calls_found;
    bool says_goodbye;
    uint64_t drained_us, now_us;
    uint32_t found;
    int at_once;       /* it leaves with this code, and does not close gRPC */
    int at_latest;     /* it leaves with this code, even where gRPC does not close */
    char logged[1024]; /* last */
} life;

int __wrap_ps_signals_take(const struct ps *ps);

int __wrap_ps_signals_take(const struct ps *ps)
{
    const uint32_t look = life.looks++;
    (void)ps;

    return look < SIGNALS_MAX ? life.signals[look] : 0;
}

void __wrap_ps_exit_at_once(int exit_code);

/* It returns, so that the test goes on. */
void __wrap_ps_exit_at_once(int exit_code) { life.at_once = exit_code; }

void __wrap_ps_exit_within(int exit_code, uint32_t ms);

void __wrap_ps_exit_within(int exit_code, uint32_t ms)
{
    assert_int_equal(ms, PS_CLOSE_MS_MAX);
    life.at_latest = exit_code;
}

uint64_t __wrap_ps_random_bits(struct ps_random *random);

uint64_t __wrap_ps_random_bits(struct ps_random *random)
{
    (void)random;
    return life.bits++;
}

struct ps_core *
__real_ps_core_create(const struct lane_config *config, const struct memory *memory);
struct ps_core *
__wrap_ps_core_create(const struct lane_config *config, const struct memory *memory);

struct ps_core *__wrap_ps_core_create(const struct lane_config *config, const struct memory *memory)
{
    void *const much = memory_take(memory, life.had_bytes);

    memory_give(memory, much, life.had_bytes);
    life.incarnation = config->incarnation;
    return __real_ps_core_create(config, memory);
}

void __wrap_ps_core_step(
    struct ps_core *core, const struct lane_event *event, struct lane_effects *effects);

void __wrap_ps_core_step(
    struct ps_core *core, const struct lane_event *event, struct lane_effects *effects)
{
    static struct update_slice nothing[2];
    static const struct lane_compute work = {.job = 7, .slices = nothing, .slice_count = 2};
    static struct lane_effect says[2];
    (void)core;

    says[0] = (struct lane_effect){.kind = LANE_EFFECT_WAKE, .at_us = event->now_us};
    says[1] = (struct lane_effect){.kind = LANE_EFFECT_EXIT, .exit_code = 143};
    if (life.computes && life.steps == 0)
        says[0] = (struct lane_effect){.kind = LANE_EFFECT_COMPUTE, .compute = &work};
    *effects = (struct lane_effects){.items = says, .count = event->kind == life.exits_at ? 2 : 1};
    life.steps++;
}

void __wrap_update_run(const struct update_slice *slice);

void __wrap_update_run(const struct update_slice *slice)
{
    (void)slice;
    life.computed++;
}

void __wrap_ps_heap_trim(void);

void __wrap_ps_heap_trim(void) { life.trims++; }

enum sumac_status __real_rpc_server_open(
    struct rpc_poller *poller, const struct rpc_server_options *options, struct rpc_server **server,
    struct sumac_error *error);
enum sumac_status __wrap_rpc_server_open(
    struct rpc_poller *poller, const struct rpc_server_options *options, struct rpc_server **server,
    struct sumac_error *error);

enum sumac_status __wrap_rpc_server_open(
    struct rpc_poller *poller, const struct rpc_server_options *options, struct rpc_server **server,
    struct sumac_error *error)
{
    life.server = *options;
    return __real_rpc_server_open(poller, options, server, error);
}

uint32_t __wrap_ps_services_end(struct ps *ps);

uint32_t __wrap_ps_services_end(struct ps *ps)
{
    (void)ps;
    life.ends++;
    life.looks_at_end = life.looks;
    return life.streams;
}

void __real_rpc_server_drain(struct rpc_server *server);
void __wrap_rpc_server_drain(struct rpc_server *server);

void __wrap_rpc_server_drain(struct rpc_server *server)
{
    life.drains++;
    life.looks_at_drain = life.looks;
    __real_rpc_server_drain(server);
    life.drained_us = life.now_us;
}

uint64_t __real_ps_now_us(void);
uint64_t __wrap_ps_now_us(void);

uint64_t __wrap_ps_now_us(void)
{
    life.now_us = life.drains == 0 ? __real_ps_now_us() : life.now_us + 10000;
    return life.now_us;
}

enum rpc_polled __real_rpc_poll(struct rpc_poller *poller, uint64_t until_us);
enum rpc_polled __wrap_rpc_poll(struct rpc_poller *poller, uint64_t until_us);

enum rpc_polled __wrap_rpc_poll(struct rpc_poller *poller, uint64_t until_us)
{
    return __real_rpc_poll(poller, life.drains > 0 && until_us != UINT64_MAX ? 0 : until_us);
}

uint32_t __wrap_ps_peers_end(struct ps *ps);

uint32_t __wrap_ps_peers_end(struct ps *ps)
{
    (void)ps;
    return life.found++ < life.peers_found;
}

uint32_t __wrap_rpc_server_calls(const struct rpc_server *server);

uint32_t __wrap_rpc_server_calls(const struct rpc_server *server)
{
    (void)server;
    return life.found <= life.calls_found;
}

bool __wrap_rpc_server_is_down(const struct rpc_server *server);

bool __wrap_rpc_server_is_down(const struct rpc_server *server)
{
    (void)server;
    return life.says_goodbye;
}

enum sumac_status __real_rpc_server_start(struct rpc_server *server, struct sumac_error *error);
enum sumac_status __wrap_rpc_server_start(struct rpc_server *server, struct sumac_error *error);

enum sumac_status __wrap_rpc_server_start(struct rpc_server *server, struct sumac_error *error)
{
    *error = (struct sumac_error){.status = life.start, .text = "no server"};
    if (life.start != SUMAC_OK)
        return life.start;
    return __real_rpc_server_start(server, error);
}

void __wrap_ps_log(uint32_t index, const char *format, ...);

void __wrap_ps_log(uint32_t index, const char *format, ...)
{
    va_list arguments;
    (void)index;

    va_start(arguments, format);
    (void)text_print_values(life.logged, sizeof life.logged, format, arguments);
    va_end(arguments);
}

/* As the task of this type; its exit code. */
static int run_as(const char *type)
{
    struct ps_options options = PS_OPTIONS_INIT;
    struct sumac_cluster cluster;
    struct sumac_error error;
    char text[160];

    (void)text_print(
        text, sizeof text,
        "{\"cluster\":{\"ps\":[\"127.0.0.1:1\"],\"worker\":[\"127.0.0.1:2\"]},"
        "\"task\":{\"type\":\"%s\",\"index\":0}}",
        type);
    assert_int_equal(sumac_cluster_parse(text, NULL, &cluster, &error), SUMAC_OK);
    options.cluster = &cluster;
    options.bind_host = "127.0.0.1";
    options.port_given = true;
    options.threads = 0;
    options.streams_max = 11;
    options.connections_max = 12;
    options.calls_max = 1300;
    options.grpc_memory_bytes_max = 14u << 20;
    const int exit_code = ps_run(&options);
    sumac_cluster_deinit(&cluster);
    return exit_code;
}

TEST(what_keeps_a_ps_from_starting_is_its_exit_code)
{
    static const struct {
        enum sumac_status status;
        int exit_code;
        const char *logged;
    } cases[] = {
        {SUMAC_UNAVAILABLE, PS_EXIT_PORT_TAKEN,
         "ps 0 cannot start: no server; if that process is a ps of another run (sumac stats --ps "
         "127.0.0.1:1 shows it), give each run ports and a SUMAC_RUN of its own"},
        {SUMAC_RESOURCE_EXHAUSTED, PS_EXIT_NO_MEMORY, "ps 0 cannot start: no server"},
        {SUMAC_INVALID_ARGUMENT, PS_EXIT_MISUSED, "ps 0 cannot start: no server"}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        life = (struct life){.start = cases[i].status};
        assert_int_equal(run_as("ps"), cases[i].exit_code);
        assert_string_equal(life.logged, cases[i].logged);
        assert_int_equal(life.steps, 0);
        assert_int_equal(life.at_once, cases[i].exit_code == PS_EXIT_NO_MEMORY ? 137 : 0);
    }
    life = (struct life){.start = SUMAC_OK};
    assert_int_equal(run_as("worker"), PS_EXIT_MISUSED);
    assert_non_null(strstr(life.logged, "a ps needs task.type \"ps\""));
}

/* A signal that comes while what was said goes out cuts that short. It says how a ps ends that an
 * earlier one ends; a run that has ended by itself has its code. */
TEST(the_first_signal_is_obeyed_and_the_second_ends_the_ps_as_it_is)
{
    static const struct {
        int signals[SIGNALS_MAX];
        enum lane_event_kind exits_at;
        uint32_t streams;
        int exit_code;
        bool drains;
        uint32_t looks; /* for signals, once all are told of the end, until it drains */
    } cases[] = {{{15}, LANE_EVENT_TERMINATE, 0, 143, true, 0},
                 {{2}, LANE_EVENT_TERMINATE, 0, 130, true, 0},
                 {{15, 2}, LANE_EVENT_RUN_OVER, 0, 130, false, 0}, /* the core takes its time */
                 {{15, 15}, LANE_EVENT_RUN_OVER, 0, 143, false, 0},
                 {{15, 2}, LANE_EVENT_TERMINATE, 0, 130, true, 0},
                 {{15, 2}, LANE_EVENT_TERMINATE, 1, 130, true, 1}, /* it lingers for a client */
                 {{0, 2}, LANE_EVENT_TICK, 0, 143, true, 0},
                 {{0, 2}, LANE_EVENT_TICK, 1, 143, true, 1}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        life = (struct life){.exits_at = cases[i].exits_at, .streams = cases[i].streams};
        memcpy(life.signals, cases[i].signals, sizeof life.signals);

        assert_int_equal(run_as("ps"), cases[i].exit_code);

        assert_int_equal(life.at_latest, cases[i].exit_code);
        assert_int_equal(life.ends, cases[i].drains);
        assert_int_equal(life.drains, cases[i].drains);
        if (cases[i].drains)
            assert_int_equal(life.looks_at_drain - life.looks_at_end, cases[i].looks);
    }
}

/* What is open has two seconds, and then the connections half of one. */
TEST(what_was_said_goes_out_within_its_time)
{
    static const struct {
        uint32_t peers_found, calls_found;
        bool says_goodbye;
        uint32_t found;    /* times that it was looked at what is open; 0: until the time is over */
        uint32_t least_ms; /* that it took; half a tenth more at most */
    } cases[] = {
        {0, 0, true, 1, 0},
        {3, 0, true, 4, 0},
        {0, 3, true, 4, 0},
        {3, 5, true, 6, 0},
        {0, 0, false, 1, 500},
        {UINT32_MAX, 0, true, 0, 2000},
        {0, UINT32_MAX, true, 0, 2000}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        life = (struct life){
            .exits_at = LANE_EVENT_TICK,
            .peers_found = cases[i].peers_found,
            .calls_found = cases[i].calls_found,
            .says_goodbye = cases[i].says_goodbye};

        assert_int_equal(run_as("ps"), 143);

        const uint64_t took_ms = (life.now_us - life.drained_us) / 1000;
        if (cases[i].found != 0)
            assert_int_equal(life.found, cases[i].found);
        assert_in_range(took_ms, cases[i].least_ms, cases[i].least_ms + 100);
    }
}

/* 0 is nobody's. */
TEST(an_incarnation_is_not_0)
{
    life = (struct life){.exits_at = LANE_EVENT_TICK};

    assert_int_equal(run_as("ps"), 143);

    assert_int_equal(life.incarnation, 1);
}

TEST(its_server_is_bound_as_the_options_say)
{
    life = (struct life){.exits_at = LANE_EVENT_TICK};

    assert_int_equal(run_as("ps"), 143);

    assert_int_equal(life.server.port, 0);
    assert_int_equal(life.server.streams_max, 11);
    assert_int_equal(life.server.connections_max, 12);
    assert_int_equal(life.server.calls_max, 1300);
    assert_int_equal(life.server.memory_bytes_max, 14u << 20);
}

/* It reads and writes what the core has. */
TEST(vector_work_is_finished_before_the_core_goes)
{
    life = (struct life){.exits_at = LANE_EVENT_START, .computes = true};

    assert_int_equal(run_as("ps"), 143);

    assert_int_equal(life.computed, 2);
}

TEST(the_heap_is_trimmed_of_what_the_core_has_given_back)
{
    for (int i = 0; i < 2; i++) {
        life = (struct life){.exits_at = LANE_EVENT_TICK, .had_bytes = (i == 0 ? 1u : 64u) << 20};

        assert_int_equal(run_as("ps"), 143);

        assert_int_equal(life.trims, i);
    }
}
