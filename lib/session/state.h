/* SPDX-License-Identifier: Apache-2.0 */
/* state.h -- what a session remembers. Private to lib/session; the files beside it each have one
 * deed on it:
 *
 *   session.c  create, destroy, one event in
 *   known_ps.c where each ps listens, and whether it is still the same
 *   find.c     which ps there are, before there is a session
 *   join.c     join, lease, leave
 *   settle.c   closed: which pushes count is asked for
 *   end.c      the end
 *   call.c     unary calls: made when due, answered, made again, given up
 *   given_call.c  the caller's calls: taken in, answered
 *   stream_open.c  a stream is opened, said hello on, shut
 *   stream.c   it is greeted, or lost; a ps is given up
 *   trouble.c  why the last one ended
 *   push.c     a push is taken in, numbered, over
 *   cancel.c   a push is cancelled
 *   answer.c   what a ps says about pushes; the commit advances
 *   compose.c  what goes out on a push stream, message by message
 *   large_parts.c     large parts: they ask for room, and give it back
 *   pull.c     a pull is taken in, over
 *   collective.c  contributions to collectives, and what a round came to
 *   request.c  its requests: sent, asked again, cancelled
 *   receive.c  what a ps answers to them
 *   effect.c   what one step gives; the texts that a session keeps
 *
 *   session ── links[ps] ── parts (not done there, in the order of their sequence) ── push
 *           │            └─ requests (not answered there) ── pull
 *           ├─ window[sequence mod 1024] ── push ── parts, one for each participant
 *           └─ waiting (pushes that have no sequence yet: some participant has never greeted,
 *                      or could not remember one more as refused)
 */
#pragma once

#include "session.h"
#include "sized_pool.h"

#define WINDOW SESSION_PUSHES_IN_FLIGHT_MAX
#define SESSION_PULL_TRIES_MAX 16u /* of a pull whose view was ended */
#define SESSION_STEP_BYTES_MAX ((size_t)1 << 28)
#define SESSION_SPARE_BYTES_MAX                                                                    \
    67108864u /* of large blocks that were given back, for the next takers */
#define SESSION_TROUBLE_BYTES_MAX 192u /* of the sentence that a stream ended with */
#define SESSION_WAIT_BYTES_MAX 320u    /* of the sentence that says what a part waits for */
#define NEVER UINT64_MAX

struct link;
struct unary;
struct session;

/* What one push has for one ps. */
struct part {
    struct push *push;
    struct link *link;
    LINKS(struct part) in_link;
    uint64_t bytes;
    uint64_t room_bytes; /* what it takes of the ps's grant (room.h) */
    uint64_t previous;
    uint32_t resend;                   /* number of times that it gave way */
    uint32_t first_piece, piece_count; /* in push->pieces */
    uint32_t shard_count;              /* distinct */
    bool counted;                      /* against the grant: it was sent, and is not done */
    bool eager;                        /* it was sent with its own commit */
    bool staged;                       /* answered, a refusal included */
    bool done;
    bool large;        /* it takes more than the floor: its elements go out when they are wanted */
    bool asked;        /* of a large one: on this stream, and it is not staged */
    bool wanted;       /* of a large one: the ps has room for it, and it has yet to go out */
    bool sent;         /* of a large one: on this stream, all of it, since it gave way */
    bool withdraw_due; /* of a large one: the next message withdraws it */
    bool cancelled;    /* its push is: only its header goes out from now on, … */
    bool cancel_due;   /* … and goes out again */
};

/* A contribution to a round of a collective whose result the caller does not have yet. */
struct session_collective {
    LINKS(struct session_collective) in_session;
    uint64_t token;
    uint64_t sequence; /* 0: its push waits for one */
};

struct push {
    LINKS(struct push) among_waiting; /* for their sequence */
    struct session_push wanted;
    uint64_t sequence;
    uint64_t started_at_us; /* wall clock */
    uint64_t other_before;  /* the last sequence before it that has another ps than its only one */
    uint64_t step;          /* of a synchronous one, with its sequence; before, the least */
    uint64_t synchronous_before; /* the last sequence before it of such a one; 0: none */
    bool refused;
    bool cancelled;
    struct sumac_error *error;        /* of the refusal, from the pool; NULL: none heard, or … */
    enum sumac_status refused_status; /* … there was no memory for more of it than these */
    enum sumac_reason refused_reason;
    struct session_piece *pieces; /* grouped by ps; the start of the push's block */
    uint32_t *places;             /* of each piece among the caller's */
    uint32_t *ordinals;           /* of each piece's shard among its part's distinct ones */
    uint64_t *versions;           /* in the caller's order */
    struct part *parts;
    uint32_t part_count;
    uint32_t staged_count, done_count; /* parts */
};

