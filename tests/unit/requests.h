/* SPDX-License-Identifier: Apache-2.0 */
/* requests.h -- what tests ask ps 0 for: a worker's join, and the create of a vector. */
#pragma once

#include "sumac/tensor.h"
#include "update.h"
#include "wire.h"

/* Points into itself: it stays where it is. */
struct join_request {
    wire_join_request message;
    wire_task_name task;
    uint8_t nonce[16];
};

/* Each worker has a nonce of its own. */
static inline void join_request_init(struct join_request *join, uint32_t worker)
{
    *join = (struct join_request){
        .message = WIRE_JOIN_REQUEST_INIT,
        .task = WIRE_TASK_NAME_INIT,
        .nonce = {(uint8_t)(worker + 1), (uint8_t)((worker + 1) >> 8)}};
    join->task.job = (char *)"worker";
    join->task.index = worker;
    join->message.protocol_version = WIRE_PROTOCOL_VERSION;
    join->message.nonce = (wire_bytes){sizeof join->nonce, join->nonce};
    join->message.role = SUMAC__V1__ROLE__ROLE_MEMBER;
    join->message.task = &join->task;
}

/* Of so many float32, to which pushes are added. */
static inline void
vector_init(wire_variable *variable, const char *name, uint64_t *elements, wire_function *function)
{
    *function = (wire_function)WIRE_FUNCTION_INIT;
    function->function = (Sumac__V1__UpdateFunction)UPDATE_ASSIGN_ADD;
    *variable = (wire_variable)WIRE_VARIABLE_INIT;
    variable->name = (char *)name;
    variable->data_type = (Sumac__V1__DataType)SUMAC_FLOAT32;
    variable->shape = elements;
    variable->n_shape = 1;
    variable->function = function;
}
