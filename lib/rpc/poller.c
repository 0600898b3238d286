/* SPDX-License-Identifier: Apache-2.0 */
/* poller.c -- a completion queue, and the one loop in which everything happens. */
#include <stdlib.h>

#include <grpc/support/log.h>

#include "call.h"

#define CALLS_PER_CHUNK 32
#define ARENA_KEPT_BYTES_MAX (1u << 20) /* a larger message's memory is given back after it */

/* gRPC's own resolver asks DNS for the IPv6 addresses that /etc/hosts does not have of a name, and
 * waits for the answer: with a silent nameserver, for ever. The system's finds what `getent` does.
 * gRPC takes the choice from the environment alone; before main there is no other thread that reads
 * it. */
__attribute__((constructor)) static void choose_resolver(void)
{
    (void)setenv("GRPC_DNS_RESOLVER", "native", 0);
}

void rpc_init(void)
{
    grpc_init();
    /* What gRPC would print, our errors say; GRPC_VERBOSITY still wins. */
    if (getenv("GRPC_VERBOSITY") == NULL)
        gpr_set_log_verbosity((gpr_log_severity)(GPR_LOG_SEVERITY_ERROR + 1));
}

void rpc_deinit(void) { grpc_shutdown_blocking(); }

enum sumac_status rpc_poller_create(struct rpc_poller **poller)
{
    struct rpc_poller *made = memory_take(&memory_heap, sizeof *made);

    if (made == NULL)
        return SUMAC_RESOURCE_EXHAUSTED;
    *made = (struct rpc_poller){.schema = schema_create()};
    if (made->schema == NULL) {
        memory_give(&memory_heap, made, sizeof *made);
        return SUMAC_RESOURCE_EXHAUSTED;
    }
    made->queue = grpc_completion_queue_create_for_next(NULL);
    pool_init(&made->calls, &memory_heap, sizeof(struct rpc_call), CALLS_PER_CHUNK);
    arena_init(&made->arena, &memory_heap, WIRE_ARENA_BYTES_MAX);
    *poller = made;
    return SUMAC_OK;
}

void rpc_poller_destroy(struct rpc_poller *poller)
{
    if (poller == NULL)
        return;
    while (poller->live > 0)
        (void)rpc_poll(poller, UINT64_MAX);
    grpc_completion_queue_shutdown(poller->queue);
    while (rpc_poll(poller, UINT64_MAX) != RPC_POLLED_SHUTDOWN)
        ;
    grpc_completion_queue_destroy(poller->queue);
    schema_destroy(poller->schema);
    pool_deinit(&poller->calls);
    arena_deinit(&poller->arena);
    memory_give(&memory_heap, poller, sizeof *poller);
}

void call_receive(struct rpc_call *call)
{
    grpc_op ops[2] = {{.op = GRPC_OP_RECV_MESSAGE}};
    size_t count = 1;

    ops[0].data.recv_message.recv_message = &call->arriving;
    if (call->server == NULL && !call->welcomed) {
        call->welcomed = true;
        ops[count] = (grpc_op){.op = GRPC_OP_RECV_INITIAL_METADATA};
        ops[count++].data.recv_initial_metadata.recv_initial_metadata = &call->initial;
    }
    call_start(call, ops, count, &call->received);
}

void rpc_ask(struct rpc_poller *poller)
{
    while (poller->asking != NULL) {
        struct rpc_call *call = poller->asking;
        poller->asking = call->next_asking;
        call_receive(call);
        call->batches--; /* not the last one */
    }
}

enum rpc_polled rpc_wait(struct rpc_poller *poller, uint64_t until_us, struct rpc_event *event)
{
    reader_cross(&poller->reader);
    const grpc_event next = grpc_completion_queue_next(poller->queue, core_time(until_us), NULL);
    reader_cross(&poller->reader);
    if (next.type == GRPC_QUEUE_TIMEOUT)
        return RPC_POLLED_NOTHING;
    if (next.type == GRPC_QUEUE_SHUTDOWN)
        return RPC_POLLED_SHUTDOWN;
    *event = (struct rpc_event){.tag = next.tag, .ok = next.success != 0};
    return RPC_POLLED_EVENT;
}

void rpc_handle(struct rpc_poller *poller, const struct rpc_event *event)
{
    const struct tag *tag = event->tag;

    tag->done(tag->owner, event->ok);
    if (poller->arena.bytes_used > ARENA_KEPT_BYTES_MAX)
        arena_deinit(&poller->arena);
}

static enum rpc_polled poll_one(struct rpc_poller *poller, uint64_t until_us)
{
    struct rpc_event event;
    const enum rpc_polled polled = rpc_wait(poller, until_us, &event);

    if (polled == RPC_POLLED_EVENT)
        rpc_handle(poller, &event);
    return polled;
}

enum rpc_polled rpc_poll(struct rpc_poller *poller, uint64_t until_us)
{
    rpc_ask(poller);
    return poll_one(poller, until_us);
}

enum rpc_polled rpc_listen(struct rpc_poller *poller) { return poll_one(poller, 0); }
