/* SPDX-License-Identifier: Apache-2.0 */
/* checker_ps.c -- what a ps says and does, as it says and does it. */
#include <string.h>

#include "checker.h"
#include "journal.h"
#include "little_endian.h"
#include "process_client.h"
#include "ps_effects.h"
#include "records.h"
#include "strays.h"

/* ---- staging stays within its bound */

static void ask_stats(struct world *world, const struct event *event)
{
    struct ps *ps = world->ps[event->number];

    if (ps->ending)
        return;
    const wire_stats_request request = WIRE_STATS_REQUEST_INIT;
    const struct call *call = call_make_local(world, LANE_CALL_STATS);
    struct lane_event asked = {
        .kind = LANE_EVENT_CALL,
        .call = call->id,
        .call_kind = LANE_CALL_STATS,
        .request = &request.base,
    };
    ps_step(world, ps, &asked);
}

void checker_ps_stepped(struct world *world, struct ps *ps)
{
    if (world->events_run % 64 == 0 && ps->stats_at != world->events_run) {
        ps->stats_at = world->events_run;
        world_after(world, 0, ps->index, ask_stats, ps->index, NULL);
    }
}

void checker_ps_started(struct world *world, uint32_t ps)
{
    if (!world->records) /* it knows no session of the run before */
        world->checker->member_count[ps] = 0;
}

static bool was_there(const struct checker *checker, uint32_t ps, const wire_session_stats *session)
{
    for (uint32_t i = 0; i < checker->member_count[ps]; i++) {
        const struct member_seen *seen = &checker->members[ps][i];
        if (seen->attempt == session->attempt && strcmp(seen->task, session->task) == 0)
            return true;
    }
    return false;
}

/* While any member stays, the slowest clock only goes on: who joins starts at it. */
static void check_clocks(struct world *world, uint32_t ps, const wire_stats_reply *stats)
{
    struct checker *checker = world->checker;
    struct member_seen members[LIVES_MAX];
    uint32_t count = 0;
    bool some_stayed = false;
    uint64_t slowest = UINT64_MAX;

    for (size_t i = 0; i < stats->n_sessions; i++) {
        const wire_session_stats *session = stats->sessions[i];
        const bool over =
            strcmp(session->state, "open") != 0 && strcmp(session->state, "closing") != 0;
        if (over || strncmp(session->task, "worker", 6) != 0 || count == LIVES_MAX)
            continue;
        some_stayed = some_stayed || was_there(checker, ps, session);
        if (session->clock < slowest)
            slowest = session->clock;
        snprintf(members[count].task, sizeof members[count].task, "%s", session->task);
        members[count++].attempt = session->attempt;
    }
    if (some_stayed && slowest < checker->slowest[ps])
        checker_violation(world, "a join sets the slowest clock back");
    memcpy(checker->members[ps], members, count * sizeof members[0]);
    checker->member_count[ps] = count;
    checker->slowest[ps] = slowest;
}

/* Beside what views keep, a block is kept for as long as bytes of it are on their way. The bound is
 * as much as the state: it falls when a variable is deleted, and views that kept less than it was
 * before end at the next write. */
static void check_views(struct world *world, uint32_t ps, const wire_stats_reply *stats)
{
    const uint64_t block_bytes = world->block_bytes != 0 ? world->block_bytes : SIM_SHARD_BYTES_MAX;
    const uint64_t lent_bytes = world->checker->lent[ps] * block_bytes;

    if (stats->memory != NULL && !world->checker->delete_asked &&
        stats->memory->view_bytes > stats->memory->view_bytes_max + lent_bytes)
        checker_violation(world, "views keep more than they may");
}

void checker_released(struct world *world, uint32_t ps) { world->checker->lent[ps]--; }

