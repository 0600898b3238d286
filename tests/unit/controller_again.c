/* SPDX-License-Identifier: Apache-2.0 */
/* controller_again.c -- ps 0 ends after each act in turn, and begins again with its records: a
 * client that waits for an answer calls again, and the call is done. */

#include "unit.h"
#include "controller_desk.h"

static void join(struct desk *desk) { desk_join(desk, 1); }

/* It is a member of the steps from a later one on. */
static void join_once_more(struct desk *desk) { desk_join(desk, 2); }

static void define_one(struct desk *desk) { desk_define(desk, "mine"); }

static void create(struct desk *desk) { desk_create(desk, "w", false); }

static void create_to_assign(struct desk *desk) { desk_create(desk, "v", true); }

static void come(struct desk *desk) { desk_come(desk, "alone", 1, 0); }

static void end_a_round(struct desk *desk) { desk_propose(desk, "grads", 1, SUMAC_OK); }

static void delete_one(struct desk *desk) { desk_delete(desk, "w"); }

/* What is called, and what the transcript has when it is done. */
static const struct {
    void (*call)(struct desk *desk);
    const char *done, *done_before;
} deeds[] = {
    {join, "joined 1,", ""},
    {desk_leave, "left at 7", ""},
    {join_once_more, "joined 2, before 7 voided 2", ""},
    {define_one, "deleted", ""},
    {create, "created 1 of 2", ""},
    {create_to_assign, "created 2 of 2 shards, assign", ""},
    {come, "round 1 OK", ""},
    {end_a_round, "collective grads 1 OK", ""},
    {delete_one, "deleted", "failed UNKNOWN_VARIABLE"},
    {desk_leave, "left at 7", ""},
};

/* The disk writes and the ps obeys, so often. False: the process ends before all is done. */
static bool go_on(struct desk *desk, uint64_t *acts)
{
    while (desk->order_count > 0 || desk->on_disk < desk->written.count) {
        if ((*acts)-- == 0)
            return false;
        if (desk->on_disk < desk->written.count)
            desk_write_down(desk);
        else
            desk_obey_one(desk);
    }
    return true;
}

/* ps 0 ends after this number of acts. False: all is done before. */
static bool work_and_end_after(uint64_t acts)
{
    void *state = NULL;
    bool ended = false;

    desk_setup(&state);
    struct desk *const desk = state;
    desk->config.step_members = 1;
    desk_begin(desk);
    for (size_t i = 0; i < sizeof deeds / sizeof deeds[0]; i++) {
        desk->text[0] = '\0';
        deeds[i].call(desk);
        if (!go_on(desk, &acts)) {
            ended = true;
            desk_begin_again(desk);
            deeds[i].call(desk);
            desk_settle_down(desk);
        }
        const char *const before = deeds[i].done_before;
        if (strstr(desk->text, deeds[i].done) == NULL &&
            (before[0] == '\0' || strstr(desk->text, before) == NULL))
            fail_msg("%s is not done: %s", deeds[i].done, desk->text);
    }
    return desk_teardown(&state) == 0 && ended;
}

TEST(whenever_ps_0_begins_again_all_that_is_called_again_is_done)
{
    uint64_t acts = 0;

    while (work_and_end_after(acts))
        acts++;

    assert_in_range(acts, 30, 1000);
}

DESK_TEST(of_a_run_that_is_being_ended_no_round_is_ordered_again)
{
    desk_begin(desk);
    desk_joined(desk, 1);
    desk_propose(desk, "grads", 3, SUMAC_OK);
    desk_step(desk, (struct lane_event){.kind = LANE_EVENT_TERMINATE});
    desk_begin_again(desk);
    desk->text[0] = '\0';

    desk_settle_down(desk);

    assert_non_null(strstr(desk->text, "end\n"));
    assert_null(strstr(desk->text, "collective"));
}
