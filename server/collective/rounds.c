/* SPDX-License-Identifier: Apache-2.0 */
/* rounds.c -- a reserved round becomes a round, which is open, then over, perhaps kept, then gone.
 */
#include "rounds.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "error.h"

void rounds_init(
    struct rounds *rounds, struct sized_pool *pool, const struct round_owner *owner,
    uint64_t room_bytes_max)
{
    memset(rounds, 0, sizeof *rounds);
    rounds->pool = pool;
    rounds->owner = *owner;
    rounds->room_bytes_max = room_bytes_max;
}

/* ---- by name: those of one name lie together */

static uint32_t bucket_of(const char *name)
{
    uint32_t value = 2166136261u; /* FNV-1a */

    for (const char *at = name; *at != '\0'; at++)
        value = (value ^ (uint8_t)*at) * 16777619u;
    return (value ^ value >> 16) % ROUNDS_BUCKETS;
}

static struct round *next_of_name(struct round *round, const char *name)
{
    while (round != NULL && strcmp(round->collective->name, name) != 0)
        round = round->in_bucket.next;
    return round;
}

static struct round *first_of_name(const struct rounds *rounds, const char *name)
{
    return next_of_name(rounds->buckets[bucket_of(name)].rounds.first, name);
}

static bool is_of_other_attempts(const struct round *round, const struct collective *given)
{
    return collective_other_attempt(round->collective, given) != UINT32_MAX;
}

struct round *rounds_find(const struct rounds *rounds, const struct collective *given)
{
    struct round *found = NULL; /* the last: what knows fewer attempts is older */

    for (struct round *round = first_of_name(rounds, given->name); round != NULL;
         round = next_of_name(round->in_bucket.next, given->name))
        if (round->collective->round == given->round && !is_of_other_attempts(round, given))
            found = round;
    return found;
}

struct round *rounds_find_for(
    const struct rounds *rounds, const char *name, uint64_t number,
    const struct collective_task *task)
{
    struct round *found = NULL;

    for (struct round *round = first_of_name(rounds, name); round != NULL;
         round = next_of_name(round->in_bucket.next, name)) {
        if (round->collective->round != number)
            continue;
        const uint32_t place = collective_place(round->collective, task);
        const bool of_attempts = place != UINT32_MAX && round->collective->of_attempts;
        const uint64_t attempt = of_attempts ? round->collective->tasks[place].attempt : 0;
        if (of_attempts && attempt == task->attempt)
            return round;
        /* any attempt may come to an open one that names none */
        if (!of_attempts || (attempt == 0 && (!round->over || round->places[place].came)))
            found = round;
    }
    return found;
}

static uint32_t count_of_name(const struct rounds *rounds, const char *name, bool kept)
{
    uint32_t count = 0;

    for (struct round *round = first_of_name(rounds, name); round != NULL;
         round = next_of_name(round->in_bucket.next, name))
        count += round->kept == kept;
    return count;
}

/* ---- what is asked of a round */

bool round_is_whole(const struct round *round)
{
    assert(round->came_count <= round->collective->task_count);
    return round->came_count == round->collective->task_count;
}

static bool keeps_back(const struct round *round, const struct collective *given)
{
    const bool failed = round->over && round->end.status != SUMAC_OK;

    return is_of_other_attempts(round, given) &&
           !(failed && collective_is_later(given, round->collective));
}

struct round *rounds_other_attempt(
    const struct rounds *rounds, const struct collective *given, struct round *after)
{
    struct round *round = after == NULL ? first_of_name(rounds, given->name)
                                        : next_of_name(after->in_bucket.next, given->name);

    while (round != NULL && !keeps_back(round, given))
        round = next_of_name(round->in_bucket.next, given->name);
    return round;
}

uint32_t round_missing(const struct round *round, uint32_t from)
{
    while (from < round->collective->task_count && round->places[from].came)
        from++;
    return from < round->collective->task_count ? from : UINT32_MAX;
}

bool round_is_deserted(const struct round *round)
{
    for (uint32_t i = 0; i < round->collective->task_count; i++)
        if (round->places[i].came && !round->places[i].left)
            return false;
    return round->came_count > 0;
}

