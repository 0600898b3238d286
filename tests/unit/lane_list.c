/* SPDX-License-Identifier: Apache-2.0 */
/* lane_list.c -- the catalogue in pages: each about 1 MiB at most, every variable on one of
 * them. */
#include <inttypes.h>
#include <stdio.h>

#include "lane_talk.h"

#define SHARDS_MAX 4096u
#define ANSWER_BYTES_MAX (1u << 20)

/* Variable `id` of `shards` shards of one float32, all of them here. Nobody may use it yet. */
static void add_variable(struct talk *talk, uint64_t id, uint32_t shards)
{
    static wire_shard shard[SHARDS_MAX];
    static wire_shard *pointers[SHARDS_MAX];
    char name[32];
    uint64_t shape[] = {shards};
    wire_function own = WIRE_FUNCTION_INIT;
    wire_initializer values = WIRE_INITIALIZER_INIT;
    wire_variable variable = WIRE_VARIABLE_INIT;
    wire_add_shards add = WIRE_ADD_SHARDS_INIT;

    for (uint32_t i = 0; i < shards; i++) {
        shard[i] = (wire_shard)WIRE_SHARD_INIT;
        shard[i].shard_id = id * 100000 + i;
        shard[i].ps = 1;
        shard[i].first_row = i;
        shard[i].rows = 1;
        shard[i].bytes = 4;
        pointers[i] = &shard[i];
    }
    (void)snprintf(name, sizeof name, "v%" PRIu64, id);
    own.function = (Sumac__V1__UpdateFunction)UPDATE_ASSIGN_ADD;
    values.kind = (Sumac__V1__Initializer__Kind)WIRE_INITIALIZER_ZEROS;
    variable.name = name;
    variable.variable_id = id;
    variable.data_type = (Sumac__V1__DataType)SUMAC_FLOAT32;
    variable.shape = shape;
    variable.n_shape = 1;
    variable.function = &own;
    variable.initializer = &values;
    variable.shards = pointers;
    variable.n_shards = shards;
    add.variable = &variable;
    talk_order_of(talk, add_shards, &add);
    talk_forget(talk);
}

static void publish(struct talk *talk, uint64_t id)
{
    wire_publish publish = WIRE_PUBLISH_INIT;

    publish.variable_id = id;
    talk_order_of(talk, publish, &publish);
    talk_forget(talk);
}

static void begin(struct talk *talk, uint64_t count, uint32_t shards)
{
    talk_start(talk, NULL);
    for (uint64_t id = 1; id <= count; id++) {
        add_variable(talk, id, shards);
        publish(talk, id);
    }
}

/* The answer, lent until the next step; NULL: the call was failed, and the transcript says how. */
static const wire_list_reply *list(struct talk *talk, const wire_list_request *request)
{
    const struct lane_event call = {
        .kind = LANE_EVENT_CALL,
        .now_us = talk->now_us,
        .call = 1,
        .call_kind = LANE_CALL_LIST,
        .request = &request->base};
    struct lane_effects effects;

    ps_core_step(talk->core, &call, &effects);
    for (uint32_t i = 0; i < effects.count; i++) {
        if (effects.items[i].kind == LANE_EFFECT_REPLY)
            return (const wire_list_reply *)effects.items[i].reply;
        if (effects.items[i].kind == LANE_EFFECT_FAIL)
            print_message("%s\n", effects.items[i].error.text);
    }
    talk_step(talk, &call);
    return NULL;
}

static void
expect_list_fails(struct talk *talk, const wire_list_request *request, const char *expected)
{
    const struct lane_event call = {
        .kind = LANE_EVENT_CALL,
        .now_us = talk->now_us,
        .call = 1,
        .call_kind = LANE_CALL_LIST,
        .request = &request->base};
    struct lane_effects effects;

    ps_core_step(talk->core, &call, &effects);
    assert_int_equal(effects.count, 1);
    assert_int_equal(effects.items[0].kind, LANE_EFFECT_FAIL);
    assert_string_equal(effects.items[0].error.text, expected);
}

