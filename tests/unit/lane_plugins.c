/* SPDX-License-Identifier: Apache-2.0 */
/* lane_plugins.c -- the functions of plug-ins that a ps was started with, beside those that ps 0's
 * hello says: who has others ends, and says what both have. */
#include <stdint.h>

#include "lane_talk.h"
#include "plugins.h"

static void nothing(const struct sumac_plugin_tile *tile) { (void)tile; }

#define FUNCTION(called, says)                                                                     \
    {                                                                                              \
        .name = (called), .rule = (says), .loop = nothing,                                         \
        .dtypes = SUMAC_PLUGIN_DTYPE(SUMAC_FLOAT32)                                                \
    }

static const struct sumac_plugin_function both[] = {FUNCTION("one", "r"), FUNCTION("two", "r")};
static const struct sumac_plugin_function another[] = {FUNCTION("one", "r"), FUNCTION("two", "s")};

/* What one ps was started with: `count` functions of a library of that version. */
struct started {
    const struct sumac_plugin_function *functions;
    uint32_t count; /* 0: without plug-ins */
    const char *version;
};

static struct plugins *load(struct plugins *plugins, const struct started *with)
{
    const struct sumac_plugin table = {
        .abi_version = SUMAC_PLUGIN_ABI_VERSION,
        .function_count = with->count,
        .name = "lib",
        .version = with->version,
        .functions = with->functions};

    plugins_init(plugins, &memory_heap);
    if (with->count > 0)
        assert_int_equal(plugins_add(plugins, &table, NULL), SUMAC_OK);
    return plugins;
}

/* ps 1 of a cluster of two. */
static void begin_with(struct talk *talk, const struct plugins *plugins)
{
    struct lane_config config = talk_config();

    config.plugins = plugins;
    talk->memory = memory_heap;
    talk->now_us = config.started_us;
    talk->core = ps_core_create(&config, &memory_heap);
    assert_non_null(talk->core);
    talk->lane = ps_core_lane(talk->core);
}

/* From a ps 0 that has these. */
static void greet(struct talk *talk, const struct plugins *plugins)
{
    wire_plugin_function each[SUMAC_PLUGIN_FUNCTIONS_MAX], *said[SUMAC_PLUGIN_FUNCTIONS_MAX];
    wire_peer_hello hello = talk_good_hello();

    for (uint32_t i = 0; i < plugins_count(plugins); i++) {
        struct plugin_function *const function = plugins->functions[i];
        each[i] = (wire_plugin_function)WIRE_PLUGIN_FUNCTION_INIT;
        each[i].name = function->row.name;
        each[i].plugin = function->row.plugin;
        each[i].digest = function->digest;
        said[i] = &each[i];
    }
    hello.plugin_functions = said;
    hello.n_plugin_functions = plugins_count(plugins);
    hello.n_ps_incarnations = 0;
    talk->controller = talk_stream(talk, LANE_STREAM_PEER);
    talk_order_of(talk, hello, &hello);
}

/* The plug-ins are lent to the ps for its life. */
static void end(void **talk, struct plugins *own, struct plugins *others)
{
    assert_int_equal(talk_teardown(talk), 0);
    plugins_deinit(own);
    plugins_deinit(others);
}

TEST(ps_that_were_started_with_the_same_go_together)
{
    static const struct sumac_plugin_function turned[] = {
        FUNCTION("two", "r"), FUNCTION("one", "r")};
    const struct started here = {turned, 2, "1"}, there = {both, 2, "1"};
    struct plugins own, others;
    void *talk = NULL;

    assert_int_equal(talk_setup(&talk), 0);
    begin_with(talk, load(&own, &here));

    greet(talk, load(&others, &there));

    talk_expect(talk, "report 1\n");
    end(&talk, &own, &others);
}

TEST(a_ps_with_other_plug_ins_ends_and_names_both)
{
    static const struct {
        struct started here, there;
        const char *text;
    } cases[] = {
        {{both, 2, "1"},
         {both, 1, "1"},
         "ps 1 has the function two of the plug-in lib 1, and ps 0 has none of that name: give "
         "every ps the same --plugin"},
        {{both, 1, "1"},
         {both, 2, "1"},
         "ps 0 has the function two of the plug-in lib 1, and ps 1 has none of that name: give "
         "every ps the same --plugin"},
        {{both, 2, "1.1"},
         {both, 2, "1"},
         "the function one is that of the plug-in lib 1.1 on ps 1 and that of lib 1 on ps 0, which "
         "is another: give every ps the same --plugin"},
        {{another, 2, "1"},
         {both, 2, "1"},
         "the function two is that of the plug-in lib 1 on ps 1 and that of lib 1 on ps 0, whose "
         "tables differ: give every ps the same --plugin"},
        {{both, 0, "1"},
         {both, 1, "1"},
         "ps 0 has the function one of the plug-in lib 1, and ps 1 has none of that name: give "
         "every ps the same --plugin"},
        {{both, 1, "1"},
         {both, 0, "1"},
         "ps 1 has the function one of the plug-in lib 1, and ps 0 has none of that name: give "
         "every ps the same --plugin"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plugins own, others;
        void *state_of_one = NULL;
        assert_int_equal(talk_setup(&state_of_one), 0);
        struct talk *const talk = state_of_one;
        begin_with(talk, load(&own, &cases[i].here)); /* given */

        greet(talk, load(&others, &cases[i].there)); /* when */

        talk_expect(talk, "exit 2 WRONG_CLUSTER\n"); /* then */
        assert_string_equal(talk->end.text, cases[i].text);
        end(&state_of_one, &own, &others);
    }
}
