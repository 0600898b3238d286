/* SPDX-License-Identifier: Apache-2.0 */
/* ps.c -- the life of a ps: set up, one loop, an orderly end. */
#include "ps.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plural.h"
#include "ps_state.h"
#include "text.h"

#define HELDS_PER_CHUNK 64u
#define HOST_BYTES 256u
#define COMPUTE_US_MAX 500u
#define PS_QUIET_CPU_US_MAX 50000u /* of a second */
#define PS_TRIM_BYTES 33554432u    /* so much less than there was: worth a look at the heap */

/* ---- set up */

/* "::1" as "[::1]". */
static void bracket(const char *host, char *out, size_t out_bytes)
{
    const bool bare = strchr(host, ':') != NULL && host[0] != '[';

    (void)text_print(out, out_bytes, bare ? "[%s]" : "%s", host);
}

static int fail_start(struct ps *ps, const struct sumac_error *error)
{
    if (error->status == SUMAC_UNAVAILABLE) {
        ps_log(
            ps->index,
            "ps %u cannot start: %s; if that process is a ps of another run (sumac stats --ps %s "
            "shows it), give each run ports and a SUMAC_RUN of its own",
            ps->index, error->text, ps->config.addresses[ps->index]);
        return PS_EXIT_PORT_TAKEN;
    }
    ps_log(ps->index, "ps %u cannot start: %s", ps->index, error->text);
    return error->status == SUMAC_RESOURCE_EXHAUSTED ? PS_EXIT_NO_MEMORY : PS_EXIT_MISUSED;
}

static enum sumac_status listen_on_port(struct ps *ps, struct sumac_error *error)
{
    char host[HOST_BYTES];

    bracket(ps->options.bind_host, host, sizeof host);
    const struct rpc_server_options options = {
        .bind_host = host,
        .port = ps->config.port,
        .memory_bytes_max = ps->options.grpc_memory_bytes_max,
        .streams_max = ps->options.streams_max,
        .calls_max = ps->options.calls_max,
        .connections_max = ps->options.connections_max,
    };
    if (rpc_server_open(ps->poller, &options, &ps->server, error) != SUMAC_OK ||
        ps_services_add(ps, error) != SUMAC_OK)
        return error->status;
    return rpc_server_start(ps->server, error);
}

/* The first line: where, which release, and on ps 0, which mints it, of which cluster. */
static void say_begun(const struct ps *ps)
{
    const uint64_t cluster_id = lane_cluster_id(ps_core_lane(ps->core));
    const uint32_t port = rpc_server_port(ps->server);
    char host[HOST_BYTES], cluster[32] = "";

    bracket(ps->options.bind_host, host, sizeof host);
    if (cluster_id != 0)
        (void)text_print(cluster, sizeof cluster, ", cluster %016" PRIx64, cluster_id);
    ps_log(
        ps->index, "ps %u listens on %s:%u, version %s%s", ps->index, host, port, sumac_version(),
        cluster);
    if (ps_config_listens_elsewhere(&ps->options, port))
        ps_log(
            ps->index,
            "ps %u listens on %s:%u, and its listed address is %s: the other processes look for it "
            "there; unless that address is forwarded here, correct --port, --bind or the list",
            ps->index, host, port, sumac_cluster_address(ps->options.cluster, "ps", ps->index));
    if (rpc_server_lacks_ipv6(ps->server))
        ps_log(ps->index, "ps %u listens on IPv4 only: this host has no IPv6 address", ps->index);
}

static bool take_resources(struct ps *ps)
{
    release_queue_init(&ps->released);
    huge_pages_init(&ps->pages);
    pool_init(&ps->helds, &memory_heap, sizeof(struct ps_held), HELDS_PER_CHUNK);
    return ps_links_init(&ps->links) && ps_random_init(&ps->random) &&
           rpc_poller_create(&ps->poller) == SUMAC_OK &&
           compute_pool_create(ps->options.threads, &ps->pool);
}

static void *take_for_lane(void *context, size_t bytes)
{
    struct ps *const ps = context;
    void *const data = huge_pages_take(&ps->pages, bytes);

    if (data == NULL)
        return NULL;
    ps->lane_bytes += bytes;
    if (ps->lane_bytes > ps->lane_bytes_most)
        ps->lane_bytes_most = ps->lane_bytes;
    return data;
}

static void give_for_lane(void *context, void *data, size_t bytes)
{
    struct ps *const ps = context;

    ps->lane_bytes -= bytes;
    huge_pages_give(&ps->pages, data, bytes);
}

/* The heap keeps what lies between what is in use, until it is told not to. */
static void trim_heap(struct ps *ps)
{
    if (ps->lane_bytes_most - ps->lane_bytes < PS_TRIM_BYTES)
        return;
    ps_heap_trim();
    ps->lane_bytes_most = ps->lane_bytes;
}

