/* SPDX-License-Identifier: Apache-2.0 */
/* part.c -- one part: made at its header, refused at the first thing that is wrong with it, emptied
 * when it is done. */
#include "part_state.h"

#include <math.h>

#define REFUSALS_LOGGED 8u /* of a session; then the 16th, the 32nd, … */
#define TO(state) (1u << (state))

/* What may follow each state. */
static const uint32_t moves[] = {
    [PART_NEW] = TO(PART_RECEIVING) | TO(PART_DUPLICATE) | TO(PART_DROPPED),
    [PART_RECEIVING] = TO(PART_REFUSED) | TO(PART_DROPPED) | TO(PART_STAGED) | TO(PART_OVER),
    [PART_DUPLICATE] = TO(PART_DROPPED) | TO(PART_OVER),
    [PART_DROPPED] = TO(PART_OVER),
    [PART_REFUSED] = TO(PART_VOID) | TO(PART_OVER),
    [PART_STAGED] = TO(PART_APPLYING) | TO(PART_OVER),
    [PART_VOID] = TO(PART_OVER),
    [PART_APPLYING] = TO(PART_OVER),
    [PART_OVER] = 0,
};

static void give_to_pool(void *context, uint8_t *data, uint32_t bytes)
{
    sized_pool_give(context, data, bytes);
}

bool lane_part_init(struct lane *lane)
{
    struct parts *parts = memory_take(lane->memory, sizeof *parts);

    assert(lane->parts == NULL);
    if (parts == NULL)
        return false;
    *parts = (struct parts){.pool_owner = {.give = give_to_pool, .context = &lane->bytes}};
    pool_init(&parts->parts, lane->memory, sizeof(struct lane_part), 64);
    pool_init(&parts->chunks, lane->memory, sizeof(struct chunk), 64);
    pool_init(&parts->refusals, lane->memory, sizeof(struct refusal), 8);
    pool_init(&parts->claims, lane->memory, sizeof(struct claim), 8);
    lane->parts = parts;
    return true;
}

void lane_part_deinit(struct lane *lane)
{
    struct parts *parts = lane->parts;

    if (parts == NULL)
        return;
    assert(parts->parts.used == 0);
    assert(parts->refusals.used == 0);
    assert(lane->staged_bytes == 0);
    assert(parts->claims.used == 0);
    pool_deinit(&parts->claims);
    pool_deinit(&parts->refusals);
    pool_deinit(&parts->chunks);
    pool_deinit(&parts->parts);
    memory_give(lane->memory, parts, sizeof *parts);
    lane->parts = NULL;
}

void lane_part_move(struct lane_part *part, enum lane_part_state to)
{
    assert((size_t)part->state < sizeof moves / sizeof *moves);
    assert((moves[part->state] & TO(to)) != 0);
    part->state = to;
}

bool lane_part_refuse_memory(struct lane *lane, struct lane_part *part)
{
    const struct sized_pool *pool = &lane->bytes;

    if (!sized_pool_is_full(pool))
        return lane_part_refuse(
            lane, part, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "ps %u has no memory for a part", lane->index);
    return lane_part_refuse(
        lane, part, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
        "push %" PRIu64 ": ps %u holds %" PRIu64 " bytes for pushes and pulls, of at most %" PRIu64
        " (its --staging-max, --pulls-max, --collectives-max and what it keeps for sessions), "
        "though those that it has take %" PRIu64
        ": the rest lies between small pieces and serves others of their sizes only; push again "
        "later, or start the ps with a larger --staging-max",
        part->sequence, lane->index, pool->held_bytes, pool->held_bytes_max,
        lane->staged_bytes + lane->pull_bytes + lane->rounds.room_bytes);
}

#define SCALE_MAX 0x1p127 /* that float32 has, too */

