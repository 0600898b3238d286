/* SPDX-License-Identifier: Apache-2.0 */
/* collectives.h -- rounds of collectives: what each is, what a member contributes to it, and what
 * plain loops make of all contributions.
 *
 * The rounds of one name, `split`, are split over all ps; those of each other name meet on one ps.
 * A round's form depends on its name and number, so all members say the same of it. A contribution
 * also depends on the session, so a result shows which contributions it is made of.
 */
#pragma once

#include "checker.h"
#include "collective.h"

#define COLLECTIVE_ELEMENTS_MAX 40u
#define COLLECTIVE_BYTES_MAX                                                                       \
    (2u * COLLECTIVE_ELEMENTS_MAX * 8u) /* of a contribution, indices and all */
#define COLLECTIVE_RESULT_BYTES_MAX (SIM_CLIENTS_MAX * COLLECTIVE_BYTES_MAX)

/* The form of a contribution: its header without the name and the participants. */
struct collective_form {
    enum collective_operation operation;
    enum sumac_dtype dtype;
    struct sumac_shape shape; /* of this contribution */
    uint32_t axis, root;
    bool split;
};

struct sim_collective {
    uint32_t number;
    struct sim_session *session;
    uint32_t task, name;
    uint64_t round;
    uint64_t token;    /* of its push, and of its pull */
    uint64_t sequence; /* of its push; 0: it got none */
    struct collective_form form;
    double weight;
    uint32_t timeout_ms;
    bool differs;       /* its form differs from the round's */
    enum defect defect; /* for which its push is refused */
    uint8_t pushed_to;  /* bit per ps */
    uint64_t made_us;   /* when its push was taken in */
    enum fate fate;
    bool by_settle;                     /* told with the session's end */
    bool asked, cancelled, heard, over; /* its pull; and the session knows that it is */
    uint64_t applied_record[SIM_PS_MAX];
    uint64_t tasks[SIM_CLIENTS_MAX];
    wire_collective header;
    wire_collective_round which;
    uint8_t *data; /* lent to the session */
    uint64_t bytes;
    uint8_t *into; /* lent to the session, if the result's size is known beforehand */
};

const char *collective_name(uint32_t name);
/* The form of that member's contribution to the round. */
struct collective_form
collective_form(const struct world *world, uint32_t name, uint64_t round, uint32_t task);
/* The weight of a contribution to a mean: at times 0, and in some rounds 0 for all. */
double collective_weight(const struct world *world, uint32_t name, uint64_t round, uint32_t task);
/* The contribution, as its form says, into COLLECTIVE_BYTES_MAX bytes. Returns its size. */
uint64_t collective_fill(const struct sim_collective *collective, uint8_t *data);
/* Of its values one element, and of rows that are concatenated the bytes of their indices. */
uint32_t collective_element_bytes(const struct collective_form *form);
uint64_t collective_bytes_of_indices(const struct collective_form *form);
uint64_t collective_elements(const struct collective_form *form);
bool collective_joins(const struct collective_form *form);

/* What the contributions of all members, in their order, come to, into COLLECTIVE_RESULT_BYTES_MAX
 * bytes.
 */
struct collective_result {
    struct sumac_shape shape;
    uint64_t bytes;
    uint8_t data[COLLECTIVE_RESULT_BYTES_MAX];
};
void combine_round(
    const struct world *world, const struct sim_collective *const *from,
    struct collective_result *result);
