/* SPDX-License-Identifier: Apache-2.0 */
/* process_client.h -- a client: the session, the driver around it, as lib/client is, and the
 * program that uses it. */
#pragma once

#include "checker.h"
#include "network.h"
#include "session.h"
#include "world.h"

#define SIM_SCRATCH_MAX 3u

enum phase {
    PHASE_STARTING, /* joining */
    PHASE_CREATING, /* the variables, one after the other */
    PHASE_WORKING,  /* pushes and pulls */
    PHASE_DRAINING, /* all is sent; waits for the answers */
    PHASE_LEAVING,
    PHASE_GONE, /* left, ended or killed, and not coming back */
};

struct client {
    uint32_t index;
    bool member;
    bool reader; /* it has no session */
    uint32_t task;
    uint64_t clock_offset_us;
    struct session *session;
    struct stream *streams[SIM_PS_MAX][2]; /* by enum session_stream_kind */
    struct sim_session *life;              /* the checker's, of this attempt */

    enum phase phase;
    uint32_t variable;            /* the next to create */
    bool assigns;                 /* it was told to, and has not yet */
    uint64_t calls_made, calling; /* the call under way; 0: none is */
    const wire_type *called;      /* its request's */
    uint64_t coming, heard_round; /* its call at the barrier, likewise; the last that it heard of */
    uint64_t defining;            /* its define under way; 0: none is */
    uint32_t defined, text;       /* the function's number, 0: it has none; its text in mind */
    uint32_t known_then, found;   /* variables that there were when a list began, and it has had */
    uint64_t listed_through;      /* the last id of its pages so far */
    uint32_t list_limit;          /* of a page; 0: as many as an answer takes */
    bool seeds;                   /* it assigns the seed, for which others wait */
    uint32_t creates, scratches;  /* variables of its own: under way, and there */
    uint32_t pushes_left, pulls_left;
    uint32_t looks_left; /* of a reader, for what there is */
    uint32_t window;
    uint32_t pushes_open, pulls_open, collectives_open;
    uint64_t tokens;
    bool hung; /* suspended for ever */
    bool leaves_done;
};

struct client *client_make(struct world *world, uint32_t index);
/* The client that waits to be another attempt of a task that is at work. */
void client_start_twin(struct world *world);
void client_drop(struct world *world, uint32_t index);
void client_step(struct world *world, struct client *client, struct session_event *event);
/* The process dies; `back`: another life of it begins later. */
void client_die(struct world *world, struct client *client, bool back);

/* What reaches it. */
void client_writable(struct world *world, struct stream *stream);
void client_message(struct world *world, struct stream *stream, struct letter *letter);
void client_lost(struct world *world, struct stream *stream);
/* `letter` NULL: `error` says why. */
void client_call_over(
    struct world *world, struct call *call, struct letter *letter, const struct sumac_error *error);

/* program.c */
void program_begin(struct world *world, struct client *client);
void program_effect(
    struct world *world, struct client *client, const struct session_effect *effect);
/* Is it waiting for what will not come? Says what. */
void program_check_waits(struct world *world, struct client *client);
