/* SPDX-License-Identifier: Apache-2.0 */
/* claims.c -- claims on the pool of staging, and the bytes that they keep there. */
#include "part_state.h"

void lane_claims_set_bytes(struct lane *lane, uint64_t bytes)
{
    const uint64_t floors = lane->staged_bytes - lane->claims.bytes;

    assert(lane->staged_bytes >= lane->claims.bytes);
    assert(lane->claims.bytes_max > 0);
    lane->claims.bytes = bytes;
    lane_staging_count(lane, floors + bytes);
}

struct claim *
lane_claim_find(const struct lane *lane, const struct lane_session *session, uint64_t sequence)
{
    struct claim *claim = lane->claims.all.first;

    assert(sequence > 0);
    while (claim != NULL && (claim->session != session || claim->sequence != sequence))
        claim = claim->in_lane.next;
    return claim;
}

struct claim *
lane_claim_create(struct lane *lane, struct lane_session *session, const wire_part *header)
{
    struct claim *claim = pool_take(&lane->parts->claims);

    assert(lane_claim_find(lane, session, header->sequence) == NULL);
    if (claim == NULL)
        return NULL;
    claim->session = session;
    claim->sequence = header->sequence;
    claim->previous = header->previous;
    claim->step = header->synchronous ? header->step : 0;
    claim->started_us = header->started_at_us;
    claim->room_bytes = header->room_bytes;
    LIST_APPEND(&lane->claims.all, claim, in_lane);
    lane->claims.waiting++;
    return claim;
}

void lane_claim_reserve(struct lane *lane, struct claim *claim)
{
    assert(claim->state == CLAIM_WAITS);
    assert(lane->claims.waiting > 0);
    assert(claim->part == NULL);
    claim->state = CLAIM_RESERVED;
    claim->used_bytes = claim->progress_bytes = claim->small_bytes = 0;
    claim->other_count = 0;
    claim->since_us = lane->now_us;
    claim->wait_said = false;
    lane->claims.waiting--;
    lane_claims_set_bytes(lane, lane->claims.bytes + claim->room_bytes);
}

static void note_answer(const struct lane *lane, struct claim *claim)
{
    assert(claim->state == CLAIM_RESERVED);
    assert(claim->since_us <= lane->now_us);
    claim->progress_bytes = 0;
    claim->since_us = lane->now_us;
    claim->session->silent = false;
}

void lane_claim_hold(struct lane *lane, struct claim *claim, struct lane_part *part)
{
    assert(claim->state == CLAIM_RESERVED);
    assert(claim->sequence == part->sequence);
    assert(claim->used_bytes <= claim->room_bytes);
    claim->state = CLAIM_HELD;
    claim->part = part;
    claim->session->silent = false;
    LIST_FOREACH(struct claim, other, &lane->claims.all, in_lane)
        if (other->session == claim->session && other->state == CLAIM_RESERVED &&
            other->other_count < CLAIM_OTHERS_MAX) {
            other->other_count++;
            note_answer(lane, other);
        }
}

/* ---- does its client do what it is asked to? ---- */

static uint64_t lease_us(const struct lane *lane) { return (uint64_t)lane->config.lease_ms * 1000; }

void lane_claim_want(const struct lane *lane, struct claim *claim)
{
    assert(claim->state == CLAIM_HELD);
    assert(claim->wanted_us <= lane->now_us);
    if (claim->wanted_us == 0 || lane->now_us - claim->wanted_us > lease_us(lane) / 2)
        claim->wanted_since_us = lane->now_us;
    claim->wanted_us = lane->now_us;
}

/* A client sends one part at a time. What it sends of another part counts within bounds, or a
 * client could keep room for a part that it never sends. */
void lane_claims_note_elements(struct lane *lane, const struct lane_part *part, uint64_t bytes)
{
    LIST_FOREACH(struct claim, claim, &lane->claims.all, in_lane) {
        const bool counts = part->claim == NULL
                                ? claim->small_bytes <= lane->grant_bytes
                                : part->claim == claim || claim->other_count < CLAIM_OTHERS_MAX;
        assert(claim->other_count <= CLAIM_OTHERS_MAX);
        if (claim->session != part->session || claim->state != CLAIM_RESERVED || !counts)
            continue;
        if (part->claim == NULL)
            claim->small_bytes += bytes;
        claim->progress_bytes += bytes;
        if (claim->progress_bytes >= CLAIM_PROGRESS_BYTES)
            note_answer(lane, claim);
    }
}

