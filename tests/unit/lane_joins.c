/* SPDX-License-Identifier: Apache-2.0 */
/* lane_joins.c -- where a session that is opened begins, and what ps 0 tells of the other ps. */
#include "lane_talk.h"

/* As if it had finished as many steps: otherwise it would hold up all who are ahead of it. */
TALK_TEST(who_joins_starts_at_the_slowest_clock)
{
    talk_start(talk, NULL);
    talk_open(talk, 1);
    talk_commit_at(talk, talk_push_stream(talk, 1, 1), 0, 0, 0, 9);
    talk_forget(talk);

    talk_open(talk, 2);
    talk_expect(talk, "report 3 clock 9\n");
    talk_open(talk, 3);

    talk_expect(talk, "report 4 clock 9\n"); /* the one before it counts */
}

/* On a new stream of the same ps 0. */
static void hello_with(struct talk *talk, uint64_t incarnation_of_ps_2)
{
    char *addresses[] = {"h0:1", "h1:1", "h2:1"};
    uint64_t incarnations[] = {0x1000, 0, incarnation_of_ps_2};
    wire_peer_hello hello = talk_good_hello();

    talk->controller = talk_stream(talk, LANE_STREAM_PEER);
    hello.n_ps_addresses = hello.n_ps_incarnations = 3;
    hello.ps_addresses = addresses;
    hello.ps_incarnations = incarnations;
    talk_order_of(talk, hello, &hello);
}

TALK_TEST(another_ps_that_came_back_without_its_state_ends_this_one)
{
    talk_start(talk, NULL);
    hello_with(talk, 0x1002);
    hello_with(talk, 0); /* ps 0 has not met it again: that says nothing */
    hello_with(talk, 0x1002);
    assert_null(strstr(talk->text, "exit"));

    hello_with(talk, 0x2002);

    assert_non_null(strstr(talk->text, "exit 138 STATE_LOST\n"));
    assert_non_null(strstr(
        talk->end.text,
        "ps 2 came back without its state; start the whole run again, ps and workers"));
}
