/* SPDX-License-Identifier: Apache-2.0 */
/* peer_state.h -- what the files of this room share, and nobody else sees. */
#pragma once

#include "peer.h"

#define ANSWER_ROOM_BYTES                                                                          \
    64u /* each that waits until its stream is writable, beside its versions */

enum answer_kind {
    ANSWER_STAGED,
    ANSWER_REFUSED,
    ANSWER_DONE,
    ANSWER_RESEND,
    ANSWER_GIVE_WAY,
    ANSWER_ROOM_WAIT
};

struct answer {
    LINKS(struct answer) in_stream;
    uint64_t sequence, record;
    enum answer_kind kind;
    uint32_t version_count;
    bool voided, contributes; /* of a synchronous step, with a quorum */
    bool patient;             /* it may wait for a pull of the round that the part is for */
    bool pooled;              /* it takes its room of the pool, as its part did */
    union {
        uint64_t *versions; /* (version_count) */
        uint32_t resend;    /* of a part that is staged, or is to give way */
        uint64_t version;
    };
    uint64_t room_bytes; /* what it takes of the session's grant */
};
_Static_assert(4 * ANSWER_ROOM_BYTES + 64 <= ANSWERS_COST_BYTES, "a part pays for its answers");
_Static_assert(sizeof(struct answer) <= ANSWER_ROOM_BYTES, "and for each of them");

/* The reports to ps 0. The last three gather all that is due, as much as a report takes. */
enum report_kind {
    REPORT_ANSWER,      /* to an order; or `assigned` */
    REPORT_CLOSE,       /* to one that closes a session */
    REPORT_AGAIN,       /* every variable that is assigned, from peers.again on */
    REPORT_COME,        /* what has come of synchronous steps: peers.come, and what is over */
    REPORT_COLLECTIVES, /* the proposed ends of peers.collectives */
};
#define REPORT_KINDS (REPORT_COLLECTIVES + 1)

struct report {
    LINKS(struct report) in_stream;
    uint64_t answers;
    struct sumac_error error;
    enum report_kind kind;
    uint8_t session_id[16];
    uint64_t commit_through;
    uint64_t assigned; /* a variable's id; 0: none */
    uint64_t record;
    uint64_t clock, seen_step;
};

struct peers {
    struct pool streams, sessions, reports;
    struct id_map by_id;                /* of streams */
    LIST(struct lane_stream) strangers; /* oldest first */
    uint32_t stranger_count, reader_streams;
    uint32_t closed_count;  /* sessions */
    uint64_t slowest_clock; /* of the members that are open; UINT64_MAX: there is none … */
    uint32_t slowest_count; /* … at it */
    uint64_t renew_due_us;
    const struct variable *again;   /* the next that ps 0 is told of after its hello, if assigned */
    LIST(struct lane_session) come; /* which are due to ps 0 */
    bool says_over;                 /* and so is the last step that is over */
    LIST(struct round) collectives; /* whose end is due to ps 0 */
    struct report *gathering[REPORT_KINDS]; /* in line, of that kind; NULL: nothing is due */
};

/* stream.c: it is out, or dropped, and takes nothing of its session's grant */
void lane_answer_remove(struct lane *lane, struct lane_stream *stream, struct answer *answer);
/* ps 0 was told it, or its stream ends. */
void lane_report_remove(struct lane *lane, struct lane_stream *stream, struct report *report);
/* likewise: ps 0 was told what the session has come to, or need not be */
void lane_come_forget(struct lane *lane, struct lane_session *session);
