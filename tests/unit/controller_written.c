/* SPDX-License-Identifier: Apache-2.0 */
/* controller_written.c -- see controller_written.h. */

#include "unit.h"
#include "controller_check.h"
#include "controller_replay_check.h"
#include "controller_written.h"

void written_keep(struct written *written, const struct lane_effect *effect)
{
    size_t bytes = 0;

    assert_int_equal(effect->journal, LANE_JOURNAL_CONTROLLER);
    assert_int_equal(effect->record, written->count + 1);
    for (uint32_t i = 0; i < effect->body_count; i++)
        bytes += effect->body[i].bytes;
    uint8_t *copy = malloc(bytes);
    assert_non_null(copy);
    if (written->count == written->capacity) {
        written->capacity = 2 * written->capacity + 64;
        written->records =
            realloc(written->records, written->capacity * sizeof written->records[0]);
        assert_non_null(written->records);
    }
    written->records[written->count++] = (struct span){.data = copy, .bytes = bytes};
    for (uint32_t i = 0; i < effect->body_count; i++) {
        if (effect->body[i].bytes > 0)
            memcpy(copy, effect->body[i].data, effect->body[i].bytes);
        copy += effect->body[i].bytes;
    }
}

struct controller *written_replayed(
    const struct written *written, const struct lane_config *config, const struct memory *memory)
{
    struct controller *again = controller_create(config, memory);
    struct sumac_error error;

    for (uint64_t i = 0; i < written->count; i++)
        if (controller_replay(again, &written->records[i], &error) != SUMAC_OK)
            fail_msg("%s", error.text);
    return again;
}

void written_compare(
    const struct written *written, const struct lane_config *config,
    const struct controller *controller)
{
    struct check check = {.text = ""};
    struct controller *again = written_replayed(written, config, &memory_heap);

    controller_replay_check(controller, again, &check);
    if (check_is_good(&check))
        controller_check(again, &check);
    controller_destroy(again);
    if (!check_is_good(&check))
        fail_msg("%s", check.text);
}

void written_forget(struct written *written)
{
    for (uint64_t i = 0; i < written->count; i++)
        free((void *)(uintptr_t)written->records[i].data);
    free(written->records);
    *written = (struct written){0};
}
