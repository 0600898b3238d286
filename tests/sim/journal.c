/* SPDX-License-Identifier: Apache-2.0 */
/* journal.c -- records kept, and a ps made again from them. */
#include "journal.h"

#include <string.h>

#include "checker.h"
#include "controller_check.h"
#include "controller_replay_check.h"
#include "little_endian.h"
#include "replay_check.h"

#define LOOK_EVENTS 512u /* of the world, between two looks at a ps */

struct journal_record {
    struct journal_record *next;
    uint64_t number;
    struct span bytes;
};

void journal_add(struct world *world, struct journal *journal, const struct lane_effect *effect)
{
    struct journal_record *record = world_take(world, sizeof *record);
    size_t bytes = 0;

    for (uint32_t i = 0; i < effect->body_count; i++)
        bytes += effect->body[i].bytes;
    uint8_t *copy = world_take(world, bytes);
    *record =
        (struct journal_record){.number = effect->record, .bytes = {.data = copy, .bytes = bytes}};
    for (uint32_t i = 0; i < effect->body_count; i++) {
        memcpy(copy, effect->body[i].data, effect->body[i].bytes);
        copy += effect->body[i].bytes;
    }
    if (journal->last != NULL)
        journal->last->next = record;
    else
        journal->first = record;
    journal->last = record;
}

/* Without a rule, or without memory for a record, they need not say all. */
static bool is_whole(const struct world *world, const struct ps *ps)
{
    return world->records && world->broken == 0 && ps->core != NULL &&
           (!ps->ending || ps->exit_code != LANE_EXIT_NO_MEMORY);
}

static void check_lane(struct world *world, struct ps *ps)
{
    struct check check = {.text = ""};
    struct sumac_error error;
    struct lane *again = lane_create(&ps->config, &world->source.memory);

    if (again == NULL) {
        checker_violation(world, "there is no memory for a second lane");
        return;
    }
    for (const struct journal_record *record = ps->journals[LANE_JOURNAL_OWN].first;
         record != NULL && check_is_good(&check); record = record->next) {
        if (lane_replay(again, &record->bytes, &error) != SUMAC_OK)
            check_object(&check, "%s", error.text);
    }
    if (check_is_good(&check))
        lane_replay_check(ps_core_lane(ps->core), again, &check);
    checker_state(world, world->processes[ps->index].name, &check);
    lane_destroy(again);
}

/* One event, and its record is on disk at once. */
static void go_on(struct controller *controller, enum lane_event_kind kind, struct check *check)
{
    const struct lane_event event = {.kind = kind, .now_us = 1};
    struct lane_effects effects;
    struct lane_event recorded = {.kind = LANE_EVENT_RECORDED, .now_us = 1};

    controller_step(controller, &event, &effects);
    for (uint32_t i = 0; i < effects.count; i++)
        if (effects.items[i].kind == LANE_EFFECT_RECORD)
            recorded.record = effects.items[i].record;
    controller_check(controller, check);
    controller_step(controller, &recorded, &effects);
    controller_check(controller, check);
}

/* What was under way is ordered again. */
static void begin_again(struct controller *controller, struct check *check)
{
    go_on(controller, LANE_EVENT_START, check);
    go_on(controller, LANE_EVENT_PEER_UP, check);
    go_on(controller, LANE_EVENT_TICK, check);
}

static void check_controller(struct world *world, struct ps *ps)
{
    struct check check = {.text = ""};
    struct sumac_error error;
    struct controller *again = controller_create(&ps->config, &world->source.memory);

    if (again == NULL) {
        checker_violation(world, "there is no memory for a second controller");
        return;
    }
    for (const struct journal_record *record = ps->journals[LANE_JOURNAL_CONTROLLER].first;
         record != NULL && check_is_good(&check); record = record->next) {
        if (controller_replay(again, &record->bytes, &error) != SUMAC_OK)
            check_object(&check, "%s", error.text);
    }
    if (check_is_good(&check))
        controller_replay_check(ps_core_controller(ps->core), again, &check);
    if (check_is_good(&check))
        controller_check(again, &check);
    if (check_is_good(&check))
        begin_again(again, &check);
    checker_state(world, world->processes[ps->index].name, &check);
    controller_destroy(again);
}

void journal_check(struct world *world, struct ps *ps)
{
    ps->looked_at = world->events_run;
    if (!is_whole(world, ps))
        return;
    check_lane(world, ps);
    if (ps_core_controller(ps->core) != NULL)
        check_controller(world, ps);
}

void journal_look(struct world *world, struct ps *ps)
{
    if (world->events_run - ps->looked_at >= LOOK_EVENTS)
        journal_check(world, ps);
}

/* ---- what is not on disk yet */

static bool
has_row(const struct span *record, enum controller_row_kind kind, const void *id, size_t n)
{
    size_t at = 0;

    while (at < record->bytes) {
        const uint8_t *row = record->data + at;
        if (row[0] == kind && memcmp(row + CONTROLLER_ROW_HEAD_BYTES, id, n) == 0)
            return true;
        at += (size_t)little_endian_get(row + 4, 4);
    }
    return false;
}

bool journal_lacks(
    const struct journal *journal, enum controller_row_kind kind, const void *id, size_t id_bytes)
{
    for (const struct journal_record *record = journal->first; record != NULL;
         record = record->next)
        if (record->number > journal->done && has_row(&record->bytes, kind, id, id_bytes))
            return true;
    return false;
}
