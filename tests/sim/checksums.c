/* SPDX-License-Identifier: Apache-2.0 */
/* checksums.c -- XXH3-64 of all that a part has for its ps, said with its first message. */
#include "checksums.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

static const struct sim_push *
find_push(const struct world *world, const struct sim_session *life, uint64_t sequence)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->push_count; i++)
        if (checker->pushes[i]->session == life && checker->pushes[i]->sequence == sequence)
            return checker->pushes[i];
    return NULL;
}

static uint64_t sum_of(const struct sim_push *push, uint32_t ps)
{
    XXH3_state_t state;

    (void)XXH3_64bits_reset(&state);
    for (uint32_t i = 0; i < push->piece_count; i++)
        if (push->pieces[i].ps == ps)
            (void)XXH3_64bits_update(&state, push->pieces[i].data, push->pieces[i].bytes);
    return XXH3_64bits_digest(&state);
}

static wire_part *
add_sum(struct world *world, const struct sim_push *push, uint32_t ps, const wire_part *part)
{
    const bool is_corrupted = push->defect == DEFECT_CORRUPTED && push->bad_ps == ps;
    wire_part *own = arena_take_zeroed(&world->scratch, sizeof *own);

    *own = *part;
    own->checksum = sum_of(push, ps) + is_corrupted;
    made(world, MADE_checked);
    return own;
}

const wire_push_request *checksums_add(
    struct world *world, const struct client *client, uint32_t ps, const wire_push_request *request)
{
    wire_push_request *own = arena_take_zeroed(&world->scratch, sizeof *own);

    *own = *request;
    own->parts = arena_take_zeroed(&world->scratch, (own->n_parts + 1) * sizeof(wire_part *));
    for (size_t i = 0; i < own->n_parts; i++) {
        wire_part *part = request->parts[i];
        const struct sim_push *push = find_push(world, client->life, part->sequence);
        const bool has_sum = push != NULL && push->has_checksum && part->first;
        own->parts[i] = has_sum ? add_sum(world, push, ps, part) : part;
    }
    return own;
}
