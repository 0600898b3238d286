/* SPDX-License-Identifier: Apache-2.0 */
/* meets.h -- rounds of rendezvous: what each is, what a member contributes to it, and what plain
 * loops make of all contributions.
 *
 * The rounds of one name, `split`, are split over all ps; those of each other name meet on one ps.
 * What a round is goes by its name and number, so all members say the same of it; what is
 * contributed goes by the session, too, so that a result says whose contribution it is made of.
 */
#ifndef SIM_MEETS_H
#define SIM_MEETS_H

#include "checker.h"
#include "meeting.h"

#define MEET_ELEMENTS_MAX 40u
#define MEET_BYTES_MAX (2u * MEET_ELEMENTS_MAX * 8u) /* of a contribution, indices and all */
#define MEET_RESULT_BYTES_MAX (SIM_CLIENTS_MAX * MEET_BYTES_MAX)

/* What a contribution says of its round. */
struct meet_form {
    enum meeting_operation operation;
    enum sumac_dtype dtype;
    struct sumac_shape shape; /* of this contribution */
    uint32_t axis, root;
    bool split;
};

struct sim_meet {
    uint32_t number;
    struct sim_session *session;
    uint32_t task, name;
    uint64_t round;
    uint64_t token;    /* of its push, and of its pull */
    uint64_t sequence; /* of its push; 0: it got none */
    struct meet_form form;
    double weight;
    uint32_t timeout_ms;
    bool differs;       /* its form is none of the round's */
    enum defect defect; /* for which its push is refused */
    uint8_t pushed_to;  /* bit per ps */
    uint64_t made_us;   /* when its push was taken in */
    enum fate fate;
    bool by_settle;                     /* told with the session's end */
    bool asked, cancelled, heard, over; /* its pull; and the session knows that it is */
    uint64_t applied_record[SIM_PS_MAX];
    uint64_t tasks[SIM_CLIENTS_MAX];
    wire_meeting header;
    wire_meeting_round which;
    uint8_t *data; /* lent to the session */
    uint64_t bytes;
    uint8_t *into; /* likewise, of a result whose bytes are known beforehand */
};

const char *meet_name(uint32_t name);
/* What that round is, for that member. */
struct meet_form meet_form(const struct world *world, uint32_t name, uint64_t round, uint32_t task);
/* What a contribution to its mean weighs: nothing at times, and of some rounds all do. */
double meet_weight(const struct world *world, uint32_t name, uint64_t round, uint32_t task);
/* What is contributed, as the form says, into MEET_BYTES_MAX bytes. Returns how many it has. */
uint64_t meet_fill(const struct sim_meet *meet, uint8_t *data);
/* Of its values one element, and of rows that are concatenated the bytes of their indices. */
uint32_t meet_element_bytes(const struct meet_form *form);
uint64_t meet_index_bytes(const struct meet_form *form);
uint64_t meet_elements(const struct meet_form *form);
bool meet_joins(const struct meet_form *form);

/* What the contributions of all members, in their order, come to, into MEET_RESULT_BYTES_MAX bytes.
 */
struct meet_result {
    struct sumac_shape shape;
    uint64_t bytes;
    uint8_t data[MEET_RESULT_BYTES_MAX];
};
void meet_combine(
    const struct world *world, const struct sim_meet *const *from, struct meet_result *result);

#endif
