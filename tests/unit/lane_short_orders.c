/* SPDX-License-Identifier: Apache-2.0 */
/* lane_short_orders.c -- what ps 0 orders of a lane of which each take of memory fails once. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "functions.h"
#include "lane_scarce.h"
#include "step.h"

#define VARIABLE 5u /* and those after it, one for each number */
#define ELEMENTS 40u
#define GUEST 3u /* a session, and the one after it */
#define UNKNOWN 4711u

static const float values[ELEMENTS] = {1};

/* ---- a session opens, pushes and leaves ---- */

static uint8_t guest_of(const struct scarce *scarce) { return (uint8_t)(GUEST + scarce->number); }

static void open_guest(struct scarce *scarce) { talk_open(scarce->talk, guest_of(scarce)); }
static void close_guest(struct scarce *scarce) { talk_close(scarce->talk, guest_of(scarce)); }
static void decide_guest(struct scarce *scarce)
{
    talk_decide(scarce->talk, guest_of(scarce), 1, 0);
}
static void decide_guest_without(struct scarce *scarce)
{
    talk_decide(scarce->talk, guest_of(scarce), 1, 1);
}

/* As ps 0 does: what it was not told to be staged everywhere is not applied. */
static void come_and_go(struct scarce *scarce)
{
    struct talk *const talk = scarce->talk;
    const struct talk_part part = {
        .sequence = 1, .shard = VARIABLE, .shards = 1, .values = values, .count = ELEMENTS};
    struct talk_part unknown = part;

    unknown.sequence = 2;
    unknown.previous = 1;
    unknown.shard = UNKNOWN;
    scarce_order(scarce, open_guest);
    const uint64_t stream = talk_push_stream(talk, guest_of(scarce), ++scarce->generations);
    talk_part(talk, stream, &part);
    talk_commit(talk, stream, 1, 0, 0);
    talk_part(talk, stream, &unknown);
    const bool staged = scarce_said(scarce, "staged 1\n");
    scarce_order(scarce, close_guest);
    scarce_order(scarce, staged ? decide_guest : decide_guest_without);
    talk_hang_up(talk, stream);
}

static void add_one(struct scarce *scarce)
{
    talk_variable(scarce->talk, VARIABLE, ELEMENTS, UPDATE_ASSIGN_ADD);
}

TEST(a_session_opens_and_leaves)
{
    scarce_each_take(&(struct scarce_conversation){
        .prepare = add_one,
        .say = come_and_go,
        .answers = {
            {"done 1 [", {"end of stream", "done 1 voided\n"}},
            {" commit_through 1 voided 2", {" commit_through "}},
            {"closed 1 voided 2", {"end of stream", "closed 1"}}}});
}

/* ---- a variable ---- */

static void add_shards(struct scarce *scarce)
{
    const uint64_t id = VARIABLE + scarce->number;
    char name[24];
    uint64_t shape[] = {2 * ELEMENTS};
    wire_shard mine = WIRE_SHARD_INIT, other = WIRE_SHARD_INIT, *shards[] = {&mine, &other};
    wire_function own = WIRE_FUNCTION_INIT;
    wire_initializer initial = WIRE_INITIALIZER_INIT;
    wire_variable variable = WIRE_VARIABLE_INIT;
    wire_add_shards add = WIRE_ADD_SHARDS_INIT;

    (void)snprintf(name, sizeof name, "v%" PRIu64, id);
    mine.shard_id = 10 * id;
    mine.ps = 1;
    other.shard_id = 10 * id + 1;
    other.first_row = ELEMENTS;
    mine.rows = other.rows = ELEMENTS;
    mine.bytes = other.bytes = ELEMENTS * sizeof(float);
    own.function = (Sumac__V1__UpdateFunction)UPDATE_MOMENTUM;
    initial.kind = (Sumac__V1__Initializer__Kind)WIRE_INITIALIZER_ASSIGNED;
    variable.name = name;
    variable.variable_id = id;
    variable.data_type = (Sumac__V1__DataType)SUMAC_FLOAT32;
    variable.shape = shape;
    variable.n_shape = 1;
    variable.function = &own;
    variable.initializer = &initial;
    variable.shards = shards;
    variable.n_shards = 2;
    add.variable = &variable;
    talk_order_of(scarce->talk, add_shards, &add);
}

static void publish(struct scarce *scarce)
{
    wire_publish publish = WIRE_PUBLISH_INIT;

    publish.variable_id = VARIABLE + scarce->number;
    talk_order_of(scarce->talk, publish, &publish);
}

