/* SPDX-License-Identifier: Apache-2.0 */
/* trace_read.h -- a trace's file, as JSON. */
#pragma once

#include "unit.h"
#include <jansson.h>

/* Its events; whoever reads it gives them back. */
static inline json_t *trace_read(const char *path)
{
    json_error_t error;
    json_t *events = json_load_file(path, 0, &error);

    if (events == NULL)
        fail_msg("%s:%d: %s", path, error.line, error.text);
    assert_true(json_is_array(events));
    return events;
}

static inline const char *word(const json_t *event, const char *key)
{
    return json_string_value(json_object_get(event, key));
}

static inline double number(const json_t *event, const char *key)
{
    return json_number_value(json_object_get(event, key));
}

static inline const json_t *args(const json_t *event) { return json_object_get(event, "args"); }

/* Metadata has the phase M, what takes its time X. */
static inline uint32_t count_of(const json_t *events, const char *phase)
{
    uint32_t count = 0;
    size_t i;
    json_t *event;

    json_array_foreach(events, i, event) count += strcmp(word(event, "ph"), phase) == 0;
    return count;
}

/* The number of the track of that name; 0: there is none. */
static inline double track_of(const json_t *events, const char *name)
{
    size_t i;
    json_t *event;

    json_array_foreach(events, i, event)
    {
        if (strcmp(word(event, "name"), "thread_name") == 0 &&
            strcmp(word(args(event), "name"), name) == 0)
            return number(event, "tid");
    }
    return 0;
}

/* The only event of that name on that track and of that step; NULL: there is none. */
static inline const json_t *
the_only(const json_t *events, const char *track, const char *name, uint64_t step)
{
    const double number_of_track = track_of(events, track);
    const json_t *found = NULL;
    size_t i;
    json_t *event;

    json_array_foreach(events, i, event)
    {
        if (strcmp(word(event, "ph"), "X") != 0 || strcmp(word(event, "name"), name) != 0 ||
            number(event, "tid") != number_of_track || number(args(event), "step") != (double)step)
            continue;
        assert_null(found);
        found = event;
    }
    return found;
}

static inline const json_t *
event_of(const json_t *events, const char *track, const char *name, uint64_t step)
{
    const json_t *found = the_only(events, track, name, step);

    if (found == NULL)
        fail_msg("no %s of step %u on track %s", name, (unsigned)step, track);
    return found;
}

static inline double begin_of(const json_t *event) { return number(event, "ts"); }

/* Begin and length are rounded to what a double has of an hour's nanoseconds. */
static inline double end_of(const json_t *event)
{
    return number(event, "ts") + number(event, "dur") - 0.001;
}

static inline void assert_in_turn(const json_t *first, const json_t *second)
{
    assert_true(end_of(first) <= begin_of(second));
}

static inline void assert_within(const json_t *inner, const json_t *outer)
{
    assert_true(begin_of(outer) <= begin_of(inner));
    assert_true(end_of(inner) <= end_of(outer) + 0.002);
}
