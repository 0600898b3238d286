/* SPDX-License-Identifier: Apache-2.0 */
/* large_part_room.c -- large parts share a pool: who gets room next, and who gives it back.
 *
 * Three lines, each in its order (rank_of). The first of a line gets room when there is enough, or
 * a staged part that comes later in that order is asked to give way. Only parts that are not
 * committed give way, and a session's next contribution to a synchronous step never does. While
 * such a contribution is here, room for one of each member is kept from ordinary parts: no step
 * waits for them, and they wait for no step. docs/protocol/model.py has all of these rules.
 */
#include "handlers.h"

bool lane_room_is_large(const struct lane *lane, const wire_part *header)
{
    assert(lane->claims.bytes_max > 0 || lane->claims.all.first == NULL);
    return header->room_bytes > lane->grant_bytes && header->collective == NULL;
}

bool lane_room_is_header_alone(const wire_part *header)
{
    assert(header->first);
    return header->last && header->n_pieces == 0;
}

bool lane_room_check_same(struct lane *lane, struct lane_stream *stream, const wire_part *header)
{
    const struct lane_session *session = stream->session;
    const struct claim *claim = lane_claim_find(lane, session, header->sequence);
    const uint64_t step = header->synchronous ? header->step : 0;

    assert(claim == NULL || claim->part == NULL || lane->config.broken != 0);
    if (claim == NULL || (lane_room_is_large(lane, header) && claim->step == step))
        return true;
    return lane_stream_fail(
        lane, stream, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
        "push %" PRIu64 " of session %s asked ps %u for %" PRIu64
        " bytes of room and now has room_bytes %" PRIu64 " and step %" PRIu64 ", which was %" PRIu64
        "; a part that comes again is the same part",
        header->sequence, session->task, lane->index, claim->room_bytes, header->room_bytes, step,
        claim->step);
}

bool lane_room_check_asked(struct lane *lane, struct lane_stream *stream, const wire_part *header)
{
    const struct lane_session *session = stream->session;

    assert(lane_room_is_large(lane, header));
    if (lane_room_is_header_alone(header) ||
        lane_claim_find(lane, session, header->sequence) != NULL)
        return true;
    return lane_stream_fail(
        lane, stream, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
        "push %" PRIu64 " of session %s takes %" PRIu64
        " bytes on ps %u, and its elements came before it had asked for room: above %" PRIu64
        " bytes send its header alone, and the elements after `resend`",
        header->sequence, session->task, header->room_bytes, lane->index, lane->grant_bytes);
}

bool lane_room_is_asked(
    const struct lane *lane, const struct lane_session *session, const wire_part *header)
{
    const struct claim *claim = lane_claim_find(lane, session, header->sequence);

    assert(lane_room_is_large(lane, header));
    return lane_room_is_header_alone(header) ||
           (claim != NULL && claim->state == CLAIM_RESERVED && claim->resend == header->resend);
}

/* ---- who comes first ---- */

/* The step of the last contribution before it that is not over, or 0. */
static uint64_t find_step_before(struct lane *lane, struct lane_session *session, uint64_t sequence)
{
    const struct lane_part *part = lane_session_part_before(session, sequence);

    assert(sequence > 0);
    while (part != NULL && part->step == 0) {
        lane->work++;
        part = part->in_session.prev;
    }
    return part == NULL ? 0 : part->step;
}

/* Members come in this order: chiefs, then workers, by their index. */
static struct claim_rank rank_of(struct lane *lane, const struct claim *claim)
{
    struct lane_session *session = claim->session;
    const uint64_t member = ((uint64_t)(strcmp(session->job, "chief") != 0) << 32) | session->index;
    const bool steps = rule_holds(lane->config.broken, RULE_steps_come_first);
    uint64_t before = steps ? find_step_before(lane, session, claim->sequence) : 0;
    bool due = claim->step != 0;

    assert(!session->closed || claim->state == CLAIM_HELD);
    LIST_FOREACH(const struct claim, other, &lane->claims.all, in_lane) {
        if (other->session != session || other->sequence >= claim->sequence)
            continue;
        due = due && other->step == 0 && other->sequence <= session->commit_through;
        if (other->step > before)
            before = other->step;
    }
    if (!steps || (claim->step == 0 && before == 0)) {
        struct claim_rank rank = {
            .line = CLAIM_LINE_ORDINARY, .keys = {claim->started_us, 0, claim->sequence}};
        memcpy(&rank.keys[1], session->id, sizeof rank.keys[1]);
        return rank;
    }
    return (struct claim_rank){
        .line = due ? CLAIM_LINE_DUE : CLAIM_LINE_LATER,
        .keys = {claim->step != 0 ? claim->step : before, member, claim->sequence}};
}

