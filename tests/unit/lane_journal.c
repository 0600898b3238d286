/* SPDX-License-Identifier: Apache-2.0 */
/* lane_journal.c -- the records of a conversation: kept, on disk when it says so, replayed at its
 * end. */
#include <stdlib.h>

#include "step.h"
#include "lane_talk.h"
#include "replay_check.h"

void talk_keep_record(struct talk *talk, const struct lane_effect *effect)
{
    size_t bytes = 0;

    if (effect->journal != LANE_JOURNAL_OWN)
        return; /* the controller's is controller_desk's */
    assert_true(effect->record == talk->last_record + 1);
    talk->last_record = effect->record;
    for (uint32_t i = 0; i < effect->body_count; i++)
        bytes += effect->body[i].bytes;
    talk->journal = realloc(talk->journal, talk->journal_bytes + sizeof bytes + bytes);
    assert_non_null(talk->journal);
    memcpy(talk->journal + talk->journal_bytes, &bytes, sizeof bytes);
    talk->journal_bytes += sizeof bytes;
    for (uint32_t i = 0; i < effect->body_count; i++) {
        memcpy(talk->journal + talk->journal_bytes, effect->body[i].data, effect->body[i].bytes);
        talk->journal_bytes += effect->body[i].bytes;
    }
}

void talk_recorded_up_to(struct talk *talk, uint64_t record)
{
    const struct lane_event recorded = {.kind = LANE_EVENT_RECORDED, .record = record};

    talk_step(talk, &recorded);
}

void talk_recorded(struct talk *talk)
{
    if (talk->last_record > 0)
        talk_recorded_up_to(talk, talk->last_record);
}

struct lane *talk_replayed(const struct talk *talk)
{
    struct lane *again = lane_create(lane_config(talk->lane), &memory_heap);

    assert_non_null(again);
    for (size_t at = 0; at < talk->journal_bytes;) {
        struct span record = {.data = talk->journal + at + sizeof record.bytes};
        struct sumac_error error;
        memcpy(&record.bytes, talk->journal + at, sizeof record.bytes);
        at += sizeof record.bytes + record.bytes;
        if (lane_replay(again, &record, &error) != SUMAC_OK)
            fail_msg("%s", error.text);
    }
    return again;
}

static void replay(const struct talk *talk)
{
    struct lane *again = talk_replayed(talk);
    struct check check = {.text = ""};

    lane_replay_check(talk->lane, again, &check);
    lane_destroy(again);
    if (!check_is_good(&check))
        fail_msg("%s", check.text);
}

void talk_end_journal(struct talk *talk)
{
    const bool lacks_one = talk->lane->last_record != talk->last_record; /* it was lost */

    if (talk->journal != NULL && !lacks_one)
        replay(talk);
    free(talk->journal);
}
