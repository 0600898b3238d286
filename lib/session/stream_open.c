/* SPDX-License-Identifier: Apache-2.0 */
/* stream_open.c -- a stream to a ps: opened, its hello, writable, shut. */
#include "deeds.h"

void stream_begin(struct session *session, struct link *link, enum session_stream_kind kind)
{
    struct stream *stream = &link->streams[kind];

    assert(stream->state == STREAM_DUE);
    stream->state = STREAM_OPENING;
    struct session_effect *effect = effect_add(session, SESSION_EFFECT_OPEN_STREAM);
    effect->ps = link->ps;
    effect->stream_kind = kind;
    effect->generation = stream->generation;
}

/* Not before its time: a stream that broke has one. */
void stream_open(struct session *session, struct link *link, enum session_stream_kind kind)
{
    struct stream *stream = &link->streams[kind];

    assert(stream->state == STREAM_SHUT);
    if (link->gone)
        return;
    stream->state = STREAM_DUE;
    stream->generation++; /* what the one before it still delivers is dropped from now on */
    stream->writable = stream->hello_sent = stream->greeted = false;
    if (session->now_us < stream->due_us)
        effect_wake(session, stream->due_us);
    else
        stream_begin(session, link, kind);
}

void stream_shut(struct stream *stream)
{
    assert(stream->state >= STREAM_OPENING);
    stream->state = STREAM_SHUT;
    stream->writable = stream->greeted = false;
}

void stream_writable(struct session *session, const struct session_event *event)
{
    struct link *link = &session->links[event->ps];
    struct stream *stream = &link->streams[event->stream_kind];

    if (stream->generation != event->generation || stream->state < STREAM_OPENING)
        return;
    if (stream->hello_sent)
        link->heard_us = session->now_us; /* the ps takes what we send */
    stream->state = STREAM_OPEN;
    stream->writable = true;
    link_touch(session, link);
}

wire_hello *stream_hello(struct session *session, struct link *link, enum session_stream_kind kind)
{
    assert(link->streams[kind].generation > 0);
    assert(!link->streams[kind].hello_sent);
    wire_hello *hello = step_take(session, sizeof *hello);
    if (hello == NULL)
        return NULL;
    *hello = (wire_hello)WIRE_HELLO_INIT;
    hello->protocol_version = WIRE_PROTOCOL_VERSION;
    hello->cluster_id = session->state.cluster_id;
    hello->epoch = session->state.epoch;
    hello->ps_incarnation = link->incarnation;
    hello->generation = link->streams[kind].generation;
    hello->commit_through = session->state.commit_through;
    if (!session->config.reader)
        hello->session_id = session_id_bytes(session);
    link->streams[kind].hello_sent = true;
    return hello;
}

void streams_close(struct session *session)
{
    for (uint32_t i = 0; i < session->link_count; i++)
        for (int kind = SESSION_PUSH_STREAM; kind <= SESSION_PULL_STREAM; kind++) {
            struct stream *stream = &session->links[i].streams[kind];
            const bool had_begun = stream->state >= STREAM_OPENING;
            stream->state = STREAM_SHUT;
            stream->writable = stream->greeted = stream->undone = false;
            if (!had_begun)
                continue;
            struct session_effect *effect = effect_add(session, SESSION_EFFECT_CLOSE_STREAM);
            effect->ps = i;
            effect->stream_kind = (enum session_stream_kind)kind;
            effect->generation = stream->generation;
        }
}
