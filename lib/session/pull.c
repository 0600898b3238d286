/* SPDX-License-Identifier: Apache-2.0 */
/* pull.c -- a pull is taken in, split by ps, and over: complete, timed out, cancelled or failed. */
#include "deeds.h"

#include <string.h>

/* The ps answers its own timeout, which says what it waited for; ours comes when it does not. */
#define GRACE_MS 250u

static size_t block_bytes(const struct pull *pull)
{
    return pull->wanted.piece_count *
           (sizeof *pull->pieces + sizeof *pull->versions + sizeof *pull->places);
}

static void give_blocks(struct session *session, struct pull *pull)
{
    result_release(session, pull);
    sized_pool_give(&session->blocks, pull->pieces, block_bytes(pull));
}

void pulls_release(struct session *session)
{
    pulls_forget_over(session);
    LIST_FOREACH(struct pull, pull, &session->live_pulls, in_session)
        give_blocks(session, pull);
}

void pulls_forget_over(struct session *session)
{
    for (struct pull *pull; (pull = session->over_pulls.first) != NULL;) {
        assert(pull->requests.first == NULL);
        LIST_REMOVE(&session->over_pulls, pull, in_session);
        give_blocks(session, pull);
        pool_give(&session->pulls, pull);
    }
}

void pull_over(struct session *session, struct pull *pull, const struct sumac_error *error)
{
    struct session_effect *effect =
        effect_over(session, SESSION_EFFECT_PULLED, pull->wanted.token, error);

    if (error == NULL) {
        effect->result = pull->result;
        effect->joined = pull->joined;
    }
    effect->versions = pull->versions;
    effect->version_count = pull->asks ? 0 : pull->wanted.piece_count; /* it has read nothing */
    requests_drop(session, pull);
    LIST_REMOVE(&session->live_pulls, pull, in_session);
    LIST_APPEND(&session->over_pulls, pull, in_session);
    assert(session->pull_count > 0);
    session->pull_count--;
    if (error != NULL)
        session_heard(session, error);
}

static bool take_block(struct session *session, struct pull *pull)
{
    assert(pull->pieces == NULL);
    const size_t count = pull->wanted.piece_count;
    uint8_t *block = sized_pool_take(&session->blocks, block_bytes(pull));
    if (block == NULL)
        return false;
    pull->pieces = (struct session_piece *)(void *)block;
    block += count * sizeof *pull->pieces;
    pull->versions = (uint64_t *)(void *)block;
    block += count * sizeof *pull->versions;
    pull->places = (uint32_t *)(void *)block;
    memset(pull->versions, 0, count * sizeof *pull->versions);
    return true;
}

/* Group the pieces by ps, in the caller's order within each, and make a request of each group. */
static void split(struct session *session, struct pull *pull, const struct session_pull *wanted)
{
    uint32_t place = 0;

    if (wanted->piece_count == 0 && wanted->asks != NULL)
        request_add(session, pull, &session->links[wanted->asks->ps], 0, 0);
    else if (wanted->piece_count == 0 && wanted->at_step != 0)
        request_add(session, pull, &session->links[0], 0, 0);
    for (uint32_t i = 0; i < session->link_count && place < wanted->piece_count; i++) {
        struct link *link = &session->links[i];
        const uint32_t count = link->piece_scratch;
        if (count == 0)
            continue;
        link->piece_scratch = place;
        request_add(session, pull, link, place, count);
        place += count;
    }
    assert(place == wanted->piece_count || session->exhausted);
    for (uint32_t i = 0; i < wanted->piece_count; i++) {
        const uint32_t to = session->links[wanted->pieces[i].ps].piece_scratch++;
        pull->pieces[to] = wanted->pieces[i];
        pull->places[to] = i;
    }
}

/* Count the pieces of each ps in its link's scratch. */
static enum sumac_status
check_pieces(struct session *session, const struct session_pull *wanted, struct sumac_error *error)
{
    for (uint32_t i = 0; i < session->link_count; i++)
        session->links[i].piece_scratch = 0;
    assert(wanted->asks == NULL || wanted->asks->ps < session->link_count);
    for (uint32_t i = 0; i < wanted->piece_count; i++) {
        const uint32_t ps = wanted->pieces[i].ps;
        if (ps >= session->link_count)
            return fail_invalid(
                error, SUMAC_REASON_UNKNOWN_SHARD,
                "a piece names ps %" PRIu32 ", and there are %" PRIu32, ps, session->link_count);
        if (++session->links[ps].piece_scratch > WIRE_PULL_PIECES_MAX)
            return fail_invalid(
                error, SUMAC_REASON_TOO_MANY_PIECES,
                "a pull has more than %u pieces on ps %" PRIu32 "; pull them in several",
                WIRE_PULL_PIECES_MAX, ps);
    }
    return SUMAC_OK;
}

static enum sumac_status
may_accept(struct session *session, const struct session_pull *wanted, struct sumac_error *error)
{
    if (session->phase == PHASE_OVER)
        *error = session->end;
    else if (session->stopping_until_us != 0)
        *error = session->stopping;
    else if (session->phase < PHASE_OPEN)
        (void)fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED,
            "the session is not open yet");
    else if (session->pull_count >= SESSION_PULLS_IN_FLIGHT_MAX)
        (void)fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_UNSPECIFIED,
            "%d pulls are in flight, no more may be; wait for one of them first",
            SESSION_PULLS_IN_FLIGHT_MAX);
    else
        return check_pieces(session, wanted, error);
    return error->status;
}

