/* SPDX-License-Identifier: Apache-2.0 */
/* step.h -- what every room of a lane has at hand: the lane itself, its sessions, and how long a
 * step may be.
 *
 *   lane ─┬─ streams ── stream ──┬─ answers that wait until it is writable      (peer)
 *         │                      └─ pulls in their order                        (pull)
 *         ├─ sessions ─ session ── parts, staged or refused, by sequence        (part)
 *         ├─ turns ─────────────── operations whose vector work is out          (operation)
 *         └─ store ──── shards, blocks, views                                   (store.h)
 *
 * Only its room knows each of these structs. Each room keeps beside them what is its own alone
 * (parts, peers, turns, pulls), in a struct that nobody else sees.
 */
#pragma once

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "close_cause.h"
#include "counts.h"
#include "lane.h"
#include "list.h"
#include "out.h"
#include "rounds.h"
#include "store.h"
#include "text.h"

/* Contributions to synchronous steps lie by their step, so that one is found at once: those whose
 * numbers differ by a multiple of STEP_PLACES share a place, and a member has none so far ahead. */
#define STEP_PLACES 1024u

struct step_place {
    LIST(struct lane_part) contributions; /* by step, and those of one in worker order */
};

/* ---- how long a step may be, and how much it may say ---- */

#define FLUSHED_BYTES_MAX                                                                          \
    2097152u /* of the step's arena: what is beyond is said with the next event, which comes at    \
                once */
/* What one step does, counted in what it looks at, makes or copies: about a millisecond. Whatever
 * is left goes on with the next event, which comes at once. */
#define WORK_PER_STEP_MAX 8192u
#define WORK_PER_US 8u
#define WORK_ARENA_BYTES 256u  /* of messages, that make one */
#define WORK_VECTOR_BYTES 512u /* that are copied or computed here */
#define WORK_GIVEN_BYTES 512u  /* that are given back to the system */
#define WORK_OF_A_PART 4u
#define WORK_OF_A_PIECE 2u   /* of a push or a pull, whose shard lies anywhere; … */
#define WORK_OF_A_RUN 4u     /* … and when it is applied its block and values, too */
#define ENTRIES_PER_WORK 4u  /* of parts, that are dropped; */
#define PIECES_PER_WORK 8u   /* of pulls, that are looked at, kept or let go of */
#define ROWS_PER_WORK 1u     /* by index, that are put together with others */
#define WORK_OF_AN_ERROR 16u /* its sentence */
#define STEP_MEMORY_BYTES_MAX                                                                      \
    (8 * FLUSHED_BYTES_MAX) /* of memory: that, the event's own doing, an answer, rounding up */

#define WAIT_SAID_US_MIN 1000000u /* a shorter wait is how pushing and pulling work */

/* The words that the store keeps of a shard for its user: operation's, then part's. */
#define SHARD_OPERATION_WORDS 4u
#define SHARD_PART_WORDS 2u
#define SESSION_OPERATION_WORDS 18u

_Static_assert(
    SHARD_OPERATION_WORDS + SHARD_PART_WORDS <= STORE_USER_WORDS,
    "a shard has room for what the lane keeps of it");

/* Where a session stands, whose parts take their turns (operation/turn.c has the table of moves).
 * From READY on, the sessions of a state are in a line. */
enum lane_turn {
    TURN_IDLE,        /* no part of the session has its turn */
    TURN_RUNNING,     /* its part is `applying` */
    TURN_READY,       /* it is to be looked at, in this step or in the next one */
    TURN_BLOCKED,     /* a shard is busy that its part touches, or the step that it leads */
    TURN_SHORT,       /* there is no memory to void its part */
    TURN_CONTRIBUTED, /* its part waits for the others of its synchronous step */
};
#define TURN_STATES (TURN_CONTRIBUTED + 1)

/* What a ps knows of a session. All may read it; below whose name a fact stands, they alone change
 * it (tests/house/layers.py). So it is with streams and parts. */