static bool comes_before(const struct claim *one, const struct claim *other)
{
    assert(one->sequence > 0 && other->sequence > 0);
    if (one->rank.line != other->rank.line)
        return one->rank.line < other->rank.line;
    for (size_t i = 0; i < sizeof one->rank.keys / sizeof *one->rank.keys; i++) {
        if (one->rank.keys[i] != other->rank.keys[i])
            return one->rank.keys[i] < other->rank.keys[i];
    }
    return false;
}

/* ---- what is kept for steps ---- */

/* Sessions whose contributions may need room at once. */
static uint64_t count_members(const struct lane *lane)
{
    uint64_t members = lane_step_yet_to_join(lane) + lane_grant_count_closed(lane);

    LIST_FOREACH(const struct lane_session, session, &lane->sessions, in_lane)
        members += session->first_step != 0;
    return members;
}

/* The largest contribution that is here or asks for room. */
static uint64_t largest_contribution(const struct lane *lane)
{
    uint64_t most = 0;

    LIST_FOREACH(const struct claim, claim, &lane->claims.all, in_lane) {
        if (claim->step != 0 && claim->room_bytes > most)
            most = claim->room_bytes;
    }
    return most;
}

/* One contribution of each member beside this session, while any is due. The session contributes
 * after the part that it asks for. */
static uint64_t kept_for_steps(const struct lane *lane, const struct lane_session *session)
{
    const uint64_t most = lane->claims.bytes_max;
    const uint64_t members = count_members(lane) - (session->first_step != 0);
    bool any = false;

    LIST_FOREACH(const struct claim, claim, &lane->claims.all, in_lane)
        any = any || claim->rank.line == CLAIM_LINE_DUE;
    if (!any)
        return 0;
    const uint64_t largest = largest_contribution(lane);
    return members > 0 && largest > most / members ? most : members * largest;
}

/* ---- a part asks ---- */

static void refuse_too_large(struct lane *lane, struct lane_part *part, uint64_t room_bytes)
{
    const uint64_t most = lane->claims.bytes_max;

    assert(room_bytes > most);
    (void)lane_part_refuse(
        lane, part, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_PART_TOO_LARGE,
        "push %" PRIu64 " takes %" PRIu64 " bytes of staging on ps %u, where all large parts share "
        "%" PRIu64 " (" WIRE_COST_TEXT
        "): push less at once, or start the ps with a --staging-max of %" PRIu64 "M\t%" PRIu64
        "\t%" PRIu64,
        part->sequence, room_bytes, lane->index, most, 2 * ((room_bytes >> 20) + 1), most,
        room_bytes);
}

/* Room for the contributions of all members together, or none of them is taken. */
static void refuse_step(struct lane *lane, struct lane_part *part, uint64_t room_bytes)
{
    const uint64_t most = lane->claims.bytes_max, members = count_members(lane);

    assert(part->step != 0);
    assert(members > 0);
    (void)lane_part_refuse(
        lane, part, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_PART_TOO_LARGE,
        "push %" PRIu64 " is a contribution of %" PRIu64 " bytes of staging on ps %u, and with "
        "those of all %" PRIu64 " members a step takes %" PRIu64 " of the %" PRIu64
        " that large parts share: contribute less, use more ps, or start the ps with a "
        "--staging-max of %" PRIu64 "M\t%" PRIu64 "\t%" PRIu64,
        part->sequence, room_bytes, lane->index, members, members * room_bytes, most,
        2 * ((members * room_bytes >> 20) + 1), most / members, room_bytes);
}

void lane_room_take_up(struct lane *lane, struct lane_part *part)
{
    assert(part->state == PART_RECEIVING);
    assert(part->claim == NULL);
    part->claim = lane_claim_find(lane, part->session, part->sequence);
}

