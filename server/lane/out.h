/* out.h -- the effects that one step collects, in its arena.
 *
 * Shared by the lane and the judge; reset by lane_step at its start. When the arena is full, effects are dropped and
 * `overflowed` says so (its bound is far above what one step can make; the lane asserts it).
 */
#ifndef LANE_OUT_H
#define LANE_OUT_H

#include "lane.h"

struct out {
    struct arena *arena;
    struct lane_effect *items;
    uint32_t count, capacity;
    bool overflowed;
};

void out_reset(struct out *out, struct arena *arena);
/* A zeroed effect of that kind at the end, or NULL. */
struct lane_effect *out_add(struct out *out, enum lane_effect_kind kind);
/* One line, noun then value: "ps 3 closed the session of worker 7 at push 41". */
void out_log(struct out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void out_reply(struct out *out, uint64_t call, const wire_message *reply);
void out_fail(
    struct out *out, uint64_t call, enum sumac_status status, enum sumac_reason reason,
    const char *format, ...) __attribute__((format(printf, 5, 6)));
void out_exit(struct out *out, int exit_code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void out_wake(struct out *out, uint64_t at_us);
/* Formatted text in the arena; never NULL. */
char *out_text(struct out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