bool lane_claim_is_late(const struct lane *lane, const struct claim *claim, uint64_t leases)
{
    const struct lane_session *session = claim->session;
    uint64_t since_us = claim->since_us;

    if (session->closing || claim->state == CLAIM_WAITS)
        return false;
    if (claim->state == CLAIM_HELD) {
        if (claim->wanted_us == 0 || lane->now_us - claim->wanted_us > lease_us(lane) / 2 ||
            claim->sequence <= session->commit_through)
            return false;
        since_us = claim->wanted_since_us;
    }
    if (since_us < lane->resumed_us)
        since_us = lane->resumed_us;
    assert(since_us <= lane->now_us);
    return lane->now_us - since_us > leases * lease_us(lane);
}

void lane_claim_note_silence(struct claim *claim) { claim->session->silent = true; }

static void give_room(struct lane *lane, const struct claim *claim)
{
    if (claim->state == CLAIM_WAITS)
        return;
    assert(lane->claims.bytes >= claim->room_bytes);
    lane_claims_set_bytes(lane, lane->claims.bytes - claim->room_bytes);
}

void lane_claim_give_way(struct lane *lane, struct claim *claim, uint32_t resend)
{
    assert(claim->part == NULL);
    assert(claim->state != CLAIM_WAITS);
    assert(resend >= claim->resend);
    claim->session->silent = false;
    give_room(lane, claim);
    claim->state = CLAIM_WAITS;
    claim->resend = resend;
    claim->used_bytes = 0;
    lane->claims.waiting++;
}

void lane_claim_destroy(struct lane *lane, struct claim *claim)
{
    assert(claim->part == NULL);
    give_room(lane, claim);
    if (claim->state == CLAIM_WAITS) {
        assert(lane->claims.waiting > 0);
        lane->claims.waiting--;
    }
    LIST_REMOVE(&lane->claims.all, claim, in_lane);
    pool_give(&lane->parts->claims, claim);
}

void lane_claims_drop(struct lane *lane, const struct lane_session *session)
{
    LIST_FOREACH_SAFE(struct claim, claim, &lane->claims.all, in_lane) {
        if (claim->session == session && claim->part == NULL)
            lane_claim_destroy(lane, claim);
    }
}

uint32_t lane_claims_count(const struct lane *lane, const struct lane_session *session)
{
    uint32_t count_of_session = 0;

    LIST_FOREACH(const struct claim, claim, &lane->claims.all, in_lane)
        count_of_session += claim->session == session && claim->part == NULL;
    assert(count_of_session == 0 || lane->claims.all.first != NULL);
    return count_of_session;
}

uint64_t lane_claims_bytes(const struct lane *lane, const struct lane_session *session)
{
    uint64_t bytes = 0;

    LIST_FOREACH(const struct claim, claim, &lane->claims.all, in_lane) {
        if (claim->session == session && claim->state != CLAIM_WAITS)
            bytes += claim->room_bytes;
    }
    assert(bytes <= lane->claims.bytes);
    return bytes;
}

char *lane_claims_describe(struct lane *lane, const struct claim *claim)
{
    const struct claim *most = NULL;
    const uint64_t mib = UINT64_C(1) << 20;

    assert(claim->state == CLAIM_WAITS);
    LIST_FOREACH(const struct claim, at, &lane->claims.all, in_lane) {
        if (at->state != CLAIM_WAITS && (most == NULL || at->room_bytes > most->room_bytes))
            most = at;
    }
    if (most == NULL)
        return out_text(
            &lane->out,
            "push %" PRIu64 " waits behind others for %" PRIu64 " MiB of the pool of ps %u",
            claim->sequence, claim->room_bytes / mib, lane->index);
    return out_text(
        &lane->out,
        "push %" PRIu64 " waits for %" PRIu64 " MiB of the pool of %" PRIu64
        " MiB on ps %u: %" PRIu64 " MiB are held, most of them by push %" PRIu64 " of %s (%" PRIu64
        " MiB), which %s",
        claim->sequence, claim->room_bytes / mib, lane->claims.bytes_max / mib, lane->index,
        lane->claims.bytes / mib, most->sequence, most->session->task, most->room_bytes / mib,
        most->state == CLAIM_RESERVED ? "is being received"
        : most->step == 0             ? "is to be committed"
                                      : "waits for the rest of its step");
}