bool rounds_are_over(const struct rounds *rounds, const struct collective *given)
{
    struct round *round = first_of_name(rounds, given->name);

    while (round != NULL &&
           (round->over_through < given->round || is_of_other_attempts(round, given)))
        round = next_of_name(round->in_bucket.next, given->name);
    return round != NULL;
}

bool round_is_wanted(const struct round *round)
{
    assert(round->heard_count <= round->collective->task_count);
    return round->heard_count < round->collective->task_count;
}

/* ---- memory */

static size_t block_bytes_of(const struct collective *collective)
{
    return sizeof(struct round) + collective->task_count * sizeof(struct round_place) +
           collective_copy_bytes(collective);
}

static void give_room(struct rounds *rounds, struct round *round, uint64_t bytes)
{
    assert(round->room_bytes >= bytes);
    assert(rounds->room_bytes >= bytes);
    round->room_bytes -= bytes;
    rounds->room_bytes -= bytes;
}

static void give_block(struct rounds *rounds, struct round *round)
{
    give_room(rounds, round, round->room_bytes);
    sized_pool_give(rounds->pool, round, block_bytes_of(round->collective));
}

static void give_contribution(const struct rounds *rounds, void *contribution)
{
    if (contribution != NULL)
        rounds->owner.give(rounds->owner.context, contribution);
}

/* What is left is a place for each to hear how it ended. */
static void give_contributions(struct rounds *rounds, struct round *round)
{
    for (uint32_t i = 0; i < round->collective->task_count; i++) {
        give_contribution(rounds, round->places[i].contribution);
        round->places[i].contribution = NULL;
    }
    give_room(rounds, round, round->room_bytes - round->block_bytes);
}

static void leave_list(struct rounds *rounds, struct round *round)
{
    rounds->kept_count -= round->kept;
    if (round->kept)
        LIST_REMOVE(&rounds->kept, round, in_list);
    else if (round->over)
        LIST_REMOVE(&rounds->over, round, in_list);
    else
        LIST_REMOVE(&rounds->open, round, in_list);
}

static void forget(struct rounds *rounds, struct round *round)
{
    assert(rounds->count > 0);
    assert(!round->unwanted);
    leave_list(rounds, round);
    LIST_REMOVE(&rounds->buckets[bucket_of(round->collective->name)].rounds, round, in_bucket);
    rounds->count--;
    give_contributions(rounds, round);
    give_block(rounds, round);
}

/* One that is kept is forgotten before its time. Another round of its name, and of no other
 * attempts, remembers its number. */
static void give_way(struct rounds *rounds, struct round *round)
{
    const char *const name = round->collective->name;
    struct round *heir = first_of_name(rounds, name);
    uint64_t through = round->over_through;

    assert(round->kept);
    if (through < round->collective->round)
        through = round->collective->round;
    while (heir != NULL && (heir == round || is_of_other_attempts(heir, round->collective)))
        heir = next_of_name(heir->in_bucket.next, name);
    if (heir != NULL && heir->over_through < through)
        heir->over_through = through;
    forget(rounds, round);
}

/* ---- unwanted rounds */

/* Those who came want no more of it; those who did not may come yet. */
static bool all_who_came_have_heard(const struct round *round)
{
    for (uint32_t i = 0; i < round->collective->task_count; i++)
        if (round->places[i].came && !round->places[i].heard)
            return false;
    return true;
}

static void set_unwanted(struct rounds *rounds, struct round *round, bool unwanted)
{
    if (unwanted && !round->unwanted)
        LIST_APPEND(&rounds->unwanted, round, in_unwanted);
    else if (!unwanted && round->unwanted)
        LIST_REMOVE(&rounds->unwanted, round, in_unwanted);
    round->unwanted = unwanted;
}

static uint64_t room_left(const struct rounds *rounds)
{
    const uint64_t taken = rounds->room_bytes + rounds->beside_bytes;

    return taken < rounds->room_bytes_max ? rounds->room_bytes_max - taken : 0;
}

