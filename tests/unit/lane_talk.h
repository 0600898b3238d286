/* SPDX-License-Identifier: Apache-2.0 */
/* lane_talk.h -- a conversation with one lane, as text: what it is told in calls, what it says in a
 * transcript.
 *
 * The lane is ps 1 of 2; the test plays ps 0, the clients, the driver. Every stream is told that it
 * is writable as soon as its message is out, and vector work is run at once, unless the test says
 * otherwise. Answers, pulled bytes, reports and ends of streams become lines of the transcript, and
 * each message and text must be one that its reader can read:
 *
 *     staged 1 · refused 2 NON_FINITE · done 1 [3 4] · done 2 voided · greeting
 *     resend 1 · give way 2 (resend 0) · room wait 3
 *     closed 3 voided 2 · rejoin · pulled 7 [2] 1 2 3 4 · pulled 8 error TIMED_OUT · report 12
 *     beside met 1 float32 [1] 3 (on a push stream) · end of stream MALFORMED
 *     exit 143 TERMINATED
 */
#pragma once

#include "unit.h"
#include "lane_check.h"
#include "ps_core.h"

#define TALK_TEXT_BYTES 262144
#define TALK_PIECES_MAX 4096u
#define TALK_TICKS_MAX 1000u  /* of one wait: a lane that asks for more of them spins */
#define TALK_SECRET 0x5ec4e7u /* of ps 0 */
#define TALK_ENDED_MAX 16u

struct talk {
    struct memory memory;
    uint64_t bytes_taken; /* of the source, not given back, … */
    uint64_t most_bytes_taken;
    bool scarce; /* the source gives `takes_left` times more, and then nothing */
    uint32_t takes_left;
    bool short_once;    /* one take fails, and those after it do not */
    bool out_of_memory; /* the source gives no more */
    struct ps_core *core;
    struct lane *lane; /* its */
    uint64_t now_us;
    uint64_t streams, orders;
    uint64_t controller; /* the stream that orders come on */
    uint64_t ordered;    /* number of the last order that this lane, as ps 0, gave another ps; 0:
                            answered */
    uint32_t ordered_exit_code; /* if it was the end */
    bool ordered_end;
    char text[TALK_TEXT_BYTES];
    size_t text_used;
    uint64_t deaf;       /* a stream whose reader has stopped: it is not told that it is writable */
    bool holds_compute;  /* vector work is kept */
    bool holds_released; /* lent bytes are kept */
    bool shows_logs;
    bool serving;   /* it says so at its start, and otherwise before its end */
    bool connected; /* so the last report of a close says */
    char refused[SUMAC_ERROR_TEXT_BYTES]; /* what the last refusal says */
    char expected[96], given[96];         /* and its figures */
    struct sumac_error end;               /* of the exit */
    struct sumac_error closed;            /* of the last end of a stream */
    uint64_t ended[TALK_ENDED_MAX];       /* the last streams that the lane has ended */
    uint32_t ended_count;                 /* all that it has ended */
    /* Of synchronous steps, said in the hello; 0: none is taken. The first so many sessions that
     * are opened begin with step 1. */
    uint32_t step_members, initials;
    uint32_t quorum;             /* likewise; 0: all */
    bool lost;                   /* what talk_decide says */
    uint32_t aggregation;        /* of the variables that are added */
    const char *job;             /* of the sessions that are opened; NULL: worker */
    const char *name;            /* of the variables that are added; NULL: v and the id */
    struct lane_compute compute; /* kept; the lane's until COMPUTED */
    uint32_t computes;
    struct lane_bytes lent[64]; /* kept */
    uint32_t lent_count;
    bool disk_is_quick;   /* each record is written at once */
    uint64_t last_record; /* that the lane has made */
    uint8_t *journal;     /* all of them, each behind its size; replayed at the end */
    size_t journal_bytes;
    uint64_t wake_us;               /* of the last wake */
    uint64_t decided_acked_through; /* what talk_decide says beside the voided ones */
    uint64_t most_work;             /* of one step */
    wire_limits limits;             /* of the last greeting */
    uint8_t pulled[8u << 20];       /* the bytes of the last pull, all its messages */
    size_t pulled_bytes;
    uint32_t pulled_messages, pulled_spans, pulled_lent;
    uint64_t pulled_position;           /* of its last message */
    uint64_t open_step;                 /* of the last done */
    uint32_t staged_resend;             /* of the last one that was staged */
    wire_piece pieces[TALK_PIECES_MAX]; /* of the message being made */
    wire_piece *piece_pointers[TALK_PIECES_MAX];
};

