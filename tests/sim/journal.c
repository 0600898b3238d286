/* SPDX-License-Identifier: Apache-2.0 */
/* journal.c -- records kept, and a ps made again from them. */
#include "journal.h"

#include <string.h>

#include "checker.h"
#include "replay_check.h"

#define LOOK_EVENTS 512u /* of the world, between two looks at a ps */

struct journal_record {
    struct journal_record *next;
    struct span bytes;
};

void journal_add(struct world *world, struct ps *ps, const struct lane_effect *effect)
{
    struct journal_record *record = world_take(world, sizeof *record);
    size_t bytes = 0;

    for (uint32_t i = 0; i < effect->body_count; i++)
        bytes += effect->body[i].bytes;
    uint8_t *copy = world_take(world, bytes);
    *record = (struct journal_record){.bytes = {.data = copy, .bytes = bytes}};
    for (uint32_t i = 0; i < effect->body_count; i++) {
        memcpy(copy, effect->body[i].data, effect->body[i].bytes);
        copy += effect->body[i].bytes;
    }
    if (ps->last_record != NULL)
        ps->last_record->next = record;
    else
        ps->first_record = record;
    ps->last_record = record;
}

/* Without a rule, or without memory for a record, they need not say all. */
static bool is_whole(const struct world *world, const struct ps *ps)
{
    return world->records && world->broken == 0 && ps->core != NULL &&
           (!ps->ending || ps->exit_code != LANE_EXIT_NO_MEMORY);
}

void journal_check(struct world *world, struct ps *ps)
{
    struct check check = {.text = ""};
    struct sumac_error error;

    ps->looked_at = world->events_run;
    if (!is_whole(world, ps))
        return;
    struct lane *again = lane_create(&ps->config, &world->source.memory);
    if (again == NULL) {
        checker_violation(world, "there is no memory for a second lane");
        return;
    }
    for (const struct journal_record *record = ps->first_record;
         record != NULL && check_is_good(&check); record = record->next) {
        if (lane_replay(again, &record->bytes, &error) != SUMAC_OK)
            check_object(&check, "%s", error.text);
    }
    if (check_is_good(&check))
        lane_replay_check(ps_core_lane(ps->core), again, &check);
    checker_state(world, world->processes[ps->index].name, &check);
    lane_destroy(again);
}

void journal_look(struct world *world, struct ps *ps)
{
    if (world->events_run - ps->looked_at >= LOOK_EVENTS)
        journal_check(world, ps);
}
