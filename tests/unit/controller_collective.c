/* SPDX-License-Identifier: Apache-2.0 */
/* controller_collective.c (test) -- split rounds of collectives: the first proposal is the end,
 * for every ps. */

#include "unit.h"
#include "controller_proposal.h"
#include "controller_two.h"

#define UNDER_WAY_MAX 256u

TEST(the_first_proposal_is_ordered_to_every_ps)
{
    struct two two = two_workers();

    world_forget(two.world);
    world_report_collective(two.world, 0, "grads", 3, SUMAC_OK);
    world_report_collective(two.world, 1, "grads", 3, SUMAC_DEADLINE_EXCEEDED);
    world_report_collective(two.world, 1, "grads", 4, SUMAC_DEADLINE_EXCEEDED);
    world_settle_down(two.world);

    world_expect(
        two.world,
        "ps 0, 1: collective grads 3 OK\nps 0, 1: collective grads 4 DEADLINE_EXCEEDED it is so\n");
    world_free(two.world);
}

TEST(it_is_forgotten_when_every_ps_has_answered)
{
    struct two two = two_workers();

    world_forget(two.world);
    two.world->ps[1].silent = true;
    for (uint32_t i = 0; i < 3; i++) /* said again, as it is */
        world_report_collective(two.world, 0, "grads", 3, SUMAC_OK);
    world_settle_down(two.world);
    world_expect(two.world, "ps 0, 1: collective grads 3 OK\n");

    two.world->ps[1].silent = false;
    world_settle_down(two.world);
    world_report_collective(two.world, 0, "grads", 3, SUMAC_OK); /* as of another one */
    world_settle_down(two.world);

    world_expect(two.world, "ps 0, 1: collective grads 3 OK\n");
    world_free(two.world);
}

/* What finds no place is proposed again, and then it is ordered. */
TEST(so_many_are_under_way_at_a_time)
{
    struct two two = two_workers();
    char name[16];

    two.world->ps[1].silent = true;
    for (uint32_t i = 0; i <= UNDER_WAY_MAX; i++) {
        (void)snprintf(name, sizeof name, "m%u", i);
        world_report_collective(two.world, 0, name, 1, SUMAC_OK);
    }
    two.world->ps[1].silent = false;
    for (uint32_t i = 0; i < UNDER_WAY_MAX; i++)
        world_settle_down(two.world);
    world_forget(two.world);

    world_report_collective(two.world, 0, name, 1, SUMAC_OK);
    world_settle_down(two.world);

    world_expect(two.world, "ps 0, 1: collective m256 1 OK\n");
    world_free(two.world);
}

TEST(what_there_is_no_memory_for_is_ordered_when_it_is_proposed_again)
{
    struct two two = two_workers();

    world_forget(two.world);
    two.world->out_of_memory = true;
    world_report_collective(two.world, 0, "grads", 3, SUMAC_DEADLINE_EXCEEDED);
    world_settle_down(two.world);
    world_expect(two.world, "");
    two.world->out_of_memory = false;

    world_report_collective(two.world, 0, "grads", 3, SUMAC_OK);
    world_settle_down(two.world);

    world_expect(two.world, "ps 0, 1: collective grads 3 OK\n");
    world_free(two.world);
}

TEST(what_is_no_round_is_not_ordered)
{
    struct two two = two_workers();
    wire_collective_end end = WIRE_COLLECTIVE_END_INIT;
    wire_collective_end *ends[] = {&end};
    wire_peer_report message = WIRE_PEER_REPORT_INIT;

    world_forget(two.world);
    message.collectives = ends;
    message.n_collectives = 1;
    world_report(two.world, 1, &message);
    assert_non_null(strstr(two.world->log, "the report names no round"));
    world_report_collective(two.world, 1, "", 1, SUMAC_OK);
    assert_non_null(strstr(two.world->log, "a collective's name has 1 to 256 bytes, given 0"));
    world_report_collective(two.world, 1, "grads", 1, SUMAC_UNAUTHENTICATED + 1);
    assert_non_null(strstr(two.world->log, "or ends it with status 17"));
    world_settle_down(two.world);
    world_expect(two.world, "");
    world_report_collective(two.world, 1, "grads", 1, SUMAC_UNAUTHENTICATED);
    world_settle_down(two.world);

    world_expect(two.world, "ps 0, 1: collective grads 1 UNAUTHENTICATED it is so\n");
    world_free(two.world);
}

/* Another attempt of a participant begins the round anew: how the former ended says nothing. */
TEST(the_same_round_of_other_attempts_is_another_round)
{
    struct two two = two_workers();
    struct proposal proposal;
    uint64_t attempts[] = {1, 1};

    world_forget(two.world);
    two.world->ps[1].silent = true;
    for (uint32_t i = 0; i < 2; i++) {
        propose(&proposal, "grads", 3, i == 0 ? SUMAC_ABORTED : SUMAC_OK);
        proposal.collective.attempts = attempts;
        proposal.collective.n_attempts = 2;
        world_report(two.world, 0, &proposal.report);
        attempts[1]++;
    }
    two.world->ps[1].silent = false;
    world_settle_down(two.world);

    assert_non_null(strstr(two.world->text, "collective grads 3 ABORTED"));
    assert_non_null(strstr(two.world->text, "collective grads 3 OK"));
    world_free(two.world);
}

TEST(each_round_that_a_report_proposes_is_ordered)
{
    struct two two = two_workers();
    struct proposal first, second;

    propose(&first, "grads", 3, SUMAC_OK);
    propose(&second, "grads", 4, SUMAC_OK);
    wire_collective_end *ends[] = {&first.end, &second.end};
    first.report.collectives = ends;
    first.report.n_collectives = 2;
    world_forget(two.world);

    world_report(two.world, 1, &first.report);
    world_settle_down(two.world);

    world_expect(two.world, "ps 0, 1: collective grads 3 OK\nps 0, 1: collective grads 4 OK\n");
    world_free(two.world);
}

TEST(after_the_run_no_round_is_ordered)
{
    struct two two = two_workers();

    world_ended(two.world, 1, SUMAC_REASON_STATE_LOST, "its disk is full");
    world_report_collective(two.world, 0, "grads", 1, SUMAC_OK);
    world_settle_down(two.world);

    assert_null(world_told(two.world, 0, ORDER_COLLECTIVE));
    world_free(two.world);
}
