/* SPDX-License-Identifier: Apache-2.0 */
/* checker.h -- the promises: what was pushed and pulled, what came of it, and what the shards hold
 * at the end.
 *
 * Each push of a run owns a column. It adds 1 there, in rows that it chooses, so that a shard's
 * bytes say exactly which pushes are applied to it, and how often: the `ledger` (int64) has two
 * rows on each ps, a shard each, and so has `grad` (float32, where a value that is not finite can
 * make a ps refuse the part). Each session owns an element of `last`, which each of its pushes
 * assigns its own number to: it says in what order they were applied. `seed` is assigned once;
 * `slow` and `adam` are slots.h's. `mix` has the mean of each synchronous step added to it, in
 * float32: its bits say in which order the step's contributions were summed (checker_steps.c).
 */
#pragma once

#include "check.h"
#include "network.h"
#include "process_ps.h"
#include "session.h"
#include "world.h"

#define COLUMNS 60u   /* pushes of one run */
#define LIVES_MAX 48u /* sessions of one run */
#define STEPS_MAX 64u /* synchronous ones of one run; with a quorum they may leave some out */
#define SEED_VALUE 7
#define SIM_CALL_KINDS 8u
#define SIM_VIOLATION_BYTES (SUMAC_ERROR_TEXT_BYTES + 32u) /* a check's sentence, and whose */
#define SEED_COLUMNS 2u
#define SIM_ROUNDS_MAX 256u          /* of the barrier */
#define SIM_COLLECTIVE_NAMES 6u      /* of collectives, */
#define SIM_COLLECTIVE_ROUNDS_MAX 8u /* the rounds of one, from 1 on, */
#define SIM_COLLECTIVES_MAX 512u     /* and contributions of one run */
#define SIM_COLLECTIVE_TOKENS 1000u  /* where theirs begin: other pushes and pulls have fewer */
#define MIX_COLUMNS 24u
#define SIM_SHARD_BYTES_MAX (COLUMNS * 8u)
#define PIECES_MAX (8u * SIM_PS_MAX)

enum variable { LEDGER, LAST, GRAD, SLOW, ADAM, SEED, MIX, VARIABLES };

/* What a ps holds of them, a shard each. */
enum sim_row {
    ROW_LEDGER_0,
    ROW_LEDGER_1,
    ROW_GRAD_0,
    ROW_GRAD_1,
    ROW_LAST,
    ROW_SLOW,
    ROW_ADAM,
    ROW_SEED,
    ROWS
};

struct sim_shard {
    uint64_t id;
    uint32_t ps, layout_epoch;
    uint64_t bytes;
};

struct sim_variable {
    bool known;
    uint32_t rows; /* a shard each */
    struct sim_shard shards[2 * SIM_PS_MAX];
};

enum defect {
    DEFECT_NONE,
    DEFECT_NON_FINITE,
    DEFECT_UNKNOWN_SHARD,
    DEFECT_STALE_LAYOUT,
    DEFECT_BEYOND_THE_END,
    DEFECT_WRONG_DATA_TYPE,
    DEFECT_TOO_LARGE,
    DEFECT_CORRUPTED, /* on the way, after it was summed */
    DEFECTS,
    DEFECT_ELSEWHERE = DEFECTS, /* it meets on a ps where its collective is not at home */
    DEFECT_NO_MEMORY,           /* not the client's: a ps had no room for its part */
    DEFECT_OF_STEP,             /* nor: its contribution is unlike one that was held for its step */
    DEFECT_LATE,                /* nor: its step was taken without it */
    DEFECT_CANCELLED,           /* its client has cancelled it, in time */
};

enum fate { FATE_UNDER_WAY, FATE_OK, FATE_REFUSED, FATE_CLOSED, FATE_UNKNOWN };

/* Of one thing, in vain and in a row. */
struct tries {
    uint32_t count;
    uint64_t failed_us; /* the last one */
    uint64_t until_us;  /* of a call: it is tried no longer */
};