struct lane_session {
    /* peer/ changes */
    LINKS(struct lane_session) in_lane;
    uint8_t id[16];
    uint32_t role;
    char job[STORE_TASK_TEXT_BYTES];  /* "" of an observer without a name, … */
    uint32_t index;                   /* … and the task's number in it */
    char task[STORE_TASK_TEXT_BYTES]; /* "worker 3" */
    uint64_t attempt;
    struct lane_stream *push_stream;
    uint32_t stream_count; /* of both kinds */
    bool has_generation;
    uint64_t generation;
    uint32_t broken_streams; /* push streams that broke while it was open */
    uint64_t heard_us;
    bool heard;            /* since the last report */
    uint64_t answer_bytes; /* of answers that wait for its push stream */
    bool closed, done;
    uint64_t final;
    /* The largest of all ps: what is voided above it is in the list. */
    uint64_t decided_acked_through;
    /* With a quorum: the last synchronous step that it has come to here, and whether with nothing
     * that counts; ps 0 is told with the next report. */
    uint64_t come_step;
    bool come_voided, says_come;
    LINKS(struct lane_session) in_come;
    /* part/ changes */
    LIST(struct lane_part) parts; /* by sequence, until they are over */
    uint32_t part_count;
    struct lane_part *found; /* of them, the one that was looked for last */
    uint64_t staged_bytes;   /* of them, as room.h counts them */
    struct voided *voided;   /* ascending; above acked_through */
    uint32_t voided_count, voided_capacity;
    uint64_t acked_through;
    LIST(struct contribution) contributions; /* to rounds that it wants more of: */
    uint32_t contribution_count;             /* their number; */
    uint64_t collectives_through;            /* they are above this */
    uint64_t contributed_step; /* the largest that a contribution of it took its place for */
    bool silent; /* its stream was ended because it did not answer, and it still does not */
    /* operation/ changes */
    struct lane_part *applying; /* of its parts, the one whose turn it is */
    uint64_t mark;
    uint64_t of_operation[SESSION_OPERATION_WORDS]; /* operation keeps there that of `applying` */
    enum lane_turn turn;
    LINKS(struct lane_session) in_line;
    double weight;
    uint64_t passed_step; /* the last synchronous one in which its turn is over */
    uint64_t first_step;  /* from which on it is a member; 0: it is none, or ps 0 has not said */
    bool initial;         /* of those that the run begins with */
    bool asks_step;       /* ps 0 asks from which step on it is one: … */
    uint64_t seen_step;   /* … it was answered this one, and none above it is applied till then */
    uint64_t taken_step;  /* with a quorum: the last one that ps 0 has taken with what it has */
    /* pull/ changes */
    uint64_t pull_bytes; /* of its pulls */
    /* push.c, operation/, peer/ change */
    uint64_t commit_through;
    /* grants.c changes */
    bool granted; /* it may stage parts */
    /* push.c, operation/, orders.c, peer/ change */
    uint64_t clock, clock_said;
    /* operation/, orders.c change */
    uint64_t decide_number; /* order to be answered when all up to `final` is applied; 0: none */
    /* orders.c, replay.c, peer/ change */
    bool closing;
    struct close_cause cause; /* with closing */
    uint64_t closed_record;   /* of the last thing about its end */
    uint64_t close_number;    /* order to be answered as soon as there is memory for it; 0: none */
    /* push.c, pull/, operation/, part/ change */
    struct session_counts counts;
};

/* The pool of staging, and who claims room in it (claims.h). */
struct claims {
    LIST(struct claim) all;
    uint32_t waiting;   /* of them, those that have no room */
    uint64_t bytes_max; /* of the pool */
    uint64_t bytes;     /* kept, held, and taken by answers about what held it */
};

struct lane {
    struct lane_config config; /* whole: what it left to us is filled in */
    const struct memory *memory;
    struct arena strings; /* the config's, for the lane's life */
    struct arena arena;   /* of one step */
    struct out out;
    struct functions functions; /* that there are, as the variables' and the parts' */
    struct store store;
    struct sized_pool bytes; /* staging, and what belongs to parts, pulls and answers */
    struct rounds rounds;    /* of collectives; the contributions are in `bytes`, too */
    struct parts *parts;     /* what each room keeps for itself */
    struct peers *peers;
    struct turns *turns;
    struct pulls *pulls;
    const struct lane_event *event;
    uint64_t now_us;

    uint64_t cluster_id, epoch, membership_epoch;
    uint32_t index, ps_count;
    char *ps_addresses[LANE_PS_MAX]; /* NULL: unknown */
    uint64_t ps_incarnations[LANE_PS_MAX];
    uint64_t controller_incarnation; /* 0: not met */
    struct run_identity controller_identity;
    uint64_t controller_secret; /* that its later hellos must repeat */
    /* The number of its last hello: those before are of older streams. */
    uint64_t controller_hello;
    uint64_t controller_heard_us;
    struct lane_stream *controller; /* the stream that orders come on */
    /* Until the first join: what is wrong with its listed address; "": nothing, or not known. */
    char controller_found[SUMAC_ERROR_TEXT_BYTES];
    bool controller_silent;    /* no process answers there */
    bool controller_differs;   /* the answer there contradicts this ps's configuration */
    bool controller_confirmed; /* it has called, and answers there */

