/* SPDX-License-Identifier: Apache-2.0 */
/* peer.h -- who speaks to this ps: streams and their places, sessions, and what is said on push
 * streams and to ps 0. */
#pragma once

#include "contribution.h"

#define PULLS_PER_STREAM_MAX 4096u
#define CLOSED_VOIDED_BYTES_MAX                                                                    \
    8388608u /* what was voided of closed sessions: else fewer are kept */

/* In which bound a stream counts (places.c). */
enum place { PLACE_NONE, PLACE_STRANGER, PLACE_READER, PLACE_SESSION, PLACE_CONTROLLER };

/* A stream's life; stream.c has the table of its moves. */
enum lane_stream_state {
    STREAM_SILENT,  /* it has yet to say hello; of a ps 0: one that is taken */
    STREAM_STALE,   /* its hello was to another epoch or incarnation: what it says is dropped */
    STREAM_GREETED, /* its hello was taken */
    STREAM_ENDED,   /* closed from here: what it still delivers is dropped */
};

/* What is to be said on a stream beside the answers, pulls and reports in its lists. */
enum stream_due {
    DUE_GREETING = 1u,
    DUE_CLOSED = 2u, /* its session is closed */
    DUE_REJOIN = 4u, /* its session is not known here */
    DUE_ALIVE = 8u,  /* ps 0 gave a sign of life */
};

struct lane_stream {
    /* peer/ changes */
    LINKS(struct lane_stream) in_lane;
    uint64_t id;
    enum lane_stream_kind kind;
    enum lane_stream_state state; /* lane_stream_move does */
    struct lane_session *session;
    uint64_t generation;
    LIST(struct answer) answers;
    uint32_t answer_count, patient_count; /* of them, those that may wait for a pull, … */
    uint64_t patient_since_us;            /* … the first since then */
    LIST(struct report) reports;
    enum place place;
    LINKS(struct lane_stream) among_strangers; /* by stranger_since_us */
    uint64_t stranger_since_us;
    /* lane.c, peer/ change */
    bool attended; /* in the list of those to look after at the end of the step */
    LINKS(struct lane_stream) among_attended;
    /* peer/, pull/ change */
    uint32_t due; /* enum stream_due */
    bool writable;
    /* push.c, orders.c, peer/ change */
    struct lane_part *receiving;
    bool unserved; /* a part on it was not taken, since this ps ends */
    /* pull/ changes */
    LIST(struct lane_pull) pulls;
    uint32_t pull_count;
    struct lane_pull *unlooked; /* of them, the first that may be ready: those before it wait, … */
    struct lane_pull *put_off;  /* … from here on some of them for the long one under way */
    uint32_t active_pulls;
    uint64_t mark_seen, readable_seen; /* as they were looked at; the session's and the lane's */
    uint64_t clock_awaited; /* the least of the slowest member that one waits for; 0: none does */
    uint64_t step_awaited;  /* the first step whose end one waits for; 0: none does */
    uint64_t said_us;       /* when the last message of pulls was given out; 0: none was */
};

/* False: no memory. */
bool lane_peer_init(struct lane *lane);
void lane_peer_deinit(struct lane *lane);

/* stream.c: a stream's life and its end */
void lane_stream_writable(struct lane *lane, const struct lane_event *event);
void lane_stream_closed(struct lane *lane, struct lane_stream *stream);
struct lane_stream *lane_stream_find(const struct lane *lane, uint64_t id);
/* Look after it at the end of the step. */
void lane_stream_attend(struct lane *lane, struct lane_stream *stream);
/* That is to be said on it, too. */
void lane_stream_owe(struct lane *lane, struct lane_stream *stream, enum stream_due due);
void lane_stream_move(struct lane_stream *stream, enum lane_stream_state to);
/* End it for that reason. Returns false. */
bool lane_stream_fail(
    struct lane *lane, struct lane_stream *stream, enum sumac_status status,
    enum sumac_reason reason, const char *format, ...) __attribute__((format(printf, 5, 6)));
/* From here on it delivers nothing, and what it was delivering is dropped. */
void lane_stream_end(struct lane *lane, struct lane_stream *stream);
void lane_answers_drop(struct lane *lane, struct lane_stream *stream);
void lane_place_leave(struct lane *lane, struct lane_stream *stream);

/* hello.c: whose a stream is */
void lane_stream_opened(struct lane *lane, const struct lane_event *event);
/* The stream of a message, with the hello that it says (NULL: none): the first one says hello, and
 * no other. NULL: the stream takes nothing, or was closed. */
struct lane_stream *lane_stream_taken(struct lane *lane, uint64_t id, const wire_hello *hello);

/* places.c: how many streams there may be of each sort */
void lane_place_enter(struct lane *lane, struct lane_stream *stream);
/* The most streams of one session, of both kinds. */
uint32_t lane_place_share(const struct lane *lane);
/* It has said hello: whose is it? False: there is no place for it, it was closed. */
bool lane_place_take(struct lane *lane, struct lane_stream *stream);
/* Its session is no longer open. */
void lane_place_estrange(struct lane *lane, struct lane_stream *stream);
void lane_place_tick(struct lane *lane);
uint64_t lane_place_due_us(const struct lane *lane);
/* Nobody was listened to for so long. */
void lane_place_excuse(struct lane *lane, uint64_t slept_us);