/* What one pull asks of one ps. */
struct request {
    struct pull *pull;
    struct link *link;
    LINKS(struct request) in_link;
    LINKS(struct request) of_pull;
    uint64_t number;
    uint64_t after_sequence;
    uint32_t first_piece, piece_count; /* in pull->pieces */
    uint32_t piece;                    /* being received */
    uint64_t offset;                   /* in it */
    uint32_t tries;
    bool beside; /* on the push stream: it is in link->beside */
    bool sent;
    bool cancelled; /* its pull is over; the ps is to be told */
};

struct pull {
    LINKS(struct pull) in_session;
    struct session_pull wanted;
    struct session_piece *pieces; /* grouped by ps; the start of the pull's block */
    uint32_t *places;
    uint64_t *versions;
    LIST(struct request) requests;
    uint32_t open_requests;
    bool after_known;
    bool asks;      /* session_pull.asks: whatever it is answered with is not looked at */
    uint64_t clock; /* the steps that were finished before it */
    wire_collective_result *result; /* as answered, in a block of its own; NULL: not yet */
    size_t result_bytes;            /* the size of that block */
    struct span joined;             /* what was not known beforehand */
    uint64_t after_submitted;       /* pushes that the caller had made before */
    uint64_t deadline_us;
};

/* What is called, and what becomes of it: the session's own calls have a kind each, and the
 * caller's have one. */
struct unary_kind {
    const wire_service *service; /* of the session's own */
    unsigned method;
    bool once; /* it is never made again */
    /* The request of a try, made when it is due, in the step's arena; NULL: there is no memory. */
    const wire_message *(*compose)(struct session *session, const struct unary *call);
    /* It has a reply, or has failed for good with the error that the last try came to. */
    void (*over)(
        struct session *session, const struct unary *call, const wire_message *reply,
        const struct sumac_error *error);
    /* Is this reply taken? If not, the try has failed, with *why. NULL: any reply is. */
    bool (*accepts)(
        const struct session *session, const struct unary *call, const wire_message *reply,
        struct sumac_error *why);
    /* Is it made again after this error? NULL: if it is_worth_retrying. */
    bool (*is_made_again)(
        const struct session *session, const struct unary *call, const struct sumac_error *error);
};

/* A call that is to be answered: its next try is due, or one is under way. */
struct unary {
    LINKS(struct unary) links; /* in the session's list */
    const struct unary_kind *kind;
    uint64_t number; /* of the try under way; 0: none is */
    uint64_t due_us; /* of the next one; NEVER: one is under way */
    uint64_t until_us;
    uint32_t failures;
    struct sumac_error why;     /* of the last one; status OK: none yet */
    bool undone;                /* the try was not begun */
    struct session_call wanted; /* the caller's; of the session's own the ps and what is called */
};

/* SHUT ──► DUE ──► OPENING ──► OPEN, or without DUE; any ──► SHUT. */
enum stream_state { STREAM_SHUT, STREAM_DUE, STREAM_OPENING, STREAM_OPEN };

struct stream {
    enum stream_state state;
    bool undone;     /* it was not begun */
    uint64_t due_us; /* the next one is not opened before */
    uint64_t generation;
    uint32_t failures; /* since the last greeting */
    bool writable;
    bool hello_sent;
    bool greeted;
    bool troubled; /* the last one ended, and nothing was accepted since */
};

/* Why the last stream of a kind ended. */
struct trouble {
    uint64_t ended_us;
    char text[SESSION_TROUBLE_BYTES_MAX];
};

