/* SPDX-License-Identifier: Apache-2.0 */
/* client_catalogue.c -- variables made, found and deleted by an observer: what a request says, and
 * what becomes of an answer. */
#include "client_played.h"

/* A second is left for the answer, which says for whom ps 0 waited; of a short time half. */
PLAYED_TEST(ps_0_may_wait_nearly_as_long_as_its_client)
{
    static const uint32_t times_ms[][2] = {{600000, 599000}, {60000, 59000}, {20000, 19000}};

    for (uint32_t i = 0; i < 3; i++) {
        char name[] = {(char)('a' + i), '\0'};
        played->client.timeout_ms = times_ms[i][0];
        (void)create(played, name);
        assert_int_equal(played->asked[i].timeout_ms, times_ms[i][1]);
    }
}

/* What a request says beside what it should: numbers, in the order of `names`. */
static void compare(
    const double *said, const double *wanted, const char *const *names, size_t count,
    struct check *seen)
{
    for (size_t i = 0; i < count; i++)
        if (said[i] < wanted[i] || said[i] > wanted[i])
            check_object(seen, "%s: expected %g, said %g", names[i], wanted[i], said[i]);
}

static void look_at_all(const wire_create_request *request, struct check *seen)
{
    const wire_variable *variable = request->variable;
    static const char *const names[] = {
        "variables",   "data type",       "axes",       "aggregation", "synchronization",
        "trainable",   "initializer",     "a",          "b",           "seed",
        "partitioner", "min_shard_bytes", "max_shards", "function",    "hyperparameters"};
    const double said[] = {
        (double)request->n_variables,
        variable->data_type,
        (double)variable->n_shape,
        variable->aggregation,
        variable->synchronization,
        variable->trainable,
        variable->initializer->kind,
        variable->initializer->a,
        variable->initializer->b,
        (double)variable->initializer->seed,
        variable->partitioner->kind,
        (double)variable->partitioner->min_shard_bytes,
        (double)variable->partitioner->max_shards,
        variable->function->function,
        (double)variable->function->n_hyperparameters};
    static const double wanted[] = {
        0,
        SUMAC_FLOAT64,
        2,
        SUMAC_REDUCE_MEAN,
        SUMAC_SYNCHRONIZATION_ON_READ,
        false,
        WIRE_INITIALIZER_UNIFORM,
        -2,
        3,
        11,
        WIRE_PARTITIONER_MIN_SIZE,
        1000,
        4,
        SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_SGD,
        1};

    compare(said, wanted, names, sizeof said / sizeof said[0], seen);
    if (!check_is_good(seen))
        return;
    static const char *const deeper[] = {"rows", "columns", "learning rate"};
    const double of_these[] = {
        (double)variable->shape[0], (double)variable->shape[1],
        variable->function->hyperparameters[0]->value};
    compare(of_these, (const double[]){6, 5, 0.5}, deeper, 3, seen);
}

PLAYED_TEST(a_create_says_all_that_was_asked_for)
{
    struct sumac_client_variable *variable = NULL;
    const struct sumac_client_variable_options options = {
        .name = "w",
        .dtype = SUMAC_FLOAT64,
        .shape = {.rank = 2, .extent = {6, 5}},
        .aggregation = SUMAC_REDUCE_MEAN,
        .synchronization = SUMAC_SYNCHRONIZATION_ON_READ,
        .frozen = true,
        .initializer = SUMAC_INITIALIZER_UNIFORM,
        .a = -2,
        .b = 3,
        .seed = 11,
        .partitioner =
            {.kind = SUMAC_PARTITIONER_MIN_SIZE, .min_shard_bytes = 1000, .max_shards = 4},
        .function = SUMAC_FUNCTION("sgd", {"learning_rate", 0.5})};

    played->look = look_at_all;

    assert_int_equal(
        sumac_client_variable_create(&played->client, &options, &variable, NULL), SUMAC_OK);

    assert_string_equal(played->asked[0].names, "w ");
    assert_int_equal(played->asked[0].session, 7);
    assert_string_equal(sumac_client_variable_name(variable), "w");
    assert_true(variable->created);
}