static bool start_lane(struct ps *ps)
{
    struct lane_config *const config = &ps->config.lane;

    do
        config->incarnation = ps_random_bits(&ps->random);
    while (config->incarnation == 0);
    config->started_us = ps_now_us();
    ps->resident_bytes = ps_resident_bytes();
    config->base_bytes = ps->resident_bytes + HUGE_PAGES_SPARE_BYTES;
    ps->lane_memory = (struct memory){.take = take_for_lane, .give = give_for_lane, .context = ps};
    ps->core = ps_core_create(config, &ps->lane_memory);
    if (ps->core == NULL)
        return false;
    ps->wake_us = ps->redial_us = UINT64_MAX;
    ps->ticked_us = config->started_us;
    struct lane_event start = {.kind = LANE_EVENT_START};
    ps_step(ps, &start);
    say_begun(ps);
    ps_log_move();
    return true;
}

/* ---- the loop */

/* The first signal is obeyed by the lane, the second by the process. */
static void obey_signal(struct ps *ps, int number)
{
    if (ps->signalled != 0) {
        ps_log(ps->index, "ps %u exits at once: signal %d came again", ps->index, number);
        ps->hurried = true;
        ps_exit(ps, 128 + number);
        return;
    }
    ps->signalled = number;
    struct lane_event event = {
        .kind = LANE_EVENT_TERMINATE,
        .signal = number == SIGINT   ? LANE_SIGNAL_INT
                  : number == SIGHUP ? LANE_SIGNAL_HUP
                                     : LANE_SIGNAL_TERM};
    ps_step(ps, &event);
}

/* Who could not get in; not oftener than every PS_CONNECTIONS_TOLD_MS. */
static void tell_of_refused(struct ps *ps, uint64_t now_us)
{
    const struct rpc_connections *const is = &ps->connections, *const told = &ps->connections_told;

    if ((is->refused == told->refused && is->shortages == told->shortages && is->cut == told->cut &&
         is->unread == told->unread) ||
        (ps->connections_told_us != 0 &&
         now_us - ps->connections_told_us < (uint64_t)PS_CONNECTIONS_TOLD_MS * 1000u))
        return;
    if (is->refused != told->refused)
        ps_log(
            ps->index,
            "ps %u refused %" PRIu64
            " connection%s: %u are open of at most %u, of which a host may have as many as are "
            "left free; close some, or raise --connections-max",
            ps->index, (is->refused - told->refused), plural(is->refused - told->refused), is->open,
            ps->options.connections_max);
    if (is->cut != told->cut)
        ps_log(
            ps->index,
            "ps %u cut %" PRIu64
            " connection%s: what came there without a pause, or calls that were opened and reset "
            "without end, kept it from everybody else",
            ps->index, (is->cut - told->cut), plural(is->cut - told->cut));
    if (is->unread != told->unread)
        ps_log(
            ps->index,
            "ps %u cut %" PRIu64 " connection%s where its answers were not read: at most %u bytes "
            "wait for one, and %u for all; read them, or ask less at a time",
            ps->index, (is->unread - told->unread), plural(is->unread - told->unread),
            RPC_UNREAD_CONNECTION_BYTES_MAX, RPC_UNREAD_BYTES_MAX);
    if (is->shortages != told->shortages)
        ps_log(
            ps->index,
            "ps %u has no descriptor or no memory for those who want to connect, and lets them "
            "wait: %u connections are open; raise the hard limit of open files (ulimit -Hn)",
            ps->index, is->open);
    ps->connections_told = *is;
    ps->connections_told_us = now_us;
}

/* Resident beyond what the process was and the lane has: gRPC's, or what gRPC gave back and the
 * heap keeps. */
static uint64_t beyond_lane_bytes(const struct ps *ps)
{
    const uint64_t known = ps->config.lane.base_bytes + ps->lane_bytes;

    return ps->resident_bytes > known ? ps->resident_bytes - known : 0;
}

/* After a crowd the heap is asked to give back what it keeps: when it is quiet, because that takes
 * long with a large heap. What it does not give back is in use, and it is asked again only when
 * there is more. */
static void trim_after_crowd(struct ps *ps)
{
    const uint64_t cpu_us = ps_cpu_us();
    const bool quiet = cpu_us - ps->looked_cpu_us < PS_QUIET_CPU_US_MAX;
    const uint64_t bytes = beyond_lane_bytes(ps);

    ps->looked_cpu_us = cpu_us;
    if (bytes < ps->kept_bytes)
        ps->kept_bytes = bytes;
    if (!quiet || bytes - ps->kept_bytes < PS_TRIM_BYTES)
        return;
    ps_heap_trim();
    ps->resident_bytes = ps_resident_bytes();
    ps->kept_bytes = beyond_lane_bytes(ps);
}

