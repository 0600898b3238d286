/* SPDX-License-Identifier: Apache-2.0 */
/* barrier_table.c -- the barriers that ps 0 keeps: found by their names, added, forgotten. */
#include "barrier.h"

#include <assert.h>
#include <string.h>

#include "text.h"
#include "controller_members.h"

struct controller_barrier *
controller_barrier_find(const struct controller *controller, const char *name)
{
    return key_map_get(&controller->barriers_by_name, name, strlen(name));
}

static size_t places_bytes(uint32_t count) { return count * sizeof(struct controller_place); }

void controller_barrier_places_give(
    struct controller *controller, const struct controller_barrier *barrier)
{
    memory_give(controller->memory, barrier->places, places_bytes(barrier->place_count));
}

bool controller_barrier_resize(
    struct controller *controller, struct controller_barrier *barrier, uint32_t place_count)
{
    assert(place_count > 0);
    assert(place_count <= WIRE_BARRIER_TASKS_MAX);
    struct controller_place *places =
        memory_take_zeroed(controller->memory, places_bytes(place_count));
    if (places == NULL)
        return false;
    barrier->places = places;
    barrier->place_count = place_count;
    return true;
}

static void give(struct controller *controller, struct controller_barrier *barrier)
{
    controller_barrier_places_give(controller, barrier);
    memory_give(controller->memory, barrier, barrier->bytes);
}

struct controller_barrier *
controller_barrier_add(struct controller *controller, const char *name, uint32_t place_count)
{
    const size_t name_bytes = strlen(name) + 1,
                 bytes = sizeof(struct controller_barrier) + name_bytes;

    assert(name_bytes <= CONTROLLER_BARRIER_NAME_BYTES_MAX + 1);
    assert(controller_barrier_find(controller, name) == NULL);
    struct controller_barrier *barrier = memory_take_zeroed(controller->memory, bytes);
    if (barrier == NULL)
        return NULL;
    char *kept = (char *)(barrier + 1);
    memcpy(kept, name, name_bytes);
    barrier->row.kind = CONTROLLER_ROW_BARRIER;
    barrier->bytes = bytes;
    barrier->name = kept;
    barrier->by_name =
        (struct key_entry){.key = kept, .key_bytes = name_bytes - 1, .value = barrier};
    if (!controller_barrier_resize(controller, barrier, place_count) ||
        !key_map_put(&controller->barriers_by_name, &barrier->by_name)) {
        give(controller, barrier);
        return NULL;
    }
    LIST_APPEND(&controller->barriers, barrier, in_controller);
    return barrier;
}

/* The order of the list is that of the rows: of a step the first change counts. */
void controller_barrier_changed(struct controller *controller, struct controller_barrier *barrier)
{
    if (!barrier->row.changed) {
        LIST_REMOVE(&controller->barriers, barrier, in_controller);
        LIST_APPEND(&controller->barriers, barrier, in_controller);
    }
    controller_row_changed(controller, &barrier->row);
}

void controller_barrier_forget(struct controller *controller, struct controller_barrier *barrier)
{
    assert(!barrier->open);
    assert(barrier->waiting.first == NULL);
    LIST_REMOVE(&controller->barriers, barrier, in_controller);
    key_map_remove(&controller->barriers_by_name, &barrier->by_name);
    controller_row_gone(controller, &barrier->row);
    give(controller, barrier);
}

void controller_barriers_deinit(struct controller *controller)
{
    while (controller->barriers.first != NULL) {
        struct controller_barrier *barrier = controller->barriers.first;
        LIST_REMOVE(&controller->barriers, barrier, in_controller);
        give(controller, barrier);
    }
    key_map_deinit(&controller->barriers_by_name);
    pool_deinit(&controller->waiting_pool);
}

/* A call that waits is within what each call takes. */
uint64_t controller_barriers_bytes_max(const struct controller *controller)
{
    const size_t barrier =
        sizeof(struct controller_barrier) + CONTROLLER_BARRIER_NAME_BYTES_MAX + 1;

    return CONTROLLER_BARRIERS_MAX *
           (barrier + places_bytes(controller_barrier_tasks_max(controller)) +
            ID_MAP_ENTRY_BYTES_MAX);
}

struct controller_place *
controller_barrier_place(const struct controller_barrier *barrier, const char *job, uint32_t index)
{
    for (uint32_t i = 0; i < barrier->place_count; i++)
        if (barrier->places[i].index == index &&
            controller_barrier_is_job(job, barrier->places[i].chief))
            return &barrier->places[i];
    return NULL;
}

struct controller_task *
controller_barrier_task(const struct controller *controller, const struct controller_place *place)
{
    char job[8];
    wire_task_name name = WIRE_TASK_NAME_INIT;

    (void)text_print(job, sizeof job, "%s", controller_barrier_job(place));
    name.job = job;
    name.index = place->index;
    return controller_task_find(controller, &name);
}
