/* SPDX-License-Identifier: Apache-2.0 */
/* contribution.c -- a contribution to a round of a collective: checked, reserved, received,
 * contributed, given back. */
#include "part_state.h"

#include "listing.h"

bool lane_session_task(const struct lane_session *session, struct collective_task *task)
{
    *task = (struct collective_task){
        .chief = strcmp(session->job, "chief") == 0,
        .index = session->index,
        .attempt = session->attempt};
    return (int)session->role == WIRE_ROLE_MEMBER &&
           (task->chief || strcmp(session->job, "worker") == 0);
}

/* ---- its header ---- */

/* Does anything not go with a contribution? Without that, *task is who makes it. */
static bool check_header(
    struct lane *lane, struct lane_part *part, const wire_part *header,
    struct collective_task *task)
{
    const char *const why =
        header->synchronous       ? "is for a synchronous step: make two pushes of it"
        : header->n_functions > 0 ? "names update functions: no variable is updated by it"
        : part->scale != 1        ? "has a scale: multiply its values before they are pushed"
        : !lane_session_task(part->session, task)
            ? "is of a task that takes no part: chiefs and workers do"
            : NULL;

    return why == NULL || lane_part_refuse(
                              lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
                              "push %" PRIu64 " of %s contributes to a collective, and %s",
                              part->sequence, part->session->task, why);
}

/* May it meet on this ps, and has the part its share of it? */
static bool
check_share(struct lane *lane, struct lane_part *part, const struct collective *collective)
{
    const uint32_t home = collective_home(collective->name, lane->ps_count);

    assert(lane->index < lane->ps_count);
    if (!collective->split && home != lane->index)
        return lane_part_refuse(
            lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "push %" PRIu64 " contributes to collective %.100s on ps %u; by its name it is at home "
            "on ps %u\tps %u\tps %u",
            part->sequence, collective->name, lane->index, home, home, lane->index);
    const struct collective_share share = collective_share(collective, lane->index, lane->ps_count);
    return part->bytes == share.bytes ||
           lane_part_refuse(
               lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
               "push %" PRIu64 " of %s declares %" PRIu64 " bytes for round %" PRIu64
               " of collective %.100s on ps %u; by its type and shape it has %" PRIu64
               " there\t%" PRIu64 "\t%" PRIu64,
               part->sequence, part->session->task, part->bytes, collective->round,
               collective->name, lane->index, share.bytes, share.bytes, part->bytes);
}

/* Does the configuration of this ps list the task? The walk goes on at *next, where the last one
 * was found: both lists are in the same order. */
static bool is_listed(struct lane *lane, const struct collective_task *task, uint32_t *next)
{
    const struct lane_config *config = &lane->config;

    for (uint32_t i = 0; i < config->member_count; i++) {
        const uint32_t at = (*next + i) % config->member_count;
        lane->work++;
        if (config->members_indices[at] == task->index &&
            (strcmp(config->members_jobs[at], "chief") == 0) == task->chief) {
            *next = at + 1;
            return true;
        }
    }
    return false;
}

/* May each of its tasks come? A configuration that may leave members out allows any chief or
 * worker. */
static bool
check_listed(struct lane *lane, struct lane_part *part, const struct collective *collective)
{
    const struct lane_config *config = &lane->config;
    struct listing listed = {0};
    uint32_t next = 0, i = 0;
    char task[32];

    if (config->member_count == 0 || config->members_partial)
        return true;
    while (i < collective->task_count && is_listed(lane, &collective->tasks[i], &next))
        i++;
    if (i == collective->task_count)
        return true;
    for (uint32_t at = 0; at < config->member_count; at++)
        listing_add_task(&listed, config->members_jobs[at], config->members_indices[at]);
    return lane_part_refuse(
        lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_NAME,
        "push %" PRIu64 " of %s: collective %.100s names %s, and the cluster lists %s",
        part->sequence, part->session->task, collective->name,
        collective_task_print(&collective->tasks[i], task, sizeof task), listing_end(&listed));
}

/* Count the contributions of a session whose rounds the session still waits for. */
struct unheard {
    uint32_t of_all, of_name;
    uint64_t other; /* push that contributes to the same round, too; 0: none */
};

static void count(
    const struct contribution *contribution, uint64_t sequence, const struct collective *collective,
    struct unheard *unheard)
{
    const struct collective *const own = contribution->round->collective;

    assert(own != NULL);
    unheard->of_all++;
    if (strcmp(own->name, collective->name) != 0)
        return;
    unheard->of_name++;
    if (own->round == collective->round)
        unheard->other = sequence;
}

/* Is it the session's only contribution to the round, and may the session have one more? Staged
 * contributions count, too: a replay may apply them before it reaches this part. */