static void check_stats(struct world *world, uint32_t ps, const wire_stats_reply *stats)
{
    check_clocks(world, ps, stats);
    checker_clocks(world, ps, stats);
    if (stats->memory == NULL || stats->memory->staged_bytes > stats->memory->staging_bytes_max)
        checker_violation(world, "more is staged than there is room for");
    check_views(world, ps, stats);
    for (size_t i = 0; i < stats->n_sessions; i++)
        if (stats->sessions[i]->staged_bytes > world_grant(world) + world->pool_bytes)
            checker_violation(world, "a session has more staged than it was granted");
}

/* ---- one session for one nonce */

/* One that is settled may be forgotten, when ps 0 remembers few: then the join is a new one. */
static void check_nonce(struct world *world, struct nonce_seen *seen, const wire_join_reply *reply)
{
    const bool same = memcmp(seen->session_id, reply->session_id.data, 16) == 0;
    const bool settled = seen->decided || world->ps_count == 1; /* then no order says so */
    const bool forgotten = !same && settled && world->settled_max != 0;

    made_if(world, MADE_settled_forgotten, forgotten);
    if (!same && !forgotten && !world->checker->state_lost)
        checker_violation(world, "one nonce has two sessions");
    memcpy(seen->session_id, reply->session_id.data, 16);
    seen->decided = same && seen->decided;
}

static void check_join(struct world *world, const struct call *call, const wire_join_reply *reply)
{
    struct checker *checker = world->checker;

    if (reply->session_id.len != 16) {
        checker_violation(world, "a join is answered without a session");
        return;
    }
    for (uint32_t i = 0; i < checker->nonce_count; i++)
        if (memcmp(checker->nonces[i].nonce, call->key, 16) == 0) {
            check_nonce(world, &checker->nonces[i], reply);
            return;
        }
    if (checker->nonce_count == sizeof checker->nonces / sizeof checker->nonces[0])
        return;
    struct nonce_seen *seen = &checker->nonces[checker->nonce_count++];
    memcpy(seen->nonce, call->key, 16);
    memcpy(seen->session_id, reply->session_id.data, 16);
}

static void check_joined(struct world *world, const struct call *call, const wire_join_reply *reply)
{
    check_join(world, call, reply);
    if (!world->checker->state_lost)
        checker_resumed(world, checker_life_of(world, call->caller, call->caller_life), reply);
}

void checker_replied(
    struct world *world, struct ps *ps, const struct call *call, const wire_message *message)
{
    if (call->kind == LANE_CALL_STATS)
        check_stats(world, ps->index, (const wire_stats_reply *)message);
    else if (call->kind == LANE_CALL_JOIN)
        check_joined(world, call, (const wire_join_reply *)message);
    else if (call->kind == LANE_CALL_LEAVE)
        checker_left(world, checker_life_of(world, call->caller, call->caller_life));
    else if (call->kind == LANE_CALL_RENEW)
        checker_renewed(world, call);
    else if (call->kind == LANE_CALL_BARRIER)
        checker_round_over(world, (const wire_barrier_reply *)message);
}

/* ---- answers and records */

/* Messages of a killed client may still come. */
static const struct sim_session *session_of(const struct world *world, const struct stream *stream)
{
    return stream->kind == LANE_STREAM_PEER
               ? NULL
               : checker_life_of(world, stream->caller, stream->caller_life);
}

static struct sim_push *
find_sequence(const struct world *world, const struct stream *stream, uint64_t sequence)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->push_count; i++)
        if (checker->pushes[i]->session == session_of(world, stream) &&
            checker->pushes[i]->sequence == sequence)
            return checker->pushes[i];
    return NULL;
}

/* The first time that all of a part is there, it is staged; its record is made in that step, after
 * `made_before`. */
void checker_parts_came(
    struct world *world, const struct ps *ps, const struct stream *stream,
    const wire_push_request *request, uint64_t made_before)
{
    for (size_t i = 0; world->records && i < request->n_parts; i++) {
        struct sim_push *push = find_sequence(world, stream, request->parts[i]->sequence);
        if (push == NULL || !request->parts[i]->last || push->staged_after[ps->index] != 0)
            continue;
        if (request->parts[i]->room_bytes > 0 && request->parts[i]->n_pieces == 0)
            continue; /* it asks for room */
        push->staged_after[ps->index] = made_before + 1;
    }
}