void lane_room_claim(struct lane *lane, struct lane_part *part, const wire_part *header)
{
    struct claim *claim = part->claim;
    const uint64_t most = lane->claims.bytes_max, members = count_members(lane);
    uint64_t largest = largest_contribution(lane);

    assert(part->state == PART_RECEIVING);
    assert(part->asks || claim != NULL);
    if (claim == NULL) {
        if (header->room_bytes > largest)
            largest = header->room_bytes;
        if (header->room_bytes > most)
            refuse_too_large(lane, part, header->room_bytes);
        else if (part->step != 0 && members > 0 && largest > most / members)
            refuse_step(lane, part, largest);
        else if ((claim = lane_claim_create(lane, part->session, header)) == NULL)
            (void)lane_part_refuse_memory(lane, part);
    }
    if (claim == NULL)
        return;
    assert(claim->used_bytes == 0);
    if (header->resend > claim->resend)
        claim->resend = header->resend;
    part->claim = claim;
}

void lane_room_asked(struct lane *lane, struct lane_part *part)
{
    struct claim *claim = part->claim;

    assert(part->asks);
    assert(claim != NULL);
    lane_part_destroy(lane, part);
    claim->wait_said = false;
    if (claim->state == CLAIM_RESERVED)
        lane_answer_resend(lane, claim->session, claim->sequence);
}

/* ---- it gives way ---- */

static bool may_give_way(const struct claim *claim)
{
    assert((claim->state == CLAIM_HELD) == (claim->part != NULL));
    return claim->state == CLAIM_HELD && claim->sequence > claim->session->commit_through;
}

static void give_way(struct lane *lane, struct claim *claim, uint32_t resend)
{
    struct lane_part *part = claim->part;

    assert(may_give_way(claim));
    assert(part->state == PART_STAGED);
    lane_session_remove(lane, claim->session, part);
    claim->part = NULL;
    lane_claim_give_way(lane, claim, resend);
    (void)lane_record_order(lane, RECORD_WITHDRAWN, claim->session, claim->sequence, NULL);
    lane_part_destroy(lane, part);
}

void lane_room_withdraw(
    struct lane *lane, struct lane_session *session, uint64_t sequence, uint32_t resend)
{
    struct claim *claim = lane_claim_find(lane, session, sequence);

    if (claim == NULL)
        return;
    claim->way_asked = false; /* on a stream that may be gone */
    if (claim->resend >= resend)
        return;
    if (claim->state == CLAIM_HELD) {
        if (may_give_way(claim))
            give_way(lane, claim, resend);
        return;
    }
    claim->resend = resend;
    if (claim->state == CLAIM_RESERVED)
        lane_answer_resend(lane, claim->session, claim->sequence);
}

/* ---- room is shared ---- */

static bool has_room(const struct lane *lane, const struct claim *claim)
{
    const uint64_t most = lane->claims.bytes_max;
    uint64_t ordinary = 0;

    assert(claim->room_bytes <= most);
    if (lane->claims.bytes > most - claim->room_bytes)
        return false;
    if (claim->step != 0)
        return true;
    const uint64_t kept = kept_for_steps(lane, claim->session);
    assert(kept <= most);
    LIST_FOREACH(const struct claim, other, &lane->claims.all, in_lane)
        ordinary += other->state != CLAIM_WAITS && other->step == 0 ? other->room_bytes : 0;
    return claim->room_bytes <= most - kept && ordinary <= most - kept - claim->room_bytes;
}

/* The last one that may give way to it is asked to. */
static void make_room(struct lane *lane, const struct claim *first)
{
    struct claim *last = NULL;

    assert(first->state == CLAIM_WAITS);
    LIST_FOREACH(struct claim, claim, &lane->claims.all, in_lane) {
        if (may_give_way(claim) && claim->rank.line != CLAIM_LINE_DUE &&
            comes_before(first, claim) && (last == NULL || comes_before(last, claim)))
            last = claim;
    }
    if (last == NULL || !rule_holds(lane->config.broken, RULE_youngest_gives_way))
        return;
    if (!rule_holds(lane->config.broken, RULE_ask_before_dropping)) {
        give_way(lane, last, last->resend);
        return;
    }
    lane_claim_want(lane, last);
    if (!last->way_asked)
        last->way_asked = lane_answer_give_way(lane, last);
}

/* It would wait for the end of the steps, and one of these may wait for what it holds elsewhere, or
 * for what its session contributes next. */
