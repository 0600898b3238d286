/* SPDX-License-Identifier: Apache-2.0 */
/* ask.c -- unary calls over lib/rpc, all under way together. */
#include "ask.h"

#include <assert.h>
#include <stdlib.h>

#include "alloc.h"
#include "clock.h"
#include "error.h"
#include "last_word.h"
#include "silence.h"

#define PATIENCE_US 5500000u /* lib/rpc gives up a connection after 5 s, and then says why */
#define PATIENCE_WITH_MISSING_US 500000u

/* One call. Its answer is lent by lib/rpc for a moment only: it is packed again, and unpacked into
 * memory that stays. No command prints a peer's control characters: they end here. */
struct ps_question {
    uint32_t index;
    struct roster_ps *ps;
    const wire_type *type; /* of the answer */
    struct answers *answers;
    struct rpc_channel *channel;
    struct rpc_call *call;
    bool over;
    uint64_t asked_us;
    struct sumac_error error;
};

static void keep(struct rpc_call *call, const struct wire_received *received)
{
    struct ps_question *question = rpc_call_user(call);
    struct arena *arena = &question->answers->arena;
    const size_t bytes = wire_packed_bytes(received->message, 0);
    uint8_t *packed = arena_take(arena, bytes + 1);
    struct wire_received kept;

    if (packed == NULL)
        return;
    wire_pack(received->message, 0, packed);
    const struct span span = {.data = packed, .bytes = bytes};
    if (wire_unpack(question->type, &span, 1, arena, &kept, NULL) != SUMAC_OK)
        return;
    wire_make_printable((wire_message *)(uintptr_t)kept.message);
    question->answers->replies[question->index] = kept.message;
}

static void end(struct rpc_call *call, const struct sumac_error *error)
{
    struct ps_question *question = rpc_call_user(call);

    question->over = true;
    question->error = *error;
}

static const struct rpc_handler handler = {.message = keep, .closed = end};

static void
begin(struct rpc_poller *poller, struct ps_question *question, const struct inquiry *inquiry)
{
    const uint64_t patience_us = question->ps->missing ? PATIENCE_WITH_MISSING_US : PATIENCE_US;
    enum sumac_status status = SUMAC_UNAVAILABLE;

    question->asked_us = clock_now_us();
    if (question->ps->address[0] != '\0')
        status = rpc_channel_open(poller, question->ps->address, &question->channel);
    if (status == SUMAC_OK)
        status = rpc_channel_call(
            question->channel,
            &(struct rpc_start){
                .service = inquiry->service,
                .method = inquiry->method,
                .message = inquiry->request,
                .deadline_us = question->asked_us + patience_us,
                .handler = &handler,
                .user = question},
            &question->call);
    if (status == SUMAC_OK)
        return;
    question->over = true;
    (void)fail(
        &question->error, status, SUMAC_REASON_UNSPECIFIED,
        question->ps->address[0] == '\0' ? "its address is not known" : "no call was made");
}

/* Is there nothing more to wait for? */
static bool is_enough(
    const struct ps_question *questions, const struct inquiry *inquiry,
    const struct answers *answers)
{
    uint32_t over = 0;

    for (uint32_t i = 0; i < answers->count; i++) {
        if (inquiry->one_is_enough && answers->replies[i] != NULL)
            return true;
        over += questions[i].over;
    }
    return over == answers->count;
}

/* Did it answer, if only to say that what is asked for is not there? */
static bool is_refusal(const struct ps_question *question)
{
    const enum sumac_status status = question->error.status;

    return status == SUMAC_NOT_FOUND || status == SUMAC_INVALID_ARGUMENT;
}

static const char *guess_at(const struct sumac_error *why)
{
    const bool is_silent = why->status == SUMAC_DEADLINE_EXCEEDED || why->status == SUMAC_CANCELLED;

    if (silence_is_own(why->text))
        return "nothing is known of the ps";
    return is_silent || silence_is_mute(why->text) ? SILENCE_MUTE_REMEDY
                                                   : "the run may be over, or not begun";
}

static enum sumac_status explain(const struct ps_question *question, struct sumac_error *error)
{
    const char *const address = question->ps->address;
    const struct sumac_error *const why = &question->ps->why;
    const bool last = !is_refusal(question) && last_word_is(why);
    const struct sumac_error *const said = last ? why : &question->error;

    if (last && why->reason == SUMAC_REASON_RUN_ENDED)
        return fail(error, why->status, why->reason, "%s", why->text);
    if (said->status == SUMAC_OK)
        return fail(
            error, SUMAC_INTERNAL, SUMAC_REASON_MALFORMED,
            "ps at %s answered nothing that can be read", address);
    if (!last && (said->status == SUMAC_UNAVAILABLE || said->status == SUMAC_DEADLINE_EXCEEDED))
        return fail(
            error, SUMAC_UNAVAILABLE, SUMAC_REASON_PS_MISSING, "no ps answers at %s: %s: %s%s",
            address, roster_silence(question->ps).text, guess_at(why),
            silence_is_own(why->text) ? "" : "; check the address");
    return fail(error, said->status, said->reason, "ps at %s: %s", address, said->text);
}

