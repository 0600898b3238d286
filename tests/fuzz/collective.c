/* SPDX-License-Identifier: Apache-2.0 */
/* collective.c -- any header of a contribution, and participants that come to a round, ask for it
 * or are settled, in any order. A header is refused in one sentence of UTF-8, or read as it was
 * said. The rounds stay within their room and equal a plain list of places. In the end nothing is
 * left.
 */
#include <string.h>

#include "fuzz.h"
#include "input.h"
#include "rounds.h"
#include "text.h"

#define TASKS 4u
#define NAMES 3u
#define ROOM_BYTES_MAX 6000u
#define TENSOR_BYTES 64u

static const struct collective_task tasks[TASKS] = {
    {.chief = true}, {.index = 0}, {.index = 1}, {.index = 9}};
static const char *const names[NAMES] = {"a", "another", "a much longer name of a collective"};

/* Contributions are numbers here: what has been given back may not be again. */
struct world {
    struct sized_pool pool;
    struct rounds rounds;
    uint32_t out; /* contributions that the rounds have */
    uint8_t taken[65536];
    uint32_t last;
};

static void give(void *context, void *contribution)
{
    struct world *const world = context;
    const size_t number = (size_t)(uintptr_t)contribution;

    MUST(number > 0 && number <= world->last);
    MUST(world->taken[number] == 1);
    world->taken[number] = 2;
    MUST(world->out > 0);
    world->out--;
}

static void must_be_a_sentence(const struct sumac_error *error)
{
    MUST(error->status != SUMAC_OK && error->reason != SUMAC_REASON_UNSPECIFIED);
    MUST(error->text[0] != '\0');
    MUST(text_is_utf8(error->text, strlen(error->text)));
    MUST(!text_has_control(error->text, strlen(error->text)));
}

/* ---- headers ---- */

static uint64_t number(struct input *input)
{
    static const uint64_t letters[] = {0,           1,           2,           3,
                                       7,           UINT32_MAX,  INT64_MAX,   UINT64_MAX,
                                       1ull << 32u, 1ull << 61u, 1ull << 20u, 262145};

    return one_of(input, letters, sizeof letters / sizeof *letters);
}

static void read_header(struct input *input)
{
    static const char *const texts[] = {"a", "", "\xff", "two\nlines", "é"};
    static struct collective_texts read;
    wire_collective message = WIRE_COLLECTIVE_INIT;
    uint64_t named[TASKS + 2], attempts[TASKS + 3];
    uint64_t shape[SUMAC_RANK_MAX + 2];
    struct collective_task own = {.chief = sometimes(input), .index = below(input, 3)};
    struct collective collective;
    struct sumac_error error;

    const char *const name = texts[sometimes(input) ? below(input, 5) : 0];
    message.name = (wire_bytes){.len = strlen(name), .data = (uint8_t *)(uintptr_t)name};
    message.round = number(input);
    message.n_tasks = below(input, TASKS + 3);
    for (size_t i = 0; i < message.n_tasks; i++)
        named[i] = sometimes(input) ? number(input) : 2 * i + (below(input, 4) > 0);
    message.tasks = named;
    message.operation = (Sumac__V1__Collective__Operation)below(input, 9);
    message.data_type = (Sumac__V1__DataType)below(input, 15);
    message.n_shape = below(input, SUMAC_RANK_MAX + 2);
    for (size_t i = 0; i < message.n_shape; i++)
        shape[i] = number(input);
    message.shape = shape;
    message.axis = (uint32_t)number(input);
    message.root = (uint32_t)number(input);
    const uint32_t split = next(input);
    message.split = split % 8 == 7;
    message.attempts = attempts;
    if (split >= 128) { /* as many as tasks, or one more or less */
        own.attempt = below(input, 3);
        message.n_attempts = message.n_tasks + (split % 16 == 1) - (split % 16 == 2);
        message.n_attempts = message.n_attempts > TASKS + 3 ? 0 : message.n_attempts;
        for (size_t i = 0; i < message.n_attempts; i++)
            attempts[i] = sometimes(input) ? number(input) : own.attempt;
    }
    if (collective_read(&message, &own, &read, &collective, &error) != SUMAC_OK) {
        must_be_a_sentence(&error);
        return;
    }
    MUST(collective_task_equal(&collective.tasks[collective.own], &own));
    MUST(collective.root < collective.task_count);
    MUST(collective.of_attempts == (message.n_attempts > 0));
    MUST(!collective.of_attempts || message.n_attempts == collective.task_count);
    MUST(collective_other_attempt(&collective, &collective) == UINT32_MAX);
    MUST(collective_compare(&collective, &collective, &error) == SUMAC_OK);
    uint64_t bytes = 0;
    for (uint32_t ps = 0; ps < 3; ps++) {
        const struct collective_share share = collective_share(&collective, ps, 3);
        MUST(!collective.split || share.first_byte == bytes);
        bytes = collective.split ? bytes + share.bytes : share.bytes;
    }
    const bool has_none =
        collective.operation == COLLECTIVE_BROADCAST && collective.own != collective.root;
    MUST(
        bytes == (has_none
                      ? 0
                      : collective_index_bytes(&collective) +
                            collective.elements *
                                sumac_dtype_bytes(collective_contribution_dtype(&collective))));
}

