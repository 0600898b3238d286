/* SPDX-License-Identifier: Apache-2.0 */
/* too_large.c -- a variable that cannot be pushed whole is said when it is created, not when the
 * first push of it is refused. */
#include "client_state.h"

/* Find the ps where a push of the whole variable exceeds the largest part by the most.
 * False: a ps has yet to greet. */
static bool find_scarcest(
    const struct sumac_client *client, const struct sumac_client_variable *variable, uint32_t *ps,
    struct session_room *scarcest)
{
    uint64_t bytes[SESSION_PS_MAX] = {0};
    uint32_t pieces[SESSION_PS_MAX] = {0};

    for (uint32_t i = 0; i < variable->shard_count; i++) {
        assert(variable->shards[i].ps < SESSION_PS_MAX); /* what is learnt is sound */
        bytes[variable->shards[i].ps] += variable->shards[i].bytes;
        pieces[variable->shards[i].ps]++;
    }
    *scarcest = (struct session_room){.known = true};
    for (uint32_t i = 0; i < SESSION_PS_MAX; i++) {
        if (pieces[i] == 0)
            continue;
        const struct session_room room = session_room(client->session, i, bytes[i], pieces[i]);
        if (!room.known)
            return false;
        if (room.cost_bytes <= room.part_bytes_max || room.cost_bytes <= scarcest->cost_bytes)
            continue;
        *scarcest = room;
        *ps = i;
    }
    return true;
}

/* The cost is rounded up and the largest part down, so that the two differ. */
static void say_room(
    struct sumac_client *client, const char *name, uint32_t ps, const struct session_room *room)
{
    assert(room->cost_bytes > room->part_bytes_max);
    const uint64_t mib = 1u << 20;
    const uint64_t cost =
        room->cost_bytes / mib * 100 + (room->cost_bytes % mib * 100 + mib - 1) / mib;
    const uint64_t most = room->part_bytes_max / mib * 100 + room->part_bytes_max % mib * 100 / mib;
    client_log(
        client,
        "%.200s pushed whole takes %" PRIu64 ".%02" PRIu64 " MiB of staging on ps %" PRIu32
        ", where the largest part takes %" PRIu64 ".%02" PRIu64
        " MiB: push fewer of its rows at once, use more ps, or start each ps with --staging-max "
        "%" PRIu64 "M",
        name, cost / 100, cost % 100, ps, most / 100, most % 100, room->staging_max_mib);
}

/* False: it cannot be known yet. */
static bool say_if_scarce(struct sumac_client *client, const struct sumac_client_variable *variable)
{
    struct session_room room;
    uint32_t ps = 0;

    if (!find_scarcest(client, variable, &ps, &room))
        return false;
    if (room.cost_bytes > 0 && !variable->deleted)
        say_room(client, variable->name, ps, &room);
    return true;
}

void client_say_room(struct sumac_client *client, struct sumac_client_variable *variable)
{
    assert(client_is_locked(client));
    if (client->session != NULL && !say_if_scarce(client, variable))
        LIST_APPEND(&client->room_due, variable, among_room_due);
}

void client_say_rooms(struct sumac_client *client)
{
    assert(client_is_locked(client));
    if (client->session == NULL) /* it is being closed */
        return;
    LIST_FOREACH_SAFE(struct sumac_client_variable, variable, &client->room_due, among_room_due) {
        if (say_if_scarce(client, variable))
            LIST_REMOVE(&client->room_due, variable, among_room_due);
    }
}