    LIST(struct lane_stream) streams;
    LIST(struct lane_stream) attended;    /* in the order of their due */
    uint64_t work;                        /* of this step, beside its arena; lane_has_time */
    LIST(struct lane_pull) pulls_leaving; /* of no stream: they let go of what they read */
    uint64_t pulls_due_us;                /* when a pull's time may be over */
    bool turns_taken;                     /* in this step: what pulls wait for may be there */
    uint64_t readable;                    /* how often shards became so */
    bool shows_blocks; /* what this step, or those that it follows, have said lies in blocks */
    LIST(struct lane_session) sessions;         /* open ones */
    LIST(struct lane_session) closed_sessions;  /* newest first */
    struct step_place step_places[STEP_PLACES]; /* contributions that are staged */
    uint32_t step_members; /* that begin with synchronous step 1; 0: none is taken */
    uint64_t step_over;    /* the last of them that is over */
    uint32_t step_quorum;  /* not 0: ps 0 says what each of them is made of */
    bool records;          /* they are made, from START on */
    uint64_t last_record;  /* made, … */
    uint64_t recorded; /* … and on disk: what reveals a record is said when it is not beyond this */
    uint64_t staged_bytes; /* of all sessions' parts, and of answers that wait */
    uint64_t pull_bytes;   /* of all pulls */
    uint64_t grant_bytes;  /* of staging, for each session: its floor */
    struct claims claims;  /* the rest of it */
    bool any_hello;        /* ps 0 has spoken to this ps */

    bool joined_once; /* a session has been opened */
    /* That took this ps for ps 0; those of ps 0 are the controller's. */
    struct refused_joins refused_joins;
    bool serving;
    bool run_over; /* on ps 0: its controller says so */
    bool terminating, ended, end_answered, exited;
    uint64_t end_number;
    int exit_code;
    enum sumac_reason exit_reason;
    char exit_text[SUMAC_ERROR_TEXT_BYTES];
    uint64_t exit_by_us;  /* SIGTERM waits no longer */
    uint64_t patience_us; /* the shortest after which somebody silent is taken for lost */
    uint64_t last_step_us, report_due_us, wake_us;
    uint64_t resumed_us; /* the end of the last sleep that was forgiven; 0: none */
    uint64_t report_us;  /* between the reports of a wait */
    struct session_counts counts;
};

_Static_assert(
    FLUSHED_BYTES_MAX == WORK_PER_STEP_MAX * WORK_ARENA_BYTES,
    "what is said takes the memory that the published bound has for it");

static inline uint64_t lane_work_done(const struct lane *lane)
{
    return lane->work + lane->arena.bytes_used / WORK_ARENA_BYTES;
}

static inline struct step_place *lane_step_place(struct lane *lane, uint64_t step)
{
    return &lane->step_places[step % STEP_PLACES];
}

/* May a step do more, or is it long enough? */
static inline bool lane_has_time(const struct lane *lane)
{
    return lane_work_done(lane) < WORK_PER_STEP_MAX;
}

/* And may it write to blocks? What was said of them goes out after the step. */
static inline bool lane_may_write(const struct lane *lane)
{
    return lane_has_time(lane) && !lane->shows_blocks;
}

/* How much more? */
static inline uint64_t lane_work_left(const struct lane *lane)
{
    const uint64_t done = lane_work_done(lane);

    return done < WORK_PER_STEP_MAX ? WORK_PER_STEP_MAX - done : 0;
}

/* Will it go on only when something else comes? */
static inline bool lane_session_rests(const struct lane_session *session)
{
    return session->turn == TURN_IDLE || session->turn == TURN_CONTRIBUTED;
}

/* The open ones, from NULL on, then the closed ones. NULL: that was the last. */
static inline struct lane_session *
lane_session_after(const struct lane *lane, const struct lane_session *session)
{
    struct lane_session *const next =
        session == NULL ? lane->sessions.first : session->in_lane.next;
    const bool closed = session != NULL && session->closed;

    return next == NULL && !closed ? lane->closed_sessions.first : next;
}

/* Staged bytes, and the bytes kept spare for more of them, share one bound. */
static inline void lane_staging_count(struct lane *lane, uint64_t staged_bytes)
{
    const uint64_t max = lane->config.staging_bytes_max;

    lane->staged_bytes = staged_bytes;
    lane->bytes.spare_bytes_max = max > staged_bytes ? max - staged_bytes : 0;
    assert(lane->bytes.spare_bytes_max <= max);
}

/* Is there no lease any more: the end settles all sessions, and so does an exit? */
static inline bool lane_run_is_over(const struct lane *lane)
{
    return lane->exited || lane->ended || lane->terminating || lane->run_over;
}