/* ---- rounds ---- */

static struct collective collective_of(struct input *input)
{
    static struct collective_task known[TASKS]; /* until the next one */

    memcpy(known, tasks, sizeof known);
    struct collective collective = {
        .name = names[below(input, NAMES)],
        .round = 1 + below(input, 4),
        .tasks = known,
        .task_count = TASKS,
        .own = below(input, TASKS),
        .operation = COLLECTIVE_SUM,
        .dtype = SUMAC_FLOAT32,
        .shape = SUMAC_SHAPE(16),
        .elements = 16,
        .timeout_ms = 1 + below(input, 9)};

    if (sometimes(input)) /* it differs */
        collective.dtype = SUMAC_INT32;
    if (sometimes(input)) { /* likewise, and without the last */
        collective.task_count = TASKS - 1;
        collective.own %= TASKS - 1;
    }
    const uint32_t of = next(input);
    collective.of_attempts = of >= 192;
    for (uint32_t i = 0; i < TASKS; i++) /* of each: not known, the first or the second */
        known[i].attempt = of >= 192 ? (i == collective.own ? 1 + of % 2 : of / 2 % 3) : 0;
    return collective;
}

static void check_list(
    const struct rounds *rounds, const struct round *first, uint64_t *room_bytes, uint32_t *count,
    uint32_t *out)
{
    for (const struct round *round = first; round != NULL; round = round->in_list.next) {
        uint32_t came = 0, heard = 0, left = 0, waits = 0;
        for (uint32_t i = 0; i < round->collective->task_count; i++) {
            came += round->places[i].came;
            heard += round->places[i].heard;
            left += round->places[i].left;
            waits += round->places[i].came && !round->places[i].heard;
            *out += round->places[i].contribution != NULL;
        }
        MUST(came == round->came_count && heard == round->heard_count);
        MUST(left == round->left_count);
        MUST(!round->over || waits > 0 || left < round->collective->task_count); /* or it is gone */
        MUST(
            !round->over || round->end.status != SUMAC_OK ||
            (round_is_whole(round) && heard < round->collective->task_count));
        MUST(!round->kept || (round->over && round->end.status != SUMAC_OK));
        MUST(rounds_find(rounds, round->collective) == round);
        *room_bytes += round->room_bytes;
        (*count)++;
    }
}

