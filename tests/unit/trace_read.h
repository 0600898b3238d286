/* SPDX-License-Identifier: Apache-2.0 */
/* trace_read.h -- a trace's file, as JSON. */
#ifndef TRACE_READ_H
#define TRACE_READ_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
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

#endif