/* What the session has with one ps. */
struct link {
    uint32_t ps;
    struct link *next_touched;
    bool touched;
    bool found;           /* it has said who it is */
    uint64_t cluster_id;  /* as it said; 0: none yet */
    uint64_t incarnation; /* 0: not known yet */
    struct stream streams[2];
    uint64_t answered_us;  /* the last answer; 0: none yet */
    uint64_t heard_us;     /* an answer came, or a message went out */
    uint64_t unreached_us; /* since when no stream is greeted; NEVER: it is */
    uint64_t sent_us;
    uint32_t piece_scratch; /* pieces of the push or pull being taken in */
    bool gone;              /* its ps was terminated: no stream is opened to it any more */
    bool asked_for_end;     /* it ended a stream as of no session, and was asked once more */
    bool knows_grant;
    uint64_t grant_bytes;                       /* the floor */
    uint64_t part_bytes_max;                    /* of a large part; 0: none is taken */
    uint64_t counted_bytes;                     /* of it, by parts sent and not done */
    uint32_t counted_parts;                     /* likewise, of parts_max */
    uint32_t parts_max, pulls_max, chunk_bytes; /* what this ps takes, and no more than we send */
    uint64_t last_sequence;      /* that has a part here; the mark the epoch began with at first */
    LIST(struct part) parts;     /* not done here, in the order of their sequence */
    struct part *cursor;         /* the next to be sent */
    struct part *sending;        /* the part whose chunks are going out */
    bool sending_ask;            /* of it only the header, for room */
    uint32_t open_asks;          /* of large parts: for room, … */
    uint32_t wanted_count;       /* … for which there is some, … */
    uint32_t withdraws_due;      /* … which gave it back, and the ps does not know */
    uint32_t cancelled_due;      /* parts that are cancel_due */
    uint64_t room_wait_sequence; /* that waits for room, as the ps said; 0: none */
    uint32_t sending_piece;
    uint64_t sending_offset;
    uint64_t cut_sequence; /* a part answered while it was being sent: to be ended without the rest;
                              0: none */
    uint32_t small_messages; /* sent since the one that `gauge` ended, itself included */
    uint64_t gauge;          /* a part whose answer lets small ones go out again; 0: none */
    bool commit_due;
    uint64_t told_commit, told_acked, told_clock, told_collectives, told_ended;
    uint64_t last_collective; /* the last sequence here that contributes to a collective; 0: none */
    uint64_t collective_due_us; /* when to say which are over; NEVER: no hurry */
    LIST(struct request) requests;
    struct request *request_cursor; /* the next to be sent */
    uint32_t sent_requests;         /* not answered, of pulls_max */
    uint32_t cancels_due;
    LIST(struct request) beside; /* those that the push stream has, or is to have, … */
    uint32_t beside_count;       /* … so many, … */
    bool beside_due;             /* … and some of these, or cancellations, are to be sent */
    struct trouble troubles[2];  /* of the streams that are `troubled` */
    char room_wait[SESSION_WAIT_BYTES_MAX];
};

enum phase {
    PHASE_NEW,
    PHASE_FINDING,
    PHASE_FOUND, /* to join, in the same step */
    PHASE_JOINING,
    PHASE_OPEN,
    PHASE_SETTLING,
    PHASE_LEAVING,
    PHASE_OVER
};

struct window_place {
    struct push *push; /* NULL: done, if its sequence is in the window */
    uint32_t steps;    /* that end with it */
};

struct session {
    struct memory memory;
    struct session_config config;
    struct arena texts;       /* the config's */
    struct arena step;        /* what the last step gave */
    struct sized_pool blocks; /* the pieces of pushes and pulls */
    struct pool pushes, pulls, requests, errors, calls, collectives;
    struct session_effect *effects;
    uint32_t effect_count, effect_capacity;
    struct session_effect spare; /* takes what finds no memory */
    bool exhausted;
    const struct session_event *event; /* the one being handled */
    uint64_t now_us;
    uint64_t wake_us; /* asked for and not come yet */
    enum phase phase;
    uint64_t began_us;
    uint64_t patience_until_us; /* of FINDING, then of JOINING */
    uint64_t report_us;         /* the next line about who is missing */
    struct sumac_error end;     /* why it is over */
    struct sumac_error stopping;
    uint64_t stopping_until_us; /* some ps was terminated, as `stopping` says; 0: none */