static void check(const struct world *world)
{
    const struct rounds *const rounds = &world->rounds;
    uint64_t room_bytes = 0;
    uint32_t count = 0, out = 0;

    check_list(rounds, rounds->open.first, &room_bytes, &count, &out);
    check_list(rounds, rounds->over.first, &room_bytes, &count, &out);
    check_list(rounds, rounds->kept.first, &room_bytes, &count, &out);
    MUST(room_bytes == rounds->room_bytes);
    MUST(room_bytes <= ROOM_BYTES_MAX);
    MUST(count == rounds->count);
    MUST(out == world->out);
}

static void come(struct world *world, struct input *input, const struct collective *collective)
{
    struct sumac_error error = {.status = SUMAC_OK};
    struct round *reserved = rounds_reserve(&world->rounds, collective, TENSOR_BYTES, &error);
    struct round *round = NULL;

    if (reserved == NULL) {
        must_be_a_sentence(&error);
        return;
    }
    if (sometimes(input)) {
        rounds_unreserve(&world->rounds, reserved);
        return;
    }
    world->taken[++world->last] = 1;
    world->out++;
    const struct round_arrival arrival = {
        .reserved = reserved, .contribution = (void *)(uintptr_t)world->last, .weight = 1};
    const enum rounds_came came = rounds_come(&world->rounds, &arrival, &round, &error);
    MUST((world->taken[world->last] == 1) == (came == ROUNDS_TAKEN));
    MUST(round != NULL);
    MUST(came != ROUNDS_OVER || round->over);
    if (came == ROUNDS_DIFFERS) {
        must_be_a_sentence(&error);
        rounds_end(&world->rounds, round, &error);
    }
}

static const struct sumac_error late = {
    .status = SUMAC_DEADLINE_EXCEEDED, .reason = SUMAC_REASON_TIMED_OUT, .text = "late"};

static void end_unwanted(void *context, struct round *round)
{
    rounds_end(&((struct world *)context)->rounds, round, &late);
}

static void end_one(struct world *world, struct input *input, const struct collective *collective)
{
    static const struct sumac_error passed = {.status = SUMAC_OK};
    const struct sumac_error *const end = sometimes(input) ? &late : &passed;
    struct sumac_error error;

    struct round *round = rounds_find(&world->rounds, collective);
    if (below(input, 2) == 0) {
        if (round != NULL && (end == &late || round_is_whole(round)))
            rounds_end(&world->rounds, round, end);
        return;
    }
    struct round *reserved = rounds_reserve(&world->rounds, collective, 0, &error);
    if (reserved != NULL)
        round = rounds_ordered(&world->rounds, reserved, end);
    if (reserved != NULL && round != NULL && !round->passes)
        rounds_end(&world->rounds, round, end);
}

static void hear(struct world *world, const struct collective *collective)
{
    struct round *round = rounds_find(&world->rounds, collective);
    const uint32_t place =
        round == NULL ? UINT32_MAX : collective_place(round->collective, &tasks[collective->own]);

    if (place != UINT32_MAX && round->places[place].came)
        rounds_heard(&world->rounds, round, place);
}

static void step(struct world *world, struct input *input)
{
    const uint32_t choice = below(input, 8);
    const struct collective collective = collective_of(input);

    if (choice < 4)
        come(world, input, &collective);
    else if (choice < 6)
        hear(world, &collective);
    else if (choice == 6)
        end_one(world, input, &collective);
    else
        rounds_left(&world->rounds, &tasks[collective.own]);
    check(world);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct world world;
    struct input input = {.data = data, .left = bytes};

    memset(&world, 0, sizeof world);
    sized_pool_init(&world.pool, &memory_heap, 0);
    rounds_init(
        &world.rounds, &world.pool,
        &(struct round_owner){.give = give, .end = end_unwanted, .context = &world},
        ROOM_BYTES_MAX);
    while (input.left > 0 && world.last + 1 < sizeof world.taken) {
        if (sometimes(&input))
            read_header(&input);
        else
            step(&world, &input);
    }
    rounds_deinit(&world.rounds);
    MUST(world.out == 0);
    sized_pool_deinit(&world.pool);
    return 0;
}