/* One life of a client. */
struct sim_session {
    uint32_t number, client;
    uint8_t id[16];
    uint64_t attempt, previous_final;
    bool joined, ended, left, left_done, dead;
    uint64_t left_us;
    bool rivalled; /* its task joined again */
    uint32_t process_life;
    uint64_t began_us, joined_us;
    /* The client says something by then, or has said that it was silent; a renewal of it is under
     * way; some ps has told it of its session's end. */
    uint64_t speaks_by_us;
    bool was_silent, renewing, told_closed;
    /* When ps 0 has heard of it, how long it had slept by then, and its longest silence since its
     * lease was renewed. */
    uint64_t heard_us, heard_slept_us, silent_us, silent_since_us;
    bool leave_heard, says_done, counts_as_done;
    uint8_t closing;                                 /* bit per ps that was told so */
    uint64_t acked_said[SIM_PS_MAX];                 /* to each ps */
    uint64_t first_clock, clock_seen, clock_seen_us; /* the most that some ps counts, since then */
    bool excused;                                    /* its session ended, and might have */
    bool decided;                                    /* some ps was told where it ended */
    uint64_t sequence;                               /* of its last push */
    uint64_t last_step;                              /* of its last synchronous one */
    struct tries streams[SIM_PS_MAX][2];             /* for pushes, for pulls */
    struct tries calls[SIM_CALL_KINDS];
};

struct sim_push {
    uint32_t number; /* its column */
    struct sim_session *session;
    uint64_t token, sequence; /* sequence 0: too large to get one */
    bool seed, finishes_step;
    uint64_t step;        /* of a synchronous one; 0: it is another */
    uint64_t step_before; /* its session's last one before it */
    bool differs;         /* it has more than a contribution to that step should have */
    uint8_t participants; /* bit per ps */
    uint8_t ledger[SIM_PS_MAX], grad[SIM_PS_MAX]; /* rows: bit 0 and 1 */
    bool wide;
    bool slotted; /* to the variables with slots, and narrow to the others */
    /* Slotted: what it makes of the rate of `adam`, in thousandths (0: nothing), before its own
     * gradient or behind it, and whether that goes by a schedule. */
    uint8_t rate;
    bool rate_first, rate_decays;
    bool in_runs;   /* its column of the ledger in several pieces */
    bool cancelled; /* its client has tried to cancel it */
    bool has_checksum;
    enum defect defect;
    uint32_t bad_ps;
    enum fate fate;
    bool by_settle; /* told with the session's end: decided, and some ps may still have to obey */
    struct session_piece pieces[PIECES_MAX];
    uint32_t piece_count;
    uint64_t versions[PIECES_MAX];
    uint64_t versions_told[SIM_PS_MAX][ROWS]; /* to anybody, before it was made */
    /* With records, at each ps: the least record that STAGED may wait for, and that of its turn. */
    uint64_t staged_after[SIM_PS_MAX], applied_record[SIM_PS_MAX];
    uint8_t *data; /* lent to the session */
    size_t data_bytes;
};

/* What one ps holds of all that is pushed to. */
struct snapshot {
    int64_t ledger[2][COLUMNS];
    int64_t last[LIVES_MAX];
    float grad[2][COLUMNS];
    int64_t seed[SEED_COLUMNS];
    float slow[COLUMNS];
    double adam[COLUMNS];
    uint64_t versions[ROWS];
    uint32_t has_version; /* bit per row */
    bool has_seed, has_slots;
};

struct sim_pull {
    struct sim_session *session;
    uint64_t token;
    uint8_t asked;          /* bit per ps */
    bool own;               /* after its own pushes */
    uint64_t at_step;       /* it is to be of the state after that one; 0: of any */
    uint64_t clock_awaited; /* of every other member: its lag is bounded; 0: it is not */
    bool over, answered;
    uint64_t due;               /* pushes that were acknowledged when it began, a bit per column */
    uint64_t mine;              /* the session's own, likewise */
    uint64_t seen[SIM_PS_MAX];  /* what earlier pulls have seen there */
    uint64_t found[SIM_PS_MAX]; /* what it has seen itself */
    struct snapshot snapshots[SIM_PS_MAX];
    uint32_t versions_at[SIM_PS_MAX][ROWS];   /* a piece of that row */
    uint64_t versions_told[SIM_PS_MAX][ROWS]; /* to anybody, before it began */
    uint64_t began_us;
    bool hurried, cancelled; /* it may end by its deadline; its client does not want it any more */
    uint32_t piece_count;
};

/* How a round of the barrier ended, as somebody was told first. */
struct round_seen {
    bool heard;
    uint32_t status;
    char message[SUMAC_ERROR_TEXT_BYTES];
};

struct sim_collective;

/* How a round of a collective ended, as ps and members said it. */
struct collective_seen {
    bool heard;
    struct sumac_error end; /* status OK: it passed */
};

/* What a synchronous step is made of, as some ps was told first. */
struct step_seen {
    bool taken;
    uint32_t sessions; /* a bit for each life */
};

