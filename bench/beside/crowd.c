/* SPDX-License-Identifier: Apache-2.0 */
/* crowd.c -- `sumac run --ps 1 --workers 2 -- crowd_worker SECONDS STREAMS CONNECTIONS`: how long a
 * push of 256 bytes takes while one process reads a variable of 16 MB over so many streams at once,
 * again and again.
 *
 * Worker 0 pushes, and prints a line of JSON: pushes, p50, p99 and the largest, in ms, as it saw
 * them; then the ps's own statistics. Worker 1 reads, by lib/rpc alone: the public client has one
 * stream to a ps.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rpc.h"
#include "sumac/client.h"

#define LARGE_BYTES (UINT64_C(16) << 20)
#define SMALL_BYTES UINT64_C(256)
#define PUSHES_MAX 4000000u
#define STREAMS_MAX 1000u

struct reader {
    struct rpc_poller *poller;
    struct rpc_channel *channels[STREAMS_MAX];
    unsigned connections;
    uint64_t shard_id;
    uint32_t layout_epoch;
    uint64_t bytes, whole; /* that came; pulls that were answered */
};

static double now_s(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void check(enum sumac_status status, const struct sumac_error *error)
{
    if (status == SUMAC_OK)
        return;
    fprintf(stderr, "crowd: %s\n", error->text);
    exit(sumac_exit_code(error));
}

/* ---- worker 1 */

static void ask(struct rpc_call *call, bool first)
{
    struct reader *const reader = rpc_call_user(call);
    wire_hello hello = WIRE_HELLO_INIT;
    wire_piece piece = WIRE_PIECE_INIT, *pieces[] = {&piece};
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;

    hello.protocol_version = WIRE_PROTOCOL_VERSION;
    request.hello = first ? &hello : NULL;
    request.request = 1;
    piece.shard_id = reader->shard_id;
    piece.layout_epoch = reader->layout_epoch;
    request.pieces = pieces;
    request.n_pieces = 1;
    rpc_call_send(call, &request.base, NULL, 0);
}

static void opened(struct rpc_call *call) { ask(call, true); }

static void pulled(struct rpc_call *call, const struct wire_received *received)
{
    struct reader *const reader = rpc_call_user(call);
    const wire_pull_answer *answer = (const wire_pull_answer *)(const void *)received->message;

    reader->bytes += received->payload_bytes;
    if (answer->request == 0 || !answer->last)
        return;
    reader->whole++;
    ask(call, false);
}

static void listed(struct rpc_call *call, const struct wire_received *received)
{
    struct reader *const reader = rpc_call_user(call);
    const wire_list_reply *reply = (const wire_list_reply *)(const void *)received->message;

    for (size_t i = 0; i < reply->n_variables; i++) {
        if (strcmp(reply->variables[i]->name, "large") != 0)
            continue;
        reader->shard_id = reply->variables[i]->shards[0]->shard_id;
        reader->layout_epoch = reply->variables[i]->shards[0]->layout_epoch;
    }
}

static void closed(struct rpc_call *call, const struct sumac_error *error)
{
    (void)call;
    if (error->status != SUMAC_OK && error->status != SUMAC_CANCELLED)
        fprintf(stderr, "crowd: %s\n", error->text);
}

static const struct rpc_handler lister = {.message = listed, .closed = closed};
static const struct rpc_handler puller = {.opened = opened, .message = pulled, .closed = closed};

static void begin(struct reader *reader, unsigned streams)
{
    struct rpc_call *call;

    while (reader->shard_id == 0) {
        wire_list_request request = WIRE_LIST_REQUEST_INIT;
        const struct timespec pause = {.tv_nsec = 20000000};
        if (rpc_channel_call(
                reader->channels[0],
                &(struct rpc_start){
                    .service = WIRE_VARIABLES,
                    .method = WIRE_VARIABLES_LIST,
                    .message = &request.base,
                    .wait_for_ready = true,
                    .handler = &lister,
                    .user = reader},
                &call) != SUMAC_OK)
            exit(1);
        (void)nanosleep(&pause, NULL);
        while (rpc_poll(reader->poller, (uint64_t)(now_s() * 1e6) + 20000) == RPC_POLLED_EVENT)
            ;
    }
    for (unsigned i = 0; i < streams; i++)
        if (rpc_channel_call(
                reader->channels[i % reader->connections],
                &(struct rpc_start){
                    .service = WIRE_TRANSFER,
                    .method = WIRE_TRANSFER_PULL,
                    .wait_for_ready = true,
                    .handler = &puller,
                    .user = reader},
                &call) != SUMAC_OK)
            exit(1);
}

static void read_for(const char *address, unsigned streams, unsigned connections, double seconds)
{
    struct reader reader = {.connections = connections};

    rpc_init();
    if (rpc_poller_create(&reader.poller) != SUMAC_OK)
        exit(1);
    for (unsigned i = 0; i < connections; i++)
        if (rpc_channel_open(reader.poller, address, &reader.channels[i]) != SUMAC_OK)
            exit(1);
    begin(&reader, streams);
    const double start = now_s();
    while (now_s() < start + seconds)
        (void)rpc_poll(reader.poller, (uint64_t)((start + seconds) * 1e6));
    fprintf(
        stderr, "%u streams: %" PRIu64 " pulls, %.2f GB/s\n", streams, reader.whole,
        (double)reader.bytes / seconds / 1e9);
    for (unsigned i = 0; i < connections; i++)
        rpc_channel_close(reader.channels[i]);
    rpc_poller_destroy(reader.poller);
    rpc_deinit();
}

/* ---- worker 0 */

static struct sumac_client_variable *
make(struct sumac_client *client, const char *name, uint64_t bytes, struct sumac_shape *shape)
{
    struct sumac_error error;
    struct sumac_client_variable *variable;

    *shape = (struct sumac_shape){.rank = 1, .extent = {bytes / sizeof(float)}};
    const struct sumac_client_variable_options options = {
        .name = name, .dtype = SUMAC_FLOAT32, .shape = *shape, .function = {.name = "assign_add"}};
    check(sumac_client_variable_create(client, &options, &variable, &error), &error);
    return variable;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void push_for(struct sumac_client *client, double seconds)
{
    struct sumac_error error = {.text = "no memory"};
    struct sumac_shape shape;
    struct sumac_buffer *buffer;
    struct sumac_delta delta = {0};

    (void)make(client, "large", LARGE_BYTES, &shape);
    delta.variable = make(client, "small", SMALL_BYTES, &shape);
    check(sumac_buffer_create(SMALL_BYTES, &buffer), &error);
    check(sumac_tensor_view(buffer, 0, SUMAC_FLOAT32, &shape, &delta.value), &error);
    memset(sumac_tensor_data(&delta.value), 0, SMALL_BYTES);
    double *const took = calloc(PUSHES_MAX, sizeof *took);
    size_t pushes = 0;
    const struct timespec begun = {.tv_sec = 1}; /* the readers read */
    (void)nanosleep(&begun, NULL);
    const double start = now_s();
    for (double now = start; now < start + seconds && pushes < PUSHES_MAX;) {
        struct sumac_push *push;
        const struct sumac_push_options options = {.weight = 1};
        check(sumac_client_push(client, &delta, 1, &options, &push, &error), &error);
        check(sumac_push_wait(push, 0, &error), &error);
        const double then = now_s();
        took[pushes++] = (then - now) * 1e3;
        now = then;
    }
    qsort(took, pushes, sizeof *took, compare);
    printf(
        "{\"pushes\": %zu, \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"max_ms\": %.3f}\n", pushes,
        took[pushes / 2], took[pushes * 99 / 100], took[pushes - 1]);
    free(took);
}

static void print_stats(const char *address)
{
    char command[512];
    const char *sumac = getenv("SUMAC");

    (void)snprintf(
        command, sizeof command, "%s stats --ps %s", sumac != NULL ? sumac : "sumac", address);
    (void)fflush(stdout);
    if (system(command) != 0)
        fprintf(stderr, "crowd: %s failed\n", command);
}

int main(int argc, char **argv)
{
    sumac_tune_malloc();
    const double seconds = argc > 1 ? strtod(argv[1], NULL) : 10;
    const unsigned long streams = argc > 2 ? strtoul(argv[2], NULL, 10) : 200;
    const unsigned long connections = argc > 3 ? strtoul(argv[3], NULL, 10) : 1;
    struct sumac_error error;
    struct sumac_cluster cluster;
    struct sumac_client *client;
    if (streams > STREAMS_MAX || connections == 0 || connections > STREAMS_MAX)
        return 2;
    check(sumac_cluster_from_environment(NULL, &cluster, &error), &error);
    const struct sumac_client_options options = {.cluster = &cluster};
    const char *address = sumac_cluster_address(&cluster, "ps", 0);
    check(sumac_client_open(&options, &client, &error), &error);
    if (cluster.task_index == 0) {
        push_for(client, seconds - 2);
        print_stats(address);
    } else {
        read_for(address, (unsigned)streams, (unsigned)connections, seconds);
    }
    check(sumac_client_leave(client, true, &error), &error);
    sumac_client_close(client);
    sumac_cluster_deinit(&cluster);
    return 0;
}
