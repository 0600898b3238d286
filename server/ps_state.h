/* SPDX-License-Identifier: Apache-2.0 */
/* ps_state.h -- the data structures of a running ps; inside server/ps*.c only.
 *
 *   ps ─┬─ links ── link ── the serving end of a stream or a call, by the lane's number for it
 *       ├─ peers ── peer ── ps 0's end of the stream to another ps, and when to dial it again
 *       ├─ probe            another ps's question at ps 0's listed address
 *       ├─ pool             vector work that is out
 *       └─ released ─ held  bytes that gRPC has let go of, from whatever thread
 *
 * One thread owns all of it; other threads only push to `released`.
 */
#pragma once

#include <signal.h>

#include "compute_pool.h"
#include "huge_pages.h"
#include "lane.h"
#include "list.h"
#include "ps.h"
#include "ps_core.h"
#include "release_queue.h"
#include "rpc.h"

#define PS_LINK_BITS 14u
#define PS_LINKS_MAX (1u << PS_LINK_BITS)
#define PS_CALLS_PER_METHOD_MAX 512u /* unary ones that wait */
#define PS_CALLS_MIN 4096u           /* by default */
#define PS_CALLS_PER_SESSION 32u     /* likewise */
/* Half are streams', a quarter of these are the sessions': one for pushes, one for pulls. */
#define PS_CALLS_PER_SESSION_MIN 16u
#define PS_SESSIONS_MIN 32u
#define PS_GRANT_BYTES_MIN 65536u /* of staging, for each session */
#define PS_CONNECTIONS_MIN 1024u
/* A client has two, and may be back before its old ones are gone. */
#define PS_CONNECTIONS_PER_SESSION 4u
#define PS_DESCRIPTORS_OWN 64u /* that are no client's, beside one for each ps */
#define PS_CONNECTIONS_TOLD_MS 10000u
#define PS_OBSERVERS_SPARE 8u /* places beside those of the listed members */
#define PS_TICK_MS_MAX 100u
#define PS_DRAIN_MS_MAX 2000u  /* after --terminate-ms; with the two below it the 2.75 s, … */
#define PS_LINGER_MS 250u      /* … that the help of that option */
#define PS_GOODBYE_MS_MAX 500u /* and deploy/README.md say */
#define PS_CLOSE_MS_MAX 10000u /* for memory and threads to be given back */
#define PS_HALF_CLOSED_MS 1000u
#define PS_REDIAL_MS_MIN 20u
#define PS_REDIAL_MS_MAX 1000u
#define PS_LOOK_ROUND_MS 1000u
#define PS_BULK_BYTES 65536u /* from here on a message is one of bulk */
#define PS_LOOKS_PER_TURN 16u
/* Answers that go one after the other before the network is looked at. */
#define PS_UNASKED_PER_TURN_MAX 32u
#define PS_UNHEARD_US_MAX 4000u /* of work on what is there, and then the network is looked at */
#define PS_EVENT_US 8u          /* what one takes beside its step and its unpacking */
#define PS_UNPACKED_PER_US 1024u
#define PS_EVENTS_PER_TURN_MAX 256u /* that were asked for: then the clock is looked at */

struct ps;

/* A place of the table of links. Its number is (how many came before it << PS_LINK_BITS) | place:
 * never 0, never used again. */
struct ps_link {
    struct ps *ps;
    struct rpc_call *call; /* NULL: the place is free */
    uint64_t id;
    uint32_t next_free;
    bool is_stream;
    bool finished; /* replied to, failed or closed from here: the lane is not told of its end twice
                    */
    enum lane_stream_kind stream_kind;
    bool half_closed;  /* its client will send no more */
    uint64_t spoke_us; /* when it last said or was said something, once it is half closed */
    bool bulky;        /* its last message was of a long pull: the next one waits for its turn */
    bool waits;        /* it is in the queue for that */
    LINKS(struct ps_link) in_turns;
};

/* Streams that may go on with pulls, in the order in which they became writable. */
struct ps_turns {
    LIST(struct ps_link) waiting;
    uint32_t bulky;   /* streams in a long pull */
    uint32_t unasked; /* answers to pulls beyond what was asked since the network was looked at */
};

