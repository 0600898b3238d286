/* SPDX-License-Identifier: Apache-2.0 */
/* transfers.c -- copies in queues of their own, and the events between these and the replicas'. */
#include "transfers.h"

#include <assert.h>
#include <stdlib.h>

#include "error.h"
#include "step_trace.h"

/* Parts of part_bytes or a little more, each of whole variables. */
static void
divide(const struct tensors *gradients, uint64_t part_bytes, struct transfers *transfers)
{
    const uint64_t all = sumac_buffer_bytes(gradients->buffer);
    struct transfers_part *part = NULL;

    for (uint32_t i = 0; i < gradients->count; i++) {
        const uint64_t first = gradients->items[i].offset_bytes;
        const uint64_t end = i + 1 < gradients->count ? gradients->items[i + 1].offset_bytes : all;
        if (part == NULL || part->bytes >= part_bytes) {
            part = &transfers->parts[transfers->part_count++];
            part->offset_bytes = first;
        }
        part->end = i + 1;
        part->bytes = end - part->offset_bytes;
    }
    assert(part == NULL || part->offset_bytes + part->bytes == all);
}

enum sumac_status transfers_open(
    const struct replicas *replicas, const struct tensors *gradients, uint64_t part_bytes,
    struct transfers *transfers, struct sumac_error *error)
{
    assert(replicas->count > 0);
    assert(part_bytes > 0);
    *transfers = (struct transfers){.replicas = replicas};
    if (replicas->devices[0]->ops->place == SUMAC_PLACE_HOST)
        return SUMAC_OK;
    transfers->queues = calloc(replicas->count, sizeof(struct device_queue *));
    transfers->arrived = calloc(replicas->count, sizeof(struct device_event *));
    transfers->parts = calloc(gradients->count, sizeof *transfers->parts);
    if (transfers->queues == NULL || transfers->arrived == NULL || transfers->parts == NULL)
        return fail_for_memory(error, "no memory for the copies of %u replicas", replicas->count);
    divide(gradients, part_bytes, transfers);
    enum sumac_status status = SUMAC_OK;
    for (uint32_t i = 0; status == SUMAC_OK && i < replicas->count; i++) {
        status = device_queue_open(replicas->devices[i], &transfers->queues[i], error);
        if (status == SUMAC_OK)
            status = device_event_open(replicas->devices[i], &transfers->arrived[i], error);
    }
    for (uint32_t i = 0; status == SUMAC_OK && i < transfers->part_count; i++)
        status = device_event_open(replicas->devices[0], &transfers->parts[i].written, error);
    return status;
}

void transfers_close(struct transfers *transfers)
{
    const uint32_t replicas = transfers->replicas == NULL ? 0 : transfers->replicas->count;

    for (uint32_t i = 0; transfers->queues != NULL && i < replicas; i++)
        device_queue_close(transfers->queues[i]);
    for (uint32_t i = 0; transfers->arrived != NULL && i < replicas; i++)
        device_event_close(transfers->arrived[i]);
    for (uint32_t i = 0; i < transfers->part_count; i++)
        device_event_close(transfers->parts[i].written);
    free(transfers->parts);
    free(transfers->arrived);
    free(transfers->queues);
    *transfers = (struct transfers){.replicas = NULL};
}

void transfers_send(
    struct transfers *transfers, uint32_t replica, const struct tensors *to,
    const struct tensors *from)
{
    assert(replica < transfers->replicas->count);
    transfers->sent = true;
    if (transfers->queues == NULL)
        return;
    step_trace_begins(transfers->traced, STEP_COPIES, replica);
    assert(to->buffer != from->buffer && to->count == from->count);
    device_copy(
        transfers->queues[replica],
        &(struct sumac_copy){
            .to = to->buffer, .from = from->buffer, .bytes = sumac_buffer_bytes(from->buffer)});
    step_trace_ends(
        transfers->traced, STEP_COPIES, replica,
        (struct step_part){TRACE_COPY_IN, sumac_buffer_bytes(from->buffer)});
    device_record(transfers->queues[replica], transfers->arrived[replica]);
}

void transfers_await(struct transfers *transfers, uint32_t replica)
{
    assert(transfers->sent);
    if (transfers->queues != NULL)
        device_await(transfers->replicas->queues[replica], transfers->arrived[replica]);
    if (replica + 1 == transfers->replicas->count)
        transfers->sent = false;
}

struct device_event *transfers_written(const struct transfers *transfers, uint32_t gradient)
{
    for (uint32_t i = 0; i < transfers->part_count; i++)
        if (transfers->parts[i].end == gradient + 1)
            return transfers->parts[i].written;
    return NULL;
}

/* The copies come one after the other, so the first part's event is all that they need. */
void transfers_record_written(struct transfers *transfers)
{
    assert(transfers->replicas != NULL);
    if (transfers->part_count > 0)
        device_record(transfers->replicas->queues[0], transfers->parts[0].written);
}

/* On the thread of replica 0's copies, which carries out at once what it puts into its queue. */
static enum sumac_status fetch_parts(void *context)
{
    struct transfers *transfers = context;

    for (uint32_t i = 0; i < transfers->part_count; i++) {
        const struct transfers_part *part = &transfers->parts[i];
        device_await(transfers->queues[0], part->written);
        step_trace_begins(transfers->traced, STEP_COPIES, 0);
        device_copy(
            transfers->queues[0], &(struct sumac_copy){
                                      .to = transfers->fetch_to,
                                      .from = transfers->fetch_from,
                                      .to_offset = part->offset_bytes,
                                      .from_offset = part->offset_bytes,
                                      .bytes = part->bytes,
                                  });
        step_trace_ends(
            transfers->traced, STEP_COPIES, 0, (struct step_part){TRACE_COPY_OUT, part->bytes});
    }
    return SUMAC_OK; /* a copy that fails is the queue's to tell */
}

/* It is one job, whatever the number of parts: a caller that waits for room in the queue could not
 * wait for the reduction, and end it, meanwhile. */
void transfers_fetch(
    struct transfers *transfers, const struct tensors *to, const struct tensors *from)
{
    assert(to->count == from->count);
    if (transfers->queues == NULL)
        return;
    transfers->fetch_to = to->buffer;
    transfers->fetch_from = from->buffer;
    device_issue(transfers->queues[0], fetch_parts, transfers);
}

/* The replicas' queues are waited for first. The first failure counts. */
enum sumac_status
transfers_join(struct transfers *transfers, uint64_t until_ns, struct transfers_failure *failure)
{
    struct device_queue *const *const queues[] = {transfers->replicas->queues, transfers->queues};
    enum sumac_status first = SUMAC_OK;

    assert(queues[0] != NULL);
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t failed = 0;
        const enum sumac_status status = queues_wait(
            queues[i % 2], transfers->replicas->count, i < 2 ? device_settle : device_complete,
            until_ns, &failed);
        if (first == SUMAC_OK && status != SUMAC_OK) {
            first = status;
            *failure = (struct transfers_failure){failed, queues[i % 2][failed]};
        }
    }
    return first;
}