struct checker {
    uint32_t violations;
    char first[SIM_VIOLATION_BYTES];
    struct sim_variable variables[VARIABLES];
    bool seed_assigned;     /* somebody was told so */
    uint32_t defined, text; /* what defines were answered with; 0: none was, and 1 + the text */
    struct sim_push *pushes[COLUMNS];
    uint32_t push_count;
    struct sim_session *lives[LIVES_MAX];
    uint32_t life_count;
    struct sim_pull *pulls[256];
    uint32_t pull_count;
    uint64_t seen[SIM_PS_MAX]; /* by pulls that are over */
    uint64_t versions_told[SIM_PS_MAX][ROWS];
    uint64_t applied[SIM_PS_MAX]; /* at the end */
    struct nonce_seen {
        uint8_t nonce[16], session_id[16];
        bool decided;
    } nonces[64];
    uint32_t nonce_count;
    struct newest { /* push stream of a client that a ps has been greeted on */
        uint32_t life;
        uint64_t generation;
    } newest[SIM_PS_MAX][SIM_CLIENTS_MAX];
    struct member_seen { /* of the last statistics of a ps: the members that are open there, … */
        char task[40];
        uint64_t attempt;
    } members[SIM_PS_MAX][LIVES_MAX];
    uint32_t member_count[SIM_PS_MAX];
    uint64_t slowest[SIM_PS_MAX];            /* … and the clock of the slowest */
    uint64_t befell_until_us[SIM_PROCESSES]; /* that process, or what it says and hears */
    uint64_t ps0_slept_us,
        ps0_wakes_us;          /* half a lease or more at a time, and the end of the last */
    uint32_t lent[SIM_PS_MAX]; /* runs of bytes that are on their way */
    bool ps_exited;
    bool state_lost;   /* a ps has crashed, */
    uint64_t lost_us;  /* the first one then: what was joined before must end */
    uint32_t unread;   /* bit per ps: nobody can say what it holds at the end */
    bool terminated;   /* a ps was told to: what it had not finished in time goes with it */
    uint64_t gone_us;  /* since when all clients are gone */
    bool end_said;     /* to some ps: the run is over, and what comes after may reach nobody */
    bool delete_asked; /* of a variable: ps 0 obeys at once */
    bool leave_asked;  /* by a member, as done */
    bool unrested;     /* the run was broken off */
    uint32_t arrivals[SIM_CLIENTS_MAX]; /* at the barrier, by task */
    uint32_t rounds_passed;
    bool room_refused; /* a part, for want of room: its client hears of that later */
    struct round_seen rounds[SIM_ROUNDS_MAX];
    struct step_seen steps[STEPS_MAX];
    struct sim_collective *collectives[SIM_COLLECTIVES_MAX];
    uint32_t collective_count;
    uint64_t collectives_come[SIM_CLIENTS_MAX]
                             [SIM_COLLECTIVE_NAMES]; /* the last round that a task came to */
    struct collective_seen collectives_seen[SIM_COLLECTIVE_NAMES][SIM_COLLECTIVE_ROUNDS_MAX + 1];
};

struct checker *checker_make(struct world *world);
void checker_violation(struct world *world, const char *text);
/* What a process keeps is not consistent, as the check says: whatever else has happened, that never
 * is. */
void checker_state(struct world *world, const char *process, const struct check *check);
uint32_t checker_violations(const struct world *world);
/* What an error says of its push; whether it is for want of memory, or of a ps that the session
 * could not reach for so long that it takes it for lost. */
enum fate checker_fate(const struct sumac_error *error);
bool checker_is_for_memory(const struct world *world, const struct sumac_error *error);
/* Steps keep room from what is pushed beside them, and may not find it when members join. */
bool checker_is_for_room(const struct world *world, Sumac__V1__Reason reason);
bool checker_is_out_of_reach(
    const struct world *world, const struct sim_session *life, const struct sumac_error *error);
/* Is everybody gone? */
bool checker_over(struct world *world);
void checker_at_rest(struct world *world);
/* After the cores were destroyed: they have given back all they took. */
void checker_memory(struct world *world);

/* Sessions. */
struct sim_session *checker_life(struct world *world, uint32_t client);
/* Was it joined before a ps crashed? */
bool checker_of_lost_run(const struct world *world, const struct sim_session *life);
void checker_joined(
    struct world *world, struct sim_session *life, const struct session_state *state);
void checker_ended(struct world *world, struct sim_session *life, const struct sumac_error *error);
void checker_died(struct world *world, struct sim_session *life);

/* checker_lease.c: silence, and its causes. Something befalls a process until then: what it says
 * may be lost, or late. */