static void look_at_defaults(const wire_create_request *request, struct check *seen)
{
    if (request->variable->data_type != SUMAC__V1__DATA_TYPE__DATA_TYPE_FLOAT32)
        check_object(seen, "expected float32, said %d", (int)request->variable->data_type);
}

PLAYED_TEST(a_variable_whose_dtype_is_not_set_is_float32)
{
    struct sumac_client_variable *variable = NULL;
    const struct sumac_client_variable_options options = {.name = "w", .shape = SUMAC_SHAPE(3)};

    played->look = look_at_defaults;
    assert_int_equal(
        sumac_client_variable_create(&played->client, &options, &variable, NULL), SUMAC_OK);
    assert_string_equal(played->asked[0].names, "w ");
}

static void look_at_shards(const wire_create_request *request, struct check *seen)
{
    const wire_variable *variable = request->variable;
    static const char *const names[] = {"partitioner", "num_shards", "trainable", "function"};
    const double said[] = {
        variable->partitioner->kind, (double)variable->partitioner->num_shards, variable->trainable,
        variable->function->function};
    static const double wanted[] = {
        WIRE_PARTITIONER_FIXED_SHARDS, 3, true, SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_ASSIGN};

    compare(said, wanted, names, sizeof said / sizeof said[0], seen);
}

PLAYED_TEST(a_shard_for_each_ps_is_as_many_as_there_are)
{
    struct sumac_client_variable_options options = scalar("w");
    struct sumac_client_variable *variable = NULL;

    options.partitioner.kind = SUMAC_PARTITIONER_SHARD_PER_PS;
    played->look = look_at_shards;
    played->client.peer_count = 3; /* as if there were two more */

    assert_int_equal(
        sumac_client_variable_create(&played->client, &options, &variable, NULL), SUMAC_OK);

    assert_int_equal(played->count, 1);
}

PLAYED_TEST(what_an_answer_left_out_is_asked_for_again)
{
    const struct sumac_client_variable_options options[] = {scalar("a"), scalar("b"), scalar("c")};
    struct sumac_client_variable *made[3] = {NULL};

    played->answered_max = 1; /* given */

    assert_int_equal(/* when */
                     sumac_client_variable_create_many(&played->client, options, 3, made, NULL),
                     SUMAC_OK);

    assert_int_equal(played->count, 3); /* then */
    assert_string_equal(played->asked[0].names, "a b c ");
    assert_string_equal(played->asked[1].names, "b c ");
    assert_string_equal(played->asked[2].names, "c ");
    for (int i = 0; i < 3; i++) {
        assert_string_equal(sumac_client_variable_name(made[i]), options[i].name);
        assert_true(made[i]->created);
    }
}

PLAYED_TEST(a_deleted_variable_is_asked_for_again)
{
    struct sumac_client_variable *const before = create(played, "w"), *after = NULL;

    played->client.timeout_ms = 30000;
    assert_int_equal(sumac_client_variable_delete(&played->client, "w", NULL), SUMAC_OK); /* when */

    assert_string_equal(played->asked[1].names, "w "); /* then */
    assert_int_equal(played->asked[1].session, 7);
    assert_int_equal(played->asked[1].timeout_ms, 29000);
    assert_true(before->deleted);
    assert_string_equal(sumac_client_variable_name(before), "w");
    assert_int_equal(sumac_client_variable_find(&played->client, "w", &after, NULL), SUMAC_OK);
    assert_ptr_not_equal(after, before);
    assert_int_equal(played->count, 3);
    assert_int_equal(sumac_client_variable_find(&played->client, "w", &after, NULL), SUMAC_OK);
    assert_int_equal(played->count, 3); /* this one is known */
}

