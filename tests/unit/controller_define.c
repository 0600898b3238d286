/* SPDX-License-Identifier: Apache-2.0 */
/* controller_define.c (test) -- a text becomes a function of the cluster: of one number, once every
 * ps has it. */
#include <math.h>

#include "unit.h"
#include "controller_two.h"
#include "plugins.h"

TEST(a_define_is_answered_when_every_ps_has_it)
{
    struct two two = two_workers(); /* given */

    world_forget(two.world);
    two.world->ps[1].silent = true;

    world_define(two.world, two.first, "mine", "value = g"); /* when */
    world_define(two.world, two.second, "mine", "value = g");
    world_functions(two.world);
    world_settle_down(two.world);

    world_expect(
        two.world, "ps 0, 1: define 64 mine\n"
                   "5: functions\n"); /* then: who knows its number may use it everywhere */
    two.world->ps[1].silent = false;
    world_settle_down(two.world);
    world_expect(two.world, "3: function 64\n4: function 64\n");
    world_functions(two.world);
    world_expect(two.world, "6: functions 64 mine \"value = g\"\n");
    world_free(two.world);
}

TEST(one_name_has_one_text_and_one_number)
{
    struct two two = two_workers();

    world_define(two.world, two.first, "mine", "value = g"); /* given */
    world_settle_down(two.world);
    world_forget(two.world);

    world_define(two.world, two.second, "mine", "value = g"); /* when */
    world_define(two.world, two.second, "mine", "value = g ");
    world_define(two.world, two.second, "adam", "value = g");
    world_define(two.world, two.second, "bad", "value = g +");
    world_define(two.world, two.second, "next", "value = g");
    world_settle_down(two.world);

    world_expect(
        two.world,
        "4: function 64\n"
        "5: ALREADY_EXISTS ALREADY_EXISTS function mine exists with another text: its line 1 is "
        "“value = g”, that of the one given “value = g ”; define yours under another name\n"
        "6: INVALID_ARGUMENT BAD_NAME adam is a function that every ps has: define yours under "
        "another name\n"
        "7: INVALID_ARGUMENT BAD_EXPRESSION line 1, column 12: the end of the text: expected a "
        "number, a name, a function, - or ( here\n"
        "ps 0, 1: define 65 next\n"
        "8: function 65\n"); /* then */
    assert_true(world_logged(two.world, "worker 0 defines the function mine\n"));
    assert_false(world_logged(two.world, "worker 1 defines the function mine\n")); /* it did not */
    world_free(two.world);
}

TEST(a_define_that_waits_too_long_says_for_whom_and_goes_on)
{
    struct two two = two_workers();

    two.world->ps[1].never_defines = true; /* given */
    world_forget(two.world);

    world_define(two.world, two.first, "mine", "value = g"); /* when */
    for (int i = 0; i < 6; i++) {
        world_pass(two.world, SECOND);
        world_report_renewed(two.world, 0, two.first);
        world_report_renewed(two.world, 0, two.second);
    }

    assert_non_null(strstr(two.world->text, "define 64 mine\n")); /* then */
    assert_non_null(strstr(
        two.world->text,
        "3: DEADLINE_EXCEEDED TIMED_OUT after 5 s define of mine waits for ps 1 at h1:1"));
    two.world->ps[1].never_defines = false;
    world_down(two.world, 1);
    world_up(two.world, 1);
    world_settle_down(two.world);
    world_forget(two.world);
    world_define(two.world, two.first, "mine", "value = g");
    assert_non_null(strstr(two.world->text, "function 64\n"));
    world_free(two.world);
}

TEST(a_ps_that_reads_the_text_otherwise_is_said)
{
    struct two two = two_workers();

    two.world->ps[1].refuses_functions = true; /* given */
    world_forget(two.world);

    world_define(two.world, two.first, "mine", "value = g"); /* when */
    world_settle_down(two.world);
    world_define(two.world, two.second, "mine", "value = g");
    world_functions(two.world);

    world_expect(
        two.world,
        "ps 0, 1: define 64 mine\n"
        "3: FAILED_PRECONDITION UNSUPPORTED a ps does not take the function mine, as the log of ps "
        "0 says: run the same release on every ps\n"
        "4: FAILED_PRECONDITION UNSUPPORTED a ps does not take the function mine, as the log of ps "
        "0 says: run the same release on every ps\n"
        "5: functions\n"); /* then */
    assert_true(world_logged(two.world, "ps 1 at h1:1 does not take the function mine: "));
    world_free(two.world);
}

TEST(a_variable_may_have_a_function_that_was_defined)
{
    struct definition definition;
    struct two two = two_workers_defining_w(&definition);

    definition.function.function = (Sumac__V1__UpdateFunction)64;

    world_create(two.world, two.first, &definition.variable, 0); /* given: there is none yet */
    assert_non_null(strstr(two.world->text, "3: INVALID_ARGUMENT UNKNOWN_FUNCTION"));
    world_define(
        two.world, two.first, "mine",
        "hyperparameters: learning_rate = 1\nvalue = value + learning_rate * g");
    world_settle_down(two.world);
    world_forget(two.world);

    world_create(two.world, two.first, &definition.variable, 0); /* when */
    world_settle_down(two.world);

    assert_non_null(strstr(two.world->text, "5: created 1")); /* then */
    world_free(two.world);
}

/* ---- of plug-ins ---- */

static void nothing(const struct sumac_plugin_tile *tile) { (void)tile; }

static const struct sumac_plugin_hyperparameter takes[] = {
    {.name = "learning_rate", .default_value = 0.5, .most = INFINITY},
    {.name = "own", .default_value = 1, .most = 2, .flags = SUMAC_PLUGIN_BELOW_MOST}};
