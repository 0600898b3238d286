/* SPDX-License-Identifier: Apache-2.0 */
/* records.c -- which rows have changed, the record that a step ends with, and what waits for it.
 *
 * One step is one record, so that a journal has all of it, or nothing. Without records nothing
 * waits: the last one is 0, and so is what is on disk.
 */
#include "meet.h"

#include <assert.h>

void judge_row_changed(struct judge *judge, enum judge_row_kind kind, struct judge_row *row)
{
    assert(kind > 0 && kind < JUDGE_ROW_KINDS);
    if (!judge->records || row->changed)
        return;
    row->changed = true;
    judge->row_count++;
    LIST_APPEND(&judge->changed[kind], row, in_changed);
}

static void unmark(struct judge *judge, enum judge_row_kind kind, struct judge_row *row)
{
    assert(row->changed);
    assert(judge->row_count > 0);
    row->changed = false;
    judge->row_count--;
    LIST_REMOVE(&judge->changed[kind], row, in_changed);
}

/* Of what no record has spoken none says that it is gone. */
void judge_row_gone(struct judge *judge, enum judge_row_kind kind, struct judge_row *row)
{
    if (row->changed)
        unmark(judge, kind, row);
    if (row->record == 0 || !judge->records)
        return;
    struct judge_gone *gone = arena_take_zeroed(&judge->said->arena, sizeof *gone);
    if (gone == NULL || !judge_row_write_gone(judge, kind, row, &gone->row)) {
        judge_effects_lose(judge);
        return;
    }
    judge->row_count++;
    LIST_APPEND(&judge->gone, gone, in_judge);
}

/* What is gone comes first: its name may be another's by then. False: no memory. */
static bool write_rows(struct judge *judge, struct span *body)
{
    uint32_t count = 0;

    while (judge->gone.first != NULL) {
        struct judge_gone *gone = judge->gone.first;
        LIST_REMOVE(&judge->gone, gone, in_judge);
        body[count++] = gone->row;
        judge->row_count--;
    }
    for (enum judge_row_kind kind = JUDGE_ROW_CLUSTER; kind < JUDGE_ROW_KINDS; kind++) {
        while (judge->changed[kind].first != NULL) {
            struct judge_row *row = judge->changed[kind].first;
            unmark(judge, kind, row);
            row->record = judge->last_record + 1;
            if (!judge_row_write(judge, kind, row, &body[count++]))
                return false;
            if (kind == JUDGE_ROW_CLUSTER || kind == JUDGE_ROW_PS || kind == JUDGE_ROW_STEP)
                judge->cluster_record = row->record;
        }
    }
    assert(judge->row_count == 0);
    return true;
}

/* Their content is what it is after this step; what changes it later waits for that row, too. */
static void number_orders(struct judge *judge)
{
    for (struct judge_order *order = judge->orders.last; order != NULL && order->record == 0;
         order = order->in_judge.prev)
        order->record = judge->last_record; /* those before it have theirs */
}

bool judge_record_step(struct judge *judge)
{
    const uint32_t count = judge->row_count;

    if (!judge->records)
        return true;
    if (count > 0 && !judge->said->effects.lost) {
        struct span *body = arena_take(&judge->said->arena, count * sizeof *body);
        if (body == NULL || !write_rows(judge, body)) {
            judge_effects_lose(judge);
            return false;
        }
        struct judge_effect *effect = judge_effect_add(judge, JUDGE_EFFECT_RECORD);
        effect->record = judge->last_record + 1;
        effect->body = body;
        effect->body_count = count;
        judge->last_record++;
    }
    if (judge->said->effects.lost)
        return false;
    assert(judge->last_record > 0); /* it began with one */
    number_orders(judge);
    return true;
}

bool judge_order_is_recorded(const struct judge *judge, const struct judge_order *order)
{
    uint64_t record = order->record;

    if (!judge->records)
        return true;
    assert(record != 0);
    assert(record <= judge->last_record);
    assert(order->meeting == NULL || order->meeting->row.record <= record); /* it never changes */
    if (order->session != NULL && order->session->row.record > record)
        record = order->session->row.record;
    if (order->variable != NULL && order->variable->row.record > record)
        record = order->variable->row.record;
    if (order->function != NULL && order->function->row.record > record)
        record = order->function->row.record;
    return record <= judge->recorded && judge_cluster_is_recorded(judge);
}
