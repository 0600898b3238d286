/* SPDX-License-Identifier: Apache-2.0 */
/* held.c -- answers that wait for their record. They were made in the memory of a step, and are
 * kept as the bytes that they will be sent as. */
#include "judge_state.h"

#include <assert.h>
#include <string.h>

static void give(struct judge *judge, struct judge_held *held)
{
    assert(held->byte_count <= judge->held_bytes);
    judge->held_bytes -= held->byte_count;
    memory_give(judge->memory, held->bytes, held->byte_count);
    LIST_REMOVE(&judge->held, held, in_judge);
    pool_give(&judge->held_pool, held);
}

void judge_held_deinit(struct judge *judge)
{
    while (judge->held.first != NULL)
        give(judge, judge->held.first);
    assert(judge->held_bytes == 0);
    pool_deinit(&judge->held_pool);
}

/* The caller learns it from this ps's end, if there is no memory even for this. */
void judge_hold(
    struct judge *judge, uint64_t call, const wire_message *reply, const struct sumac_error *error)
{
    assert(judge->records);
    assert(call != 0);
    struct judge_held *held = pool_take(&judge->held_pool);
    if (held == NULL) {
        judge_effects_lose(judge);
        return;
    }
    held->call = call;
    held->reply = reply;
    held->error = *error;
    LIST_APPEND(&judge->held, held, in_judge);
}

/* Beyond the step that it was made in. */
static void keep(struct judge *judge, struct judge_held *held)
{
    const wire_message *reply = held->reply;

    assert(held->bytes == NULL);
    held->kept = true;
    held->reply = NULL;
    if (reply == NULL)
        return;
    const size_t count = wire_packed_bytes(reply, 0) + 1; /* of some messages 0 are sent */
    if (count <= JUDGE_HELD_BYTES_MAX - judge->held_bytes)
        held->bytes = memory_take(judge->memory, count);
    if (held->bytes == NULL) {
        judge_error_memory(&held->error);
        return;
    }
    wire_pack(reply, 0, held->bytes);
    held->type = reply->descriptor;
    held->byte_count = count;
    judge->held_bytes += held->byte_count;
    assert(judge->held_bytes <= JUDGE_HELD_BYTES_MAX);
}

/* What was kept, as a message in the step's arena. */
static void reopen(struct judge *judge, struct judge_held *held)
{
    struct wire_received received;
    struct sumac_error error;

    assert(held->reply == NULL);
    if (held->bytes == NULL)
        return;
    const size_t count = held->byte_count - 1;
    uint8_t *copy = arena_take(&judge->said->arena, held->byte_count);
    const struct span span = {.data = copy, .bytes = count};
    if (copy != NULL)
        memcpy(copy, held->bytes, count);
    if (copy == NULL ||
        wire_unpack(held->type, &span, count > 0, &judge->said->arena, &received, &error) !=
            SUMAC_OK)
        judge_error_memory(&held->error);
    else
        held->reply = received.message;
}

void judge_held_say(struct judge *judge)
{
    assert(judge->recorded <= judge->last_record);
    for (struct judge_held *held = judge->held.last; held != NULL && held->record == 0;
         held = held->in_judge.prev)
        held->record = judge->last_record;
    while (judge->held.first != NULL && judge->held.first->record <= judge->recorded) {
        struct judge_held *held = judge->held.first;
        if (held->reply == NULL)
            reopen(judge, held);
        judge_answer(judge, held->call, held->reply, &held->error);
        give(judge, held);
    }
    for (struct judge_held *held = judge->held.last; held != NULL && !held->kept;
         held = held->in_judge.prev)
        keep(judge, held);
}

void judge_held_forget(struct judge *judge, uint64_t call)
{
    struct judge_held *held = judge->held.first, *next;

    for (; held != NULL; held = next) { /* none has number 0 */
        next = held->in_judge.next;
        assert(held->call != 0);
        if (held->call == call)
            give(judge, held);
    }
}

uint64_t judge_held_bytes_max(const struct judge *judge)
{
    if (!judge->config->records)
        return 0;
    return JUDGE_HELD_BYTES_MAX + (uint64_t)judge->config->calls_max * sizeof(struct judge_held);
}
