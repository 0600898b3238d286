/* SPDX-License-Identifier: Apache-2.0 */
/* many.c -- `sumac run --ps 2 --workers 1 -- many`: what a program has of one create of many. Says
 * which line found something else, and ends with 1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sumac/client.h"

#define SOME 600u /* three messages */
#define ALL 10000u

static struct sumac_client *client;
static struct sumac_error error;

#define MUST(what)                                                                                 \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            printf("line %d: not so: %s (%s)\n", __LINE__, #what, error.text);                     \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

struct list {
    char names[ALL][32];
    struct sumac_client_variable_options options[ALL];
    struct sumac_client_variable *variables[ALL];
};

/* Of several types and shapes, a shard on each ps where there are rows for it. */
static void fill(struct list *list, const char *kind, size_t count)
{
    static const enum sumac_dtype dtypes[] = {SUMAC_FLOAT32, SUMAC_INT64, SUMAC_FLOAT64};

    memset(list->variables, 0, sizeof list->variables);
    for (size_t i = 0; i < count; i++) {
        snprintf(list->names[i], sizeof list->names[i], "%s_%zu", kind, i);
        list->options[i] = (struct sumac_client_variable_options){
            .name = list->names[i],
            .dtype = dtypes[i % 3],
            .shape = {.rank = 2, .extent = {1 + i % 4, 3}},
            .partitioner = {.kind = SUMAC_PARTITIONER_SHARD_PER_PS},
            .function = {.name = "assign_add"}};
    }
}

static enum sumac_status create(struct list *list, size_t count)
{
    return sumac_client_variable_create_many(client, list->options, count, list->variables, &error);
}

/* Its bytes count up from `from`, and come back so. */
static void push_and_pull(struct sumac_client_variable *variable, int from)
{
    struct sumac_tensor sent, got;
    uint8_t *bytes;

    MUST(sumac_client_variable_tensor(variable, &sent, &error) == SUMAC_OK);
    MUST(sumac_client_variable_tensor(variable, &got, &error) == SUMAC_OK);
    bytes = sumac_tensor_data(&sent);
    for (uint64_t i = 0; i < sumac_tensor_bytes(&sent); i++)
        bytes[i] = i % 4 == 0 ? (uint8_t)(from + (int)i) : 0; /* of no type a NaN */
    const struct sumac_function assign = {.name = "assign"};
    const struct sumac_delta delta = {.variable = variable, .value = sent, .function = &assign};
    const struct sumac_fetch fetch = {.variable = variable, .into = got};
    MUST(sumac_client_push(client, &delta, 1, NULL, NULL, &error) == SUMAC_OK);
    MUST(sumac_client_pull(client, &fetch, 1, NULL, NULL, &error) == SUMAC_OK);
    MUST(memcmp(bytes, sumac_tensor_data(&got), sumac_tensor_bytes(&sent)) == 0);
    sumac_buffer_unref(sent.buffer);
    sumac_buffer_unref(got.buffer);
}

static void each_is_what_was_asked_for_and_can_be_pushed_and_pulled(struct list *list)
{
    struct sumac_client_variable *before = NULL;

    fill(list, "some", SOME);
    MUST(sumac_client_variable_create(client, &list->options[7], &before, &error) == SUMAC_OK);
    MUST(create(list, SOME) == SUMAC_OK);
    MUST(list->variables[7] == before); /* it was there */
    for (size_t i = 0; i < SOME; i++) {
        const struct sumac_client_variable *variable = list->variables[i];
        const struct sumac_shape shape = sumac_client_variable_shape(variable);
        MUST(strcmp(sumac_client_variable_name(variable), list->names[i]) == 0);
        MUST(sumac_client_variable_dtype(variable) == list->options[i].dtype);
        MUST(sumac_shape_equal(&shape, &list->options[i].shape));
        MUST(sumac_client_variable_shards(variable) == (i % 4 == 0 ? 1 : 2));
        push_and_pull(list->variables[i], (int)i);
    }
}

static void the_same_call_again_gives_the_same(struct list *list)
{
    static struct sumac_client_variable *first[SOME];

    memcpy(first, list->variables, sizeof first);
    MUST(create(list, SOME) == SUMAC_OK);
    MUST(memcmp(first, list->variables, sizeof first) == 0);
}

static void of_none_nothing_is_done(void)
{
    MUST(sumac_client_variable_create_many(client, NULL, 0, NULL, &error) == SUMAC_OK);
}

/* Nothing of the message that it is in is made, and the caller's array is as it was. */
static void
one_that_is_refused_is_named_and_leaves_the_others_of_its_message_undone(struct list *list)
{
    struct sumac_client_variable *found;

    fill(list, "bad", 5);
    list->options[3].name = "bad/part_0";
    MUST(create(list, 5) == SUMAC_INVALID_ARGUMENT);
    MUST(strstr(error.text, "bad/part_0") != NULL);
    MUST(list->variables[0] == NULL);
    MUST(sumac_client_variable_find(client, "bad_0", &found, &error) == SUMAC_NOT_FOUND);
}

static void one_that_is_defined_otherwise_is_named_with_what_differs(struct list *list)
{
    fill(list, "some", 5);
    list->options[2].dtype = SUMAC_INT32;
    MUST(create(list, 5) == SUMAC_ALREADY_EXISTS);
    MUST(strstr(error.text, "some_2") != NULL);
    MUST(strstr(error.text, "int32") != NULL);
}

/* In one message, or in two. */
static void a_name_that_is_there_twice_is_refused(struct list *list)
{
    static const size_t places[] = {4, SOME - 1};

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct sumac_client_variable *found;
        fill(list, "twice", SOME);
        list->options[places[i]].name = "twice_1";
        list->options[places[i]].dtype = list->options[1].dtype;
        list->options[places[i]].shape = list->options[1].shape;
        MUST(create(list, SOME) == SUMAC_INVALID_ARGUMENT);
        MUST(strstr(error.text, "twice_1") != NULL);
        MUST(sumac_client_variable_find(client, "twice_0", &found, &error) == SUMAC_NOT_FOUND);
    }
}

static void ten_thousand_are_made(struct list *list)
{
    fill(list, "all", ALL);
    MUST(create(list, ALL) == SUMAC_OK);
    for (size_t i = 0; i < ALL; i += 997)
        push_and_pull(list->variables[i], (int)i);
}

int main(void)
{
    static struct list list;

    MUST(sumac_client_open(NULL, &client, &error) == SUMAC_OK);
    each_is_what_was_asked_for_and_can_be_pushed_and_pulled(&list);
    the_same_call_again_gives_the_same(&list);
    of_none_nothing_is_done();
    one_that_is_refused_is_named_and_leaves_the_others_of_its_message_undone(&list);
    one_that_is_defined_otherwise_is_named_with_what_differs(&list);
    a_name_that_is_there_twice_is_refused(&list);
    ten_thousand_are_made(&list);
    MUST(sumac_client_leave(client, SUMAC_LEAVING_DONE, &error) == SUMAC_OK);
    sumac_client_close(client);
    printf("all is so\n");
    return 0;
}
