/* SPDX-License-Identifier: Apache-2.0 */
/* out.h -- the effects that one step collects: in an array of their own, so that a step whose arena
 * is full still says so.
 *
 * Emptied by lane_step at its start. Where the source has no memory for more effects, lines of the
 * log are left out, then the array's reserve is used, the last place of all for EXIT;
 * `effects.lost` says that something else was lost, and the step ends with that EXIT. So an effect
 * cannot fail.
 *
 * Whoever asks is answered: a reply goes out through out_reply_or_fail, which fails the call when
 * the reply, or a part of it, could not be made.
 */
#pragma once

#include "lane.h"
#include "log_limit.h"
#include "reserved_array.h"

#define OUT_SPARE_BYTES 512u

struct out {
    struct arena *arena; /* of the step: texts and messages */
    struct reserved_array effects;
    char exit_line[SUMAC_ERROR_TEXT_BYTES];
    bool is_short; /* the arena had no room for a text, or a part of a message, of this step */
    _Alignas(16) uint8_t spare[OUT_SPARE_BYTES]; /* the messages that there was no room for */
    uint64_t now_us;                             /* of the step */
    struct log_limit log_limit;
};

/* Refs  memory and arena, until out_deinit. False: no memory. */
bool out_init(struct out *out, const struct memory *memory, struct arena *arena);
void out_deinit(struct out *out);
void out_reset(struct out *out);
/* What was said until here: lent until the next effect is added. */
struct lane_effects out_effects(const struct out *out);
/* Something that had to be said could not be made: the step ends with EXIT. */
void out_lose(struct out *out);
/* A zeroed effect of that kind at the end; never NULL. */
struct lane_effect *out_add(struct out *out, enum lane_effect_kind kind);
/* One line, noun then value: "ps 3 closed the session of worker 7 at push 41". Left out when the
 * arena has no room for it, or when there are too many of its format (log_limit.h). */
void out_log(struct out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* NULL: the call is failed, for want of memory. */
void out_reply_or_fail(struct out *out, uint64_t call, const wire_message *reply);
void out_fail(
    struct out *out, uint64_t call, enum sumac_status status, enum sumac_reason reason,
    const char *format, ...) __attribute__((format(printf, 5, 6)));
/* `why` is said on every stream and call that the exit ends, `line` (may be "") in the log. Both
 * are copied. */
void out_exit(
    struct out *out, int exit_code, enum sumac_reason reason, const char *why, const char *line);
/* The end of a step that has lost something: EXIT of this ps. */
void out_end_lost(struct out *out, uint32_t ps);
void out_wake(struct out *out, uint64_t at_us);
/* Formatted text in the arena; never NULL. */
char *out_text(struct out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A part of a message, in the arena. NULL: something of this step had no room. */
void *out_take(struct out *out, size_t bytes);
void *out_copy(struct out *out, const void *data, size_t bytes);
/* A message of that type, with its default values; never NULL. */
void *out_message(struct out *out, const wire_type *type);
#define OUT_MESSAGE(out, name) ((wire_##name *)out_message(out, &sumac__v1__##name##__descriptor))
