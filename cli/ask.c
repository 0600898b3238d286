/* ask.c -- unary calls over lib/rpc, all under way together. */
#include "ask.h"

#include <stdlib.h>
#include <time.h>

#include "error.h"
#include "rpc.h"

#define PATIENCE_US 10000000u

/* One call. Its answer is lent by lib/rpc for a moment only: it is packed again, and unpacked into
 * memory that stays. */
struct question {
    uint32_t index;
    const char *address;
    const wire_type *type; /* of the answer */
    struct answers *answers;
    struct rpc_channel *channel;
    struct rpc_call *call;
    bool over;
    struct sumac_error error;
};

static uint64_t now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

static void keep(struct rpc_call *call, const struct wire_received *received)
{
    struct question *question = rpc_call_user(call);
    struct arena *arena = &question->answers->arena;
    const size_t bytes = wire_packed_bytes(received->message, 0);
    uint8_t *packed = arena_take(arena, bytes + 1);
    struct wire_received kept;
    if (packed == NULL)
        return;
    wire_pack(received->message, 0, packed);
    const struct span span = {.data = packed, .bytes = bytes};
    if (wire_unpack(question->type, &span, 1, arena, &kept, NULL) == SUMAC_OK)
        question->answers->replies[question->index] = kept.message;
}

static void end(struct rpc_call *call, const struct sumac_error *error)
{
    struct question *question = rpc_call_user(call);
    question->over = true;
    question->error = *error;
}

static const struct rpc_handler handler = {.message = keep, .closed = end};

static enum sumac_status explain(const struct question *question, struct sumac_error *error)
{
    const char *text = question->error.text;
    if (question->error.status == SUMAC_OK)
        return fail(
            error, SUMAC_INTERNAL, SUMAC_REASON_MALFORMED,
            "ps at %s answered nothing that can be read", question->address);
    if (question->error.status == SUMAC_UNAVAILABLE)
        return fail(
            error, SUMAC_UNAVAILABLE, SUMAC_REASON_PS_MISSING,
            "no ps answers at %s (%s): the run may be over, or not begun; check the address",
            question->address, text);
    return fail(
        error, question->error.status, question->error.reason, "ps at %s: %s", question->address,
        text);
}

static bool all_over(const struct question *questions, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!questions[i].over)
            return false;
    return true;
}

/* Begin every call, poll until all are over, then see. */
static enum sumac_status
ask(struct rpc_poller *poller, struct question *questions, const struct inquiry *inquiry,
    struct sumac_error *error)
{
    const uint64_t deadline_us = now_us() + PATIENCE_US;
    const uint32_t count = questions[0].answers->count;
    for (uint32_t i = 0; i < count; i++) {
        struct question *question = &questions[i];
        enum sumac_status status = rpc_channel_open(poller, question->address, &question->channel);
        if (status == SUMAC_OK)
            status = rpc_channel_call(
                question->channel, inquiry->service, inquiry->method, inquiry->request, deadline_us,
                false, &handler, question, &question->call);
        if (status != SUMAC_OK) {
            question->over = true;
            question->error = (struct sumac_error){.status = status, .text = "no call was made"};
        }
    }
    while (!all_over(questions, count))
        (void)rpc_poll(poller, deadline_us + PATIENCE_US);
    enum sumac_status status = SUMAC_OK;
    for (uint32_t i = 0; i < count; i++) {
        if (status == SUMAC_OK && questions[i].answers->replies[i] == NULL)
            status = explain(&questions[i], error);
        rpc_channel_close(questions[i].channel);
    }
    return status;
}

enum sumac_status ask_every(
    const struct ps_list *list, const struct inquiry *inquiry, struct answers *answers,
    struct sumac_error *error)
{
    struct answers made = {.count = list->count};
    struct rpc_poller *poller = NULL;
    arena_init(&made.arena, &memory_heap, (size_t)list->count * WIRE_ARENA_BYTES_MAX);
    made.replies = calloc(list->count, sizeof *made.replies);
    struct question *questions = calloc(list->count, sizeof *questions);
    rpc_init();
    enum sumac_status status = rpc_poller_create(&poller);
    if (status != SUMAC_OK || made.replies == NULL || questions == NULL) {
        status = fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY, "no memory to ask %u ps",
            list->count);
    } else {
        for (uint32_t i = 0; i < list->count; i++)
            questions[i] = (struct question){
                .index = i,
                .address = list->addresses[i],
                .type = inquiry->service->methods[inquiry->method].output,
                .answers = &made,
            };
        status = ask(poller, questions, inquiry, error);
    }
    rpc_poller_destroy(poller);
    rpc_deinit();
    free(questions);
    if (status != SUMAC_OK) {
        answers_deinit(&made);
        return status;
    }
    *answers = made;
    return SUMAC_OK;
}

void answers_deinit(struct answers *answers)
{
    arena_deinit(&answers->arena);
    free(answers->replies);
    *answers = (struct answers){0};
}

/* One at a time: any of them will do. */
enum sumac_status
ask_addresses(const struct ps_list *some, struct ps_list *all, struct sumac_error *error)
{
    wire_list_request request = WIRE_LIST_REQUEST_INIT;
    request.after_id = UINT64_MAX; /* no variables */
    const struct inquiry inquiry = {WIRE_VARIABLES, WIRE_VARIABLES_LIST, &request.base};
    struct answers answers = {0};
    enum sumac_status status = SUMAC_UNAVAILABLE;
    for (uint32_t i = 0; i < some->count && status != SUMAC_OK; i++) {
        const struct ps_list one = {.count = 1, .addresses = &some->addresses[i]};
        status = ask_every(&one, &inquiry, &answers, error);
    }
    if (status != SUMAC_OK)
        return status;
    const wire_list_reply *reply = (const wire_list_reply *)(const void *)answers.replies[0];
    struct ps_list found = {0};
    for (size_t i = 0; i < reply->n_ps_addresses && status == SUMAC_OK; i++)
        status = ps_list_add(&found, reply->ps_addresses[i], error);
    if (status == SUMAC_OK)
        *all = found;
    else
        ps_list_deinit(&found);
    answers_deinit(&answers);
    return status;
}