/* A test whose *state is a talk; ended, and its memory looked at, afterwards. */
#define TALK_TEST(name) FIXTURE_TEST(name, struct talk *const talk, talk_setup, talk_teardown)
int talk_setup(void **state);
int talk_teardown(void **state);

/* A lane with small sizes, so that variables of a few bytes take every path: changed before
 * talk_start. */
struct lane_config talk_config(void);
/* NULL: as talk_config says. */
void talk_start(struct talk *talk, const struct lane_config *config);
/* The same before its START and ps 0's hello. */
void talk_make(struct talk *talk, const struct lane_config *config);
/* One step, its effects carried out, and what follows from them. */
void talk_step(struct talk *talk, const struct lane_event *event);
void talk_tick(struct talk *talk, uint64_t later_ms);
/* Nothing happens but the ticks that the lane asks for, until it has said these words. False: it
 * says nothing of the kind up to that time. Fails a test whose lane asks for ticks without end. */
bool talk_says_in_time(struct talk *talk, const char *words, uint64_t until_us);
/* The transcript since the last time, as expected. */
#define talk_expect(talk, ...) talk_expect_at(talk, __FILE__, __LINE__, __VA_ARGS__)
void talk_expect_at(struct talk *talk, const char *file, int line, const char *expected);
void talk_forget(struct talk *talk);
/* Has the lane ended that stream lately? */
static inline bool talk_has_ended(const struct talk *talk, uint64_t stream)
{
    bool ended = false;

    for (uint32_t i = 0; i < TALK_ENDED_MAX; i++)
        ended = ended || (stream != 0 && talk->ended[i] == stream);
    return ended;
}
/* How often the transcript since then has these words. */
static inline uint32_t talk_times_said(const struct talk *talk, const char *what)
{
    uint32_t times = 0;

    for (const char *at = talk->text; (at = strstr(at, what)) != NULL; at++)
        times++;
    return times;
}

/* The disk has all records, or those up to that one. */
void talk_recorded(struct talk *talk);
void talk_recorded_up_to(struct talk *talk, uint64_t record);
/* A record of the lane, and, at the end, another lane that they make what this one is. */
void talk_keep_record(struct talk *talk, const struct lane_effect *effect);
void talk_end_journal(struct talk *talk);
/* Another lane that the records so far make; the caller destroys it. */
struct lane *talk_replayed(const struct talk *talk);

/* Sixteen times that byte. */
wire_bytes talk_id(uint8_t session, uint8_t id[16]);
/* As ps 0. */
/* On a new stream. */
void talk_hello(struct talk *talk);
/* … which says that the cluster is in that epoch. */
void talk_hello_of(struct talk *talk, uint64_t epoch);
/* The hello that ps 0 said in talk_start. */
static inline wire_peer_hello talk_good_hello(void)
{
    static char *addresses[] = {"h0:1", "h1:1"};
    static uint64_t incarnations[] = {0x1000, 0};
    wire_peer_hello hello = WIRE_PEER_HELLO_INIT;

    hello.protocol_version = WIRE_PROTOCOL_VERSION;
    hello.cluster_id = 0xC1;
    hello.epoch = 1;
    hello.controller_incarnation = 0x1000;
    hello.controller_secret = TALK_SECRET;
    hello.index = 1;
    hello.n_ps_addresses = hello.n_ps_incarnations = 2;
    hello.ps_addresses = addresses;
    hello.ps_incarnations = incarnations;
    return hello;
}
void talk_order(struct talk *talk, wire_peer_order *order);
/* An order of one kind, a member of wire_peer_order. */
#define talk_order_of(talk, kind, body)                                                            \
    do {                                                                                           \
        wire_peer_order made_order = WIRE_PEER_ORDER_INIT;                                         \
        made_order.kind = (body);                                                                  \
        talk_order(talk, &made_order);                                                             \
    } while (0)
