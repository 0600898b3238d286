/* SPDX-License-Identifier: Apache-2.0 */
/* records.c -- which rows have changed, the record that a step ends with, and what waits for it.
 *
 * One step is one record, so that a journal has all of it, or nothing. Without records nothing
 * waits: the last one is 0, and so is what is on disk.
 */
#include "controller_collectives.h"
#include "row_bytes.h"

#include <assert.h>
#include <string.h>

#include "little_endian.h"

void controller_row_changed(struct controller *controller, struct controller_row *row)
{
    assert(row->kind > 0 && row->kind < CONTROLLER_ROW_KINDS);
    if (!controller->records || row->changed)
        return;
    row->changed = true;
    controller->row_count++;
    LIST_APPEND(&controller->changed[row->kind], row, in_changed);
}

static void unmark(struct controller *controller, struct controller_row *row)
{
    assert(row->changed);
    assert(controller->row_count > 0);
    row->changed = false;
    controller->row_count--;
    LIST_REMOVE(&controller->changed[row->kind], row, in_changed);
}

static bool write_row(
    struct controller *controller, const struct controller_row *row, bool gone, struct span *out)
{
    const struct row_functions *const functions = &controller->row_functions[row->kind];
    void (*put)(struct row_writer *, const void *) = gone ? functions->put_gone : functions->put;
    struct row_writer writer = {.controller = controller, .bytes = CONTROLLER_ROW_HEAD_BYTES};

    assert(put != NULL);
    put(&writer, row);
    const size_t bytes = writer.bytes;
    writer.out = writer.failed ? NULL : arena_take(controller->out->arena, bytes);
    if (writer.out == NULL || bytes > UINT32_MAX)
        return false;
    memset(writer.out, 0, CONTROLLER_ROW_HEAD_BYTES);
    writer.out[0] = (uint8_t)row->kind;
    writer.out[1] = gone;
    little_endian_put(writer.out + 4, 4, bytes);
    writer.bytes = CONTROLLER_ROW_HEAD_BYTES;
    put(&writer, row);
    assert(writer.bytes == bytes);
    *out = (struct span){.data = writer.out, .bytes = bytes};
    return true;
}

/* An object that is in no record needs no row that says that it is gone. */
void controller_row_gone(struct controller *controller, struct controller_row *row)
{
    if (row->changed)
        unmark(controller, row);
    if (row->record == 0 || !controller->records)
        return;
    struct controller_gone *gone = arena_take_zeroed(controller->out->arena, sizeof *gone);
    if (gone == NULL || !write_row(controller, row, true, &gone->row)) {
        out_lose(controller->out);
        return;
    }
    controller->row_count++;
    LIST_APPEND(&controller->gone, gone, in_controller);
}

/* Rows of objects that are gone come first, because a new object may have the same name. False: no
 * memory. */
static bool write_rows(struct controller *controller, struct span *body)
{
    uint32_t count = 0;

    while (controller->gone.first != NULL) {
        struct controller_gone *gone = controller->gone.first;
        LIST_REMOVE(&controller->gone, gone, in_controller);
        body[count++] = gone->row;
        controller->row_count--;
    }
    for (enum controller_row_kind kind = CONTROLLER_ROW_CLUSTER; kind < CONTROLLER_ROW_KINDS;
         kind++) {
        while (controller->changed[kind].first != NULL) {
            struct controller_row *row = controller->changed[kind].first;
            unmark(controller, row);
            row->record = controller->last_record + 1;
            if (!write_row(controller, row, false, &body[count++]))
                return false;
            if (kind == CONTROLLER_ROW_CLUSTER || kind == CONTROLLER_ROW_PS ||
                kind == CONTROLLER_ROW_STEP)
                controller->cluster_record = row->record;
        }
    }
    assert(controller->row_count == 0);
    return true;
}

/* Their content is what it is after this step; what changes it later waits for that row, too. */
static void number_orders(struct controller *controller)
{
    for (struct controller_order *order = controller->orders.last;
         order != NULL && order->record == 0; order = order->in_controller.prev)
        order->record = controller->last_record; /* those before it have theirs */
}

bool controller_record_step(struct controller *controller)
{
    const uint32_t count = controller->row_count;

    if (!controller->records)
        return true;
    if (count > 0 && !controller->out->effects.lost) {
        struct span *body = arena_take(controller->out->arena, count * sizeof *body);
        if (body == NULL || !write_rows(controller, body)) {
            out_lose(controller->out);
            return false;
        }
        struct lane_effect *effect = out_add(controller->out, LANE_EFFECT_RECORD);
        effect->journal = LANE_JOURNAL_CONTROLLER;
        effect->record = controller->last_record + 1;
        effect->body = body;
        effect->body_count = count;
        controller->last_record++;
    }
    if (controller->out->effects.lost)
        return false;
    assert(controller->last_record > 0); /* it began with one */
    number_orders(controller);
    return true;
}

bool controller_order_is_recorded(
    const struct controller *controller, const struct controller_order *order)
{
    uint64_t record = order->record;

    if (!controller->records)
        return true;
    assert(record != 0);
    assert(record <= controller->last_record);
    assert(
        order->collective == NULL ||
        order->collective->row.record <= record); /* it never changes */
    if (order->row != NULL && order->row->record > record)
        record = order->row->record;
    return record <= controller->recorded && controller_cluster_is_recorded(controller);
}
