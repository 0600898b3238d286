/* SPDX-License-Identifier: Apache-2.0 */
/* lane_members.h -- a conversation with a lane whose sessions are members of synchronous steps. */
#pragma once

#include <stdio.h>

#include "lane_talk.h"

#define VARIABLE 10u
#define MEMBERS_MAX 4u
#define OBSERVER 9u
#define NONE SUMAC__V1__AGGREGATION__AGGREGATION_NONE
#define SUM SUMAC__V1__AGGREGATION__AGGREGATION_SUM
#define MEAN SUMAC__V1__AGGREGATION__AGGREGATION_MEAN
#define FIRST SUMAC__V1__AGGREGATION__AGGREGATION_ONLY_FIRST_REPLICA

/* Sessions 1, 2, … of as many members, each with its push stream; a reader's pull stream. */
struct members {
    uint64_t push[MEMBERS_MAX + 1], pull;
};

/* Without records, whose writing has every pull looked at. */
static inline struct members
begin_bare(struct talk *talk, uint32_t count, uint32_t members, const struct lane_config *config)
{
    struct members made = {.push = {0}};

    talk->step_members = members;
    talk_start(talk, config);
    for (uint8_t i = 1; i <= count; i++) {
        talk_open(talk, i);
        made.push[i] = talk_push_stream(talk, i, 1);
    }
    made.pull = talk_pull_stream(talk, 0);
    talk_forget(talk);
    return made;
}

static inline struct members
begin_as(struct talk *talk, uint32_t count, uint32_t members, struct lane_config config)
{
    config.records = true; /* a second lane is made of them at the end, and compared */
    talk->disk_is_quick = true;
    return begin_bare(talk, count, members, &config);
}

static inline struct members begin_with(struct talk *talk, uint32_t count, uint32_t members)
{
    return begin_as(talk, count, members, talk_config());
}

static inline struct members begin(struct talk *talk, uint32_t count)
{
    return begin_with(talk, count, count);
}

static inline uint64_t open_observer(struct talk *talk)
{
    uint8_t id[16];
    wire_open_session open = WIRE_OPEN_SESSION_INIT;

    memset(id, OBSERVER, sizeof id);
    open.session_id = (wire_bytes){.len = sizeof id, .data = id};
    open.attempt = 3;
    talk_order_of(talk, open, &open);
    const uint64_t stream = talk_push_stream(talk, OBSERVER, 1);
    talk_forget(talk);
    return stream;
}

static inline void
add_variable(struct talk *talk, uint64_t id, uint32_t function, uint32_t aggregation, uint64_t rows)
{
    talk->aggregation = aggregation;
    talk_variable(talk, id, rows, function);
    talk_forget(talk);
}

static inline struct talk_part contribution(uint64_t step, const float *values, uint32_t count)
{
    return (struct talk_part){
        .sequence = step,
        .previous = step - 1,
        .step = step,
        .shard = VARIABLE,
        .shards = 1,
        .values = values,
        .count = count};
}

static inline void
contribute(struct talk *talk, uint64_t stream, uint64_t step, const float *values, uint32_t count)
{
    const struct talk_part part = contribution(step, values, count);

    talk_part(talk, stream, &part);
    talk_commit(talk, stream, step, 0, 0);
}

/* The only variable's elements. */
static inline void
read_values(struct talk *talk, const struct members *members, float *values, uint32_t count)
{
    talk_pull(talk, members->pull, 1, VARIABLE, 1, 0);
    assert_int_equal(talk->pulled_bytes, count * sizeof *values);
    memcpy(values, talk->pulled, count * sizeof *values);
    talk_forget(talk);
}

static inline void assert_value_is(struct talk *talk, const struct members *members, float expected)
{
    float value;

    read_values(talk, members, &value, 1);
    assert_memory_equal(&value, &expected, sizeof value);
}

static inline void expect_refused(
    struct talk *talk, uint64_t stream, const struct talk_part *part, const char *reason,
    const char *text)
{
    char expected[64];

    (void)snprintf(expected, sizeof expected, "refused %u %s\n", (unsigned)part->sequence, reason);
    talk_part(talk, stream, part);
    talk_expect(talk, expected);
    if (strstr(talk->refused, text) == NULL)
        print_error("%s\n", talk->refused);
    assert_non_null(strstr(talk->refused, text));
}