PLAYED_TEST(what_ps_0_does_not_know_is_forgotten_and_what_it_keeps_is_not)
{
    struct sumac_client_variable *const variable = create(played, "w"), *found = NULL;
    static const enum sumac_status refusals[] = {SUMAC_FAILED_PRECONDITION, SUMAC_NOT_FOUND};

    for (int i = 0; i < 2; i++) {
        played->refusal = refusals[i];
        assert_int_equal(sumac_client_variable_delete(&played->client, "w", NULL), refusals[i]);
        assert_int_equal(variable->deleted, i == 1);
        assert_int_equal(sumac_client_variable_find(&played->client, "w", &found, NULL), SUMAC_OK);
        assert_int_equal(found == variable, i == 0);
    }
}

/* It may have been done, and another's variable of that name made since. */
PLAYED_TEST(a_delete_is_not_made_again)
{
    played->refusal = SUMAC_UNAVAILABLE;
    played->client.timeout_ms = 3000;

    assert_int_equal(sumac_client_variable_delete(&played->client, "w", NULL), SUMAC_UNAVAILABLE);

    assert_int_equal(played->count, 1);
}

static void assert_says(const struct sumac_error *error, const char *text)
{
    if (strstr(error->text, text) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error->text, text);
}

struct nothing {
    enum sumac_status refusal, status;
    enum sumac_reason reason;
    const char *texts[3];
};

/* What became of the call, with the ps's address; of a time that is over, for whom it may have
 * waited. */
PLAYED_TEST(a_call_that_comes_to_nothing_names_the_ps)
{
    static const struct nothing cases[] = {
        {SUMAC_CANCELLED,
         SUMAC_DEADLINE_EXCEEDED,
         SUMAC_REASON_TIMED_OUT,
         {"no answer in time from ps 0 at 127.0.0.1:", ", which was last heard from ",
          " ago, which may itself wait for another ps: sumac stats says for which"}},
        {SUMAC_UNAVAILABLE,
         SUMAC_UNAVAILABLE,
         SUMAC_REASON_PS_MISSING,
         {"ps 0 at 127.0.0.1:", ", which was last heard from ",
          " ago: no; if that ps does not come back, start the whole run again, ps and workers"}},
        {SUMAC_INTERNAL,
         SUMAC_INTERNAL,
         SUMAC_REASON_UNSPECIFIED,
         {"ps 0 at 127.0.0.1:", ": no", ""}},
    };

    played->client.timeout_ms = 3000;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sumac_error error = {0};
        played->refusal = cases[i].refusal;
        assert_int_equal(
            sumac_client_variable_delete(&played->client, "w", &error), cases[i].status);
        assert_int_equal(error.reason, cases[i].reason);
        for (int j = 0; j < 3; j++)
            assert_says(&error, cases[i].texts[j]);
    }
}

PLAYED_TEST(a_variable_that_is_not_there_or_not_yet_is_not_found)
{
    struct sumac_client_variable *found = NULL;
    struct sumac_error error = {0};

    assert_int_equal(
        sumac_client_variable_find(&played->client, "nothing", &found, &error), SUMAC_NOT_FOUND);
    assert_int_equal(error.reason, SUMAC_REASON_UNKNOWN_VARIABLE);
    assert_string_equal(error.text, "there is no variable nothing; sumac ls lists them");
    played->unpublished = true;
    assert_int_equal(
        sumac_client_variable_find(&played->client, "w", &found, &error), SUMAC_NOT_FOUND);

    assert_null(found);
}

static void refuse(
    struct played *played, const struct sumac_client_variable_options *options, const char *wanted)
{
    struct sumac_client_variable *variable = NULL;
    struct sumac_error error = {0};

    assert_int_equal(
        sumac_client_variable_create(&played->client, options, &variable, &error),
        SUMAC_INVALID_ARGUMENT);
    if (strstr(error.text, wanted) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error.text, wanted);
    assert_null(variable);
}

