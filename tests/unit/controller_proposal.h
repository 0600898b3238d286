/* SPDX-License-Identifier: Apache-2.0 */
/* controller_proposal.h -- how a round of two workers is to end, as a ps proposes it, for the
 * controller's unit tests. */
#ifndef TESTS_CONTROLLER_PROPOSAL_H
#define TESTS_CONTROLLER_PROPOSAL_H

#include <string.h>

#include "sumac/status.h"
#include "sumac/tensor.h"
#include "wire.h"

struct proposal {
    wire_peer_report report;
    wire_meeting_end end;
    wire_meeting_end *ends[1];
    wire_meeting meeting;
    uint64_t tasks[2], shape[1];
};

/* It refers to itself, and to the name. */
static inline void
propose(struct proposal *proposal, const char *name, uint64_t round, enum sumac_status status)
{
    wire_meeting *meeting = &proposal->meeting;

    *proposal = (struct proposal){
        .report = WIRE_PEER_REPORT_INIT,
        .end = WIRE_MEETING_END_INIT,
        .ends = {&proposal->end},
        .meeting = WIRE_MEETING_INIT,
        .tasks = {1, 3},
        .shape = {1u << 20},
    };
    meeting->name = (wire_bytes){.len = strlen(name), .data = (uint8_t *)(uintptr_t)name};
    meeting->round = round;
    meeting->tasks = proposal->tasks;
    meeting->n_tasks = 2;
    meeting->operation = SUMAC__V1__MEETING__OPERATION__OPERATION_SUM;
    meeting->data_type = (Sumac__V1__DataType)SUMAC_FLOAT32;
    meeting->shape = proposal->shape;
    meeting->n_shape = 1;
    meeting->split = true;
    proposal->end.meeting = meeting;
    proposal->end.status = (uint32_t)status;
    proposal->end.message = (char *)(uintptr_t)(status == SUMAC_OK ? "" : "it is so");
    proposal->report.meets = proposal->ends;
    proposal->report.n_meets = 1;
}

#endif
