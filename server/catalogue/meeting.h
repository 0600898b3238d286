/* SPDX-License-Identifier: Apache-2.0 */
/* meeting.h -- what a contribution says of the round of a rendezvous that it is for: read, and held
 * against what the others say.
 *
 * Every ps that has a part of a contribution reads the same, so each says of it what the others
 * would.
 */
#ifndef CATALOGUE_MEETING_H
#define CATALOGUE_MEETING_H

#include <stdbool.h>
#include <stdint.h>

#include "meeting_places.h"
#include "memory.h"
#include "sumac/status.h"
#include "sumac/tensor.h"
#include "wire.h"

#define MEETING_NAME_BYTES_MAX WIRE_MEETING_NAME_BYTES_MAX
#define MEETING_TASKS_MAX WIRE_MEETING_TASKS_MAX
#define MEETING_TIMEOUT_MS_DEFAULT 60000u
#define MEETING_WHOLE_BYTES_MAX WIRE_MEETING_WHOLE_BYTES_MAX

/* The end of an error about a later attempt of a task: the reason and the remedy. */
#define MEETING_START_ALL_AGAIN                                                                    \
    ": a later attempt cannot take the place of an earlier one, whose state is lost; "             \
    "start all of them again"

enum meeting_operation {
    MEETING_SUM = 1,
    MEETING_MEAN,
    MEETING_MIN,
    MEETING_MAX,
    MEETING_GATHER,
    MEETING_BROADCAST,
    MEETING_CONCATENATE,
};

/* A chief, or a worker. */
struct meeting_task {
    bool chief;
    uint32_t index;
    uint64_t attempt; /* that its rounds belong to; 0: not known, or any may come */
};

struct meeting {
    const char *name;
    uint64_t round;
    const struct meeting_task *tasks; /* in their order */
    uint32_t task_count;
    uint32_t own; /* whose contribution it is: its place among them */
    enum meeting_operation operation;
    enum sumac_dtype dtype;
    struct sumac_shape shape; /* of this contribution */
    uint64_t elements;        /* of its tensor, as a whole */
    uint32_t axis, root;
    uint32_t timeout_ms;
    bool split;
    bool of_attempts; /* it belongs to one attempt of each task */
};

/* Where what is read lies. */
struct meeting_texts {
    char name[MEETING_NAME_BYTES_MAX + 1];
    struct meeting_task tasks[MEETING_TASKS_MAX];
};

/* Read what a part of the task at hand says. Lends  what `texts` has.
 *
 * Fails  INVALID_ARGUMENT: BAD_NAME, BAD_SHAPE, WRONG_DATA_TYPE, or MALFORMED, naming the
 *        rendezvous and what is wrong with what is said of it. UNIMPLEMENTED (UNSUPPORTED): an
 *        operation that is not known. */
enum sumac_status meeting_read(
    const wire_meeting *message, const struct meeting_task *own, struct meeting_texts *texts,
    struct meeting *meeting, struct sumac_error *error);

/* What meeting_read has read, as it may be read again. NULL: the arena is full. Lends  the name. */
wire_meeting *meeting_write(const struct meeting *meeting, struct arena *arena);

/* Is what `given` says of the round as `first` says, who came before it? Which of both, and what
 * they differ in, is the error: FAILED_PRECONDITION (STEP_DIFFERS). */
enum sumac_status meeting_compare(
    const struct meeting *first, const struct meeting *given, struct sumac_error *error);

/* What a contribution is made of: of a sum or a mean of a half type float32, which is rounded once,
 * in the result; else the round's own. */
enum sumac_dtype meeting_contribution_dtype(const struct meeting *meeting);
/* Of rows to be concatenated, those of their indices, int64, which come before the values. */
uint64_t meeting_index_bytes(const struct meeting *meeting);
/* Of a contribution's bytes, those that its part for ps `ps` of `ps_count` has. */
struct meeting_share {
    uint64_t first_byte, bytes;
};
struct meeting_share meeting_share(const struct meeting *meeting, uint32_t ps, uint32_t ps_count);

/* The ps where what is not split meets: FNV-1a, of 64 bits, of the name's bytes, modulo their
 * number. */
uint32_t meeting_home(const char *name, uint32_t ps_count);

/* With its name and its tasks, as one block of so many bytes, which moves as a whole. */
size_t meeting_copy_bytes(const struct meeting *meeting);
struct meeting *meeting_copy(const struct meeting *meeting, void *block);

/* "sum", "concatenate". Lends  for ever. */
const char *meeting_operation_name(enum meeting_operation operation);
/* "chief 0", "worker 3", into `text`. Lends  text. */
const char *meeting_task_print(const struct meeting_task *task, char *text, size_t text_bytes);
/* As it is said on the wire: chief i is 2·i, worker i is 2·i + 1. */
static inline struct meeting_task meeting_task_of(uint64_t said)
{
    return (struct meeting_task){.chief = said % 2 == 0, .index = (uint32_t)(said / 2)};
}
bool meeting_task_equal(const struct meeting_task *a, const struct meeting_task *b);

/* The first task that rounds of one name belong to different attempts of, by its place in `given`;
 * UINT32_MAX: none is known. */
uint32_t meeting_other_attempt(const struct meeting *one, const struct meeting *given);
/* Does `given` name a later attempt of a task than `other`, and an earlier attempt of no task? */
bool meeting_is_later(const struct meeting *given, const struct meeting *other);
/* Copy the attempts that `given` names to `copy`, which meeting_copy made, if its round belongs to
 * attempts. */
void meeting_learn_attempts(struct meeting *copy, const struct meeting *given);
/* Its place among the tasks; UINT32_MAX: it takes no part. */
uint32_t meeting_place(const struct meeting *meeting, const struct meeting_task *task);

#endif