static bool read_functions(struct lane *lane, struct lane_part *part, const wire_part *header)
{
    const size_t bytes = header->n_functions * sizeof *part->functions;

    assert(part->functions == NULL);
    assert(header->n_functions <= FUNCTIONS_PER_PART_MAX);
    part->functions = sized_pool_take(&lane->bytes, bytes);
    if (part->functions == NULL)
        return lane_part_refuse_memory(lane, part);
    part->function_count = (uint32_t)header->n_functions;
    for (uint32_t i = 0; i < part->function_count; i++) {
        const wire_function *given = header->functions[i];
        struct part_function *read = &part->functions[i];
        struct sumac_error error;
        *read = (struct part_function){
            .function = functions_find(lane->store.functions, (uint32_t)given->function)};
        if (read->function == NULL)
            return lane_part_refuse(
                lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNKNOWN_FUNCTION,
                "update function number %d is not known to ps %u\t\t%d", (int)given->function,
                lane->index, (int)given->function);
        if (update_hyperparameters_read(read->function, NULL, given, &read->given, &error) !=
            SUMAC_OK)
            return lane_part_refuse_as(lane, part, &error);
        /* the rest are defaults, and those of a variable's own function come first */
        read->given.set = given->schedule != NULL ? UPDATE_SCHEDULE_SET : 0;
        for (size_t j = 0; j < given->n_hyperparameters; j++)
            read->given.set |= 1u << given->hyperparameters[j]->name;
    }
    return true;
}

/* The grant, or what its claim asked for, lacks these bytes. */
static bool refuse_room(struct lane *lane, struct lane_part *part, uint64_t bytes)
{
    const struct claim *claim = part->claim;
    const uint64_t own = part->room_bytes + bytes, grant = lane->grant_bytes;
    const uint64_t others = part->session->staged_bytes - part->room_bytes;

    assert(part->session->staged_bytes >= part->room_bytes);
    assert(claim == NULL || claim->used_bytes <= claim->room_bytes);
    if (part->state == PART_DUPLICATE)
        return false;
    if (claim != NULL)
        return lane_part_refuse(
            lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "push %" PRIu64 " asked for %" PRIu64 " bytes of staging on ps %u and takes %" PRIu64
            " (" WIRE_COST_TEXT "): ask for all that a part takes\t%" PRIu64 "\t%" PRIu64,
            part->sequence, claim->room_bytes, lane->index, claim->used_bytes + bytes,
            claim->room_bytes, claim->used_bytes + bytes);
    return lane_part_refuse(
        lane, part, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_PART_TOO_LARGE,
        "push %" PRIu64 " takes %" PRIu64 " bytes of staging on ps %u so far, beside %" PRIu64
        " of parts that are not done there and %" PRIu64
        " of answers that were not read; the session's grant is %" PRIu64 " bytes (%" PRIu64
        " MiB; " WIRE_COST_TEXT
        "): push less at once, or start the ps with a --staging-max of %" PRIu64
        "M, or with less than its --sessions-max %u\t%" PRIu64 "\t%" PRIu64,
        part->sequence, own, lane->index, others, part->session->answer_bytes, grant, grant >> 20,
        2 * ((own >> 20) + 1) * lane->config.sessions_max, lane->config.sessions_max,
        grant > others ? grant - others : 0, own);
}

bool lane_part_take_room(struct lane *lane, struct lane_part *part, uint64_t bytes)
{
    struct lane_session *session = part->session;
    const uint64_t grant = lane->grant_bytes;

    if (part->claim != NULL) {
        if (bytes > part->claim->room_bytes - part->claim->used_bytes)
            return refuse_room(lane, part, bytes);
        part->claim->used_bytes += bytes;
        return true;
    }
    if (bytes > grant || session->staged_bytes + bytes > grant ||
        session->staged_bytes + session->answer_bytes + bytes > grant + ANSWERS_BESIDE_BYTES_MAX)
        return refuse_room(lane, part, bytes);
    session->staged_bytes += bytes;
    part->room_bytes += bytes;
    lane_staging_count(lane, lane->staged_bytes + bytes);
    assert(session->staged_bytes >= part->room_bytes);
    assert(lane->staged_bytes >= session->staged_bytes);
    return true;
}

bool lane_part_begin(struct lane *lane, struct lane_part *part, const wire_part *header)
{
    assert(part->room_bytes == 0);
    if (!isfinite(header->weight) || header->weight < 0)
        return lane_part_refuse(
            lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "push %" PRIu64
            " has weight %g: it is how many examples or replicas the push stands for"
            "\ta finite number of at least 0\t%g",
            part->sequence, header->weight, header->weight);
    if (!(fabs(header->scale) <= SCALE_MAX))
        return lane_part_refuse(
            lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "push %" PRIu64
            " has scale %g: its values are multiplied by it, so it is finite and at most 2^127"
            "\ta finite number of at most 2^127\t%g",
            part->sequence, header->scale, header->scale);
    if (header->n_functions > FUNCTIONS_PER_PART_MAX)
        return lane_part_refuse(
            lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_TOO_MANY_PIECES,
            "push %" PRIu64 " names %zu update functions, at most %u are taken\t%u\t%zu",
            part->sequence, header->n_functions, FUNCTIONS_PER_PART_MAX, FUNCTIONS_PER_PART_MAX,
            header->n_functions);
    if (!lane_part_take_room(
            lane, part, wire_part_cost(part->bytes, 0, header->n_functions) - ANSWERS_COST_BYTES) ||
        (header->n_functions > 0 && !read_functions(lane, part, header)))
        return false;
    if (part->checksum == 0)
        return true;
    part->checksum_state = lane_checksum_begin(lane);
    return part->checksum_state != NULL || lane_part_refuse_memory(lane, part);
}

