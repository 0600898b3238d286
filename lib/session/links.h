/* SPDX-License-Identifier: Apache-2.0 */
/* links.h -- the streams to each ps, what is said of them, and why the last one ended. */
#pragma once

#include "state.h"

/* known_ps.c */
/* Where it listens, for a text. Lends  valid with the session. */
const char *ps_address(const struct session *session, uint32_t ps);
/* What to do about that address, at which another process answers, or none. */
const char *ps_remedy(const struct session *session, uint32_t ps, const char *otherwise);
/* A member starts it: its user has listed no ps. */
bool ps_is_started(const struct session *session, uint32_t ps);
/* How long a ps is tried. */
uint64_t patience_us(const struct session *session);
/* Has it spoken to the session? A member's ps 0 has: it answered the join. If a ps that has spoken
 * answers for another cluster, it was started again. */
bool link_is_known(const struct session *session, const struct link *link);
/* The identity that a ps reports. */
struct ps_identity {
    uint64_t cluster_id; /* 0: none yet */
    uint64_t epoch, incarnation;
};
/* Is it still the ps that this session's pushes were applied to? False: its state is gone or went
 * back, and the error says so. */
bool link_is_same(
    const struct session *session, const struct link *link, const struct ps_identity *it,
    struct sumac_error *error);
/* This ps was restarted, and its state is lost. */
void fail_restarted(
    const struct session *session, const struct link *link, struct sumac_error *error);
/* At the address of this ps, ps number `ps` answers. */
void fail_another_ps(
    const struct session *session, const struct link *link, uint32_t ps, struct sumac_error *error);

/* stream_open.c */
void stream_open(struct session *session, struct link *link, enum session_stream_kind kind);
/* It is due: it opens now. */
void stream_begin(struct session *session, struct link *link, enum session_stream_kind kind);
/* It has ended. */
void stream_shut(struct stream *stream);
void stream_writable(struct session *session, const struct session_event *event);
void stream_hello(
    const struct session *session, const struct link *link, enum session_stream_kind kind,
    wire_hello *hello);
void streams_close(struct session *session);

/* stream.c */
/* Those that are due are opened; those that were not begun are due again later. */
void streams_check(struct session *session);
void stream_lost(struct session *session, const struct session_event *event);
/* False: the session is over by what the greeting says. */
bool stream_greeted(
    struct session *session, struct link *link, enum session_stream_kind kind,
    const wire_greeting *greeting);
/* A ps was terminated: the session ends when the others have answered what is done there. */
void stopping_check(struct session *session);
void links_check(struct session *session);
/* The process was suspended: this time does not count as silence of the ps. */
void links_excuse(struct session *session, uint64_t slept_us);

/* trouble.c */
/* This stream has just ended. */
void trouble_note(
    struct session *session, struct link *link, enum session_stream_kind kind, const char *why);
/* Add the reason why the stream to this ps ended to an error that has none. */
void trouble_tell(
    const struct session *session, const struct link *link, enum session_stream_kind kind,
    struct sumac_error *error);

/* The number of rows that a pair of indices and values has in one message. The last pair may have
 * fewer. */
static inline uint64_t
rows_together(const struct session *session, const struct session_piece *piece)
{
    const uint64_t fitting = session->config.chunk_bytes / (sizeof(int64_t) + piece->row_bytes);
    const uint64_t most = fitting < WIRE_PUSH_ROWS_MAX ? fitting : WIRE_PUSH_ROWS_MAX;

    return most == 0 ? 1 : most;
}