/* What came on a stream that a later one has taken the place of changes nothing: nothing of it is
 * recorded. */
void checker_parts_taken(
    struct world *world, const struct ps *ps, const struct stream *stream, bool greets,
    uint64_t made_before)
{
    struct newest *newest = &world->checker->newest[ps->index][stream->caller - SIM_PS_MAX];

    if (greets && (newest->life != stream->caller_life || newest->generation < stream->generation))
        *newest = (struct newest){stream->caller_life, stream->generation};
    if (newest->life == stream->caller_life && stream->generation < newest->generation &&
        ps->journals[LANE_JOURNAL_OWN].made > made_before)
        checker_violation(world, "what an older stream delivered is counted");
}

/* Until its client has heard of it, a refusal is said with every answer to its part. */
static void check_refusals(
    struct world *world, const struct ps *ps, const struct stream *stream,
    const wire_push_answer *answer)
{
    for (size_t i = 0; i < answer->n_refused; i++) {
        struct sim_push *push = find_sequence(world, stream, answer->refused[i]->sequence);
        if (push == NULL || !checker_is_for_room(world, answer->refused[i]->reason))
            continue;
        push->defect = DEFECT_NO_MEMORY;
        world->checker->room_refused = true;
    }
    for (size_t i = 0; i < answer->n_done; i++) {
        const struct sim_push *push = find_sequence(world, stream, answer->done[i]->sequence);
        if (push != NULL && push->defect != DEFECT_NONE && push->bad_ps == ps->index &&
            push->fate == FATE_UNDER_WAY && !answer->done[i]->voided)
            checker_violation(world, "a refusal is forgotten before its client has heard of it");
    }
}

/* Of a session that was opened before it crashed a ps knows nothing any more. */
static void
check_reborn(struct world *world, const struct stream *stream, const wire_push_answer *answer)
{
    const struct sim_session *life = session_of(world, stream);

    if (checker_of_lost_run(world, life) && answer->n_staged + answer->n_done > 0)
        checker_violation(world, "a ps takes a push of a session that it has lost");
}

static void check_push_answer(
    struct world *world, const struct ps *ps, const struct stream *stream,
    const wire_push_answer *answer)
{
    for (size_t i = 0; i < answer->n_staged; i++) {
        const struct sim_push *push = find_sequence(world, stream, answer->staged[i]->sequence);
        if (push != NULL && ps->journals[LANE_JOURNAL_OWN].done < push->staged_after[ps->index])
            checker_violation(world, "STAGED does not wait for its record");
    }
    for (size_t i = 0; i < answer->n_done; i++) {
        const struct sim_push *push = find_sequence(world, stream, answer->done[i]->sequence);
        if (push != NULL && (ps->journals[LANE_JOURNAL_OWN].done < push->staged_after[ps->index] ||
                             ps->journals[LANE_JOURNAL_OWN].done < push->applied_record[ps->index]))
            checker_violation(world, "DONE does not wait for its record");
    }
}

static bool names(const struct span *record, const uint8_t id[16])
{
    for (size_t i = 0; i + 16 <= record->bytes; i++)
        if (memcmp(record->data + i, id, 16) == 0)
            return true;
    return false;
}

/* That a part was applied, or passed over, is a record: its kind, sequence and session; or, of a
 * synchronous step, the step and the sessions. */
void checker_recorded(struct world *world, const struct ps *ps, const struct lane_effect *effect)
{
    const uint8_t *bytes = effect->body[0].data;
    uint64_t sequence = 0;

    for (uint32_t i = 0; i < 8; i++)
        sequence |= (uint64_t)bytes[16 + i] << 8 * i;
    for (uint32_t i = 0; bytes[0] == RECORD_STEP && i < world->checker->push_count; i++) {
        struct sim_push *push = world->checker->pushes[i]; /* its sessions are named */
        if (push->step == sequence && names(&effect->body[0], push->session->id))
            push->applied_record[ps->index] = effect->record;
    }
    if (bytes[0] != RECORD_APPLIED)
        return;
    checker_kept_contribution(world, ps->index, sequence, bytes + 32, effect->record);
    for (uint32_t i = 0; i < world->checker->push_count; i++) {
        struct sim_push *push = world->checker->pushes[i];
        if (push->sequence == sequence && memcmp(push->session->id, bytes + 32, 16) == 0)
            push->applied_record[ps->index] = effect->record;
    }
}