#define WEIGHT_MIN 0x1p-60 /* by whose sum, of any number of members, float32 can divide */
#define WEIGHT_MAX 0x1p60

bool lane_part_check_weight(struct lane *lane, struct lane_part *part)
{
    const double weight = part->weight;

    return (weight >= 0 && weight <= 0) || (weight >= WEIGHT_MIN && weight <= WEIGHT_MAX) ||
           lane_part_refuse(
               lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
               "push %" PRIu64 " of %s has weight %g: it is the number of examples or replicas "
               "that the contribution stands for; a mean is divided by their sum\t0, or 2^-60 to "
               "2^60\t%g",
               part->sequence, part->session->task, weight, weight);
}

struct lane_part *lane_part_create(
    struct lane *lane, struct lane_session *session, const wire_part *header,
    enum lane_part_state state)
{
    struct lane_part *part = pool_take(&lane->parts->parts);

    assert(header->sequence > 0);
    if (part == NULL)
        return NULL;
    lane_part_move(part, state);
    part->session = session;
    part->number = ++lane->parts->last;
    part->sequence = header->sequence;
    part->previous = header->previous;
    part->bytes = header->bytes;
    part->first_us = lane->now_us;
    part->weight = header->weight;
    part->scale = header->scale != 0 ? header->scale : 1;
    part->eager = header->eager && !header->synchronous;
    part->allow_non_finite = header->allow_non_finite;
    part->checksum = header->checksum;
    part->runs = &part->first_run;
    part->entries = &part->first_entry;
    part->run_capacity = part->entry_capacity = 1;
    return part;
}

void lane_chunks_free(struct lane *lane, struct chunks *chunks)
{
    for (struct chunk *chunk; (chunk = chunks->first) != NULL;) {
        assert(chunk->used <= chunk->bytes);
        LIST_REMOVE(chunks, chunk, in_part);
        if (lane->records && chunks != &lane->parts->recorded) {
            LIST_APPEND(&lane->parts->recorded, chunk, in_part);
            continue;
        }
        chunk->owner->give(chunk->owner->context, chunk->data, chunk->bytes);
        pool_give(&lane->parts->chunks, chunk);
    }
}

void lane_part_free_recorded(struct lane *lane) { lane_chunks_free(lane, &lane->parts->recorded); }

void lane_part_let_go(struct lane *lane, struct lane_part *part, uint32_t entry)
{
    struct shard *shard = part->entries[entry].shard;

    assert(part->state == PART_APPLYING);
    assert(entry < part->entry_count);
    part->entries[entry].shard = NULL;
    part->entries[entry].version = shard->version;
    store_let_go(&lane->store, shard);
}

static void free_rows(struct lane *lane, struct lane_part *part)
{
    for (uint32_t i = 0; i < part->run_count && part->row_list_count > 0; i++) {
        if (!part->runs[i].by_rows)
            continue;
        struct row_list *list = part->runs[i].list;
        for (struct row_piece *piece = list->first, *next; piece != NULL; piece = next) {
            next = piece->next;
            sized_pool_give(&lane->bytes, piece, row_piece_bytes(piece->count));
        }
        sized_pool_give(&lane->bytes, list, sizeof *list + list->carry_bytes);
        part->row_list_count--;
    }
    assert(part->row_list_count == 0);
    part->row_open = NULL;
    part->row_piece_count = 0;
    part->row_count = 0;
}

void lane_rows_expect(struct lane *lane, uint64_t indices) { lane->parts->rows_left = indices; }

/* A claim outlives the stream that its part breaks off on, and goes with a refused part. */
static void let_go_of_claim(struct lane *lane, struct lane_part *part)
{
    struct claim *claim = part->claim;

    part->claim = NULL;
    claim->used_bytes = 0;
    claim->part = NULL;
    if (claim->state == CLAIM_HELD || part->state == PART_REFUSED)
        lane_claim_destroy(lane, claim);
}