static bool
check_alone(struct lane *lane, struct lane_part *part, const struct collective *collective)
{
    const struct lane_session *session = part->session;
    struct unheard unheard = {0};

    lane->work += session->contribution_count + session->part_count;
    LIST_FOREACH(const struct contribution, at, &session->contributions, in_session)
        count(at, at->sequence, collective, &unheard);
    LIST_FOREACH(const struct lane_part, at, &session->parts, in_session) {
        if (at->contribution != NULL)
            count(at->contribution, at->sequence, collective, &unheard);
    }
    if (unheard.other != 0)
        return lane_part_refuse(
            lane, part, SUMAC_ALREADY_EXISTS, SUMAC_REASON_ALREADY_EXISTS,
            "push %" PRIu64 " of %s contributes to round %" PRIu64
            " of collective %.100s, and push %" PRIu64
            " has done so: a task contributes once; give each round its own number",
            part->sequence, session->task, collective->round, collective->name, unheard.other);
    if (unheard.of_name >= ROUNDS_OF_NAME_MAX)
        return lane_part_refuse(
            lane, part, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY,
            "push %" PRIu64
            " of %s: it waits for %u rounds of collective %.100s, the most that it may: "
            "contribute to round %" PRIu64 " later",
            part->sequence, session->task, unheard.of_name, collective->name, collective->round);
    return unheard.of_all < lane->config.parts_per_session_max ||
           lane_part_refuse(
               lane, part, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY,
               "push %" PRIu64
               ": session %s waits for %u rounds, the most that ps %u keeps for it: raise "
               "collectives_through, which is %" PRIu64 ", over the rounds that it is done with",
               part->sequence, session->task, unheard.of_all, lane->index,
               session->collectives_through);
}

static bool
take_reserved(struct lane *lane, struct lane_part *part, const struct collective *collective)
{
    struct contribution *contribution = pool_take(&lane->parts->contributions);
    struct sumac_error error;

    if (contribution == NULL)
        return lane_part_refuse_memory(lane, part);
    contribution->room_bytes = wire_part_cost(part->bytes, 0, 0);
    contribution->round =
        rounds_reserve(&lane->rounds, collective, contribution->room_bytes, &error);
    if (contribution->round == NULL) {
        pool_give(&lane->parts->contributions, contribution);
        return lane_part_refuse_as(lane, part, &error);
    }
    contribution->index_bytes = collective_index_bytes(collective);
    part->contribution = contribution;
    part->is_collective = true;
    return true;
}

bool lane_contribution_begin(struct lane *lane, struct lane_part *part, const wire_part *header)
{
    struct collective_texts *texts = arena_take(&lane->arena, sizeof *texts);
    struct collective_task task;
    struct collective collective;
    struct sumac_error error;

    assert(part->state == PART_RECEIVING);
    assert(part->contribution == NULL);
    if (texts == NULL)
        return lane_part_refuse_memory(lane, part);
    if (!check_header(lane, part, header, &task))
        return false;
    if (collective_read(header->collective, &task, texts, &collective, &error) != SUMAC_OK)
        return lane_part_refuse_as(lane, part, &error);
    return check_listed(lane, part, &collective) && check_share(lane, part, &collective) &&
           check_alone(lane, part, &collective) &&
           (collective.operation != COLLECTIVE_MEAN || lane_part_check_weight(lane, part)) &&
           take_reserved(lane, part, &collective);
}

/* ---- its bytes ---- */

static enum sumac_dtype dtype_of(const struct contribution *contribution)
{
    return collective_contribution_dtype(contribution->round->collective);
}

/* Pieces name no shard, follow one another, and have whole elements. */
static bool check_piece(struct lane *lane, struct lane_part *part, const wire_piece *piece)
{
    const struct contribution *contribution = part->contribution;
    const uint64_t indices = contribution->index_bytes, from = part->received;
    const uint64_t index_bytes = from >= indices                 ? 0
                                 : piece->bytes < indices - from ? piece->bytes
                                                                 : indices - from;
    const bool whole = index_bytes % dtype_bytes(SUMAC_INT64) == 0 &&
                       (piece->bytes - index_bytes) % dtype_bytes(dtype_of(contribution)) == 0;

    if (!lane_piece_check(lane, part, piece))
        return false;
    return ((int)piece->kind == WIRE_PIECE_VALUES && piece->shard_id == 0 &&
            piece->layout_epoch == 0 && piece->function == 0 && piece->offset_bytes == from &&
            whole) ||
           lane_part_refuse(
               lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
               "push %" PRIu64 ": a piece of kind %d, of shard %" PRIu64 ", with %" PRIu64
               " bytes at %" PRIu64 ": those of a contribution to a collective are values, name no "
               "shard, have whole elements, and follow one another, this one at %" PRIu64,
               part->sequence, (int)piece->kind, piece->shard_id, piece->bytes, piece->offset_bytes,
               from);
}