/* Who answered and who did not, for the roster. */
static void note(struct ps_question *question)
{
    struct roster_ps *ps = question->ps;

    if (question->answers->replies[question->index] != NULL || is_refusal(question)) {
        ps->missing = false;
        return;
    }
    /* What is known of a missing ps stays where the new answer says less: that it was silent for a
     * shorter time, or only that it is gone, when it has said why it went. */
    const bool says_more = !ps->missing || (question->error.status != SUMAC_DEADLINE_EXCEEDED &&
                                            !last_word_is(&ps->why));
    if (!ps->missing)
        ps->silent_us = question->asked_us;
    if (says_more)
        ps->why = question->error;
    ps->missing = true;
    ps->told_us = clock_now_us();
    if (ps->why.status == SUMAC_OK)
        (void)fail(
            &ps->why, SUMAC_INTERNAL, SUMAC_REASON_MALFORMED,
            "it answered nothing that can be read");
}

/* Is the ps that answered the one that the roster lists there? Not every answer tells. */
static enum sumac_status check_index(
    const struct roster *roster, uint32_t index, const wire_message *reply,
    struct sumac_error *error)
{
    assert(index < roster->count);
    if (reply->descriptor == &sumac__v1__list_reply__descriptor)
        return roster_check_index(
            roster, index, ((const wire_list_reply *)(const void *)reply)->ps, error);
    if (reply->descriptor == &sumac__v1__stats_reply__descriptor)
        return roster_check_index(
            roster, index, ((const wire_stats_reply *)(const void *)reply)->ps, error);
    return SUMAC_OK;
}

/* What the answers come to, when it is no matter of who is missing. */
static enum sumac_status conclude(
    struct ps_question *questions, const struct roster *roster, struct answers *answers,
    struct sumac_error *error)
{
    const struct ps_question *silent = NULL;

    answers->first = roster->count;
    for (uint32_t i = 0; i < roster->count; i++) {
        const struct ps_question *question = &questions[i];
        if (question->ps->left_out)
            continue;
        if (answers->replies[i] == NULL && is_refusal(question))
            return explain(question, error);
        if (answers->replies[i] == NULL && (silent == NULL || (last_word_is(&question->ps->why) &&
                                                               !last_word_is(&silent->ps->why))))
            silent = question; /* the first, or the first that said why it ends */
        if (answers->replies[i] == NULL)
            continue;
        const enum sumac_status status = check_index(roster, i, answers->replies[i], error);
        if (status != SUMAC_OK)
            return status;
        if (answers->first == roster->count)
            answers->first = i;
    }
    if (answers->first < roster->count)
        return SUMAC_OK;
    if (silent == NULL)
        return fail(error, SUMAC_INTERNAL, SUMAC_REASON_UNSPECIFIED, "there is no ps to be asked");
    return explain(silent, error);
}

/* Begin every call, poll until there is nothing to wait for, then see. */
static enum sumac_status
put(struct roster *roster, struct rpc_poller *poller, struct ps_question *questions,
    const struct inquiry *inquiry, struct sumac_error *error)
{
    struct answers *answers = questions[0].answers;

    for (uint32_t i = 0; i < roster->count; i++) {
        if (roster->ps[i].left_out)
            questions[i].over = true;
        else
            begin(poller, &questions[i], inquiry);
    }
    while (!is_enough(questions, inquiry, answers))
        (void)rpc_poll(poller, clock_now_us() + 2 * (uint64_t)PATIENCE_US);
    for (uint32_t i = 0; i < roster->count; i++) {
        if (!roster->ps[i].left_out && (questions[i].over || answers->replies[i] != NULL))
            note(&questions[i]);
        rpc_channel_close(questions[i].channel);
    }
    return conclude(questions, roster, answers, error);
}

enum sumac_status
ask(struct roster *roster, const struct inquiry *inquiry, struct answers *answers,
    struct sumac_error *error)
{
    struct answers made = {.count = roster->count};
    struct rpc_poller *poller = NULL;

    if (rpc_check_threads(error) != SUMAC_OK)
        return SUMAC_RESOURCE_EXHAUSTED;
    arena_init(&made.arena, &memory_heap, (size_t)roster->count * WIRE_ARENA_BYTES_MAX);
    made.replies = cli_need(calloc(roster->count + 1, sizeof *made.replies));
    struct ps_question *questions = cli_need(calloc(roster->count + 1, sizeof *questions));
    /* A nameserver that is silent is given up before the patience is over, and so is said. */
    (void)setenv("RES_OPTIONS", "timeout:2 attempts:2", 0);
    rpc_init();
    (void)rpc_poller_create(&poller);
    (void)cli_need(poller);
    for (uint32_t i = 0; i < roster->count; i++)
        questions[i] = (struct ps_question){
            .index = i,
            .ps = &roster->ps[i],
            .type = inquiry->service->methods[inquiry->method].output,
            .answers = &made,
        };
    const enum sumac_status status = put(roster, poller, questions, inquiry, error);
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