struct ps_links {
    struct ps_link *places; /* PS_LINKS_MAX of them, touched as they are first used */
    uint32_t used;          /* places that ever were in use */
    uint32_t first_free;    /* PS_LINKS_MAX: none */
    uint32_t half_closed;
    uint64_t made;
};

struct ps_peer {
    struct ps *ps;
    uint32_t index;
    char *address; /* NULL: not to be dialled */
    struct rpc_channel *channel;
    struct rpc_call *call; /* NULL: between two attempts */
    bool up;
    uint32_t failures;
    uint64_t redial_us; /* with call NULL */
};

/* Of another ps than ps 0, before the first join. */
struct ps_probe {
    struct rpc_channel *channel;
    struct rpc_call *call; /* NULL: between two tries */
    uint64_t due_us;       /* with call NULL: the next one */
};

struct ps_held {
    struct release_node node; /* first: a node is its held */
    struct release_queue *released;
};

/* Fresh bits for the lane, fetched from the kernel a page at a time. */
struct ps_random {
    uint64_t bits[256];
    uint32_t used;
};

struct ps_lane_config {
    struct lane_config lane;
    const char *addresses[LANE_PS_MAX];
    const char **members_jobs;
    uint32_t *members_indices;
    const char **members_addresses;
    uint32_t port; /* of the own task's address */
};

struct ps {
    struct ps_options options; /* with the defaults filled in */
    struct ps_lane_config config;
    uint32_t index;
    struct ps_core *core;
    struct huge_pages pages;
    struct memory lane_memory; /* of these and the heap, counted */
    uint64_t lane_bytes,
        lane_bytes_most; /* that the lane has of it; since the heap was last trimmed */
    bool stepping;
    struct rpc_poller *poller;
    struct rpc_server *server;
    struct compute_pool *pool;
    struct ps_links links;
    struct ps_link newcomer; /* whom calls belong to that have no link yet */
    struct ps_turns turns;
    uint64_t unheard_us; /* of work, about, since a look at the network has found nothing */
    struct ps_peer peers[LANE_PS_MAX];
    struct ps_probe probe;
    struct release_queue released;
    struct pool helds;
    struct rpc_payload *payload; /* of the message that is being sent */
    uint32_t payload_capacity;
    struct ps_random random;
    sigset_t signals;
    struct sigaction pipe_before;
    int signalled;       /* the first signal's number; 0: none */
    bool hurried;        /* a second one came */
    uint64_t stepped_us; /* the time of the lane's last event, by which it goes */
    uint64_t wake_us, ticked_us, redial_us, looked_round_us, ticked_cpu_us, looked_cpu_us;
    uint64_t resident_bytes;
    uint64_t kept_bytes; /* of it, that nobody may have any more; as the heap was last trimmed */
    struct rpc_connections connections,
        connections_told; /* at the last look; when it was last logged */
    uint64_t connections_told_us;
    bool exiting;
    int exit_code;
    struct sumac_error end; /* what streams and calls are told that an exit ends */
};

/* ps.c */
/* Once round the loop: what is due, what was computed, what has arrived. */
void ps_turn(struct ps *ps);

/* ps_config.c: what the lane is told of the cluster. Fails  INVALID_ARGUMENT, naming what to
 * change. */
void ps_options_fill(struct ps_options *options);
enum sumac_status ps_config_make(
    const struct ps_options *options, struct ps_lane_config *config, struct sumac_error *error);
void ps_config_free(struct ps_lane_config *config);
/* Does this ps listen where its listed address may not lead: at another port, or at another address
 * of its host? */
bool ps_config_listens_elsewhere(const struct ps_options *options, uint32_t port);

/* ps_links.c */
bool ps_links_init(struct ps_links *links);
void ps_links_deinit(struct ps_links *links);
/* NULL: PS_LINKS_MAX are in use. */
struct ps_link *ps_links_add(struct ps_links *links, struct ps *ps, struct rpc_call *call);
/* NULL: gone. */
struct ps_link *ps_links_find(const struct ps_links *links, uint64_t id);
void ps_links_remove(struct ps_links *links, struct ps_link *link);

/* ps_turns.c: one message of long pulls, or a few short ones, after another, and what else has
 * arrived between any two of them */