void rounds_deinit(struct rounds *rounds)
{
    struct round *round;

    while (rounds->unwanted.first != NULL)
        set_unwanted(rounds, rounds->unwanted.first, false);
    while ((round = rounds->open.first) != NULL || (round = rounds->over.first) != NULL ||
           (round = rounds->kept.first) != NULL)
        forget(rounds, round);
    assert(rounds->count == 0);
    assert(rounds->room_bytes == 0);
}

/* ---- reserved rounds */

static enum sumac_status fail_for_room(
    const struct rounds *rounds, const struct collective *collective, uint64_t bytes,
    struct sumac_error *error)
{
    return fail_for_memory(
        error,
        "a contribution to round %" PRIu64 " of collective %.100s takes %" PRIu64
        " bytes, and %" PRIu64 " are taken of at most %" PRIu64
        " (--collectives-max): contribute again later, or start each ps with more",
        collective->round, collective->name, bytes, rounds->room_bytes + rounds->beside_bytes,
        rounds->room_bytes_max);
}

static bool take_room(struct rounds *rounds, uint64_t bytes)
{
    if (bytes > rounds->room_bytes_max)
        return false;
    while (bytes > room_left(rounds)) {
        if (rounds->kept.first != NULL) {
            give_way(rounds, rounds->kept.first);
            rounds->given_way_count++;
        } else if (rounds->unwanted.first != NULL) {
            struct round *const oldest = rounds->unwanted.first;
            set_unwanted(rounds, oldest, false);
            /* one that its owner does not end is for another ps to end, and is not tried again */
            rounds->owner.end(rounds->owner.context, oldest);
        } else {
            return false;
        }
    }
    rounds->room_bytes += bytes;
    return true;
}

/* Its room is counted. NULL: no memory. */
static struct round *
make_reserved(struct rounds *rounds, const struct collective *collective, uint64_t room_bytes)
{
    const size_t asked = block_bytes_of(collective);
    struct round *reserved = sized_pool_take_zeroed(rounds->pool, asked);

    if (reserved == NULL) {
        rounds->room_bytes -= room_bytes;
        return NULL;
    }
    reserved->collective = collective_copy(collective, &reserved->places[collective->task_count]);
    reserved->block_bytes = sized_pool_bytes(asked);
    reserved->room_bytes = room_bytes;
    return reserved;
}

struct round *rounds_reserve_order(struct rounds *rounds, const struct collective *collective)
{
    const uint64_t room_bytes = sized_pool_bytes(block_bytes_of(collective));

    if (!take_room(rounds, room_bytes))
        rounds->room_bytes += room_bytes;
    return make_reserved(rounds, collective, room_bytes);
}

struct round *rounds_reserve(
    struct rounds *rounds, const struct collective *collective, uint64_t bytes,
    struct sumac_error *error)
{
    const size_t block_bytes = sized_pool_bytes(block_bytes_of(collective));
    const uint64_t room_bytes = bytes <= INT64_MAX / 4 ? block_bytes + bytes : UINT64_MAX;
    struct round *const known = rounds_find(rounds, collective);

    if (known != NULL) /* it does not give way to its own participant */
        set_unwanted(rounds, known, false);
    if (known == NULL && count_of_name(rounds, collective->name, false) >= ROUNDS_OF_NAME_MAX) {
        (void)fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY,
            "%u rounds of collective %.100s are open, or have results that participants may ask "
            "for, "
            "the most of one name: contribute to round %" PRIu64 " later",
            ROUNDS_OF_NAME_MAX, collective->name, collective->round);
        return NULL;
    }
    if (!take_room(rounds, room_bytes)) {
        (void)fail_for_room(rounds, collective, room_bytes, error);
        return NULL;
    }
    struct round *reserved = make_reserved(rounds, collective, room_bytes);
    if (reserved == NULL)
        (void)fail_for_room(rounds, collective, room_bytes, error);
    return reserved;
}

void rounds_unreserve(struct rounds *rounds, struct round *reserved)
{
    assert(reserved->came_count == 0);
    give_block(rounds, reserved);
}

/* ---- who comes */

