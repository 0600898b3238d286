/* SPDX-License-Identifier: Apache-2.0 */
/* rounds_check.c -- are the rounds of collectives consistent? Every list is walked, every counter
 * counted again. */
#include "rounds_check.h"

#include <inttypes.h>

/* What is counted on the way. */
struct sums {
    struct check *check;
    uint64_t room_bytes;
    uint32_t count, unwanted;
};

static void check_places(struct sums *sums, const struct round *round)
{
    const bool failed = round->over && round->end.status != SUMAC_OK;
    uint32_t came = 0, heard = 0, left = 0, waits = 0;

    for (uint32_t i = 0; i < round->collective->task_count; i++) {
        const struct round_place *place = &round->places[i];
        came += place->came;
        heard += place->heard;
        left += place->left;
        waits += place->came && !place->heard;
        if (place->contribution != NULL && (failed || !place->came))
            check_object(
                sums->check, "round %" PRIu64 " of %s keeps a contribution without a reader",
                round->collective->round, round->collective->name);
    }
    check_same(sums->check, round->came_count, came, "those who came", "a round");
    check_same(sums->check, round->heard_count, heard, "those told", "a round");
    check_same(sums->check, round->left_count, left, "those who have left", "a round");
    const bool spent = !failed || left == round->collective->task_count;
    if (round->over && waits == 0 && (spent || !round->kept))
        check_object(
            sums->check, "round %" PRIu64 " of %s is over, and kept without a reader",
            round->collective->round, round->collective->name);
    if ((round->kept && (!failed || waits > 0)) ||
        (round->unwanted && (round->over || waits > 0)) ||
        (round->torn && round->end.status == SUMAC_OK))
        check_object(
            sums->check, "round %" PRIu64 " of %s is kept, unwanted or torn, and may not be",
            round->collective->round, round->collective->name);
    if (round->room_bytes < round->block_bytes ||
        (failed && round->room_bytes > round->block_bytes))
        check_object(
            sums->check, "round %" PRIu64 " of %s takes %" PRIu64 " bytes",
            round->collective->round, round->collective->name, round->room_bytes);
}

/* One of the three lists of rounds. Returns the number of its rounds. */
static uint32_t check_list(struct sums *sums, const struct round *first, bool over, bool kept)
{
    const struct round *before = NULL;
    uint32_t count = 0;

    for (const struct round *round = first; round != NULL; round = round->in_list.next, count++) {
        if (round->in_list.prev != before || round->over != over || round->kept != kept) {
            check_object(
                sums->check, "round %" PRIu64 " of %s is in a list that is not its own",
                round->collective->round, round->collective->name);
            break;
        }
        check_places(sums, round);
        sums->room_bytes += round->room_bytes;
        sums->unwanted += round->unwanted;
        before = round;
    }
    sums->count += count;
    return count;
}

void rounds_check(const struct rounds *rounds, struct check *check)
{
    struct sums sums = {.check = check};
    uint32_t by_name = 0, unwanted = 0;

    (void)check_list(&sums, rounds->open.first, false, false);
    (void)check_list(&sums, rounds->over.first, true, false);
    const uint32_t kept = check_list(&sums, rounds->kept.first, true, true);
    check_same(check, rounds->kept_count, kept, "rounds that are kept", "a ps");
    check_same(check, rounds->count, sums.count, "rounds", "a ps");
    for (uint32_t i = 0; i < ROUNDS_BUCKETS; i++)
        for (const struct round *round = rounds->buckets[i].rounds.first; round != NULL;
             round = round->in_bucket.next)
            by_name++;
    check_same(check, rounds->count, by_name, "rounds by name", "a ps");
    for (const struct round *round = rounds->unwanted.first; round != NULL;
         round = round->in_unwanted.next)
        unwanted++;
    check_same(check, sums.unwanted, unwanted, "unwanted rounds", "a ps");
    if (sums.room_bytes > rounds->room_bytes) /* reserved rounds take the rest */
        check_object(
            check, "rounds take %" PRIu64 " bytes, and counted are %" PRIu64, sums.room_bytes,
            rounds->room_bytes);
}
