/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_table.c -- the barriers that ps 0 keeps: found by their names, added, forgotten. */
#include "barrier.h"

#include <assert.h>
#include <string.h>

#include "text.h"

struct judge_barrier *judge_barrier_find(const struct judge *judge, const char *name)
{
    return key_map_get(&judge->barriers_by_name, name, strlen(name));
}

static size_t places_bytes(uint32_t count) { return count * sizeof(struct judge_place); }

void judge_barrier_places_give(struct judge *judge, const struct judge_barrier *barrier)
{
    memory_give(judge->memory, barrier->places, places_bytes(barrier->place_count));
}

bool judge_barrier_resize(struct judge *judge, struct judge_barrier *barrier, uint32_t place_count)
{
    assert(place_count > 0);
    assert(place_count <= WIRE_BARRIER_TASKS_MAX);
    struct judge_place *places = memory_take(judge->memory, places_bytes(place_count));
    if (places == NULL)
        return false;
    memset(places, 0, places_bytes(place_count));
    barrier->places = places;
    barrier->place_count = place_count;
    return true;
}

static void give(struct judge *judge, struct judge_barrier *barrier)
{
    judge_barrier_places_give(judge, barrier);
    memory_give(judge->memory, barrier, barrier->bytes);
}

struct judge_barrier *judge_barrier_add(struct judge *judge, const char *name, uint32_t place_count)
{
    const size_t name_bytes = strlen(name) + 1, bytes = sizeof(struct judge_barrier) + name_bytes;

    assert(name_bytes <= JUDGE_BARRIER_NAME_BYTES_MAX + 1);
    assert(judge_barrier_find(judge, name) == NULL);
    struct judge_barrier *barrier = memory_take(judge->memory, bytes);
    if (barrier == NULL)
        return NULL;
    memset(barrier, 0, sizeof *barrier);
    char *kept = (char *)(barrier + 1);
    memcpy(kept, name, name_bytes);
    barrier->bytes = bytes;
    barrier->name = kept;
    barrier->by_name =
        (struct key_entry){.key = kept, .key_bytes = name_bytes - 1, .value = barrier};
    if (!judge_barrier_resize(judge, barrier, place_count) ||
        !key_map_put(&judge->barriers_by_name, &barrier->by_name)) {
        give(judge, barrier);
        return NULL;
    }
    LIST_APPEND(&judge->barriers, barrier, in_judge);
    return barrier;
}

/* The order of the list is that of the rows: of a step the first change counts. */
void judge_barrier_changed(struct judge *judge, struct judge_barrier *barrier)
{
    if (!barrier->row.changed) {
        LIST_REMOVE(&judge->barriers, barrier, in_judge);
        LIST_APPEND(&judge->barriers, barrier, in_judge);
    }
    judge_row_changed(judge, JUDGE_ROW_BARRIER, &barrier->row);
}

void judge_barrier_forget(struct judge *judge, struct judge_barrier *barrier)
{
    assert(!barrier->open);
    assert(barrier->waiting.first == NULL);
    LIST_REMOVE(&judge->barriers, barrier, in_judge);
    key_map_remove(&judge->barriers_by_name, &barrier->by_name);
    judge_row_gone(judge, JUDGE_ROW_BARRIER, &barrier->row);
    give(judge, barrier);
}

void judge_barriers_deinit(struct judge *judge)
{
    while (judge->barriers.first != NULL) {
        struct judge_barrier *barrier = judge->barriers.first;
        LIST_REMOVE(&judge->barriers, barrier, in_judge);
        give(judge, barrier);
    }
    key_map_deinit(&judge->barriers_by_name);
    pool_deinit(&judge->waiting_pool);
}

/* A call that waits is within what each call takes. */
uint64_t judge_barriers_bytes_max(const struct judge *judge)
{
    const size_t barrier = sizeof(struct judge_barrier) + JUDGE_BARRIER_NAME_BYTES_MAX + 1;

    return JUDGE_BARRIERS_MAX *
           (barrier + places_bytes(judge_barrier_tasks_max(judge)) + ID_MAP_ENTRY_BYTES_MAX);
}

struct judge_place *
judge_barrier_place(const struct judge_barrier *barrier, const char *job, uint32_t index)
{
    for (uint32_t i = 0; i < barrier->place_count; i++)
        if (barrier->places[i].index == index &&
            judge_barrier_is_job(job, barrier->places[i].chief))
            return &barrier->places[i];
    return NULL;
}

struct judge_task *judge_barrier_task(const struct judge *judge, const struct judge_place *place)
{
    char job[8];
    wire_task_name name = WIRE_TASK_NAME_INIT;

    (void)text_print(job, sizeof job, "%s", judge_barrier_job(place));
    name.job = job;
    name.index = place->index;
    return judge_task_find(judge, &name);
}