/* What it shows has been on disk since it went out. */
void checker_shown(struct world *world, uint32_t ps, uint64_t shown)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->push_count && !world->ps[ps]->crashed; i++)
        if ((shown >> i & 1) != 0 &&
            world->ps[ps]->journals[LANE_JOURNAL_OWN].done < checker->pushes[i]->applied_record[ps])
            checker_violation(world, "a pull shows what is not on disk");
}

/* What obeying an order has recorded is on disk before ps 0 hears that it is obeyed. */
static void check_report(struct world *world, const struct ps *ps, const struct lane_effect *effect)
{
    const uint64_t number = effect->report->answers;
    const struct order_seen *order =
        &ps->orders[number % (sizeof ps->orders / sizeof ps->orders[0])];

    if (number == 0 || order->number != number || effect->report->status != 0)
        return;
    const uint64_t made =
        order->made_after == UINT64_MAX ? ps->journals[LANE_JOURNAL_OWN].made : order->made_after;
    if (made > order->made_before && ps->journals[LANE_JOURNAL_OWN].done <= order->made_before)
        checker_violation(world, "a report does not wait for its record");
}

/* When ps 0 hears of its disk it says what has waited; else only what is on disk. */
void checker_finished(struct world *world, const struct ps *ps, const struct call *call)
{
    const struct journal *journal = &ps->journals[LANE_JOURNAL_CONTROLLER];

    if (rpc_is_the_controllers(call->kind) && !ps->hears_disk && journal->done < journal->made)
        checker_violation(world, "an answer of ps 0 does not wait for its record");
}

static const wire_bytes *session_of_order(const wire_peer_order *order)
{
    if (order->open != NULL)
        return &order->open->session_id;
    if (order->close != NULL)
        return &order->close->session_id;
    return order->decide != NULL ? &order->decide->session_id : NULL;
}

static uint64_t variable_of_order(const wire_peer_order *order)
{
    if (order->add_shards != NULL)
        return order->add_shards->variable->variable_id;
    if (order->publish != NULL)
        return order->publish->variable_id;
    return order->delete_ != NULL ? order->delete_->variable_id : 0;
}

/* The facts of an order that are in a row must be on disk. Without them, a controller that begins
 * again might decide otherwise. */
static void check_order(struct world *world, const struct ps *ps, const wire_peer_order *order)
{
    const struct journal *journal = &ps->journals[LANE_JOURNAL_CONTROLLER];
    const wire_bytes *session = session_of_order(order);
    const uint64_t variable = variable_of_order(order);
    uint8_t id[8];

    little_endian_put(id, sizeof id, variable);
    const bool of_session =
        session != NULL &&
        journal_lacks(journal, CONTROLLER_ROW_SESSION, session->data, session->len);
    const bool of_variable =
        variable != 0 && journal_lacks(journal, CONTROLLER_ROW_VARIABLE, id, sizeof id);
    if (of_session || of_variable || journal_lacks(journal, CONTROLLER_ROW_CLUSTER, id, 0))
        checker_violation(world, "an order of ps 0 does not wait for its record");
}

static void note_decided(struct world *world, const wire_decide_session *decide)
{
    struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->nonce_count; i++)
        if (memcmp(checker->nonces[i].session_id, decide->session_id.data, 16) == 0)
            checker->nonces[i].decided = true;

    for (uint32_t i = 0; i < checker->life_count; i++)
        if (memcmp(checker->lives[i]->id, decide->session_id.data, 16) == 0)
            checker->lives[i]->decided = true;
}