    uint8_t nonce[16];
    struct session_state state; /* session_read computes some of it */
    uint64_t sent_us;           /* anything, to any ps */
    LIST(struct unary) live_calls;
    uint32_t given_calls; /* of them, the caller's */
    uint64_t last_call;   /* the number of the last try */
    bool renewing;
    bool acknowledging; /* a call tells ps 0 that this replaced process lives; ENDED waits */
    bool leave_wanted, leave_done, leave_called;
    bool leave_heard; /* by ps 0, or the run ended well without it: its answer is not needed */
    uint64_t settling_us;

    const char *const *told_addresses; /* of the ps, as ps 0 has them; NULL: not told yet */
    struct link *links;
    uint32_t link_count;
    struct link *touched; /* something may go out there */

    struct window_place window[WINDOW];
    LIST(struct push) waiting;
    uint32_t waiting_count;
    uint64_t submitted, admitted;
    /* Pushes that every ps can remember as refused: with a sequence at a time. */
    uint32_t voided_max;
    uint64_t started_at_us;    /* wall clock of the last push: those of a session never decrease */
    uint64_t steps_finished;   /* by the caller: those of state.clock, and those not committed */
    uint64_t last_synchronous; /* its sequence; 0 before the first */
    uint64_t held;             /* a synchronous one that is committed; 0, or it is done */
    uint64_t run_other_before; /* `other_before` of the last push */
    uint32_t run_ps;        /* its only participant; UINT32_MAX: it has several, or there is none */
    uint32_t refused_count; /* pushes in the window that are voided */

    LIST(struct session_collective) live_collectives;
    uint64_t collectives_ended; /* rounds that have left that list */
    LIST(struct pull) live_pulls;
    LIST(struct pull) over_pulls; /* the last step ended them: its effects lend what they have */
    uint32_t pull_count;
    uint64_t last_request;
};

/* How long a ps is tried. */
static inline uint64_t patience_us(const struct session *session)
{
    assert(session->config.ps_lost_ms > 0);
    return (uint64_t)session->config.ps_lost_ms * 1000;
}

static inline bool holds(const struct session *session, enum rule rule)
{
    return rule_holds(session->config.broken, rule);
}

static inline struct window_place *place_of(struct session *session, uint64_t sequence)
{
    return &session->window[sequence % WINDOW];
}

/* The push of that token: it is under way, or waits for its sequence. NULL: no push has it. */
static inline struct push *find_push(const struct session *session, uint64_t token)
{
    for (uint64_t n = session->state.acked_through + 1; n <= session->state.last_sequence; n++) {
        struct push *push = session->window[n % WINDOW].push;
        if (push != NULL && push->wanted.token == token)
            return push;
    }
    struct push *push = session->waiting.first;
    while (push != NULL && push->wanted.token != token)
        push = push->among_waiting.next;
    return push;
}

static inline struct pull *find_pull(const struct session *session, uint64_t token)
{
    struct pull *pull = session->live_pulls.first;

    while (pull != NULL && pull->wanted.token != token)
        pull = pull->in_session.next;
    return pull;
}

/* Is that push done, or is there none (0)? */
static inline bool is_over(struct session *session, uint64_t sequence)
{
    return sequence <= session->state.acked_through || place_of(session, sequence)->push == NULL;
}

/* effect.c */
/* A zeroed effect at the end; never NULL, valid until the next one is added. */
struct session_effect *effect_add(struct session *session, enum session_effect_kind kind);
/* Say how the push, pull or call of that token ended. `error` is NULL if it ended well. */
struct session_effect *effect_over(
    struct session *session, enum session_effect_kind kind, uint64_t token,
    const struct sumac_error *error);
void effect_log(struct session *session, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A TICK at that time, or earlier. */
void effect_wake(struct session *session, uint64_t at_us);
/* Memory until the next step; NULL ends the session. */
void *step_take(struct session *session, size_t bytes);
/* Something may go out to that ps: looked at when the event is handled. */
void link_touch(struct session *session, struct link *link);
uint32_t backoff_ms(const struct session *session, uint32_t failures);
/* Copies that live as long as the session. Without memory it is exhausted. A text that is NULL
 * becomes "". */
void *session_keep(struct session *session, const void *data, size_t bytes);
const char *session_keep_text(struct session *session, const char *text);
const char *const *
session_keep_texts(struct session *session, const char *const *texts, uint32_t count);