PLAYED_TEST(a_name_has_1_to_1024_bytes_of_utf8_without_control_characters)
{
    char name[1026];
    struct sumac_client_variable_options options = scalar(NULL);

    refuse(played, &options, "a variable's name has 1 to 1024 bytes, given none");
    options.name = "";
    refuse(played, &options, "given none");
    memset(name, 'x', sizeof name);
    name[1025] = '\0';
    options.name = name;
    refuse(played, &options, "given more");
    options.name = "\xff";
    refuse(played, &options, "UTF-8");
    options.name = "a\nb";
    refuse(played, &options, "shown here as ?: a?b");
    assert_int_equal(played->count, 0);

    name[100] = '\0'; /* and as many as that are not too many */
    (void)create(played, name);
}

struct odd {
    struct sumac_client_variable_options options;
    const char *wanted;
};

PLAYED_TEST(an_option_of_another_kind_is_refused_with_the_kinds_that_have_it)
{
    static const struct sumac_tensor tensor = {.dtype = SUMAC_FLOAT32};
    const struct odd cases[] = {
        {{.a = 1}, "w: a is given, which only initializer CONSTANT, UNIFORM or NORMAL has"},
        {{.initializer = SUMAC_INITIALIZER_CONSTANT, .b = 1},
         "w: b is given, which only initializer UNIFORM or NORMAL has"},
        {{.initializer = SUMAC_INITIALIZER_CONSTANT, .seed = 1},
         "w: seed is given, which only initializer UNIFORM or NORMAL has"},
        {{.initial_value = &tensor}, "w: initial_value is given, which only initializer ASSIGNED"},
        {{.partitioner = {.num_shards = 1}},
         "w: num_shards is given, which only partitioner FIXED_SHARDS has"},
        {{.partitioner = {.kind = SUMAC_PARTITIONER_MAX_SIZE, .min_shard_bytes = 1}},
         "w: min_shard_bytes is given, which only partitioner MIN_SIZE has"},
        {{.partitioner =
              {.kind = SUMAC_PARTITIONER_FIXED_SHARDS, .num_shards = 2, .max_shards = 1}},
         "w: max_shards is given, which only partitioner MIN_SIZE or MAX_SIZE has"},
        {{.partitioner = {.kind = SUMAC_PARTITIONER_MIN_SIZE, .max_shard_bytes = 1}},
         "w: max_shard_bytes is given, which only partitioner MAX_SIZE has"},
        {{.function = {.hyperparameters = {{"learning_rate", 1}}}},
         "w: hyperparameters is given, which only a function by name has"},
        {{.shape = {.rank = SUMAC_RANK_MAX + 1}}, "w has 9 axes, and 8 are the most"},
        {{.initializer = SUMAC_INITIALIZER_ASSIGNED},
         "w is to be assigned by its creator: give initial_value"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sumac_client_variable_options options = cases[i].options;
        options.name = "w";
        options.dtype = SUMAC_FLOAT32;
        refuse(played, &options, cases[i].wanted);
    }
    assert_int_equal(played->count, 0);
}

PLAYED_TEST(an_option_of_its_own_kind_is_taken)
{
    const struct sumac_client_variable_options cases[] = {
        {.initializer = SUMAC_INITIALIZER_CONSTANT, .a = 1},
        {.initializer = SUMAC_INITIALIZER_NORMAL, .a = 1, .b = 2, .seed = 3},
        {.partitioner =
             {.kind = SUMAC_PARTITIONER_MAX_SIZE, .max_shard_bytes = 4, .max_shards = 5}},
        {.partitioner = {.kind = SUMAC_PARTITIONER_FIXED_SHARDS, .num_shards = 1}},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sumac_client_variable_options options = cases[i];
        struct sumac_client_variable *variable = NULL;
        options.name = "w";
        options.dtype = SUMAC_FLOAT32;
        assert_int_equal(
            sumac_client_variable_create(&played->client, &options, &variable, NULL), SUMAC_OK);
    }
}

/* ---- a value that its creator assigns */

static float values[3] = {1, 2, 3};

PLAYED_TEST(an_initial_value_is_of_its_variables_type_and_shape)
{
    struct sumac_tensor tensor = {
        .memory = values, .dtype = SUMAC_INT32, .shape = {.rank = 1, .extent = {3}}};
    struct sumac_client_variable_options options = scalar("w");

    options.shape = tensor.shape;
    options.initializer = SUMAC_INITIALIZER_ASSIGNED;
    options.initial_value = &tensor;
    refuse(played, &options, "the initial value of w: expected float32, given int32");
    tensor.dtype = SUMAC_FLOAT32;
    tensor.shape.extent[0] = 2;
    refuse(played, &options, "the initial value of w: expected shape [3], given [2]");
    tensor = (struct sumac_tensor){.dtype = SUMAC_FLOAT32, .shape = options.shape};
    refuse(played, &options, "initial value of w: the tensor has no memory");
    assert_int_equal(played->count, 0);
}

static struct sumac_client_variable_options
assigned(const char *name, const struct sumac_tensor *tensor)
{
    struct sumac_client_variable_options options = scalar(name);

    options.initializer = SUMAC_INITIALIZER_ASSIGNED;
    options.initial_value = tensor;
    return options;
}

/* Whatever it is: a mask may well be made of what is not finite. */
PLAYED_TEST(a_creator_assigns_its_value_and_another_client_does_not)
{
    const struct sumac_tensor tensor = {.memory = values, .dtype = SUMAC_FLOAT32};
    const struct sumac_client_variable_options mine = assigned("w", &tensor);
    const struct sumac_client_variable_options others = assigned("v", &tensor);
    struct sumac_client_variable *variable = NULL;

    assert_int_equal(
        sumac_client_variable_create(&played->client, &others, &variable, NULL), SUMAC_OK);
    assert_int_equal(played->parts, 0);

    played->assigns = true;
    struct sumac_error error = {.text = "as it was"};
    assert_int_equal(
        sumac_client_variable_create(&played->client, &mine, &variable, &error), SUMAC_OK);

    assert_string_equal(error.text, "as it was");
    assert_int_equal(played->parts, 1);
    assert_null(played->client.live_transfers.first); /* it has been waited for */
    assert_int_equal(played->function, SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_ASSIGN);
    assert_true(played->allow_non_finite);
}

static void lose_state(struct rpc_call *call, const struct wire_received *received)
{
    (void)received;
    rpc_call_finish(call, SUMAC_DATA_LOSS, SUMAC_REASON_STATE_LOST, "a ps was restarted");
}

PLAYED_TEST(a_value_whose_push_fails_is_an_error_of_the_create)
{
    const struct sumac_tensor tensor = {.memory = values, .dtype = SUMAC_FLOAT32};
    const struct sumac_client_variable_options options = assigned("w", &tensor);
    struct sumac_client_variable *variable = NULL;
    struct sumac_error error = {0};

    played->assigns = true;
    played->transfers[WIRE_TRANSFER_PUSH].message = lose_state;

    assert_int_equal(
        sumac_client_variable_create(&played->client, &options, &variable, &error),
        SUMAC_DATA_LOSS);

    assert_int_equal(error.reason, SUMAC_REASON_STATE_LOST);
    assert_null(variable);
    assert_null(played->client.live_transfers.first);
}

static void note_release(void *context) { *(bool *)context = true; }

PLAYED_TEST(each_value_that_is_assigned_is_given_back)
{
    struct sumac_tensor tensor = {.dtype = SUMAC_FLOAT32};
    const struct sumac_client_variable_options options[] = {
        assigned("w", &tensor), assigned("v", &tensor)};
    struct sumac_client_variable *variable = NULL;

    played->assigns = true;
    for (int i = 0; i < 2; i++) {
        bool released = false;
        assert_int_equal(
            sumac_buffer_wrap(
                values, sizeof values, (struct sumac_place){0}, note_release, &released,
                &tensor.buffer),
            SUMAC_OK);
        assert_int_equal(
            sumac_client_variable_create(&played->client, &options[i], &variable, NULL), SUMAC_OK);

        assert_false(released);
        sumac_buffer_unref(tensor.buffer);
        assert_true(released);
    }
}

PLAYED_TEST(a_value_that_is_not_assigned_in_time_is_kept_until_its_push_is_over)
{
    struct sumac_tensor tensor = {.dtype = SUMAC_FLOAT32};
    const struct sumac_client_variable_options options = assigned("w", &tensor);
    struct sumac_client_variable *variable = NULL;
    struct sumac_error error = {0};

    assert_int_equal(sumac_buffer_create(4, &tensor.buffer), SUMAC_OK);
    played->assigns = played->mute = true;
    played->client.timeout_ms = 2000;

    assert_int_equal(
        sumac_client_variable_create(&played->client, &options, &variable, &error),
        SUMAC_DEADLINE_EXCEEDED);

    assert_non_null(played->client.live_transfers.first);
    assert_ptr_equal(played->client.live_transfers.first->kept, tensor.buffer);
    sumac_buffer_unref(tensor.buffer);
}

/* ---- many */

PLAYED_TEST(those_that_their_creator_assigns_come_after_the_others)
{
    const struct sumac_tensor tensor = {.memory = values, .dtype = SUMAC_FLOAT32};
    const struct sumac_client_variable_options options[] = {
        scalar("a"), assigned("b", &tensor), scalar("c")};
    struct sumac_client_variable *made[3] = {NULL};

    assert_int_equal(
        sumac_client_variable_create_many(&played->client, options, 3, made, NULL), SUMAC_OK);

    assert_int_equal(played->count, 2);
    assert_string_equal(played->asked[0].names, "a c ");
    assert_string_equal(played->asked[1].names, "b ");
    for (int i = 0; i < 3; i++)
        assert_string_equal(sumac_client_variable_name(made[i]), options[i].name);
}

PLAYED_TEST(one_name_twice_is_refused_before_anything_is_created)
{
    const struct sumac_client_variable_options options[] = {scalar("a"), scalar("b"), scalar("a")};
    struct sumac_client_variable *made[3] = {NULL};
    struct sumac_error error = {0};

    assert_int_equal(
        sumac_client_variable_create_many(&played->client, options, 3, made, &error),
        SUMAC_INVALID_ARGUMENT);

    assert_int_equal(error.reason, SUMAC_REASON_BAD_NAME);
    assert_string_equal(error.text, "create names a twice in one call");
    assert_int_equal(played->count, 0);
    assert_null(made[0]);
}

static void take_most_of_the_time(const wire_create_request *request, struct check *seen)
{
    const uint64_t until_us = client_now_us() + 800000;

    (void)request;
    (void)seen;
    while (client_now_us() < until_us)
        continue;
}

PLAYED_TEST(what_is_not_created_in_time_is_counted)
{
    const struct sumac_client_variable_options options[] = {scalar("a"), scalar("b"), scalar("c")};
    struct sumac_client_variable *made[3] = {NULL};
    struct sumac_error error = {0};

    played->client.timeout_ms = 1500;
    played->answered_max = 1;
    played->look = take_most_of_the_time;

    assert_int_equal(
        sumac_client_variable_create_many(&played->client, options, 3, made, &error),
        SUMAC_DEADLINE_EXCEEDED);

    assert_string_equal(error.text, "2 of 3 variables are created, and the time of 1.5 s is over");
    assert_int_equal(played->count, 2);
    assert_null(made[0]);
}

PLAYED_TEST(an_answer_of_other_variables_is_not_believed)
{
    const struct sumac_client_variable_options options[] = {scalar("a"), scalar("b")};
    struct sumac_client_variable *made[2] = {NULL};
    struct sumac_error error = {0};

    played->renames = true;

    assert_int_equal(
        sumac_client_variable_create_many(&played->client, options, 2, made, &error),
        SUMAC_INTERNAL);

    assert_int_equal(error.reason, SUMAC_REASON_MALFORMED);
    assert_string_equal(error.text, "ps 0 answered the create of a with no usable variable");
    assert_null(made[0]);
}

PLAYED_TEST(what_one_option_is_refused_for_is_created_by_no_message)
{
    struct sumac_client_variable_options options[] = {scalar("a"), scalar("b")};
    struct sumac_client_variable *made[2] = {NULL};
    struct sumac_error error = {0};

    options[0].seed = 7;

    assert_int_equal(
        sumac_client_variable_create_many(&played->client, options, 2, made, &error),
        SUMAC_INVALID_ARGUMENT);

    assert_string_equal(
        error.text, "a: seed is given, which only initializer UNIFORM or NORMAL has");
    assert_int_equal(played->count, 0);
    assert_null(made[0]);
}

static void answer_nothing(struct rpc_call *call, const struct wire_received *received)
{
    const wire_create_reply reply = WIRE_CREATE_REPLY_INIT;

    (void)received;
    rpc_call_send(call, &reply.base, NULL, 0);
}

PLAYED_TEST(an_answer_without_a_variable_is_an_error)
{
    const struct sumac_client_variable_options options = scalar("a");
    struct sumac_client_variable *made = NULL;
    struct sumac_error error = {0};

    played->variables[WIRE_VARIABLES_CREATE].message = answer_nothing;

    assert_int_equal(
        sumac_client_variable_create(&played->client, &options, &made, &error), SUMAC_INTERNAL);
    assert_string_equal(error.text, "ps 0 answered the create of a with no usable variable");
    assert_int_equal(
        sumac_client_variable_create_many(&played->client, &options, 1, &made, &error),
        SUMAC_INTERNAL);
    assert_string_equal(error.text, "ps 0 answered the create of a with no usable variable");
    assert_null(made);
}

static void
assert_named(enum sumac_status status, const struct sumac_error *error, const char *text)
{
    assert_int_equal(status, SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error->text, text);
}

PLAYED_TEST(what_is_not_given_is_named)
{
    struct sumac_client *const client = &played->client;
    const struct sumac_client_variable_options options = scalar("a");
    struct sumac_client_variable *made = NULL;
    struct sumac_error error = {0};

    assert_named(
        sumac_client_variable_create(NULL, &options, &made, &error), &error,
        "sumac_client_variable_create: client is NULL");
    assert_named(
        sumac_client_variable_create(client, NULL, &made, &error), &error,
        "sumac_client_variable_create: options is NULL");
    assert_named(
        sumac_client_variable_create(client, &options, NULL, &error), &error,
        "sumac_client_variable_create: variable is NULL");
    assert_named(
        sumac_client_variable_create_many(client, NULL, 1, &made, &error), &error,
        "sumac_client_variable_create_many: options is NULL");
    assert_named(
        sumac_client_variable_create_many(client, &options, 1, NULL, &error), &error,
        "sumac_client_variable_create_many: variables is NULL");
    assert_named(
        sumac_client_variable_find(client, NULL, &made, &error), &error,
        "sumac_client_variable_find: name is NULL");
    assert_named(
        sumac_client_variable_find(client, "a", NULL, &error), &error,
        "sumac_client_variable_find: variable is NULL");
    assert_named(
        sumac_client_variable_delete(NULL, "a", &error), &error,
        "sumac_client_variable_delete: client is NULL");
    assert_named(
        sumac_client_variable_delete(client, NULL, &error), &error,
        "sumac_client_variable_delete: name is NULL");
    assert_int_equal(sumac_client_variable_create_many(client, NULL, 0, NULL, NULL), SUMAC_OK);
    assert_int_equal(played->count, 0);
}

PLAYED_TEST(what_this_client_never_knew_is_deleted)
{
    assert_int_equal(sumac_client_variable_delete(&played->client, "unknown", NULL), SUMAC_OK);

    assert_string_equal(played->asked[0].names, "unknown ");
}
