/* SPDX-License-Identifier: Apache-2.0 */
/* client_define.c -- functions that are made of texts: what a client asks ps 0 for, and which names
 * it knows. */
#include <math.h>

#include "client_played.h"
#include "function.h"

static const char *const nova = "hyperparameters: learning_rate = 0.1, gain = 2\n"
                                "slots: m = 0\n"
                                "m = gain * m + g\n"
                                "value = value - learning_rate * m\n";

#define LEARNING_RATE SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_LEARNING_RATE
/* The first that is no name of the table's: the largest below clip_value's. */
#define GAIN (SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_CLIP_VALUE - 1)

static enum sumac_status
define(struct played *played, const char *name, const char *text, struct sumac_error *error)
{
    return sumac_client_define(&played->client, name, text, strlen(text), error);
}

/* Another client has defined it. */
static void add_function(struct played *played, uint32_t number, const char *name, const char *text)
{
    struct played_functions *const functions = &played->functions;

    functions->numbers[functions->count] = number;
    functions->names[functions->count] = name;
    functions->texts[functions->count++] = text;
}

static enum sumac_status create_with(
    struct played *played, const char *name, const struct sumac_function *function,
    struct sumac_error *error)
{
    struct sumac_client_variable_options options = scalar(name);
    struct sumac_client_variable *variable = NULL;

    options.function = *function;
    return sumac_client_variable_create(&played->client, &options, &variable, error);
}

static enum sumac_status push_with(
    struct played *played, struct sumac_client_variable *variable,
    const struct sumac_function *function, struct sumac_error *error)
{
    static float one = 1;
    const struct sumac_delta delta = {
        .variable = variable,
        .value = sumac_tensor_over(&one, SUMAC_FLOAT32, (struct sumac_shape){.rank = 0}),
        .function = function};

    return sumac_client_push(&played->client, &delta, 1, NULL, NULL, error);
}

PLAYED_TEST(a_define_says_the_name_and_the_text_to_ps_0)
{
    played->functions.answer = 64;

    assert_int_equal(define(played, "nova", nova, NULL), SUMAC_OK);

    assert_string_equal(played->functions.name, "nova");
    assert_string_equal(played->functions.text, nova);
    assert_int_equal(played->functions.session, 7);
    assert_int_equal(played->functions.timeout_ms, 59000);
}

PLAYED_TEST(a_text_ends_where_its_bytes_say)
{
    static const char text[] = "value = gxyz";

    played->functions.answer = 64;

    assert_int_equal(
        sumac_client_define(&played->client, "set", text, strlen("value = g"), NULL), SUMAC_OK);

    assert_string_equal(played->functions.text, "value = g");
}

PLAYED_TEST(what_is_defined_is_used_without_asking_for_it)
{
    struct sumac_client_variable *const variable = create(played, "w");
    const struct sumac_function function = SUMAC_FUNCTION("nova", {"gain", 0.5});

    played->functions.answer = 70;
    assert_int_equal(define(played, "nova", nova, NULL), SUMAC_OK);

    assert_int_equal(push_with(played, variable, &function, NULL), SUMAC_OK);

    assert_int_equal(played->function, 70);
    assert_int_equal(played->hyperparameter, GAIN);
    assert_int_equal(played->functions.lists, 0);
}

static void look_at_function(const wire_create_request *request, struct check *seen)
{
    const wire_function *function = request->variable->function;

    if ((uint32_t)function->function != 65)
        check_object(seen, "function %u is said", (unsigned)function->function);
    if (function->n_hyperparameters != 1 || function->hyperparameters[0]->name != LEARNING_RATE)
        check_object(seen, "another hyperparameter is said");
}

PLAYED_TEST(what_another_client_has_defined_is_asked_for_once)
{
    const struct sumac_function function = SUMAC_FUNCTION("nova", {"learning_rate", 0.5});

    add_function(played, 64, "set", "value = g");
    add_function(played, 65, "nova", nova);
    played->look = look_at_function;

    assert_int_equal(create_with(played, "a", &function, NULL), SUMAC_OK);
    assert_int_equal(create_with(played, "b", &function, NULL), SUMAC_OK);

    assert_int_equal(played->functions.lists, 1);
    played->look = NULL; /* and what stood beside it is known, too */
    assert_int_equal(create_with(played, "c", &(struct sumac_function){.name = "set"}, NULL), 0);
    assert_int_equal(played->functions.lists, 1);
}

PLAYED_TEST(a_push_asks_for_a_function_that_it_does_not_know)
{
    struct sumac_client_variable *const variable = create(played, "w");

    add_function(played, 66, "nova", nova);

    assert_int_equal(
        push_with(played, variable, &(struct sumac_function){.name = "nova"}, NULL), SUMAC_OK);

    assert_int_equal(played->function, 66);
    assert_int_equal(played->functions.lists, 1);
}