static const struct sumac_plugin_slot keeps[] = {{.name = "s", .initial_from = "own"}};
static const struct sumac_plugin_function functions[] = {
    {.name = "shipped",
     .rule = "nothing at all",
     .hyperparameters = takes,
     .hyperparameter_count = 2,
     .slots = keeps,
     .slot_count = 1,
     .dtypes = SUMAC_PLUGIN_DTYPE(SUMAC_FLOAT64),
     .repeats = SUMAC_PLUGIN_REPEATS_LAST_WINS,
     .counts_steps = true,
     .loop = nothing}};
static const struct sumac_plugin table = {
    .abi_version = SUMAC_PLUGIN_ABI_VERSION,
    .function_count = 1,
    .name = "lib",
    .version = "1.0",
    .functions = functions};

/* Two workers, with ps that were started with that plug-in. */
static struct two two_with_plugins(struct plugins *plugins)
{
    struct two two = {.world = world_prepare(2, 3)};

    plugins_init(plugins, &memory_heap);
    assert_int_equal(plugins_add(plugins, &table, NULL), SUMAC_OK);
    two.world->config.plugins = plugins;
    world_begin(two.world);
    world_all_up(two.world);
    two.first = world_joined(two.world, "worker", 0, 1);
    two.second = world_joined(two.world, "worker", 1, 2);
    world_forget(two.world);
    return two;
}

TEST(a_plug_ins_function_is_listed_behind_those_that_are_defined)
{
    struct plugins plugins;

    struct two two = two_with_plugins(&plugins); /* given */

    world_define(two.world, two.first, "mine", "value = g");
    world_settle_down(two.world);
    world_forget(two.world);

    world_functions(two.world); /* when */

    world_expect(
        two.world, "4: functions 64 mine \"value = g\" 128 shipped of lib 1.0 \"nothing at all\", "
                   "3 hyperparameters, 1 slots, 1 types, counts, repeats 2\n"); /* then */
    world_free(two.world);
    plugins_deinit(&plugins);
}

TEST(a_plug_ins_name_is_taken)
{
    struct plugins plugins;

    struct two two = two_with_plugins(&plugins); /* given */

    world_define(two.world, two.first, "shipped", "value = g"); /* when */
    world_settle_down(two.world);

    world_expect(
        two.world, "3: INVALID_ARGUMENT BAD_NAME shipped is a function of the plug-in lib 1.0, "
                   "which every ps was started with: define yours under another name\n"); /* then */
    world_free(two.world);
    plugins_deinit(&plugins);
}

TEST(a_variable_may_have_a_function_of_a_plug_in)
{
    struct definition definition;
    struct plugins plugins;

    struct two two = two_with_plugins(&plugins); /* given */
    define(&definition, "w");
    definition.function.function = (Sumac__V1__UpdateFunction)128;
    assert_refused(&two, &definition, SUMAC_REASON_WRONG_DATA_TYPE, "shipped");
    definition.variable.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_FLOAT64;

    const struct world_answer *const answer = created(&two, &definition); /* when */

    assert_int_equal(answer->status, SUMAC_OK); /* then */
    define(&definition, "v");
    definition.function.function = (Sumac__V1__UpdateFunction)129;
    assert_refused(&two, &definition, SUMAC_REASON_UNKNOWN_FUNCTION, "129");
    world_free(two.world);
    plugins_deinit(&plugins);
}

TEST(a_hello_says_which_functions_of_plug_ins_there_are)
{
    struct plugins plugins;

    struct two two = two_with_plugins(&plugins); /* given */

    const struct world_order *const hello = &two.world->ps[1].told[0]; /* when */

    assert_int_equal(hello->kind, ORDER_HELLO); /* then */
    assert_int_equal(hello->plugin_functions, 1);
    assert_string_equal(hello->text, "shipped of lib 1.0");
    assert_int_equal(hello->digest, plugins.functions[0]->digest);
    world_free(two.world);
    plugins_deinit(&plugins);
}

static void define_numbered(struct world *world, uint32_t session, uint32_t number)
{
    char name[16];

    (void)snprintf(name, sizeof name, "f%u", number);
    world_define(world, session, name, "value = g");
    world_settle_down(world);
}

TEST(observers_leave_half_of_the_functions_to_members)
{
    struct two two = two_workers();
    const uint32_t observer = world_joined(two.world, NULL, 0, 90);

    for (uint32_t i = 0; i < UPDATE_DEFINED_MAX / 2; i++) /* given */
        define_numbered(two.world, observer, i);
    world_forget(two.world);

    define_numbered(two.world, observer, 1000); /* when */
    define_numbered(two.world, observer, 0);
    define_numbered(two.world, two.first, 1001);

    assert_non_null(strstr(
        two.world->text,
        "RESOURCE_EXHAUSTED OUT_OF_MEMORY f1000: 32 functions are defined, and the other 32 "
        "numbers are kept for chiefs and workers: ")); /* then */
    assert_non_null(strstr(two.world->text, ": function 64\n"));
    assert_non_null(strstr(two.world->text, ": function 96\n"));
    world_free(two.world);
}

TEST(without_the_rule_one_text_for_a_name_another_text_gets_the_first_ones_number)
{
    struct world *world = world_prepare(1, 1);

    world->config.broken = rule_bit(RULE_one_text_for_a_name);
    world_begin(world);
    const uint32_t session = world_joined(world, "worker", 0, 1);
    world_define(world, session, "mine", "value = g");
    world_settle_down(world);
    world_forget(world);

    world_define(world, session, "mine", "value = 2 * g");

    world_expect_answer(world, "function 64");
    world_free(world);
}