/* Is the message that it says now one of a long pull? */
void ps_turns_note(struct ps_turns *turns, struct ps_link *link, bool bulky);
/* A pull has arrived. */
void ps_turns_asked(struct ps_turns *turns);
/* What has arrived was looked for, and is at hand no more. */
void ps_turns_looked(struct ps_turns *turns);
/* It may say another: does that wait for its turn? */
bool ps_turns_wait(struct ps_turns *turns, struct ps_link *link);
/* It has gone. */
void ps_turns_forget(struct ps_turns *turns, struct ps_link *link);
/* The one whose turn it is, out of the queue; NULL: none waits. */
struct ps_link *ps_turns_take(struct ps_turns *turns);

/* ps_services.c: rpc's handlers, which make events */
enum sumac_status ps_services_add(struct ps *ps, struct sumac_error *error);
/* Let the streams whose turn it is say their next messages: one of a long pull, or a few short
 * ones. */
void ps_services_turn(struct ps *ps);
/* Half-closed streams to which nothing has been said for a while are over. */
void ps_services_tick(struct ps *ps, uint64_t now_us);
/* Every stream and call that is left is told why it ends. Returns how many are clients' streams. */
uint32_t ps_services_end(struct ps *ps);

/* ps_effects.c */
void ps_step(struct ps *ps, struct lane_event *event);
void ps_exit(struct ps *ps, int exit_code);
void ps_peer_dial(struct ps *ps, uint32_t index, const char *address);
void ps_peer_order(struct ps *ps, uint32_t index, const wire_peer_order *order);
void ps_carry_out(struct ps *ps, const struct lane_effect *effect);
/* What gRPC has let go of, to the lane (or, once that has ended, nowhere). */
void ps_take_released(struct ps *ps);

/* ps_peers.c */
/* Dial those whose time has come, and note in redial_us when the next one's comes. */
void ps_peers_tick(struct ps *ps, uint64_t now_us);
/* Say no more; returns how many streams are still open. */
uint32_t ps_peers_end(struct ps *ps);
void ps_peers_close(struct ps *ps);

/* ps_probe.c */
/* Ask at ps 0's listed address who answers there, for as long as the lane wants to know. */
void ps_probe_tick(struct ps *ps, uint64_t now_us);
void ps_probe_end(struct ps *ps);

/* ps_machine.c: the machine below */
uint64_t ps_now_us(void);
/* Processor time of this thread. */
uint64_t ps_cpu_us(void);
bool ps_random_init(struct ps_random *random);
uint64_t ps_random_bits(struct ps_random *random);
/* Resident bytes of this process; 0: unknown. */
uint64_t ps_resident_bytes(void);
/* Bytes of memory that this machine has, or that its control group leaves to it; 0: unknown. */
uint64_t ps_memory_bytes(void);
/* Files and sockets that this process may have open. */
uint64_t ps_descriptors(void);
/* What the heap keeps between what is in use goes back to the system. */
void ps_heap_trim(void);
uint32_t ps_processors(void);
/* "2026-11-21T14:02:03.123Z ps 0: text\n" into `line`, cut to fit; returns its length. */
uint32_t
ps_log_line(uint64_t wall_ms, uint32_t index, const char *text, char *line, uint32_t line_bytes);
/* One line on standard error, in one write. */
void ps_log(uint32_t index, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Log to the descriptor that SUMAC_LOG_FD names, if it names one, instead of the standard error
 * that this process began with. A strategy sets the variable for the ps that it starts. */
void ps_log_move(void);
/* Block SIGTERM and SIGINT, here and in threads made later, and ignore SIGPIPE; take one of the
 * former that is pending: its number, or 0. */
void ps_signals_block(struct ps *ps);
int ps_signals_take(const struct ps *ps);
void ps_signals_restore(const struct ps *ps);
/* Exit with this code when `ms` milliseconds are over, unless ps_signals_restore comes first: the
 * shutdown of gRPC may wait without limit for a thread that it could not start. */
void ps_exit_within(int exit_code, uint32_t ms);
/* Without a word to gRPC, whose shutdown may wait for threads that it could not start. */
void ps_exit_at_once(int exit_code);