static void refuse_beside_steps(struct lane *lane, struct claim *claim)
{
    struct lane_session *session = claim->session;
    const uint64_t kept = kept_for_steps(lane, session);
    const uint64_t room = claim->room_bytes, left = lane->claims.bytes_max - kept;
    wire_part header = WIRE_PART_INIT;

    assert(claim->state == CLAIM_WAITS && claim->step == 0);
    header.sequence = claim->sequence;
    header.previous = claim->previous;
    struct lane_part *part = lane_part_create(lane, session, &header, PART_RECEIVING);
    if (part == NULL)
        return; /* when there is memory again */
    lane_claim_destroy(lane, claim);
    (void)lane_part_refuse(
        lane, part, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_PART_TOO_LARGE,
        "push %" PRIu64 " takes %" PRIu64 " bytes of staging on ps %u, which keeps %" PRIu64
        " for the contributions of members to synchronous steps and has %" PRIu64
        " for others: push less at once, push again between two steps, or start the ps with a "
        "--staging-max of %" PRIu64 "M\t%" PRIu64 "\t%" PRIu64,
        header.sequence, room, lane->index, kept, left, 2 * ((kept + room) >> 20) + 2, left, room);
    if (part->state != PART_REFUSED) {
        lane_part_destroy(lane, part);
        lane_part_fail_memory(lane, session->push_stream);
        return;
    }
    if (lane_part_keep_refusal(lane, session->push_stream, part))
        lane_part_take_place(lane, session, part);
}

/* The first that waits in each line; of the last only where none waits in the others. */
static void find_first(const struct lane *lane, struct claim *first[3])
{
    first[0] = first[1] = first[2] = NULL;
    LIST_FOREACH(struct claim, claim, &lane->claims.all, in_lane) {
        struct claim **of_line = &first[claim->rank.line];
        if (claim->state == CLAIM_WAITS && (*of_line == NULL || comes_before(claim, *of_line)))
            *of_line = claim;
    }
    if (first[CLAIM_LINE_DUE] != NULL || first[CLAIM_LINE_ORDINARY] != NULL)
        first[CLAIM_LINE_LATER] = NULL;
}

static struct claim *find_refused(const struct lane *lane)
{
    struct claim *claim = lane->claims.all.first;

    while (claim != NULL &&
           (claim->state != CLAIM_WAITS || claim->rank.line != CLAIM_LINE_ORDINARY ||
            claim->session->push_stream == NULL ||
            claim->room_bytes <= lane->claims.bytes_max - kept_for_steps(lane, claim->session)))
        claim = claim->in_lane.next;
    return claim;
}

/* Give room to one, or refuse one. False: nothing changes any more by itself. */
static bool share_once(struct lane *lane)
{
    struct claim *first[3];

    LIST_FOREACH(struct claim, claim, &lane->claims.all, in_lane)
        claim->rank = rank_of(lane, claim);
    struct claim *const refused = find_refused(lane);
    if (refused != NULL) {
        const struct lane_session *session = refused->session;
        const uint64_t sequence = refused->sequence;
        refuse_beside_steps(lane, refused);
        return lane_claim_find(lane, session, sequence) == NULL;
    }
    find_first(lane, first);
    for (size_t line = 0; line < 3; line++) {
        if (first[line] == NULL)
            continue;
        if (has_room(lane, first[line])) {
            lane_claim_reserve(lane, first[line]);
            lane_answer_resend(lane, first[line]->session, first[line]->sequence);
            return true;
        }
        make_room(lane, first[line]);
    }
    return false;
}

void lane_room_share(struct lane *lane)
{
    assert(lane->claims.waiting > 0);
    while (lane->claims.waiting > 0 && share_once(lane))
        lane->work += 1;
    LIST_FOREACH(struct claim, claim, &lane->claims.all, in_lane) {
        if (claim->state != CLAIM_WAITS || claim->wait_said)
            continue;
        assert(!claim->session->closing || lane->config.broken != 0);
        claim->wait_said = true;
        lane_answer_room_wait(lane, claim);
    }
}

void lane_room_tick(struct lane *lane)
{
    LIST_FOREACH(struct claim, claim, &lane->claims.all, in_lane) {
        const struct lane_session *session = claim->session;
        if (session->silent || session->push_stream == NULL || !lane_claim_is_late(lane, claim, 1))
            continue;
        lane_claim_note_silence(claim);
        (void)lane_stream_fail(
            lane, session->push_stream, SUMAC_UNAVAILABLE, SUMAC_REASON_BUSY,
            "ps %u asked session %s %s push %" PRIu64
            ", and %s came in a lease: open the stream again and answer, or ps 0 closes the "
            "session while others wait for room",
            lane->index, session->task, claim->state == CLAIM_HELD ? "to withdraw" : "for all of",
            claim->sequence, claim->state == CLAIM_HELD ? "no answer" : "too little");
    }
}