/* What is looked at every second. */
static void look_round(struct ps *ps, uint64_t now_us)
{
    ps->looked_round_us = now_us;
    ps->resident_bytes = ps_resident_bytes();
    trim_after_crowd(ps);
    rpc_server_tick(ps->server, now_us);
    ps->connections = rpc_server_connections(ps->server);
    tell_of_refused(ps, now_us);
}

static void tick(struct ps *ps, uint64_t now_us)
{
    const int number = ps_signals_take(ps);

    if (number != 0)
        obey_signal(ps, number);
    if (now_us - ps->looked_round_us >= (uint64_t)PS_LOOK_ROUND_MS * 1000u)
        look_round(ps, now_us);
    ps_services_tick(ps, now_us);
    ps_probe_tick(ps, now_us);
    trim_heap(ps);
    ps->ticked_us = now_us;
    ps->wake_us = UINT64_MAX;
    const uint64_t cpu_us = ps_cpu_us();
    struct lane_event event = {.kind = LANE_EVENT_TICK, .cpu_us = cpu_us - ps->ticked_cpu_us};
    ps->ticked_cpu_us = cpu_us;
    if (!ps->exiting)
        ps_step(ps, &event);
}

/* When the next tick is due. */
static uint64_t tick_us(const struct ps *ps)
{
    const uint64_t latest_us = ps->ticked_us + (uint64_t)PS_TICK_MS_MAX * 1000u;

    return ps->wake_us < latest_us ? ps->wake_us : latest_us;
}

/* Slices, and what is finished. Polling between any two of them would cost a medium push a fifth of
 * its time, so the network is looked at when about half a millisecond is over. */
static void compute(struct ps *ps, uint64_t now_us)
{
    const uint64_t until_us = now_us + COMPUTE_US_MAX;
    bool helped = true;

    while (helped && !ps->exiting && compute_pool_jobs(ps->pool) > 0) {
        helped = compute_pool_help(ps->pool) && ps_now_us() < until_us;
        uint64_t job;
        while (!ps->exiting && (job = compute_pool_finished(ps->pool)) != 0) {
            struct lane_event event = {.kind = LANE_EVENT_COMPUTED, .job = job};
            ps_step(ps, &event);
        }
    }
}

static bool note_heard(struct ps *ps, enum rpc_polled polled)
{
    const bool is_event = polled == RPC_POLLED_EVENT;

    ps->unheard_us = is_event ? ps->unheard_us + PS_EVENT_US : 0;
    return is_event;
}

/* A look that finds nothing has served at most one socket, or only taken note that a message is
 * out: of many that are ready the others are still to be served. */
static void handle_what_is_at_hand(struct ps *ps)
{
    uint32_t quiet = 0;

    while (quiet < PS_LOOKS_PER_TURN && ps->unheard_us < PS_UNHEARD_US_MAX && !ps->exiting)
        quiet += !note_heard(ps, rpc_poll(ps->poller, 0));
}

/* gRPC hands out what is there before it looks at a socket, and who has one message there may have
 * a million. So of each call the next one is handled, and then no more are asked for until each
 * connection has been looked at. */
static void listen_to_all(struct ps *ps)
{
    const uint32_t sockets = rpc_server_connections(ps->server).open + 1; /* one more may come */
    const uint32_t looks = sockets < PS_LOOKS_PER_TURN ? sockets : PS_LOOKS_PER_TURN;
    uint32_t events = 0, quiet = 0;

    (void)note_heard(ps, rpc_poll(ps->poller, 0));
    while (events < PS_EVENTS_PER_TURN_MAX && quiet < looks && !ps->exiting) {
        if (note_heard(ps, rpc_listen(ps->poller)))
            events++;
        else
            quiet++;
    }
}

void ps_turn(struct ps *ps)
{
    const uint64_t now_us = ps_now_us();

    if (now_us >= tick_us(ps))
        tick(ps, now_us);
    if (now_us >= ps->redial_us)
        ps_peers_tick(ps, now_us);
    ps_take_released(ps);
    if (compute_pool_jobs(ps->pool) > 0) {
        compute(ps, now_us);
        ps->unheard_us += COMPUTE_US_MAX;
    }
    if (ps->exiting)
        return;
    const bool busy = compute_pool_jobs(ps->pool) > 0;
    const uint64_t due_us = tick_us(ps) < ps->redial_us ? tick_us(ps) : ps->redial_us;
    /* Between two long steps more is heard than one message. */
    const bool goes_on = ps->wake_us <= ps->stepped_us;
    if (ps->unheard_us < PS_UNHEARD_US_MAX && ps->turns.waiting.first == NULL && !goes_on) {
        (void)note_heard(ps, rpc_poll(ps->poller, busy ? 0 : due_us));
        return;
    }
    if (ps->unheard_us < PS_UNHEARD_US_MAX)
        handle_what_is_at_hand(ps);
    else
        listen_to_all(ps);
    ps_services_turn(ps);
}