static void enter(struct rounds *rounds, struct round *reserved)
{
    LIST_APPEND(&rounds->open, reserved, in_list);
    LIST_APPEND(
        &rounds->buckets[bucket_of(reserved->collective->name)].rounds, reserved, in_bucket);
    rounds->count++;
    reserved->until_us = UINT64_MAX;
}

/* What came beside the reserved round's block is the round's from here on. */
static void join(struct rounds *rounds, struct round *reserved, struct round *round)
{
    const uint64_t bytes = reserved->room_bytes - reserved->block_bytes;

    assert(round != reserved);
    round->room_bytes += bytes;
    reserved->room_bytes -= bytes;
    give_block(rounds, reserved);
}

static void note_time(struct round *round, uint32_t timeout_ms, uint64_t now_us)
{
    const uint64_t until_us = now_us + (uint64_t)timeout_ms * 1000;

    if (until_us >= round->until_us)
        return;
    round->until_us = until_us;
    round->until_ms = timeout_ms;
}

static void set_left(struct round *round, uint32_t place, bool left)
{
    round->left_count += left;
    round->left_count -= round->places[place].left;
    round->places[place].left = left;
}

/* The session that had the place is settled, and a later attempt of its task comes. */
static void want_again(struct round *round, uint32_t place)
{
    assert(round->places[place].heard);
    assert(round->heard_count > 0);
    round->places[place].heard = false;
    round->heard_count--;
}

static void note_came(struct round *round, uint32_t place, double weight, uint64_t extent)
{
    assert(!round->places[place].came);
    if (round->places[place].heard)
        want_again(round, place);
    round->places[place].came = true;
    round->places[place].weight = weight;
    round->places[place].extent = extent;
    round->came_count++;
}

/* It adds nothing: its bytes are given back, and so is its room. */
static enum rounds_came
pass_over(struct rounds *rounds, const struct round_arrival *arrival, enum rounds_came came)
{
    assert(came != ROUNDS_TAKEN);
    give_contribution(rounds, arrival->contribution);
    give_block(rounds, arrival->reserved);
    return came;
}

/* A round that failed is kept for participants that come late. */
static void keep(struct rounds *rounds, struct round *round)
{
    const char *const name = round->collective->name;

    assert(round->over && !round->kept);
    assert(round->end.status != SUMAC_OK);
    while (count_of_name(rounds, name, true) >= ROUNDS_KEPT_OF_NAME_MAX) {
        struct round *oldest = rounds->kept.first;
        while (strcmp(oldest->collective->name, name) != 0)
            oldest = oldest->in_list.next;
        give_way(rounds, oldest);
    }
    if (rounds->kept_count == ROUNDS_KEPT_MAX)
        give_way(rounds, rounds->kept.first);
    leave_list(rounds, round);
    round->kept = true;
    rounds->kept_count++;
    LIST_APPEND(&rounds->kept, round, in_list);
}

/* One that failed may be asked for by each participant whose session is open, also by one that was
 * told already: its next attempt comes to the round again. */
static bool is_spent(const struct round *round)
{
    return round->end.status == SUMAC_OK || round->left_count == round->collective->task_count;
}

static void settle(struct rounds *rounds, struct round *round)
{
    if (!round->over || !all_who_came_have_heard(round))
        return;
    if (is_spent(round))
        forget(rounds, round);
    else if (!round->kept)
        keep(rounds, round);
}

/* To a round that failed, for which it is kept: from here on that is for who has come, too. */
static void come_late(struct rounds *rounds, struct round *round)
{
    if (!round->kept)
        return;
    leave_list(rounds, round);
    round->kept = false;
    LIST_APPEND(&rounds->over, round, in_list);
}

/* The earlier attempt's contribution stays. The later one waits for the round in its place, once
 * the earlier one does no more. */