void lane_part_empty(struct lane *lane, struct lane_part *part)
{
    if (part->claim != NULL)
        let_go_of_claim(lane, part);
    assert(part->session->staged_bytes >= part->room_bytes);
    assert(lane->staged_bytes >= part->room_bytes);
    part->session->staged_bytes -= part->room_bytes;
    lane_staging_count(lane, lane->staged_bytes - part->room_bytes);
    part->room_bytes = 0;
    lane_chunks_free(lane, &part->chunks);
    struct contribution *const contribution = part->contribution;
    if (contribution != NULL) { /* its turn never comes */
        assert(!contribution->contributes && !contribution->waits);
        assert(contribution->chunks.first == NULL);
        rounds_unreserve(&lane->rounds, contribution->round);
        pool_give(&lane->parts->contributions, contribution);
    }
    part->contribution = NULL;
    for (uint32_t i = 0; i < part->entry_count; i++) {
        lane_part_fetch_ahead(part, i);
        if (part->entries[i].shard != NULL)
            store_let_go(&lane->store, part->entries[i].shard);
    }
    if (part->entry_capacity > 1)
        sized_pool_give(&lane->bytes, part->entries, part->entry_capacity * sizeof *part->entries);
    if (part->row_list_count > 0)
        free_rows(lane, part);
    if (part->run_capacity > 1)
        sized_pool_give(&lane->bytes, part->runs, part->run_capacity * sizeof *part->runs);
    if (part->functions != NULL)
        sized_pool_give(
            &lane->bytes, part->functions, part->function_count * sizeof *part->functions);
    if (part->checksum_state != NULL)
        (void)lane_checksum_end(lane, part->checksum_state);
    part->checksum_state = NULL;
    part->entries = NULL;
    part->runs = NULL;
    part->functions = NULL;
    part->entry_count = part->entry_capacity = 0;
    part->run_count = part->run_capacity = part->function_count = 0;
}

void lane_part_destroy(struct lane *lane, struct lane_part *part)
{
    assert(part->in_session.next == NULL);
    assert(part->in_session.prev == NULL);
    assert(part->among_contributions.next == NULL);
    lane_part_move(part, PART_OVER);
    lane_part_empty(lane, part);
    pool_give(&lane->parts->refusals, part->refusal);
    pool_give(&lane->parts->parts, part);
}

/* ---- its place among those of its session ---- */

static uint64_t distance(uint64_t a, uint64_t b) { return a < b ? b - a : a - b; }

/* From the nearest of the first, the last, and the one that was found last. */
static struct lane_part *find_before(const struct lane_session *session, uint64_t sequence)
{
    struct lane_part *part = session->parts.last;

    if (part == NULL || part->sequence <= sequence)
        return part; /* as of every new one */
    struct lane_part *const others[] = {session->parts.first, session->found};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (others[i] != NULL &&
            distance(others[i]->sequence, sequence) < distance(part->sequence, sequence))
            part = others[i];
    }
    assert(session->part_count > 1 || part == session->parts.first);
    while (part != NULL && part->sequence > sequence)
        part = part->in_session.prev;
    while (part != NULL && part->in_session.next->sequence <= sequence)
        part = part->in_session.next;
    assert(part == NULL || part->sequence <= sequence);
    return part;
}

struct lane_part *lane_session_part_before(struct lane_session *session, uint64_t sequence)
{
    struct lane_part *part = find_before(session, sequence);

    if (part != session->parts.last)
        session->found = part;
    return part;
}

struct lane_part *lane_session_part(const struct lane_session *session, uint64_t sequence)
{
    struct lane_part *part = find_before(session, sequence);

    return part != NULL && part->sequence == sequence ? part : NULL;
}

/* Does the one's contribution come before the other's? By job, then index: the chief's before those
 * of workers; then an earlier attempt's. */
static bool is_before(const struct lane_session *one, const struct lane_session *other)
{
    const int order = strcmp(one->job, other->job);

    assert(one != other);
    if (order != 0)
        return order < 0;
    if (one->index != other->index)
        return one->index < other->index;
    return one->attempt < other->attempt;
}

