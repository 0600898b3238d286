/* SPDX-License-Identifier: Apache-2.0 */
/* checker_barrier.c -- barriers: no round passes without an arrival of each member, a round ends
 * for all alike, and none waits for who is settled. */
#include <stdio.h>
#include <string.h>

#include "checker.h"
#include "process_client.h"

void checker_comes(struct world *world, const struct client *client)
{
    world->checker->arrivals[client->task]++;
}

/* Each arrival is to one round: that it is said again does not make another. */
static void passed(struct world *world)
{
    struct checker *checker = world->checker;

    checker->rounds_passed++;
    made(world, MADE_round_passed);
    for (uint32_t task = 0; task < world->member_count; task++)
        if (checker->arrivals[task] < checker->rounds_passed)
            checker_violation(world, "a barrier passes more often than a member has come to it");
}

bool checker_had_left(const struct world *world, uint32_t task, uint64_t until_us)
{
    const struct checker *checker = world->checker;
    bool left = false;

    for (uint32_t i = 0; i < checker->life_count; i++) {
        const struct sim_session *life = checker->lives[i];
        const struct client *client = world->clients[life->client];
        if (!client->member || client->task != task)
            continue;
        if (!life->left || life->left_us + CHECKER_IN_TIME_US > until_us)
            return false;
        left = true;
    }
    return left;
}

static void check_late(struct world *world, const char *message)
{
    char name[32];

    for (uint32_t task = 0; task < world->member_count; task++) {
        snprintf(name, sizeof name, "worker %u (", task);
        if (strstr(message, name) != NULL && checker_had_left(world, task, world->now_us))
            checker_violation(world, "a barrier waits for a member that has left");
    }
}

static void first_heard(struct world *world, const wire_barrier_reply *reply)
{
    made_if(world, MADE_round_late, reply->status == SUMAC_DEADLINE_EXCEEDED);
    made_if(world, MADE_round_gone, reply->reason == (Sumac__V1__Reason)SUMAC_REASON_MEMBER_GONE);
    if (reply->status == SUMAC_OK)
        passed(world);
    else if (reply->status == SUMAC_DEADLINE_EXCEEDED)
        check_late(world, reply->message);
}

void checker_round_over(struct world *world, const wire_barrier_reply *reply)
{
    struct round_seen *seen = &world->checker->rounds[reply->round % SIM_ROUNDS_MAX];

    if (world->checker->state_lost || reply->reason == (Sumac__V1__Reason)SUMAC_REASON_ROUND_OVER)
        return;
    if (reply->round >= SIM_ROUNDS_MAX) {
        checker_violation(world, "a barrier has more rounds than there were arrivals");
        return;
    }
    if (!seen->heard) {
        *seen = (struct round_seen){.heard = true, .status = reply->status};
        snprintf(seen->message, sizeof seen->message, "%s", reply->message);
        first_heard(world, reply);
    } else if (seen->status != reply->status || strcmp(seen->message, reply->message) != 0) {
        checker_violation(world, "a round of a barrier ends for one otherwise than for another");
    }
}
