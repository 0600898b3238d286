/* SPDX-License-Identifier: Apache-2.0 */
/* collective_options.h -- the options that collectives and barriers share: the name and the tasks.
 */
#pragma once

#include "sumac/collective.h"

/* Check the name, which has at most `most` bytes. kind: "barrier", for the error. */
enum sumac_status
client_check_name(const char *name, const char *kind, size_t most, struct sumac_error *error);

/* A task as the wire has it: chief i is 2·i, worker i is 2·i + 1. False: another job. */
bool collective_encode_task(const struct sumac_member *task, uint64_t *code);
/* "chief" or "worker". */
const char *collective_task_job(uint64_t code);

/* The chief first, then the workers by index. */
void collective_sort_tasks(uint64_t *tasks, uint32_t count);

/* Encode the options' tasks and sort them.
 *
 * label    begins each error: "barrier \"epoch\"".
 * Gives    *tasks (options->task_count), which the caller frees; NULL on failure.
 * Fails    INVALID_ARGUMENT: too many tasks, another job, a task is listed twice.
 *          RESOURCE_EXHAUSTED. */
enum sumac_status collective_list_tasks(
    const struct sumac_collective_options *options, const char *label, uint64_t **tasks,
    struct sumac_error *error);
enum sumac_status collective_no_task_memory(
    const struct sumac_collective_options *options, const char *label, struct sumac_error *error);