/* answers.c: what is to be said on a push stream, coalesced */
/* On any: what its hello is answered with. NULL: no memory. */
wire_greeting *lane_stream_greeting(struct lane *lane, const struct lane_stream *stream);
void lane_answer_staged(
    struct lane *lane, struct lane_session *session, const struct lane_part *part);
void lane_answer_refused(struct lane *lane, struct lane_session *session, uint64_t sequence);
/* On a new stream, what its client may not have heard on the one before: a turn may be over before
 * the part comes again. */
void lane_answers_refused_again(struct lane *lane, struct lane_session *session);
/* On a new stream, which parts' room is kept. A part that is to give way is asked again, too. */
void lane_answers_room_again(struct lane *lane, struct lane_session *session);
/* The versions of what the part touched, as they are now. */
void lane_answer_done(
    struct lane *lane, struct lane_session *session, const struct lane_part *part, bool voided);
/* Its room is kept, or it is done and its pieces name the versions to be said: its elements are
 * wanted. */
void lane_answer_resend(struct lane *lane, struct lane_session *session, uint64_t sequence);
/* Its room is wanted. False: the session has no stream to be asked on. */
bool lane_answer_give_way(struct lane *lane, const struct claim *claim);
/* It waits for room. */
void lane_answer_room_wait(struct lane *lane, const struct claim *claim);
void lane_answer_closed(struct lane *lane, struct lane_session *session);
/* With answers to so many pulls beside them, in the step's arena. */
void lane_answers_flush(
    struct lane *lane, struct lane_stream *stream, wire_pull_answer **pulled, size_t pulled_count);

/* session.c: what a ps knows of one session */
struct lane_session *lane_session_find(const struct lane *lane, const uint8_t id[16]);
struct lane_session *lane_session_open(struct lane *lane, const wire_open_session *open);
void lane_session_destroy_all(struct lane *lane);
/* It takes no part any more: a part that is half received and room without elements are dropped. */
void lane_session_close(struct lane *lane, struct lane_session *session);
/* It is settled: pushes up to its final count, but for the voided ones, which there is room for. */
void lane_session_decide(
    struct lane *lane, struct lane_session *session, const wire_decide_session *decided);
void lane_session_heard(struct lane *lane, struct lane_session *session);
/* No longer among the open ones. */
void lane_session_end(struct lane *lane, struct lane_session *session);
/* It has finished so many steps: more than before. */
void lane_session_set_clock(struct lane *lane, struct lane_session *session, uint64_t clock);
/* "no push or pull on ps 1 for 3.2 s", with "alive, " before it when its lease is kept. */
struct session_silence {
    char text[96];
};
struct session_silence
lane_session_silence(const struct lane *lane, const struct lane_session *session);
/* Has the task had a session, as far as this ps remembers? */
bool lane_session_has_joined(const struct lane *lane, const char *job, uint32_t index);
/* Has it changed variables, and contributed to no synchronous step? */
bool lane_session_pushes_alone(const struct lane_session *session);
/* Is it a member that pulls wait for, and has it finished fewer steps? */
bool lane_session_is_behind(
    const struct lane *lane, const struct lane_session *session, uint64_t clock);
/* The clock of the slowest such member. */
uint64_t lane_session_slowest_clock(const struct lane *lane, uint64_t otherwise);

/* reports.c: what ps 0 is told */
void lane_report_answer(struct lane *lane, uint64_t number, const struct sumac_error *error);
/* To a stream whose hello was not taken. */
void lane_report_refusal(
    struct lane *lane, struct lane_stream *stream, uint64_t number,
    const struct sumac_error *error);
void lane_report_opened(struct lane *lane, uint64_t number, uint64_t clock, uint64_t seen_step);
/* With a quorum: the session has come to that synchronous step; of `voided` nothing counts. */
void lane_report_come(struct lane *lane, struct lane_session *session, uint64_t step, bool voided);
/* With a quorum: another synchronous step is over here. */
void lane_report_step_over(struct lane *lane);
/* How this ps proposes that a round ends, as the round has it. */
void lane_report_collective(struct lane *lane, struct round *round);
/* It is ended: nothing is proposed any more. */
void lane_report_collective_forget(struct lane *lane, struct round *round);
/* Who has come to which step, all of it again. */
void lane_reports_come_again(struct lane *lane);
/* What the order close_number of the session is answered with, once there is memory for it. */
void lane_report_close(struct lane *lane, struct lane_session *session);
/* Those that there was no memory for. */
void lane_reports_close_again(struct lane *lane);
void lane_report_assigned(struct lane *lane, const struct variable *variable);
/* All that are, to a ps 0 that has said hello: some of them with each report. */
void lane_reports_assigned_again(struct lane *lane);
/* This one is deleted next. */
void lane_reports_forget(struct lane *lane, const struct variable *variable);
/* The sessions heard from since the last time. */
void lane_reports_renew(struct lane *lane);
void lane_reports_flush(struct lane *lane, struct lane_stream *stream);