/* The same as the one that it asks about. */
static void ask_for(struct pull *pull, const struct session_wait *wait)
{
    assert(!pull->wanted.beside);
    pull->asks = true;
    pull->after_known = true;
    pull->wanted.after_own_pushes = wait->after_sequence != 0;
    pull->wanted.bounded = wait->bounded;
    pull->wanted.lag_max = wait->lag_max;
    pull->clock = wait->clock;
    pull->wanted.at_step = wait->at_step;
    pull->wanted.collective = wait->collective;
}

static struct pull *
take_pull(struct session *session, const struct session_pull *wanted, struct sumac_error *error)
{
    struct pull *pull = pool_take(&session->pulls);

    if (pull != NULL)
        pull->wanted = *wanted;
    if (pull == NULL || !take_block(session, pull)) {
        (void)fail_for_memory(
            error, "no memory for a pull of %" PRIu32 " pieces", wanted->piece_count);
        if (pull != NULL)
            pool_give(&session->pulls, pull);
        return NULL;
    }
    pull->wanted.pieces = NULL; /* the block has copies */
    pull->wanted.asks = NULL;
    pull->wanted.after_own_pushes &= wanted->at_step == 0 && wanted->collective == NULL;
    pull->wanted.beside &= wanted->collective != NULL;
    pull->after_submitted = session->submitted;
    pull->after_known = session->waiting_count == 0 || wanted->collective != NULL;
    pull->clock = session->steps_finished;
    if (wanted->asks != NULL)
        ask_for(pull, wanted->asks);
    if (wanted->timeout_ms == 0)
        pull->wanted.timeout_ms = 60000;
    pull->deadline_us = session->now_us + ((uint64_t)pull->wanted.timeout_ms + GRACE_MS) * 1000;
    LIST_PREPEND(&session->live_pulls, pull, in_session);
    assert(session->pull_count < SESSION_PULLS_IN_FLIGHT_MAX);
    session->pull_count++;
    return pull;
}

void pull_accept(struct session *session, const struct session_pull *wanted)
{
    struct sumac_error error;
    struct pull *pull =
        may_accept(session, wanted, &error) == SUMAC_OK ? take_pull(session, wanted, &error) : NULL;

    if (pull == NULL) {
        (void)effect_over(session, SESSION_EFFECT_PULLED, wanted->token, &error);
        return;
    }
    split(session, pull, wanted);
    if (wanted->asks != NULL && pull->requests.first != NULL)
        pull->requests.first->after_sequence = wanted->asks->after_sequence;
    if (pull->open_requests == 0)
        pull_over(session, pull, NULL);
    else
        effect_wake(session, pull->deadline_us);
}

void pull_cancel(struct session *session, uint64_t token)
{
    struct pull *pull = find_pull(session, token);

    if (pull == NULL)
        return;
    struct sumac_error error;
    (void)fail(&error, SUMAC_CANCELLED, SUMAC_REASON_CANCELLED, "the pull was cancelled");
    pull_over(session, pull, &error);
}

void pulls_end(struct session *session)
{
    assert(session->phase == PHASE_OVER);
    while (session->live_pulls.first != NULL)
        pull_over(session, session->live_pulls.first, &session->end);
}

void requests_fail(struct session *session, struct link *link, const struct sumac_error *given)
{
    struct sumac_error error;

    assert(given->status != SUMAC_OK);
    assert(link->streams[SESSION_PULL_STREAM].state == STREAM_SHUT);
    (void)fail(
        &error, given->status, given->reason, "ps %" PRIu32 " at %s ended the pull stream: %s",
        link->ps, ps_address(session, link->ps), given->text);
    LIST_FOREACH_SAFE(
        struct request, request, &link->requests, in_link) { /* a pull has one request of each ps */
        if (request->sent && !request->cancelled)
            pull_over(session, request->pull, &error);
    }
}

static void time_out(struct session *session, struct pull *pull)
{
    const struct request *request = pull->requests.first;

    assert(request != NULL);
    const uint32_t ps = request->link->ps;
    const uint64_t answered_us = request->link->answered_us;
    const char *address = ps < session->config.ps_count ? session->config.ps_addresses[ps] : "";
    const bool heard = answered_us != 0;
    struct sumac_error error;
    (void)fail(
        &error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT,
        "ps %" PRIu32 " at %s did not answer a pull within %s; it %s%s%s", ps, address,
        text_time_ms(pull->wanted.timeout_ms).text,
        heard ? "was last heard from " : "has never been heard from",
        heard ? text_time_us(session->now_us - answered_us).text : "", heard ? " ago" : "");
    trouble_tell(session, request->link, SESSION_PULL_STREAM, &error);
    pull_over(session, pull, &error);
}

void pulls_check(struct session *session)
{
    LIST_FOREACH_SAFE(struct pull, pull, &session->live_pulls, in_session) {
        if (session->now_us >= pull->deadline_us)
            time_out(session, pull);
        else
            effect_wake(session, pull->deadline_us);
    }
}

void pulls_admit(struct session *session)
{
    assert(session->admitted <= session->submitted);
    LIST_FOREACH(struct pull, pull, &session->live_pulls, in_session) {
        if (pull->after_known || session->admitted < pull->after_submitted)
            continue;
        pull->after_known = true;
        LIST_FOREACH(struct request, request, &pull->requests, of_pull) {
            if (pull->wanted.after_own_pushes)
                request->after_sequence = request_last_sequence(session, request->link);
            link_touch(session, request->link);
        }
    }
}
