/* SPDX-License-Identifier: Apache-2.0 */
/* operation.h -- what runs at the positions of a lane: whose turn it is, and that part's vector
 * work. */
#pragma once

#include "peer.h"

#define SLICES_PER_OPERATION_MAX                                                                   \
    1024u /* what one COMPUTE takes; a larger part is computed in several */

/* What a shard says of operations to others. */
struct __attribute__((may_alias)) shard_busy {
    struct operation *operation; /* whose vector work is out for it: the shard is busy; or NULL */
};

static inline bool is_busy(const struct shard *shard)
{
    return ((const struct shard_busy *)(const void *)shard->of_user)->operation != NULL;
}

/* False: no memory. */
bool lane_turn_init(struct lane *lane);
void lane_turn_deinit(struct lane *lane);

/* turn.c: whose turn it is */
/* A session's parts may have their turn: they are taken, when those who waited for time have been.
 */
void lane_turn_take(struct lane *lane, struct lane_session *session);
/* Those of all sessions, when the records end. */
void lane_turn_start(struct lane *lane);
/* Is there more to take as soon as there is time? Then the next step comes at once. */
bool lane_turn_has_more(const struct lane *lane);
/* When the next step is due: at once, or when the time of a round may be over. */
uint64_t lane_turn_due_us(const struct lane *lane);
/* It is taken, and before that the operations that are ending go on: others wait for them. */
void lane_turn_go_on(struct lane *lane);
/* The clock counts here when all that was committed before it was said is applied. */
void lane_turn_take_clock(struct lane *lane, struct lane_session *session);
/* A turn that was over at that position (0: the part was passed over) is taken again. False: it was
 * not the part's. */
bool lane_turn_replay(
    struct lane *lane, struct lane_session *session, uint64_t sequence, uint64_t position);
/* A COMPUTE is done. */
void lane_turn_computed(struct lane *lane, const struct lane_event *event);
/* There may be memory for the operations that are stalled. */
void lane_turn_retry_stalled(struct lane *lane);
/* Where the push is that a pull, or a part, waits for. */
const char *lane_turn_whereabouts(const struct lane_session *session, uint64_t sequence);
/* Does a contribution wait for the other members of its synchronous step? */
bool lane_turn_waits_for_step(const struct lane *lane, const struct lane_part *part);
/* Print why a part waits that waits for something else. */
void lane_turn_describe_wait(
    const struct lane *lane, const struct lane_part *part, char *text, size_t text_bytes);

/* What has come may make a synchronous step whole: it, and those after it, are taken. */
void lane_turn_take_steps(struct lane *lane);
/* A step was over at that position (0: it was made of nothing), and is again. False: it cannot have
 * been. */
bool lane_turn_replay_step(struct lane *lane, const wire_take_step *taken, uint64_t position);

/* Contribute a part again, as a record says. False: it is no contribution to a collective. */
bool lane_turn_replay_contribution(
    struct lane *lane, struct lane_session *session, uint64_t sequence);

/* collective.c: rounds of collectives, as this ps decides them */
/* A contribution has its turn: its round gets it, and may be over with that. */
void lane_collective_contribution(struct lane *lane, struct lane_part *part);
/* Is there any round? */
static inline bool lane_collective_is_any(const struct lane *lane)
{
    return lane->rounds.count > 0;
}
/* All that counts of the session is applied: it wants nothing more, and nobody waits for it. */
void lane_collective_settled(struct lane *lane, struct lane_session *session);
/* End an unwanted round (rounds.h), whose room a contribution needs. */
void lane_collective_end_unwanted(void *lane, struct round *round);
/* The cluster is in another epoch: the rounds that are open end. */
void lane_collective_epoch(struct lane *lane, uint64_t epoch);
/* Rounds whose time is over end, and one whose result could not be made at once goes on. */
void lane_collective_tick(struct lane *lane);
/* Nobody was listened to for so long. */
void lane_collective_excuse(struct lane *lane, uint64_t slept_us);
/* As ps 0 orders it, or a record says (number 0). Fails  INVALID_ARGUMENT: there is no such round.
 * RESOURCE_EXHAUSTED: it is not obeyed yet. */
enum sumac_status lane_collective_obey(
    struct lane *lane, uint64_t number, const wire_collective_end *end, struct sumac_error *error);
/* Whom an open round waits for, and what to do: "worker 2 (at h:2222, never joined); start each
 * missing task". */
void lane_collective_missing(
    const struct lane *lane, const struct round *round, char *text, size_t text_bytes);

/* combining.c: what is made of a round's contributions */
/* Where byte `at` of the result lies, in the contribution at that place, and how many lie together
 * there: of what is computed, at place 0. */
const uint8_t *lane_combined_bytes(
    const struct round *round, uint32_t place, uint64_t at, uint64_t *together_bytes);

/* steps.c: who is a member of which synchronous step, and when one is whole */
/* As ps 0 has opened it: one of those that begin with step 1, or one that it asks for. */
void lane_step_opened(
    struct lane *lane, struct lane_session *session, const wire_open_session *open);
/* It is a member from that step on. */
void lane_step_begins(struct lane *lane, struct lane_session *session, uint64_t step);
/* Of the members that begin with step 1 so many have come. False: that is known. */
bool lane_step_begin_with(struct lane *lane, uint32_t initial);
/* With a quorum: what the next step is made of, as ps 0 says. What is over, or was said, is so
 * again. FAILED_PRECONDITION: that one is not the next. */
enum sumac_status
lane_step_take(struct lane *lane, const wire_take_step *taken, struct sumac_error *error);
/* With a quorum: ps 0 is told again of what has come, and of what is over. */
void lane_step_say_again(struct lane *lane);
/* ps 0 has said where it ended. */
void lane_step_decided(
    struct lane *lane, struct lane_session *session, const wire_decide_session *decided);
/* ps 0 closes the session, and will say that it is lost: that counts from its decision on. */
void lane_step_closing(struct lane *lane, struct lane_session *session, bool lost);
/* Of a step that waits for long the log tells for whom, less and less often. */
void lane_step_watch(struct lane *lane);
/* So many of those that begin with step 1 have not come. */
uint32_t lane_step_yet_to_join(const struct lane *lane);
/* For whom a contribution to the next step waits: "worker 2 (no push or pull on ps 1 for 3.2
 * s)", "" for nobody. Returns text. */
const char *lane_step_missing(const struct lane *lane, char *text, size_t text_bytes);
/* "; start each missing task": what to do when the next step waits too long. */
const char *lane_step_remedy(const struct lane *lane);
/* "synchronous step 3 has waited 2 s for worker 2 (…); 3 of 4 have come" */
void lane_step_describe_wait(const struct lane *lane, char *text, size_t text_bytes);

/* Is the state after that step here, whole, and nothing of the one after it? */
bool lane_step_is_newest(const struct lane *lane, uint64_t step);
/* Does it lack the contribution of a member that was lost, as those after it do? Then it is never
 * over. */
bool lane_step_fails(const struct lane *lane, uint64_t step);
/* SUMAC_OK, or why no step comes after which something could be read. */
enum sumac_status lane_step_check_readable(
    const struct lane *lane, uint64_t request, uint64_t step, struct sumac_error *error);

/* A shard of the part for which vector work of another operation goes on, or NULL. */
const struct shard *lane_operation_blocking(const struct lane *lane, const struct lane_part *part);
void lane_operation_drop_all(struct lane *lane);
/* Is vector work out, or stalled, or an operation ending? */
bool lane_operation_is_any(const struct lane *lane);