static bool copy(
    struct lane *lane, struct lane_part *part, uint64_t bytes, struct payload *payload,
    bool *finite)
{
    const uint64_t indices = part->contribution->index_bytes;

    assert(bytes <= part->bytes - part->received);
    while (bytes > 0) {
        const uint64_t left = part->received < indices ? indices - part->received : bytes;
        const uint64_t count = left < bytes ? left : bytes;
        const struct staged staged = {
            .dtype = part->received < indices ? SUMAC_INT64 : dtype_of(part->contribution),
            .unit = 1};
        if (!lane_staging_copy(lane, part, payload, count, &staged, finite)) {
            lane_staging_skip(payload, bytes - count);
            return false;
        }
        bytes -= count;
    }
    return true;
}

void lane_contribution_take(
    struct lane *lane, struct lane_part *part, const wire_piece *piece, struct payload *payload)
{
    const struct collective *collective = part->contribution->round->collective;
    bool finite = true;

    assert(part->state == PART_RECEIVING);
    if (!check_piece(lane, part, piece))
        lane_staging_skip(payload, piece->bytes);
    else if (copy(lane, part, piece->bytes, payload, &finite) && !finite && !part->allow_non_finite)
        (void)lane_part_refuse(
            lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_NON_FINITE,
            "push %" PRIu64 " of %s: what it contributes to round %" PRIu64
            " of collective %.100s is not finite (allow it with allow_non_finite)\tfinite values",
            part->sequence, part->session->task, collective->round, collective->name);
}

/* The chunk that has byte *at, which is said from its begin on then. */
static const struct chunk *chunk_of(const struct contribution *contribution, uint64_t *at)
{
    const struct chunk *chunk = contribution->chunks.first;

    assert(chunk != NULL);
    while (*at >= chunk->used) {
        *at -= chunk->used;
        chunk = chunk->in_part.next;
        assert(chunk != NULL);
    }
    return chunk;
}

uint8_t *lane_contribution_bytes(
    const struct contribution *contribution, uint64_t at, uint64_t *together_bytes)
{
    const struct chunk *chunk = chunk_of(contribution, &at);

    assert(chunk->used <= chunk->bytes);
    *together_bytes = chunk->used - at;
    return chunk->data + at;
}

uint64_t lane_contribution_offset(const struct contribution *contribution, uint64_t at)
{
    const struct chunk *chunk = chunk_of(contribution, &at);

    assert(at < chunk->used);
    return at;
}

/* ---- its round ---- */

static void free_contribution(struct lane *lane, struct contribution *contribution)
{
    assert(contribution->chunks.first == NULL);
    assert(!contribution->contributes && !contribution->waits);
    assert(contribution->holds == 0);
    pool_give(&lane->parts->contributions, contribution);
}

/* Its round needs its bytes no more. */
static void give_back(void *context, void *given)
{
    struct lane *lane = context;
    struct contribution *contribution = given;

    assert(contribution->contributes);
    contribution->contributes = false;
    if (contribution->holds > 0) {
        assert(!contribution->waits); /* its result is lent, and no participant wants more of it */
        lane->rounds.beside_bytes += contribution->room_bytes;
        LIST_APPEND(&lane->parts->lent, contribution, in_session);
        return;
    }
    lane_chunks_free(lane, &contribution->chunks);
    if (!contribution->waits)
        free_contribution(lane, contribution);
}

void lane_contributions_init(struct lane *lane, void (*end)(void *lane, struct round *round))
{
    const struct round_owner owner = {.give = give_back, .end = end, .context = lane};

    rounds_init(&lane->rounds, &lane->bytes, &owner, lane->config.collective_bytes_max);
    pool_init(&lane->parts->contributions, lane->memory, sizeof(struct contribution), 16);
}

void lane_contributions_deinit(struct lane *lane)
{
    if (lane->parts == NULL)
        return;
    assert(lane->parts->put_aside.first == NULL);
    rounds_deinit(&lane->rounds);
    while (lane->parts->lent.first != NULL) /* whatever was lent of it */
        lane_contribution_released(lane, lane->parts->lent.first);
    lane_part_free_recorded(lane);
    assert(lane->parts->contributions.used == 0);
    assert(lane->rounds.beside_bytes == 0);
    pool_deinit(&lane->parts->contributions);
}

static void unlist(struct lane_session *session, struct contribution *contribution)
{
    assert(session->contribution_count > 0);
    LIST_REMOVE(&session->contributions, contribution, in_session);
    session->contribution_count--;
}

