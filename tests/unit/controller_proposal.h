/* SPDX-License-Identifier: Apache-2.0 */
/* controller_proposal.h -- how a round of two workers is to end, as a ps proposes it, for the
 * controller's unit tests. */
#pragma once

#include <string.h>

#include "sumac/status.h"
#include "sumac/tensor.h"
#include "wire.h"

struct proposal {
    wire_peer_report report;
    wire_collective_end end;
    wire_collective_end *ends[1];
    wire_collective collective;
    uint64_t tasks[2], shape[1];
};

/* It refers to itself, and to the name. */
static inline void
propose(struct proposal *proposal, const char *name, uint64_t round, enum sumac_status status)
{
    wire_collective *collective = &proposal->collective;

    *proposal = (struct proposal){
        .report = WIRE_PEER_REPORT_INIT,
        .end = WIRE_COLLECTIVE_END_INIT,
        .ends = {&proposal->end},
        .collective = WIRE_COLLECTIVE_INIT,
        .tasks = {1, 3},
        .shape = {1u << 20},
    };
    collective->name = (wire_bytes){.len = strlen(name), .data = (uint8_t *)(uintptr_t)name};
    collective->round = round;
    collective->tasks = proposal->tasks;
    collective->n_tasks = 2;
    collective->operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_SUM;
    collective->data_type = (Sumac__V1__DataType)SUMAC_FLOAT32;
    collective->shape = proposal->shape;
    collective->n_shape = 1;
    collective->split = true;
    proposal->end.collective = collective;
    proposal->end.status = (uint32_t)status;
    proposal->end.message = (char *)(uintptr_t)(status == SUMAC_OK ? "" : "it is so");
    proposal->report.collectives = proposal->ends;
    proposal->report.n_collectives = 1;
}