TALK_TEST(every_variable_is_on_one_page_of_about_1_mib)
{
    begin(talk, 7, SHARDS_MAX);
    wire_list_request request = WIRE_LIST_REQUEST_INIT;
    uint64_t seen = 0;
    uint32_t pages = 0;

    for (bool more = true; more; pages++) {
        const wire_list_reply *page = list(talk, &request);
        assert_true(page->n_variables > 0);
        assert_true(wire_packed_bytes(&page->base, 0) <= ANSWER_BYTES_MAX);
        for (size_t i = 0; i < page->n_variables; i++)
            assert_int_equal(page->variables[i]->variable_id, ++seen);
        request.after_id = seen;
        more = page->more;
    }

    assert_int_equal(seen, 7);
    assert_true(pages > 1 && pages <= 14);
}

TALK_TEST(a_page_has_as_many_as_were_asked_for)
{
    begin(talk, 5, 1);
    wire_list_request request = WIRE_LIST_REQUEST_INIT;
    request.limit = 2;
    request.after_id = 1;

    const wire_list_reply *page = list(talk, &request);
    assert_int_equal(page->n_variables, 2);
    assert_int_equal(page->variables[0]->variable_id, 2);
    assert_true(page->more);

    request.after_id = 3;
    page = list(talk, &request);
    assert_int_equal(page->n_variables, 2);
    assert_false(page->more);

    request.after_id = UINT64_MAX;
    page = list(talk, &request);
    assert_int_equal(page->n_variables, 0);
    assert_false(page->more);
    assert_int_equal(page->n_ps_addresses, 2);
}

TALK_TEST(a_page_goes_on_after_a_variable_that_is_gone)
{
    begin(talk, 4, 1);
    wire_list_request request = WIRE_LIST_REQUEST_INIT;
    talk_delete(talk, 2);
    request.after_id = 2;

    const wire_list_reply *page = list(talk, &request);

    assert_int_equal(page->n_variables, 2);
    assert_int_equal(page->variables[0]->variable_id, 3);
}

TALK_TEST(names_that_do_not_fit_are_left_for_the_next_call)
{
    char *names[] = {"v5", "v4", "v3", "v2", "v1"};

    begin(talk, 5, SHARDS_MAX);
    wire_list_request request = WIRE_LIST_REQUEST_INIT;
    request.names = names;
    request.n_names = 5;

    const wire_list_reply *page = list(talk, &request);

    assert_true(page->n_variables > 0 && page->n_variables < 5);
    assert_string_equal(page->variables[0]->name, "v5");
    assert_true(page->more);
    assert_true(wire_packed_bytes(&page->base, 0) <= ANSWER_BYTES_MAX);
}

/* 1500 names of one variable of 4096 shards, a request of 4.5 kB, would be 500 MB of answer. */
TALK_TEST(names_are_counted_and_none_is_said_twice)
{
    static char *names[1500];

    begin(talk, 2, SHARDS_MAX);
    wire_list_request request = WIRE_LIST_REQUEST_INIT;
    request.names = names;
    request.n_names = 1500;
    for (size_t i = 0; i < 1500; i++)
        names[i] = "v1";

    assert_null(list(talk, &request));
    talk_expect(talk, "failed MALFORMED\n");

    request.n_names = WIRE_LIST_NAMES_MAX;
    assert_null(list(talk, &request));
    talk_expect(talk, "failed MALFORMED\n");

    names[1] = "v2";
    request.n_names = 3;
    assert_null(list(talk, &request));
    talk_expect(talk, "failed MALFORMED\n");

    request.n_names = 2;
    assert_string_equal(list(talk, &request)->variables[0]->name, "v1");

    request.after_id = 1;
    assert_null(list(talk, &request));
    talk_expect(talk, "failed MALFORMED\n");
}