PLAYED_TEST(a_name_that_was_not_there_is_asked_for_again)
{
    const struct sumac_function function = {.name = "nova"};
    struct sumac_error error = {0};

    add_function(played, 64, "set", "value = g");
    assert_int_equal(create_with(played, "a", &function, &error), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(error.reason, SUMAC_REASON_UNKNOWN_FUNCTION);
    assert_non_null(strstr(error.text, "there is no update function nova; there are assign, "));
    assert_non_null(strstr(error.text, "max, set"));

    add_function(played, 65, "nova", nova);

    assert_int_equal(create_with(played, "a", &function, NULL), SUMAC_OK);
    assert_int_equal(played->functions.lists, 2);
}

/* Neither a built-in one nor what cannot be a name is asked for. */
PLAYED_TEST(only_what_may_be_defined_is_asked_for)
{
    struct sumac_error error = {0};

    assert_int_equal(create_with(played, "a", &(struct sumac_function){.name = "lion"}, NULL), 0);
    assert_int_equal(
        create_with(played, "b", &(struct sumac_function){.name = "no name"}, &error),
        SUMAC_INVALID_ARGUMENT);

    assert_int_equal(error.reason, SUMAC_REASON_UNKNOWN_FUNCTION);
    assert_int_equal(played->functions.lists, 0);
}

/* A ps of a release that has no such call has no such functions. */
PLAYED_TEST(an_earlier_ps_has_none)
{
    struct sumac_error error = {0};

    played->functions.refusal = SUMAC_UNIMPLEMENTED;

    assert_int_equal(
        create_with(played, "a", &(struct sumac_function){.name = "nova"}, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_int_equal(error.reason, SUMAC_REASON_UNKNOWN_FUNCTION);
}

PLAYED_TEST(who_cannot_ask_says_why)
{
    struct sumac_client_variable *const variable = create(played, "w");
    struct sumac_error error = {0};

    played->functions.refusal = SUMAC_FAILED_PRECONDITION;

    assert_int_equal(
        push_with(played, variable, &(struct sumac_function){.name = "nova"}, &error),
        SUMAC_FAILED_PRECONDITION);
    assert_int_equal(played->parts, 0);
}

PLAYED_TEST(a_text_of_a_later_release_is_named)
{
    struct sumac_error error = {0};

    add_function(played, 64, "later", "value = sinh(g)");
    add_function(played, 65, "nova", nova);

    assert_int_equal(create_with(played, "a", &(struct sumac_function){.name = "nova"}, NULL), 0);
    assert_int_equal(
        create_with(played, "b", &(struct sumac_function){.name = "later"}, &error),
        SUMAC_FAILED_PRECONDITION);
    assert_int_equal(error.reason, SUMAC_REASON_UNSUPPORTED);
    assert_non_null(strstr(error.text, "later"));
    assert_non_null(strstr(error.text, "line 1, column 9"));
}

/* The text is the same, and what it means is not. */
PLAYED_TEST(a_text_whose_hyperparameters_have_other_numbers_is_not_used)
{
    wire_known_hyperparameter gain = WIRE_KNOWN_HYPERPARAMETER_INIT, *all[] = {&gain};
    wire_known_function said = WIRE_KNOWN_FUNCTION_INIT;
    struct sumac_error error = {0};

    gain.name = "gain";
    gain.number = 1;
    said.number = 64;
    said.name = "nova";
    said.text = (char *)(uintptr_t)nova;
    said.hyperparameters = all;
    said.n_hyperparameters = 1;
    played->functions.described[played->functions.count++] = &said;

    assert_int_equal(
        create_with(played, "a", &(struct sumac_function){.name = "nova"}, &error),
        SUMAC_FAILED_PRECONDITION);

    assert_int_equal(error.reason, SUMAC_REASON_UNSUPPORTED);
    assert_non_null(strstr(error.text, "hyperparameter gain of nova has number 1"));
}

PLAYED_TEST(a_hyperparameter_that_it_does_not_have_is_refused_with_its_own)
{
    struct sumac_error error = {0};
    const struct sumac_function function = SUMAC_FUNCTION("nova", {"beta_1", 0.5});

    add_function(played, 64, "nova", nova);

    assert_int_equal(create_with(played, "a", &function, &error), SUMAC_INVALID_ARGUMENT);

    assert_int_equal(error.reason, SUMAC_REASON_BAD_HYPERPARAMETER);
    assert_string_equal(
        error.text, "nova has no hyperparameter beta_1; it has learning_rate, gain");
}

PLAYED_TEST(a_text_that_is_none_is_refused_here_with_its_place)
{
    struct sumac_error error = {0};

    assert_int_equal(define(played, "nova", "\nvalue = rat * g", &error), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(error.reason, SUMAC_REASON_BAD_EXPRESSION);
    assert_non_null(strstr(error.text, "line 2, column 9: rat"));
    assert_int_equal(define(played, "sgd", "value = g", &error), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(error.reason, SUMAC_REASON_BAD_NAME);
    assert_int_equal(
        sumac_client_define(&played->client, "nova", "value = g\n# \xc3\xa4\0\n", 15, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_int_equal(error.reason, SUMAC_REASON_BAD_EXPRESSION);
    assert_non_null(strstr(error.text, "line 2, column 4: a NUL"));

    assert_int_equal(played->functions.defines, 0);
}

PLAYED_TEST(what_ps_0_refuses_is_not_known)
{
    struct sumac_error error = {0};

    played->functions.refusal = SUMAC_ALREADY_EXISTS;
    assert_int_equal(define(played, "nova", nova, &error), SUMAC_ALREADY_EXISTS);
    assert_non_null(strstr(error.text, "it has another text"));

    played->functions.refusal = SUMAC_OK;
    assert_int_equal(
        create_with(played, "a", &(struct sumac_function){.name = "nova"}, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_int_equal(played->functions.lists, 1);
}

/* It may have been carried out, and then the same is answered. */
PLAYED_TEST(a_define_whose_answer_is_lost_is_made_again)
{
    played->functions.answer = 64;
    played->functions.breaks = 1;

    assert_int_equal(define(played, "nova", nova, NULL), SUMAC_OK);

    assert_int_equal(played->functions.defines, 2);
}

PLAYED_TEST(an_answer_that_is_of_another_function_is_not_believed)
{
    struct sumac_error error = {0};

    for (uint32_t i = 0; i < 3; i++) {
        static const uint32_t numbers[] = {63, 128, 64};
        played->functions.answer = numbers[i];
        if (i == 2)
            (void)snprintf(played->functions.answered_name, 32, "other");
        assert_int_equal(define(played, "nova", nova, &error), SUMAC_INTERNAL);
        assert_int_equal(error.reason, SUMAC_REASON_MALFORMED);
    }
}

PLAYED_TEST(the_same_again_is_the_same_function)
{
    played->functions.answer = 64;

    assert_int_equal(define(played, "nova", nova, NULL), SUMAC_OK);
    assert_int_equal(define(played, "nova", nova, NULL), SUMAC_OK);

    assert_int_equal(played->functions.defines, 2);
    assert_ptr_equal(played->client.functions.first, played->client.functions.last);
}

/* What the ps says of a function of a plug-in: a learning_rate and one that is its own. */
struct shipped {
    wire_known_hyperparameter rate, own;
    wire_known_hyperparameter *hyperparameters[2];
    Sumac__V1__DataType types[1];
    wire_known_function function;
};

static void ship(struct played *played, struct shipped *shipped)
{
    *shipped = (struct shipped){
        .rate = WIRE_KNOWN_HYPERPARAMETER_INIT,
        .own = WIRE_KNOWN_HYPERPARAMETER_INIT,
        .hyperparameters = {&shipped->rate, &shipped->own},
        .types = {SUMAC__V1__DATA_TYPE__DATA_TYPE_FLOAT32},
        .function = WIRE_KNOWN_FUNCTION_INIT};
    shipped->rate.number = LEARNING_RATE;
    shipped->rate.name = "learning_rate";
    shipped->rate.most = INFINITY;
    shipped->own.number = GAIN;
    shipped->own.name = "own";
    shipped->own.most = 2;
    shipped->function.number = 128;
    shipped->function.name = "shipped";
    shipped->function.plugin = "lib 1.0";
    shipped->function.rule = "nothing at all";
    shipped->function.hyperparameters = shipped->hyperparameters;
    shipped->function.n_hyperparameters = 2;
    shipped->function.data_types = shipped->types;
    shipped->function.n_data_types = 1;
    played->functions.described[played->functions.count++] = &shipped->function;
}

PLAYED_TEST(a_plug_ins_function_is_used_by_its_name)
{
    struct sumac_client_variable *const variable = create(played, "w");
    const struct sumac_function function = SUMAC_FUNCTION("shipped", {"own", 0.5});
    const struct sumac_function unknown = SUMAC_FUNCTION("shipped", {"beta_1", 0.5});
    struct sumac_error error = {0};
    struct shipped shipped;

    ship(played, &shipped);

    assert_int_equal(push_with(played, variable, &function, NULL), SUMAC_OK);

    assert_int_equal(played->function, 128);
    assert_int_equal(played->hyperparameter, GAIN);
    assert_int_equal(push_with(played, variable, &unknown, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(
        error.text, "shipped has no hyperparameter beta_1; it has learning_rate, own, clip_value");
    assert_int_equal(played->functions.lists, 1);
}

PLAYED_TEST(a_plug_ins_function_of_another_release_is_named)
{
    struct sumac_error error = {0};
    struct shipped shipped;

    ship(played, &shipped);
    shipped.own.number = GAIN - 1;

    assert_int_equal(
        create_with(played, "a", &(struct sumac_function){.name = "shipped"}, &error),
        SUMAC_FAILED_PRECONDITION);

    assert_int_equal(error.reason, SUMAC_REASON_UNSUPPORTED);
    assert_non_null(strstr(error.text, "shipped"));
    assert_non_null(strstr(error.text, "hyperparameter own"));
}

/* Beyond those that there may be, a number is not believed. */
PLAYED_TEST(a_number_that_no_plug_in_has_is_not_known)
{
    struct sumac_error error = {0};
    struct shipped shipped;

    ship(played, &shipped);
    shipped.function.number = 192;

    assert_int_equal(
        create_with(played, "a", &(struct sumac_function){.name = "shipped"}, &error),
        SUMAC_INVALID_ARGUMENT);

    assert_int_equal(error.reason, SUMAC_REASON_UNKNOWN_FUNCTION);
}

/* The table's own are known by the release. */
PLAYED_TEST(a_number_of_the_table_is_no_plug_ins)
{
    struct shipped shipped;

    ship(played, &shipped);
    shipped.function.number = 63;

    assert_int_equal(
        create_with(played, "a", &(struct sumac_function){.name = "shipped"}, NULL),
        SUMAC_INVALID_ARGUMENT);
}

/* ---- by its number */

static enum sumac_status pull_slot(
    struct played *played, struct sumac_client_variable *variable, const char *slot,
    struct sumac_error *error)
{
    static float into;
    const struct sumac_fetch fetch = {
        .variable = variable, .into = {.memory = &into, .dtype = SUMAC_FLOAT32}, .slot = slot};

    return sumac_client_pull(&played->client, &fetch, 1, NULL, NULL, error);
}

PLAYED_TEST(a_slot_of_what_another_client_has_defined_is_pulled)
{
    struct sumac_client_variable *const variable = create(played, "w");
    struct sumac_error error = {0};

    add_function(played, 65, "nova", nova);
    variable->function = 65;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(pull_slot(played, variable, "m", &error), SUMAC_NOT_FOUND);
        assert_non_null(strstr(error.text, "it was deleted")); /* the ps was asked for it */
    }

    assert_int_equal(played->functions.lists, 1);
    assert_int_equal(pull_slot(played, variable, "v", &error), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(error.reason, SUMAC_REASON_MISSING_SLOTS);
}

PLAYED_TEST(a_slot_of_what_is_not_known_is_not_pulled)
{
    struct sumac_client_variable *const variable = create(played, "w");
    struct sumac_error error = {0};

    variable->function = 65;
    assert_int_equal(pull_slot(played, variable, "m", &error), SUMAC_FAILED_PRECONDITION);
    assert_string_equal(
        error.text, "pull of a slot of w: update function 65 of the cluster is not known here; use "
                    "the release of the ps");
    add_function(played, 65, "later", "value = later(g)");

    assert_int_equal(pull_slot(played, variable, "m", &error), SUMAC_FAILED_PRECONDITION);

    assert_int_equal(error.reason, SUMAC_REASON_UNSUPPORTED);
    assert_non_null(strstr(error.text, "the function of the variable of the cluster cannot be "));
}

/* ---- their names */

PLAYED_TEST(the_list_of_names_ends_where_its_text_does)
{
    char text[400];

    assert_null(client_function(NULL, "nova"));
    assert_non_null(strstr(client_functions_list(NULL, text, sizeof text), ", min, max"));
    played->functions.answer = 64;
    assert_int_equal(define(played, "nova", nova, NULL), SUMAC_OK);
    client_lock(&played->client);
    (void)client_functions_list(&played->client, text, sizeof text);
    const size_t whole = strlen(text);
    assert_string_equal(text + whole - 11, ", max, nova");
    for (size_t bytes = 1; bytes <= whole; bytes++) {
        memset(text, '#', sizeof text);

        (void)client_functions_list(&played->client, text, bytes);

        assert_true(strlen(text) < bytes);
        assert_int_equal(text[bytes], '#');
    }
    client_unlock(&played->client);
}

PLAYED_TEST(null_is_refused)
{
    struct sumac_client *const client = &played->client;

    assert_int_equal(sumac_client_define(NULL, "a", "b", 1, NULL), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(sumac_client_define(client, NULL, "b", 1, NULL), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(sumac_client_define(client, "a", NULL, 1, NULL), SUMAC_INVALID_ARGUMENT);
}
