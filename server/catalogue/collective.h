/* SPDX-License-Identifier: Apache-2.0 */
/* collective.h -- what a contribution says of the round of a collective that it is for: read, and
 * held against what the others say.
 *
 * Every ps that has a part of a contribution reads the same, so each says of it what the others
 * would.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "collective_places.h"
#include "memory.h"
#include "sumac/status.h"
#include "sumac/tensor.h"
#include "wire.h"

#define COLLECTIVE_NAME_BYTES_MAX WIRE_COLLECTIVE_NAME_BYTES_MAX
#define COLLECTIVE_TASKS_MAX WIRE_COLLECTIVE_TASKS_MAX
#define COLLECTIVE_TIMEOUT_MS_DEFAULT 60000u
#define COLLECTIVE_WHOLE_BYTES_MAX WIRE_COLLECTIVE_WHOLE_BYTES_MAX

/* The end of an error about a later attempt of a task: the reason and the remedy. */
#define COLLECTIVE_START_ALL_AGAIN                                                                 \
    ": a later attempt cannot take the place of an earlier one, whose state is lost; "             \
    "start all of them again"

/* A chief, or a worker. */
struct collective_task {
    bool chief;
    uint32_t index;
    uint64_t attempt; /* that its rounds belong to; 0: not known, or any may come */
};

struct collective {
    const char *name;
    uint64_t round;
    const struct collective_task *tasks; /* in their order */
    uint32_t task_count;
    uint32_t own; /* whose contribution it is: its place among them */
    enum collective_operation operation;
    enum sumac_dtype dtype;
    struct sumac_shape shape; /* of this contribution */
    uint64_t elements;        /* of its tensor, as a whole */
    uint32_t axis, root;
    uint32_t timeout_ms;
    bool split;
    bool of_attempts; /* it belongs to one attempt of each task */
};

/* Where what is read lies. */
struct collective_texts {
    char name[COLLECTIVE_NAME_BYTES_MAX + 1];
    struct collective_task tasks[COLLECTIVE_TASKS_MAX];
};

/* Read what a part of the task at hand says. Lends  what `texts` has.
 *
 * Fails  INVALID_ARGUMENT: BAD_NAME, BAD_SHAPE, WRONG_DATA_TYPE, or MALFORMED, naming the
 *        collective and what is wrong with what is said of it. UNIMPLEMENTED (UNSUPPORTED): an
 *        operation that is not known. */
enum sumac_status collective_read(
    const wire_collective *message, const struct collective_task *own,
    struct collective_texts *texts, struct collective *collective, struct sumac_error *error);

/* What collective_read has read, as it may be read again. NULL: the arena is full. Lends  the name.
 */
wire_collective *collective_write(const struct collective *collective, struct arena *arena);

/* Is what `given` says of the round as `first` says, who came before it? Which of both, and what
 * they differ in, is the error: FAILED_PRECONDITION (STEP_DIFFERS). */
enum sumac_status collective_compare(
    const struct collective *first, const struct collective *given, struct sumac_error *error);

/* The type of a contribution's elements: float32 for a sum or a mean of a half type, which is
 * rounded once, in the result; otherwise the round's type. */
enum sumac_dtype collective_contribution_dtype(const struct collective *collective);
/* Bytes of the row indices of a concatenation: int64, before the values. Otherwise 0. */
uint64_t collective_index_bytes(const struct collective *collective);
/* The bytes of a contribution that its part for ps `ps` of `ps_count` has. */
struct collective_share {
    uint64_t first_byte, bytes;
};
struct collective_share
collective_share(const struct collective *collective, uint32_t ps, uint32_t ps_count);

/* The ps where what is not split meets: FNV-1a, of 64 bits, of the name's bytes, modulo their
 * number. */
uint32_t collective_home(const char *name, uint32_t ps_count);

/* The collective with its name and its tasks in one block, which moves as a whole; its size. */
size_t collective_copy_bytes(const struct collective *collective);
struct collective *collective_copy(const struct collective *collective, void *block);

/* "sum", "concatenate". Lends  for ever. */
const char *collective_operation_name(enum collective_operation operation);
/* "chief 0", "worker 3", into `text`. Lends  text. */
const char *
collective_task_print(const struct collective_task *task, char *text, size_t text_bytes);
/* As it is said on the wire: chief i is 2·i, worker i is 2·i + 1. */
static inline struct collective_task collective_task_of(uint64_t said)
{
    return (struct collective_task){.chief = said % 2 == 0, .index = (uint32_t)(said / 2)};
}
bool collective_task_equal(const struct collective_task *a, const struct collective_task *b);

/* The first task that rounds of one name belong to different attempts of, by its place in `given`;
 * UINT32_MAX: none is known. */
uint32_t collective_other_attempt(const struct collective *one, const struct collective *given);
/* Does `given` name a later attempt of a task than `other`, and an earlier attempt of no task? */
bool collective_is_later(const struct collective *given, const struct collective *other);
/* Copy the attempts that `given` names to `copy`, which collective_copy made, if its round belongs
 * to attempts. */
void collective_learn_attempts(struct collective *copy, const struct collective *given);
/* Its place among the tasks; UINT32_MAX: it takes no part. */
uint32_t collective_place(const struct collective *collective, const struct collective_task *task);