static void delete_it(struct scarce *scarce)
{
    talk_delete(scarce->talk, VARIABLE + scarce->number);
}

static void list_and_count(struct scarce *scarce)
{
    wire_list_request list = WIRE_LIST_REQUEST_INIT;
    char name[24], *names[] = {name};
    const wire_stats_request stats = WIRE_STATS_REQUEST_INIT;
    struct lane_event call = {
        .kind = LANE_EVENT_CALL, .call = 1, .call_kind = LANE_CALL_LIST, .request = &list.base};

    talk_step(scarce->talk, &call);
    (void)snprintf(name, sizeof name, "v%" PRIu64, VARIABLE + scarce->number);
    list.names = names;
    list.n_names = 1;
    talk_step(scarce->talk, &call);
    call.call = 2;
    call.call_kind = LANE_CALL_STATS;
    call.request = &stats.base;
    talk_step(scarce->talk, &call);
}

/* With a value that its creator is to assign. */
static void add_and_delete(struct scarce *scarce)
{
    scarce_order(scarce, add_shards);
    scarce_order(scarce, publish);
    list_and_count(scarce);
    scarce_order(scarce, delete_it);
}

TEST(a_variable_comes_and_goes)
{
    scarce_each_take(&(struct scarce_conversation){
        .say = add_and_delete,
        .answers = {
            {"reply ListReply\n", {"failed OUT_OF_MEMORY\n"}},
            {"reply StatsReply", {"failed OUT_OF_MEMORY\n"}}}});
}

/* ---- a function ---- */

static void define_one(struct scarce *scarce)
{
    char name[24];
    wire_define_function define = WIRE_DEFINE_FUNCTION_INIT;

    (void)snprintf(name, sizeof name, "mine%" PRIu64, scarce->number);
    define.number = UPDATE_DEFINED_FIRST - 1 + (uint32_t)scarce->number;
    define.name = name;
    define.text = (char *)(uintptr_t) "value = g";
    talk_order_of(scarce->talk, define, &define);
}

static void define_and_use(struct scarce *scarce)
{
    struct talk_part part = scarce_part(scarce, VARIABLE, values, ELEMENTS);

    part.function = UPDATE_DEFINED_FIRST - 1 + (uint32_t)scarce->number;
    scarce_order(scarce, define_one);
    talk_part(scarce->talk, scarce_push(scarce, 1), &part);
}

TEST(a_function_is_defined_and_applied)
{
    scarce_each_take(&(struct scarce_conversation){
        .prepare = add_one,
        .say = define_and_use,
        .answers = {{"done # [", {"done # voided\n"}}},
        .pushes = 1});
}

/* ---- a ps begins ---- */

static const struct lane_event started = {.kind = LANE_EVENT_START, .random = {1, 11}};

/* A ps whose configuration names no ps. False: there is no memory for it. */
static bool create(struct talk *talk)
{
    struct lane_config config = talk_config();

    config.ps_addresses = NULL;
    config.ps_count = 0;
    talk->memory = each_take_source;
    talk->now_us = config.started_us;
    talk->core = ps_core_create(&config, &talk->memory);
    talk->lane = talk->core == NULL ? NULL : ps_core_lane(talk->core);
    return talk->core != NULL;
}

/* A ps that has answered a hello knows what the hello says. Returns the takes. */
static uint64_t begin_without(uint64_t failing, uint32_t *not_created)
{
    void *state;

    each_take_reset();
    assert_int_equal(talk_setup(&state), 0);
    struct talk *const talk = state;
    each_take_begin(failing);
    if (!create(talk)) {
        const uint64_t takes = each_take_end();
        assert_int_equal(each_take_out(), 0);
        free(talk);
        ++*not_created;
        return takes;
    }
    talk_step(talk, &started);
    talk_hello(talk);
    const uint64_t takes = each_take_end();
    if (talk_has_ended(talk, talk->controller)) {
        talk_hang_up(talk, talk->controller);
        talk_hello(talk);
    }
    if (!talk->lane->exited) {
        assert_int_equal(talk->lane->ps_count, 2);
        assert_non_null(talk->lane->ps_addresses[0]);
        assert_string_equal(talk->lane->ps_addresses[0], "h0:1");
        assert_string_equal(talk->lane->ps_addresses[1], "h1:1");
    }
    assert_int_equal(talk_teardown(&state), 0);
    return takes;
}

TEST(a_ps_that_has_met_ps_0_knows_where_all_are)
{
    uint64_t failing = 1;
    uint32_t not_created = 0;

    while (begin_without(failing, &not_created) >= failing)
        failing++;
    assert_in_range(not_created, 5, failing);
}