enum rounds_came lane_contribution_arrive(
    struct lane *lane, struct lane_part *part, struct round **round, struct sumac_error *error)
{
    struct lane_session *session = part->session;
    struct contribution *contribution = part->contribution;
    const struct round_arrival arrival = {
        .reserved = contribution->round,
        .contribution = contribution,
        .weight = part->weight,
        .now_us = lane->now_us};
    struct collective_task task;

    assert(part->state == PART_APPLYING);
    assert(part->received == part->bytes);
    part->contribution = NULL;
    contribution->sequence = part->sequence;
    contribution->chunks = part->chunks;
    part->chunks = (struct chunks){0};
    contribution->contributes = contribution->waits = true;
    LIST_APPEND(&session->contributions, contribution, in_session);
    session->contribution_count++;
    const enum rounds_came came = rounds_come(&lane->rounds, &arrival, round, error);
    (void)lane_session_task(session, &task);
    contribution->round = *round;
    contribution->place = collective_place((*round)->collective, &task);
    if (came != ROUNDS_AGAIN && contribution->place != UINT32_MAX)
        return came;
    /* the place of an earlier attempt ends when that is let go; or the lists differ */
    assert(!contribution->contributes);
    unlist(session, contribution);
    contribution->waits = false;
    free_contribution(lane, contribution);
    return came;
}

/* Its session wants no more of the round, which may be gone with that. */
static void leave(struct lane *lane, struct contribution *contribution)
{
    struct round *round = contribution->round;
    const uint32_t place = contribution->place;

    assert(contribution->waits);
    if (round->uses > 0) {
        LIST_APPEND(&lane->parts->put_aside, contribution, in_session);
        return;
    }
    contribution->waits = false;
    if (!contribution->contributes)
        free_contribution(lane, contribution);
    rounds_heard(&lane->rounds, round, place);
}

/* Its session wants no more of it. */
static void let_go(struct lane *lane, struct lane_session *session, struct contribution *ended)
{
    lane->work += WORK_OF_A_PART;
    unlist(session, ended);
    leave(lane, ended);
}

void lane_contributions_heard(struct lane *lane, struct lane_session *session, uint64_t through)
{
    while (session->contributions.first != NULL &&
           session->contributions.first->sequence <= through)
        let_go(lane, session, session->contributions.first);
    assert(session->contributions.first != NULL || session->contribution_count == 0);
}

void lane_contributions_end(
    struct lane *lane, struct lane_session *session, const wire_commit *given)
{
    uint64_t through = given->collectives_through;
    size_t i = 0;

    /* those before the first that waits may come later */
    if (given->n_waiting > 0 && given->waiting[0] <= through)
        through = given->waiting[0] > 0 ? given->waiting[0] - 1 : 0;
    assert(through <= given->collectives_through);
    if (through > session->collectives_through)
        session->collectives_through = through;
    LIST_FOREACH_SAFE(struct contribution, contribution, &session->contributions, in_session) {
        if (contribution->sequence > given->collectives_through)
            return;
        lane->work++;
        while (i < given->n_waiting && given->waiting[i] < contribution->sequence)
            i++;
        if (i == given->n_waiting || given->waiting[i] != contribution->sequence)
            let_go(lane, session, contribution);
    }
}

void lane_round_use(struct lane *lane, struct round *round)
{
    assert(round->over);
    round->uses++;
    lane->parts->round_uses++;
}

bool lane_rounds_are_used(const struct lane *lane) { return lane->parts->round_uses > 0; }

void lane_round_let_go(struct lane *lane, struct round *round)
{
    assert(round->uses > 0);
    assert(lane->parts->round_uses >= round->uses);
    lane->parts->round_uses--;
    if (--round->uses > 0)
        return;
    LIST_FOREACH_SAFE(struct contribution, contribution, &lane->parts->put_aside, in_session) {
        if (contribution->round != round)
            continue;
        LIST_REMOVE(&lane->parts->put_aside, contribution, in_session);
        /* with the last of them the round is gone, and none of it is left */
        leave(lane, contribution);
    }
}

void lane_contribution_hold(struct contribution *contribution)
{
    assert(contribution->contributes);
    contribution->holds++;
}

void lane_contribution_released(struct lane *lane, struct contribution *contribution)
{
    assert(contribution->holds > 0);
    if (--contribution->holds > 0 || contribution->contributes)
        return;
    assert(lane->rounds.beside_bytes >= contribution->room_bytes);
    lane->rounds.beside_bytes -= contribution->room_bytes;
    LIST_REMOVE(&lane->parts->lent, contribution, in_session);
    lane_chunks_free(lane, &contribution->chunks);
    free_contribution(lane, contribution);
}