void checker_befell(struct world *world, uint32_t process, uint64_t until_us);
/* A message of it, or to it, takes so long. */
void checker_took(struct world *world, uint32_t process, uint64_t delay_us);
void checker_sleeps(struct world *world, uint32_t process, uint64_t until_us);
void checker_client_wakes(struct world *world, const struct client *client);
void checker_client_says(
    struct world *world, const struct client *client, const struct session_effect *effect);
/* A renewal is over; `error` NULL: well. */
void checker_client_renewed(
    struct world *world, const struct client *client, const struct sumac_error *error);
void checker_heard_stream(struct world *world, const struct stream *stream);
void checker_heard_report(struct world *world, const wire_peer_report *report);
void checker_heard_call(struct world *world, const struct call *call, const wire_message *request);
/* ps 0 renews the lease. */
void checker_renewed(struct world *world, const struct call *call);
/* Has nothing befallen the client, or a ps, since then? */
bool checker_was_calm(const struct world *world, const struct sim_session *life, uint64_t since_us);
/* Within this time a loss or a leave ends the rounds that it concerns, and ps 0 ends a session
 * whose client knows nothing of it. */
#define CHECKER_IN_TIME_US 20000000u
/* Have all that were ever of this task left, and heard that they have, in time before that? */
bool checker_had_left(const struct world *world, uint32_t task, uint64_t until_us);
struct sim_session *
checker_life_of(const struct world *world, uint32_t process, uint32_t process_life);
/* May ps 0 close the session, or have closed it? */
bool checker_may_be_closed(const struct world *world, const struct sim_session *life);

/* Variables, pushes, pulls. */
void checker_created(struct world *world, enum variable variable, const wire_variable *made);
/* The row of a variable that is the n-th on that ps, or NULL. */
const struct sim_shard *
checker_shard(const struct world *world, enum variable variable, uint32_t ps, uint32_t nth);
struct sim_push *checker_push(struct world *world, struct sim_session *life);
struct sim_push *checker_find_push(const struct world *world, uint64_t token);
void checker_pushed(
    struct world *world, struct sim_push *push, const struct session_effect *effect,
    bool session_over);
/* May a ps that was short of memory have refused it, and its client not know? */
bool checker_may_be_void(const struct world *world, const struct sim_push *push);
struct sim_pull *checker_pull(struct world *world, struct sim_session *life);
struct sim_pull *checker_find_pull(const struct world *world, uint64_t token);
void checker_pulled(
    struct world *world, struct sim_pull *pull, const struct session_effect *effect);

/* checker_told.c */
void checker_resumed(
    struct world *world, const struct sim_session *life, const wire_join_reply *reply);
void checker_left(struct world *world, struct sim_session *life);
/* Its client is told that it has left. */
void checker_has_left(struct world *world, const struct sim_session *life);
void checker_check_done(struct world *world);
void checker_heard_acked(
    struct world *world, const struct stream *stream, const wire_push_request *request);
void checker_told_to_close(struct world *world, uint32_t ps, const wire_peer_order *order);
void checker_closes(struct world *world, uint32_t ps, const wire_close_report *close);
void checker_refused(
    struct world *world, const struct sim_push *push, const struct sumac_error *error);
/* checker_clock.c: a ps has said its statistics. */
void checker_clocks(struct world *world, uint32_t ps, const wire_stats_reply *stats);
/* The steps that the session's caller has finished, from the first attempt's on. */
uint64_t checker_steps_finished(const struct world *world, const struct sim_session *life);
/* These pushes a pull has seen there, which was to wait for the slowest member. */
void checker_lag(struct world *world, const struct sim_pull *pull, uint32_t ps, uint64_t applied);

/* checker_barrier.c: a program comes to the barrier; ps 0 says how a round ended. */
void checker_comes(struct world *world, const struct client *client);
void checker_round_over(struct world *world, const wire_barrier_reply *reply);

/* checker_collective.c: a contribution to a round of a collective; NULL: the run has too many. */
struct sim_collective *checker_collective(struct world *world, struct sim_session *life);
struct sim_collective *checker_find_collective(const struct world *world, uint64_t token);
/* May the round have been over, and forgotten, before its session began? */
bool checker_collectives_again(const struct world *world, const struct sim_collective *collective);
/* Its push is answered; what the round came to is. */
void checker_contributed(
    struct world *world, struct sim_collective *collective, const struct session_effect *effect,
    bool session_over);
void checker_result(
    struct world *world, struct sim_collective *collective, const struct session_effect *effect);