/* Its client says nothing more. */
static void note_told(const struct world *world, const struct stream *stream)
{
    checker_life_of(world, stream->caller, stream->caller_life)->told_closed = true;
}

/* Or is that of an open session. */
static void note_forgotten(struct world *world, const struct stream *stream)
{
    const struct sim_session *life = session_of(world, stream);

    made_if(world, MADE_closed_forgotten, life->decided && world->closed_max != 0);
}

static bool some_ps_ends(const struct world *world)
{
    bool ends = world->checker->end_said;

    for (uint32_t i = 0; i < world->ps_count; i++)
        ends = ends || world->ps[i]->ending || world->ps[i]->exited;
    return ends;
}

void checker_effect(
    struct world *world, struct ps *ps, const struct stream *stream,
    const struct lane_effect *effect)
{
    if (stream != NULL && stream->refused_for != SUMAC_REASON_UNSPECIFIED) {
        stray_effect(world, stream, effect);
        return;
    }
    for (uint32_t i = 0; i < effect->payload_count; i++)
        world->checker->lent[ps->index] += effect->payload[i].hold != 0;
    if (effect->kind == LANE_EFFECT_ORDER && effect->order->take != NULL)
        checker_takes(world, effect->order->take);
    if (effect->kind == LANE_EFFECT_ORDER && effect->order->end != NULL)
        world->checker->end_said = true;
    if (effect->kind == LANE_EFFECT_ORDER && effect->order->decide != NULL &&
        !some_ps_ends(world)) /* without it */
        note_decided(world, effect->order->decide);
    if (effect->kind == LANE_EFFECT_ANSWER) {
        made_if(world, MADE_room_kept, effect->push_answer->n_resend > 0);
        made_if(world, MADE_room_waits, effect->push_answer->n_room_waits > 0);
        made_if(world, MADE_gave_way, effect->push_answer->n_give_way > 0);
    }
    if (effect->kind == LANE_EFFECT_ANSWER && effect->push_answer->closed != NULL)
        note_told(world, stream);
    if (effect->kind == LANE_EFFECT_ANSWER && effect->push_answer->rejoin)
        note_forgotten(world, stream);
    if (effect->kind == LANE_EFFECT_CLOSE_STREAM)
        made_if(world, MADE_not_kept, effect->error.reason == SUMAC_REASON_TOO_MANY_REFUSED);
    if (effect->kind == LANE_EFFECT_ANSWER && ps->crashed)
        check_reborn(world, stream, effect->push_answer);
    if (effect->kind == LANE_EFFECT_ANSWER)
        check_refusals(world, ps, stream, effect->push_answer);
    if (effect->kind == LANE_EFFECT_REPORT && effect->report->close_report != NULL)
        checker_closes(world, ps->index, effect->report->close_report);
    if (!world->records)
        return;
    if (effect->kind == LANE_EFFECT_ANSWER)
        check_push_answer(world, ps, stream, effect->push_answer);
    else if (effect->kind == LANE_EFFECT_REPORT)
        check_report(world, ps, effect);
    else if (effect->kind == LANE_EFFECT_ORDER && effect->order->number != 0)
        check_order(world, ps, effect->order);
}

/* ---- the end */

void checker_ps_crashed(struct world *world)
{
    struct checker *checker = world->checker;

    checker->lost_us = checker->state_lost ? checker->lost_us : world->now_us;
    checker->state_lost = true;
}

void checker_terminated(struct world *world) { world->checker->terminated = true; }

void checker_ps_exited(struct world *world, struct ps *ps)
{
    (void)ps;
    world->checker->ps_exited = true;
    for (uint32_t i = 0; i < world->client_count; i++) {
        const struct client *client = world->clients[i];
        const bool open = client->phase == PHASE_CREATING || client->phase == PHASE_WORKING ||
                          client->phase == PHASE_DRAINING;
        if (client->member && open && !client->hung && !world->checker->state_lost &&
            !world->checker->terminated && !checker_may_be_closed(world, client->life))
            checker_violation(world, "a ps dies");
    }
}
