/* SPDX-License-Identifier: Apache-2.0 */
/* lane_disobeyed.c -- an order that cannot be obeyed: ps 0 is told so, and the lane is as it was.
 */
#include "lane_opened.h"

#define SHORT_ID_BYTES 15u

/* From the same ps 0, on a new stream. */
static void hello_of_version(struct talk *talk, uint32_t protocol_version)
{
    wire_peer_hello hello = talk_good_hello();

    talk->controller = talk_stream(talk, LANE_STREAM_PEER);
    hello.protocol_version = protocol_version;
    hello.n_ps_incarnations = 0;
    talk_order_of(talk, hello, &hello);
}

TALK_TEST(a_ps_0_of_another_protocol_version_is_not_obeyed)
{
    talk_start(talk, NULL);
    const uint64_t first = talk->controller;

    hello_of_version(talk, WIRE_PROTOCOL_VERSION + 1); /* when */

    talk_expect(talk, "report 2 error PROTOCOL_VERSION\n");
    talk_open(talk, 1); /* on that stream */
    talk_expect(talk, "end of stream MALFORMED\n");
    talk->controller = first;
    talk_open(talk, 1);
    talk_expect(talk, "report 4\n");
}

/* Its first bytes are session 1's. */
static wire_bytes short_id(uint8_t id[16])
{
    memset(id, 1, 16);
    return (wire_bytes){.len = SHORT_ID_BYTES, .data = id};
}

TALK_TEST(a_session_id_that_is_too_short_names_no_session)
{
    const uint64_t stream = begin(talk);
    uint8_t id[16];
    wire_open_session open = WIRE_OPEN_SESSION_INIT;
    wire_close_session close = WIRE_CLOSE_SESSION_INIT;
    wire_decide_session decide = WIRE_DECIDE_SESSION_INIT;
    wire_peer_order opens = WIRE_PEER_ORDER_INIT, closes = opens, decides = opens;

    open.session_id = close.session_id = decide.session_id = short_id(id);
    open.role = SUMAC__V1__ROLE__ROLE_OBSERVER;
    opens.open = &open;
    closes.close = &close;
    decides.decide = &decide;

    talk_order(talk, &opens);
    talk_order(talk, &closes);
    talk_order(talk, &decides);

    talk_expect(
        talk, "report 5 error MALFORMED\nreport 6 error MALFORMED\nreport 7 error MALFORMED\n");
    send(talk, stream, 1, 0); /* it is open */
    talk_expect(talk, "staged 1\n");
}

TALK_TEST(a_session_that_there_is_no_memory_for_is_not_open)
{
    talk_start(talk, NULL);

    talk->out_of_memory = true; /* when */
    talk_open(talk, 1);

    talk_expect(talk, "report 2 error OUT_OF_MEMORY\n");
    talk->out_of_memory = false;
    (void)talk_push_stream(talk, 1, 1);
    talk_expect(talk, "greeting\nrejoin\n");
    talk_open(talk, 1); /* again */
    talk_expect(talk, "report 3\n");
}

TALK_TEST(add_shards_that_names_no_variable_adds_none)
{
    wire_add_shards add = WIRE_ADD_SHARDS_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;

    talk_start(talk, NULL);
    order.add_shards = &add;

    talk_order(talk, &order);

    talk_expect(talk, "report 2 error MALFORMED\n");
}

/* The second of its sessions. */
TALK_TEST(a_take_with_an_id_that_is_too_short_is_refused)
{
    uint8_t first[16], second[16];
    wire_take_step take = WIRE_TAKE_STEP_INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;

    talk->step_members = talk->quorum = 1;
    talk_start(talk, NULL);
    talk_open(talk, 1);
    talk_forget(talk);
    wire_bytes ids[] = {talk_id(1, first), short_id(second)};
    take.step = 1;
    take.session_ids = ids;
    take.n_session_ids = 2;
    order.take = &take;

    talk_order(talk, &order);

    talk_expect(talk, "report 3 error MALFORMED\n");
}

TALK_TEST(a_first_step_is_answered_whether_its_session_is_here_or_not)
{
    (void)begin(talk);

    talk_first_step(talk, 1, 2);
    talk_first_step(talk, 7, 2);

    talk_expect(talk, "report 5\nreport 6\n");
}