/* ---- the end */

/* A connection that is closed with bytes unread is reset, and what its client was told last is lost
 * with it: whoever is still sending is listened to for a while. */
static int linger(struct ps *ps)
{
    int number = 0;
    const uint64_t end_us = ps_now_us() + (uint64_t)PS_LINGER_MS * 1000u;

    while (ps_now_us() < end_us && (number = ps_signals_take(ps)) == 0)
        (void)rpc_poll(ps->poller, end_us);
    return number;
}

/* What was said before the end goes out, within PS_DRAIN_MS_MAX; another signal is not kept
 * waiting. Then the connections that clients still have are ended in peace: PS_GOODBYE_MS_MAX is
 * for who does not answer. */
static void drain(struct ps *ps)
{
    int number = 0;

    ps_probe_end(ps);
    if (ps_services_end(ps) > 0)
        number = linger(ps);
    rpc_server_drain(ps->server);
    uint64_t now_us = ps_now_us(), end_us = now_us + (uint64_t)PS_DRAIN_MS_MAX * 1000u;
    bool peace = false;
    while (number == 0 && (now_us = ps_now_us()) < end_us && (number = ps_signals_take(ps)) == 0 &&
           !(peace && rpc_server_is_down(ps->server))) {
        if (!peace && ps_peers_end(ps) + rpc_server_calls(ps->server) == 0) {
            peace = true;
            end_us = now_us + (uint64_t)PS_GOODBYE_MS_MAX * 1000u;
        }
        const uint64_t until_us = now_us + (uint64_t)PS_TICK_MS_MAX * 1000u;
        (void)rpc_poll(ps->poller, until_us < end_us ? until_us : end_us);
    }
    if (number != 0 && ps->signalled != 0)
        ps->exit_code = 128 + number;
}

/* Slices that are out still touch the lane's blocks. */
static void finish_computing(struct ps *ps)
{
    while (ps->pool != NULL && compute_pool_jobs(ps->pool) > 0) {
        (void)compute_pool_help(ps->pool);
        (void)compute_pool_finished(ps->pool);
    }
}

static void give_resources(struct ps *ps)
{
    finish_computing(ps);
    ps_peers_close(ps);
    ps_probe_end(ps);
    rpc_server_close(ps->server);
    rpc_poller_destroy(ps->poller);
    compute_pool_destroy(ps->pool);
    /* gRPC drops its last slices as it shuts down: only then are the lane's blocks nobody's. */
    rpc_deinit();
    ps_take_released(ps);
    if (ps->core != NULL)
        ps_core_destroy(ps->core);
    pool_deinit(&ps->helds);
    ps_links_deinit(&ps->links);
    free(ps->payload);
    huge_pages_deinit(&ps->pages);
    ps_config_free(&ps->config);
}

static int serve(struct ps *ps)
{
    struct sumac_error error = {0};

    if (ps_config_make(&ps->options, &ps->config, &error) != SUMAC_OK)
        return fail_start(ps, &error);
    if (!take_resources(ps)) {
        ps_log(
            ps->index,
            "ps %u cannot start: no memory, or no thread to be had; raise its limits (ulimit -u, "
            "-v)",
            ps->index);
        return PS_EXIT_NO_MEMORY;
    }
    if (listen_on_port(ps, &error) != SUMAC_OK)
        return fail_start(ps, &error);
    if (!start_lane(ps)) {
        ps_log(ps->index, "ps %u cannot start: no memory", ps->index);
        return PS_EXIT_NO_MEMORY;
    }
    while (!ps->exiting)
        ps_turn(ps);
    if (!ps->hurried)
        drain(ps);
    return ps->exit_code;
}

int ps_run(const struct ps_options *options)
{
    struct ps *const ps = calloc(1, sizeof *ps);
    struct sumac_error error;

    if (ps == NULL)
        return PS_EXIT_NO_MEMORY;
    ps->options = *options;
    ps_options_fill(&ps->options);
    ps->index = options->cluster->task_index;
    ps->newcomer.ps = ps;
    ps_signals_block(ps);
    if (rpc_check_threads(&error) != SUMAC_OK) {
        const int failed = fail_start(ps, &error);
        free(ps);
        return failed;
    }
    rpc_init();
    const int exit_code = serve(ps);
    if (ps->core == NULL && exit_code == PS_EXIT_NO_MEMORY)
        ps_exit_at_once(exit_code);
    ps->exiting = true;
    ps_exit_within(exit_code, PS_CLOSE_MS_MAX);
    give_resources(ps);
    ps_signals_restore(ps);
    free(ps);
    return exit_code;
}