/* One that is staged is found by its step, and those of a step lie in worker order. */
static void
insert_contribution(struct lane *lane, struct lane_session *session, struct lane_part *part)
{
    const bool in_order = rule_holds(lane->config.broken, RULE_step_in_worker_order);
    struct step_place *place = lane_step_place(lane, part->step);
    struct lane_part *before = place->contributions.last;

    assert(part->step != 0);
    if (part->step > session->contributed_step)
        session->contributed_step = part->step;
    if (part->state == PART_VOID)
        return;
    while (before != NULL &&
           (before->step > part->step ||
            (before->step == part->step && in_order && is_before(session, before->session)))) {
        lane->work++;
        before = before->among_contributions.prev;
    }
    LIST_INSERT(&place->contributions, before, part, among_contributions);
}

void lane_session_insert(struct lane *lane, struct lane_session *session, struct lane_part *part)
{
    const bool whole = lane->config.broken == 0; /* no rule is missing */
    struct lane_part *before = lane_session_part_before(session, part->sequence);

    assert(!whole || part->sequence > session->mark);
    assert(part->state == PART_STAGED || part->state == PART_VOID);
    assert(!whole || before == NULL || before->sequence < part->sequence);
    LIST_INSERT(&session->parts, before, part, in_session);
    const struct lane_part *after = part->in_session.next;
    assert(!whole || after == NULL || after->state != PART_APPLYING);
    session->part_count++;
    assert(!whole || session->part_count <= lane->config.parts_per_session_max);
    if (part->step != 0)
        insert_contribution(lane, session, part);
}

void lane_session_remove(struct lane *lane, struct lane_session *session, struct lane_part *part)
{
    assert(session->part_count > 0);
    assert(part->session == session);
    assert(session->applying != part);
    if (session->found == part)
        session->found = NULL;
    LIST_REMOVE(&session->parts, part, in_session);
    session->part_count--;
    if (part->step != 0 && part->state != PART_VOID)
        LIST_REMOVE(&lane_step_place(lane, part->step)->contributions, part, among_contributions);
}

static void drop_last(struct lane *lane, struct lane_session *session)
{
    struct lane_part *part = session->parts.last;

    assert(part->state == PART_STAGED || part->state == PART_VOID);
    lane->work += 1 + part->entry_count / ENTRIES_PER_WORK;
    lane_session_remove(lane, session, part);
    lane_part_destroy(lane, part);
}

static bool has_part_beyond(const struct lane_session *session, uint64_t sequence)
{
    assert((session->parts.first == NULL) == (session->part_count == 0));
    return session->parts.last != NULL && session->parts.last->sequence > sequence;
}

void lane_session_drop_parts(struct lane *lane, struct lane_session *session, uint64_t beyond)
{
    while (has_part_beyond(session, beyond))
        drop_last(lane, session);
}

bool lane_session_drop_some(struct lane *lane, struct lane_session *session, uint64_t beyond)
{
    while (has_part_beyond(session, beyond) && lane_has_time(lane))
        drop_last(lane, session);
    return !has_part_beyond(session, beyond);
}

/* ---- refused ---- */

/* A text that begins with the push that it is about, without that. */
static const char *
text_after_name(struct lane *lane, const struct lane_part *part, const char *text)
{
    const uint64_t sequence = part->sequence;
    const char *whole =
        out_text(&lane->out, "push %" PRIu64 " of %s", sequence, part->session->task);
    const char *number = out_text(&lane->out, "push %" PRIu64 " ", sequence);

    if (strncmp(text, whole, strlen(whole)) == 0) {
        const char *rest = text + strlen(whole); /* ": …", ", …", " …" */
        const size_t between = strspn(rest, ":, ");
        return between > 0 ? rest + between : text;
    }
    return strncmp(text, number, strlen(number)) == 0 ? text + strlen(number) : text;
}

void lane_part_refused(
    struct lane *lane, const struct lane_part *part, const struct refusal *refusal)
{
    struct lane_session *session = part->session;
    const bool non_finite = refusal->error.reason == SUMAC_REASON_NON_FINITE;

    assert(part->state == PART_REFUSED);
    session->counts.refused++;
    lane->counts.refused++;
    session->counts.non_finite += non_finite;
    lane->counts.non_finite += non_finite;
    const uint64_t nth = session->counts.refused;
    if (nth > REFUSALS_LOGGED && (nth & (nth - 1)) != 0)
        return;
    out_log(
        &lane->out, "ps %u refused push %" PRIu64 " of %s: %s", lane->index, part->sequence,
        session->task, text_after_name(lane, part, refusal->error.text));
}