static enum rounds_came
come_again(struct rounds *rounds, const struct round_arrival *arrival, struct round *round)
{
    const struct collective *const given = arrival->reserved->collective;
    const uint32_t place = collective_place(round->collective, &given->tasks[given->own]);

    assert(round->places[place].came);
    if (!round->places[place].heard)
        return pass_over(rounds, arrival, ROUNDS_AGAIN);
    want_again(round, place);
    set_unwanted(rounds, round, false);
    come_late(rounds, round);
    return pass_over(rounds, arrival, ROUNDS_BACK);
}

enum rounds_came rounds_come(
    struct rounds *rounds, const struct round_arrival *arrival, struct round **found,
    struct sumac_error *error)
{
    struct round *const reserved = arrival->reserved;
    const struct collective *given = reserved->collective;
    const uint64_t extent = given->shape.rank == 0 ? 1 : given->shape.extent[given->axis];
    struct round *round = rounds_find(rounds, given);

    if (round == NULL) {
        enter(rounds, reserved);
        round = reserved;
    }
    *found = round;
    collective_learn_attempts(round->collective, given); /* of one that is over: who was told */
    const uint32_t place = collective_place(round->collective, &given->tasks[given->own]);
    if (place != UINT32_MAX)
        set_left(round, place, false);
    if (place != UINT32_MAX && round->places[place].came)
        return come_again(rounds, arrival, round);
    if (place != UINT32_MAX) {
        set_unwanted(rounds, round, false);
        note_came(round, place, arrival->weight, extent);
    }
    if (round->over) {
        if (place != UINT32_MAX)
            come_late(rounds, round);
        return pass_over(rounds, arrival, ROUNDS_OVER);
    }
    note_time(round, given->timeout_ms, arrival->now_us);
    if (round != reserved) {
        if (collective_compare(round->collective, given, error) != SUMAC_OK) {
            if (place != UINT32_MAX) /* it has no result here, whatever is decided elsewhere */
                round->torn = true;
            if (place != UINT32_MAX && round->end.status == SUMAC_OK) /* else that is proposed */
                round->end = *error;
            return pass_over(rounds, arrival, ROUNDS_DIFFERS);
        }
        join(rounds, reserved, round);
    }
    assert(place != UINT32_MAX); /* the lists are the same */
    round->places[place].contribution = arrival->contribution;
    return ROUNDS_TAKEN;
}

/* ---- how it ends */

void rounds_end(struct rounds *rounds, struct round *round, const struct sumac_error *end)
{
    if (round->over)
        return;
    assert(end->status != SUMAC_OK || (round_is_whole(round) && !round->torn));
    if (end->status != SUMAC_OK)
        give_contributions(rounds, round);
    set_unwanted(rounds, round, false);
    leave_list(rounds, round);
    round->over = true;
    round->end = *end;
    LIST_APPEND(&rounds->over, round, in_list);
    settle(rounds, round);
}

struct round *
rounds_ordered(struct rounds *rounds, struct round *reserved, const struct sumac_error *end)
{
    const struct collective *const collective = reserved->collective;
    struct round *round = rounds_find(rounds, collective);

    if (round == NULL) {
        enter(rounds, reserved);
        round = reserved;
    } else {
        collective_learn_attempts(round->collective, collective);
        give_block(rounds, reserved);
    }
    if (round->over)
        return NULL;
    if (end->status == SUMAC_OK)
        round->passes = true;
    return round;
}

void rounds_heard(struct rounds *rounds, struct round *round, uint32_t place)
{
    assert(place < round->collective->task_count);
    if (round->places[place].heard)
        return;
    round->places[place].heard = true;
    round->heard_count++;
    if (!round->over && round->came_count > 0)
        set_unwanted(rounds, round, all_who_came_have_heard(round));
    settle(rounds, round);
}

void round_left(struct rounds *rounds, struct round *round, const struct collective_task *task)
{
    const uint32_t place = collective_place(round->collective, task);

    if (place == UINT32_MAX)
        return;
    set_left(round, place, true);
    settle(rounds, round);
}

void rounds_left(struct rounds *rounds, const struct collective_task *task)
{
    struct round *const lists[] = {rounds->kept.first, rounds->over.first};

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (struct round *round = lists[i], *next; round != NULL; round = next) {
            next = round->in_list.next;
            round_left(rounds, round, task);
        }
}