TALK_TEST(a_name_that_is_not_known_is_said)
{
    char *names[] = {"v1", "nothing"};

    begin(talk, 1, 1);
    wire_list_request request = WIRE_LIST_REQUEST_INIT;
    request.names = names;
    request.n_names = 2;

    assert_null(list(talk, &request));

    talk_expect(talk, "failed UNKNOWN_VARIABLE\n");
    expect_list_fails(talk, &request, "variable nothing is not known to ps 1");
    names[1] = "";
    expect_list_fails(talk, &request, "variable \"\" is not known to ps 1");
}

/* More sessions than one answer tells of: the open ones come first. */
TALK_TEST(statistics_count_the_sessions_that_they_leave_out)
{
    struct lane_config config = talk_config();

    config.sessions_max = 2000;
    talk_start(talk, &config);
    for (uint32_t i = 1; i <= 1200; i++) {
        uint8_t id[16] = {(uint8_t)i, (uint8_t)(i >> 8), 1};
        wire_open_session open = WIRE_OPEN_SESSION_INIT;
        open.session_id = (wire_bytes){.len = sizeof id, .data = id};
        talk_order_of(talk, open, &open);
    }
    talk_forget(talk);

    const wire_stats_reply *stats = talk_stats(talk);

    assert_int_equal(stats->n_sessions, 1000);
    assert_int_equal(stats->sessions_left_out, 200);
    assert_int_equal(stats->waits_left_out, 0);
    assert_true(wire_packed_bytes(&stats->base, 0) <= ANSWER_BYTES_MAX);
}

/* One push is being applied, and 69 others of its variable wait for that, as do as many pulls. */
TALK_TEST(statistics_name_so_many_waits_and_count_the_others)
{
    static const float values[64] = {1};
    struct lane_config config = talk_config();

    config.sessions_max = 100;
    config.staging_bytes_max = 4u << 20;
    config.inline_bytes = 64;
    talk_start(talk, &config);
    talk_variable(talk, 5, 64, UPDATE_ASSIGN_ADD);
    talk->holds_compute = true;
    for (uint8_t session = 1; session <= 70; session++) {
        const struct talk_part part = {
            .sequence = 1, .eager = true, .shard = 5, .shards = 1, .values = values, .count = 64};
        talk_open(talk, session);
        talk_part(talk, talk_push_stream(talk, session, 1), &part);
        talk_pull(talk, talk_pull_stream(talk, session), 1, 5, 1, 1);
    }
    talk->now_us += 2000000;

    const wire_stats_reply *stats = talk_stats(talk);

    assert_int_equal(stats->n_waits, 128);
    assert_int_equal(stats->waits_left_out, 69 + 70 - 128);
    assert_non_null(
        strstr(stats->waits[127], " waits for variable v5 on ps 1, whose shard is being updated"));
    talk_forget(talk);
    talk->holds_compute = false;
    talk_compute(talk);
}

/* 1500 shards are counted with about 100 kB, and a page has 256 KiB. */
TALK_TEST(a_page_that_is_full_ends)
{
    const wire_list_request request = WIRE_LIST_REQUEST_INIT;

    begin(talk, 3, 1500);

    const wire_list_reply *page = list(talk, &request);

    assert_int_equal(page->n_variables, 2);
    assert_true(page->more);
}

TALK_TEST(a_variable_that_is_being_made_is_not_known)
{
    wire_list_request request = WIRE_LIST_REQUEST_INIT;
    char *names[] = {"v2"};

    begin(talk, 1, 1);
    add_variable(talk, 2, 1);

    assert_int_equal(list(talk, &request)->n_variables, 1);
    request.names = names;
    request.n_names = 1;
    assert_null(list(talk, &request));
    talk_expect(talk, "failed UNKNOWN_VARIABLE\n");

    publish(talk, 2);
    assert_int_equal(list(talk, &request)->n_variables, 1);
}