void talk_open(struct talk *talk, uint8_t session);
/* What a synchronous step is made of: of these sessions, a digit each. */
void talk_take(struct talk *talk, uint64_t step, const char *sessions);
/* From which synchronous step on it is a member. */
void talk_first_step(struct talk *talk, uint8_t session, uint64_t step);
void talk_close(struct talk *talk, uint8_t session);
void talk_close_for(struct talk *talk, uint8_t session, wire_close_cause *cause);
void talk_decide(struct talk *talk, uint8_t session, uint64_t final, uint64_t voided);
/* A float32 vector of one shard here, published: its id is the shard's as well. */
void talk_variable(struct talk *talk, uint64_t id, uint64_t elements, uint32_t function);
void talk_add(
    struct talk *talk, uint64_t id, uint64_t rows, uint64_t columns, enum sumac_dtype dtype,
    uint32_t function, int initializer);
void talk_delete(struct talk *talk, uint64_t id);

/* As a client. */
uint64_t talk_stream(struct talk *talk, enum lane_stream_kind kind);
/* A push stream that has said hello. */
uint64_t talk_push_stream(struct talk *talk, uint8_t session, uint64_t generation);
uint64_t talk_pull_stream(struct talk *talk, uint8_t session);
void talk_hang_up(struct talk *talk, uint64_t stream);
void talk_writable(struct talk *talk, uint64_t stream);
void talk_push(
    struct talk *talk, uint64_t stream, wire_push_request *request, const void *payload,
    size_t bytes);
/* A message of that part alone. */
void talk_push_part(
    struct talk *talk, uint64_t stream, wire_part *part, const void *payload, size_t bytes);

struct talk_part {
    uint64_t sequence, previous;
    bool eager;
    uint64_t shard; /* first of `shards` consecutive ids */
    uint32_t shards;
    uint64_t offset;     /* elements */
    const float *values; /* `count` for each shard */
    uint32_t count;
    uint32_t function; /* 0: the variable's own */
    uint64_t declared; /* bytes; 0: as many as there are */
    uint64_t room;     /* that it asks for in the pool; 0: none */
    uint64_t started;  /* its age */
    uint64_t based_on, checksum;
    uint32_t layout_epoch, resend;
    bool allow_non_finite, synchronous;
    uint64_t step; /* of a synchronous one */
    double weight; /* 0: 1, unless it is … */
    bool zero_weight;
    double scale;                              /* 0: none */
    const wire_hyperparameter *hyperparameter; /* of the function */
    wire_commit *commit;                       /* in the same message; NULL: none */
    wire_collective *collective;               /* that it contributes to; NULL: none */
};
void talk_part(struct talk *talk, uint64_t stream, const struct talk_part *part);
/* Its header alone, which asks for room. */
void talk_ask(struct talk *talk, uint64_t stream, const struct talk_part *part);
void talk_withdraw(struct talk *talk, uint64_t stream, uint64_t sequence, uint32_t resend);
/* The message of it that has the elements [at, at + count). */
void talk_part_step(
    struct talk *talk, uint64_t stream, const struct talk_part *part, uint32_t at, uint32_t count);
/* The same push in messages of `step` elements each. */
void talk_part_in_steps(
    struct talk *talk, uint64_t stream, const struct talk_part *part, uint32_t step);
void talk_commit(
    struct talk *talk, uint64_t stream, uint64_t commit_through, uint64_t voided,
    uint64_t acked_through);
/* The same, with the session's clock. */
void talk_commit_at(
    struct talk *talk, uint64_t stream, uint64_t commit_through, uint64_t voided,
    uint64_t acked_through, uint64_t clock);
void talk_pull(
    struct talk *talk, uint64_t stream, uint64_t request, uint64_t shard, uint32_t shards,
    uint64_t after_sequence);
void talk_cancel(struct talk *talk, uint64_t stream, uint64_t request);
/* The answer to a call of Stats, lent until the next step. */
const wire_stats_reply *talk_stats(struct talk *talk);
/* Kept vector work is run, and COMPUTED. */
void talk_compute(struct talk *talk);
/* Kept bytes are released. */
void talk_release(struct talk *talk);