bool lane_part_refuse_as(struct lane *lane, struct lane_part *part, const struct sumac_error *error)
{
    assert(error->status != SUMAC_OK);
    assert(part->state < PART_STAGED && part->state != PART_DUPLICATE);
    if (part->state != PART_RECEIVING)
        return false; /* for the first thing that is wrong with it */
    part->refusal = pool_take(&lane->parts->refusals);
    if (part->refusal != NULL)
        part->refusal->error = *error;
    /* Without memory to say why, its stream goes, and the client sends again. */
    lane_part_move(part, part->refusal == NULL ? PART_DROPPED : PART_REFUSED);
    lane_part_empty(lane, part);
    return false;
}

/* The text behind the next tab, which ends the one before it. */
static char *split(char *text)
{
    char *const end = text + strcspn(text, "\t");

    if (*end == '\0')
        return end;
    *end = '\0';
    return end + 1;
}

bool lane_part_refuse(
    struct lane *lane, struct lane_part *part, enum sumac_status status, enum sumac_reason reason,
    const char *format, ...)
{
    struct sumac_error error = {.status = status, .reason = reason};
    const bool first = part->state == PART_RECEIVING;
    char said[4096]; /* of a variable whose name has 1024, too */
    va_list arguments;

    va_start(arguments, format);
    (void)text_print_values(said, sizeof said, format, arguments);
    va_end(arguments);
    char *const expected = split(said), *const given = split(expected);
    (void)text_print_line(error.text, sizeof error.text, "%s", said);
    (void)lane_part_refuse_as(lane, part, &error);
    struct refusal *const refusal = part->refusal;
    if (!first || refusal == NULL)
        return false;
    (void)text_print_line(refusal->expected, sizeof refusal->expected, "%s", expected);
    (void)text_print_line(refusal->given, sizeof refusal->given, "%s", given);
    return false;
}

const struct update_hyperparameters *lane_part_hyperparameters(
    const struct lane_part *part, uint32_t function, const struct shard *shard,
    struct update_hyperparameters *merged)
{
    assert(function <= part->function_count);
    if (function == 0)
        return &shard->hyperparameters;
    const struct part_function *named = &part->functions[function - 1];
    if (named->function != shard->variable->definition.function)
        return &named->given; /* given over the defaults already */
    *merged = shard->hyperparameters;
    update_hyperparameters_lay(merged, &named->given);
    return merged;
}

/* Pieces that continue each other are one run by now. */
bool lane_part_check_run(struct lane *lane, struct lane_part *part)
{
    const struct run *run = part->run_count == 0 ? NULL : &part->runs[part->run_count - 1];

    if (run == NULL || run->by_rows || run->sets || lane_run_function(part, run)->slot_count == 0)
        return true;
    const struct shard *shard = part->entries[run->entry].shard;
    assert(run->bytes > 0);
    if (run->offset % shard->row_bytes == 0 && run->bytes % shard->row_bytes == 0)
        return true;
    return lane_part_refuse(
        lane, part, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WHOLE_SHARD,
        "variable %s: %s keeps slots and takes whole shards or whole rows of %" PRIu64
        " bytes, given %" PRIu64 " bytes at %" PRIu64 "\t\t%" PRIu64 " bytes at %" PRIu64,
        shard->variable->name, lane_run_function(part, run)->name, shard->row_bytes, run->bytes,
        run->offset, run->bytes, run->offset);
}

bool lane_part_check_whole(struct lane *lane, struct lane_part *part)
{
    assert(part->state == PART_RECEIVING);
    if (part->received != part->bytes)
        return lane_part_refuse(
            lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "push %" PRIu64 " declared %" PRIu64 " bytes for ps %u and sent %" PRIu64 "\t%" PRIu64
            "\t%" PRIu64,
            part->sequence, part->bytes, lane->index, part->received, part->bytes, part->received);
    if (part->checksum_state != NULL) {
        const uint64_t sum = lane_checksum_end(lane, part->checksum_state);
        part->checksum_state = NULL;
        if (sum != part->checksum)
            return lane_part_refuse(
                lane, part, SUMAC_DATA_LOSS, SUMAC_REASON_MALFORMED,
                "push %" PRIu64 ": the payload that reached ps %u has XXH3 checksum %016" PRIx64
                ", sent was %016" PRIx64,
                part->sequence, lane->index, sum, part->checksum);
    }
    return lane_part_check_run(lane, part);
}