/* A ps has recorded that push of that session as done. */
void checker_kept_contribution(
    struct world *world, uint32_t ps, uint64_t sequence, const uint8_t *id, uint64_t record);
/* At the end. */
void checker_collectives_rest(struct world *world);

/* What a ps does. */
void checker_released(struct world *world, uint32_t ps);
void checker_ps_stepped(struct world *world, struct ps *ps);
/* The ps has made a record. */
void checker_recorded(struct world *world, const struct ps *ps, const struct lane_effect *effect);
/* A pull has shown these pushes. */
void checker_shown(struct world *world, uint32_t ps, uint64_t shown);
void checker_effect(
    struct world *world, struct ps *ps, const struct stream *stream,
    const struct lane_effect *effect);
void checker_parts_came(
    struct world *world, const struct ps *ps, const struct stream *stream,
    const wire_push_request *request, uint64_t made_before);
/* The same, when the ps has done with it. */
void checker_parts_taken(
    struct world *world, const struct ps *ps, const struct stream *stream, bool greets,
    uint64_t made_before);
/* A call ends, well or badly. */
void checker_finished(struct world *world, const struct ps *ps, const struct call *call);
void checker_replied(
    struct world *world, struct ps *ps, const struct call *call, const wire_message *message);
void checker_ps_crashed(struct world *world);
void checker_ps_started(struct world *world, uint32_t ps);
void checker_terminated(struct world *world);
void checker_ps_exited(struct world *world, struct ps *ps);

/* checker_again.c: of the stream that a client has to a ps now, and of the session's calls. */
void checker_opens(struct world *world, const struct stream *stream);
void checker_greeted(struct world *world, const struct stream *stream);
void checker_lost(struct world *world, const struct stream *stream);
void checker_calls(struct world *world, const struct call *call, uint64_t until_us);
void checker_call_over(struct world *world, const struct call *call, bool is_answered);

/* checker_versions.c */
/* Has the push something for that row? */
bool checker_touches(const struct sim_push *push, uint32_t ps, enum sim_row row);
void checker_versions_pulled(struct world *world, const struct sim_pull *pull, uint32_t ps);
void checker_versions_examine(
    struct world *world, uint32_t ps, const struct snapshot *snapshot, uint64_t applied);
/* The push was answered OK. */
void checker_versions_pushed(struct world *world, const struct sim_push *push);

/* checker_steps.c: synchronous steps */
/* What a member adds to `mix` with its contribution to that step, and what that weighs. */
float steps_value(uint32_t task, uint64_t step, uint32_t column);
double steps_weight(uint32_t task);
/* Which ps have variables in that step, a bit each. */
uint32_t steps_participants(const struct world *world, uint64_t step);
/* No step is whole before all members of the configuration have come: has none of its task been
 * open yet? */
bool checker_is_awaited(const struct world *world, const struct client *client);
/* All members have joined, and no loss fails a step: then each that has a contribution is taken. */
bool checker_may_take_steps(const struct world *world);
/* Of those pushes an earlier one is to the same step, and so to that row the same update. */
bool checker_is_counted(
    const struct world *world, uint32_t ps, enum sim_row row, uint32_t number, uint64_t applied);
/* Was it refused for what another contribution to its step is like? */
bool checker_may_differ(const struct world *world, const struct sim_push *push);
/* A client says so to a ps. */
void checker_commits(
    struct world *world, const struct sim_session *life, const wire_push_request *request);
/* The last step that anybody has contributed to, or was about to. */
uint64_t checker_last_step(const struct world *world);
/* At the end. */
void checker_sums(struct world *world, uint32_t ps);
/* At the end: of each step that ps holds a pull saw all or nothing. */
void checker_steps_pulled(struct world *world, const struct sim_pull *pull, uint32_t ps);
/* ps 0 says to some ps what a step is made of. */
void checker_takes(struct world *world, const wire_take_step *taken);
/* A contribution is refused for having come late. */
void checker_late(struct world *world, struct sim_push *push);
/* At the end: is it applied where its step is made of it, and nowhere where not? */
void checker_quorum(struct world *world, uint32_t ps);

/* checker_values.c: what a snapshot says. Returns the pushes applied in it, a bit per column. */
uint64_t
values_examine(struct world *world, uint32_t ps, const struct snapshot *snapshot, bool final);
bool values_peek(struct world *world, uint32_t ps, struct snapshot *snapshot);
/* One shard's value. False: it is not there, or busy. One that was never created is zeros. */
bool values_peek_shard(
    struct world *world, uint32_t ps, enum variable variable, uint32_t nth, void *out,
    uint64_t bytes);
