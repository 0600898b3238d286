/* SPDX-License-Identifier: Apache-2.0 */
/* member.c -- a worker that obeys lines on its standard input, so that a test can say what happens
 * when.
 *
 *     create NAME DTYPE ROWS COLUMNS SHARDS FUNCTION [sum|mean]
 *                                                       -> "created NAME"
 *     push NAME VALUE [FUNCTION]                        -> "pushed" (every element is VALUE)
 *     step NAME VALUE                                   -> "stepped": a push that finishes a step
 *     pull NAME [LAG_MAX]                               -> "pulled NAME FIRST LAST same|mixed"
 *     begin NAME VALUE / end                            -> "begun", "pushed": a push under way
 *                                                          between the two lines
 *     contribute NAME VALUE WEIGHT [FUNCTION]           -> "begun": a contribution to this member's
 *                                                          next synchronous step, until "end"
 *     train NAME VALUE SECONDS                          -> "trained STEPS": one contribution after
 *                                                          the other, until the time is over
 *     flood NAME VALUE COUNT                            -> "flooding", after the pushes "flooded"
 *     together NAME VALUE COUNT                         -> "under way", then, after all of COUNT
 *                                                          pushes, "together"
 *     in_turn NAME OTHER COUNT                          -> "in turn": COUNT times a push of NaN to
 *                                                          NAME, refused, and one of 1 to OTHER
 *     fork NAME                                         -> "child STATUS" for each call that a
 *                                                          child makes, "child says text", "forked"
 *     delete NAME                                       -> "deleted"
 *     come NAME [WORKERS [TIMEOUT_MS]]                  -> "came NAME ROUND": to a barrier of these
 *                                                          workers ("0,2"), or of all members ("-")
 *     make …, put …, set …, fetch … (values.h)          -> "made", "put", "set", "fetched"
 *     rules                                             -> "members N quorum K continue|fail"
 *     leave done|undone                                 -> "left"
 *
 * Its first argument, if any, bounds each call in milliseconds (0: as usual); a second one,
 * "observer", makes it one; a third has what it takes ps 0's options for synchronous steps to be. A
 * refusal is "refused STATUS REASON text". At the end of its input it exits without leaving; it
 * exits by sumac_exit_code when starting again is the remedy, and is so for more than one call.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sumac/client.h"
#include "sumac/collective.h"
#include "values.h"

#define LINE_BYTES 4096

struct member {
    struct sumac_client *client;
    struct sumac_push *begun;
    struct sumac_buffer *begun_buffer;
    bool waits; /* its pushes have no handles */
    struct sumac_error error;
};

static void say(const char *text)
{
    printf("%s\n", text);
    fflush(stdout);
}

/* Fill `count` elements with one value. */
static void fill(enum sumac_dtype dtype, void *data, uint64_t count, double value)
{
    for (uint64_t i = 0; i < count; i++) {
        if (dtype == SUMAC_FLOAT32)
            ((float *)data)[i] = (float)value;
        else if (dtype == SUMAC_FLOAT64)
            ((double *)data)[i] = value;
        else if (dtype == SUMAC_INT64)
            ((int64_t *)data)[i] = (int64_t)value;
        else
            ((int32_t *)data)[i] = (int32_t)value;
    }
}

static double element(enum sumac_dtype dtype, const void *data, uint64_t index)
{
    switch (dtype) {
    case SUMAC_FLOAT32:
        return (double)((const float *)data)[index];
    case SUMAC_FLOAT64:
        return ((const double *)data)[index];
    case SUMAC_INT64:
        return (double)((const int64_t *)data)[index];
    default:
        return (double)((const int32_t *)data)[index];
    }
}

/* A tensor of the variable's type and shape in a buffer of its own. */
static enum sumac_status allocate(
    const struct sumac_client_variable *variable, struct sumac_buffer **buffer,
    struct sumac_tensor *tensor)
{
    const enum sumac_dtype dtype = sumac_client_variable_dtype(variable);
    const struct sumac_shape shape = sumac_client_variable_shape(variable);
    uint64_t elements = 0, bytes = 0;
    enum sumac_status status = sumac_shape_size(&shape, dtype, &elements, &bytes);

    if (status == SUMAC_OK)
        status = sumac_buffer_create(bytes, buffer);
    if (status == SUMAC_OK)
        status = sumac_tensor_view(*buffer, 0, dtype, &shape, tensor);
    return status;
}

static enum sumac_status create(struct member *member, char *const *words, size_t count)
{
    const struct sumac_client_variable_options options = {
        .name = words[1],
        .dtype = sumac_dtype_parse(words[2]),
        .shape =
            {.extent = {strtoull(words[3], NULL, 10), strtoull(words[4], NULL, 10)}, .rank = 2},
        .partitioner =
            {.kind = SUMAC_PARTITIONER_FIXED_SHARDS, .num_shards = strtoull(words[5], NULL, 10)},
        .function = {.name = words[6]},
        .aggregation = count < 8                       ? SUMAC_REDUCE_NONE
                       : strcmp(words[7], "mean") == 0 ? SUMAC_REDUCE_MEAN
                                                       : SUMAC_REDUCE_SUM,
    };
    struct sumac_client_variable *variable = NULL;
    const enum sumac_status status =
        sumac_client_variable_create(member->client, &options, &variable, &member->error);

    if (status == SUMAC_OK) {
        printf("created %s\n", words[1]);
        fflush(stdout);
    }
    return status;
}

static enum sumac_status begin(
    struct member *member, const char *name, const char *value, const char *function,
    const struct sumac_push_options *options)
{
    struct sumac_client_variable *variable = NULL;
    struct sumac_delta delta = {0};
    enum sumac_status status =
        sumac_client_variable_find(member->client, name, &variable, &member->error);

    if (status == SUMAC_OK)
        status = allocate(variable, &member->begun_buffer, &delta.value);
    if (status != SUMAC_OK)
        return status;
    const struct sumac_function other = {.name = function};
    delta.variable = variable;
    delta.function = function == NULL ? NULL : &other;
    fill(
        delta.value.dtype, sumac_tensor_data(&delta.value),
        sumac_tensor_bytes(&delta.value) / sumac_dtype_bytes(delta.value.dtype),
        strtod(value, NULL));
    return sumac_client_push(
        member->client, &delta, 1, options, member->waits ? NULL : &member->begun, &member->error);
}

static enum sumac_status end(struct member *member)
{
    enum sumac_status status = SUMAC_OK;

    if (member->begun != NULL)
        status = sumac_push_wait(member->begun, 0, &member->error);
    if (status == SUMAC_DEADLINE_EXCEEDED)
        return status; /* still under way: the buffer stays lent */
    member->begun = NULL;
    sumac_buffer_unref(member->begun_buffer);
    member->begun_buffer = NULL;
    return status;
}

static enum sumac_status push(
    struct member *member, const char *name, const char *value, const char *function,
    const struct sumac_push_options *options)
{
    const enum sumac_status status = begin(member, name, value, function, options);

    if (status != SUMAC_OK) {
        sumac_buffer_unref(member->begun_buffer);
        member->begun_buffer = NULL;
        return status;
    }
    return end(member);
}

static enum sumac_status
pull(struct member *member, const char *name, const struct sumac_pull_options *options)
{
    struct sumac_fetch fetch = {0};
    struct sumac_buffer *buffer = NULL;
    struct sumac_pull *under_way = NULL;
    enum sumac_status status =
        sumac_client_variable_find(member->client, name, &fetch.variable, &member->error);

    if (status == SUMAC_OK)
        status = allocate(fetch.variable, &buffer, &fetch.into);
    if (status == SUMAC_OK)
        status = sumac_client_pull(member->client, &fetch, 1, options, &under_way, &member->error);
    if (status == SUMAC_OK)
        status = sumac_pull_wait(under_way, 0, &member->error);
    if (status == SUMAC_OK) {
        const enum sumac_dtype dtype = fetch.into.dtype;
        const void *data = sumac_tensor_data(&fetch.into);
        const uint64_t count = sumac_tensor_bytes(&fetch.into) / sumac_dtype_bytes(dtype);
        bool same = true;
        for (uint64_t i = 1; i < count; i++)
            same = same && element(dtype, data, i) == element(dtype, data, 0);
        printf(
            "pulled %s %.17g %.17g %s\n", name, element(dtype, data, 0),
            element(dtype, data, count - 1), same ? "same" : "mixed");
        fflush(stdout);
    }
    sumac_buffer_unref(buffer);
    return status;
}

static enum sumac_status flood(struct member *member, char *const *words)
{
    say("flooding");
    enum sumac_status status = SUMAC_OK;
    for (uint64_t i = strtoull(words[3], NULL, 10); status == SUMAC_OK && i > 0; i--)
        status = push(member, words[1], words[2], NULL, NULL);
    if (status == SUMAC_OK)
        say("flooded");
    return status;
}

static enum sumac_status train(struct member *member, char *const *words)
{
    const struct sumac_push_options contribution = {.synchronous = true};
    const time_t end_at = time(NULL) + strtol(words[3], NULL, 10);
    enum sumac_status status = SUMAC_OK;
    uint64_t steps = 0;

    while (status == SUMAC_OK && time(NULL) < end_at) {
        status = push(member, words[1], words[2], NULL, &contribution);
        steps += status == SUMAC_OK;
    }
    printf("trained %" PRIu64 "\n", steps);
    fflush(stdout);
    return status;
}

/* That many pushes under way at once, all of the same tensor. */
static enum sumac_status together(struct member *member, char *const *words)
{
    const uint64_t count = strtoull(words[3], NULL, 10);
    struct sumac_push **begun = calloc(count, sizeof *begun);
    struct sumac_client_variable *variable = NULL;
    struct sumac_buffer *buffer = NULL;
    struct sumac_delta delta = {0};
    enum sumac_status status =
        sumac_client_variable_find(member->client, words[1], &variable, &member->error);

    if (status == SUMAC_OK)
        status = allocate(variable, &buffer, &delta.value);
    if (status != SUMAC_OK)
        goto end;
    delta.variable = variable;
    fill(
        delta.value.dtype, sumac_tensor_data(&delta.value),
        sumac_tensor_bytes(&delta.value) / sumac_dtype_bytes(delta.value.dtype),
        strtod(words[2], NULL));
    uint64_t made = 0;
    while (status == SUMAC_OK && made < count) {
        status = sumac_client_push(member->client, &delta, 1, NULL, &begun[made], &member->error);
        made += status == SUMAC_OK;
    }
    say("under way");
    for (uint64_t i = 0; i < made; i++) {
        const enum sumac_status over = sumac_push_wait(begun[i], 0, &member->error);
        status = status == SUMAC_OK ? over : status;
    }
    if (status == SUMAC_OK)
        say("together");
end:
    sumac_buffer_unref(buffer);
    free(begun);
    return status;
}

static enum sumac_status come(struct member *member, char *const *words, size_t count)
{
    struct sumac_member tasks[8];
    struct sumac_collective_options options = {.name = words[1], .tasks = tasks};
    uint64_t round = 0;

    if (count > 2 && strcmp(words[2], "-") != 0)
        for (const char *at = words[2]; *at != '\0' && options.task_count < 8; at++)
            if (*at != ',')
                tasks[options.task_count++] =
                    (struct sumac_member){"worker", (uint32_t)(*at - '0')};
    options.timeout_ms = count > 3 ? (uint32_t)strtoul(words[3], NULL, 10) : 0;
    const enum sumac_status status =
        sumac_client_barrier(member->client, &options, &round, &member->error);
    if (status == SUMAC_OK) {
        printf("came %s %" PRIu64 "\n", words[1], round);
        fflush(stdout);
    }
    return status;
}

static enum sumac_status in_turn(struct member *member, char *const *words)
{
    enum sumac_status status = SUMAC_OK;

    for (uint64_t i = strtoull(words[3], NULL, 10); status == SUMAC_OK && i > 0; i--) {
        status = push(member, words[1], "nan", NULL, NULL);
        if (status == SUMAC_INVALID_ARGUMENT && member->error.reason == SUMAC_REASON_NON_FINITE)
            status = push(member, words[2], "1", NULL, NULL);
    }
    if (status == SUMAC_OK)
        say("in turn");
    return status;
}

/* A child of this process uses its client: each call's end in a line, then this process goes on. */
static enum sumac_status in_a_child(struct member *member, char *const *words)
{
    struct sumac_delta delta = {0};
    struct sumac_fetch fetch = {0};
    struct sumac_buffer *buffer = NULL;
    struct sumac_push *push = NULL;
    struct sumac_pull *pull = NULL;
    enum sumac_status status =
        sumac_client_variable_find(member->client, words[1], &delta.variable, &member->error);

    if (status == SUMAC_OK)
        status = allocate(delta.variable, &buffer, &delta.value);
    fetch.variable = delta.variable;
    fetch.into = delta.value;
    fflush(stdout);
    const pid_t child = status == SUMAC_OK ? fork() : 1;
    if (child != 0) {
        waitpid(child, NULL, 0);
        sumac_buffer_unref(buffer);
        say("forked");
        return status;
    }
    struct sumac_client_facts facts;
    const enum sumac_status statuses[] = {
        sumac_client_push(member->client, &delta, 1, NULL, &push, &member->error),
        sumac_client_pull(member->client, &fetch, 1, NULL, &pull, &member->error),
        sumac_client_variable_delete(member->client, words[1], &member->error),
        sumac_client_leave(member->client, SUMAC_LEAVING_DONE, &member->error),
    };
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        printf("child %s\n", sumac_status_name(statuses[i]));
    sumac_client_describe(member->client, &facts);
    sumac_client_close(member->client);
    printf("child says %s\n", member->error.text);
    fflush(stdout);
    _exit(0);
}

static enum sumac_status say_who(const struct member *member)
{
    struct sumac_client_facts facts;

    sumac_client_describe(member->client, &facts);
    printf("member %" PRIu32 " of %" PRIu32 "\n", facts.member_index, facts.member_count);
    fflush(stdout);
    return SUMAC_OK;
}

static enum sumac_status say_steps(const struct member *member)
{
    struct sumac_client_facts facts;

    sumac_client_describe(member->client, &facts);
    printf(
        "contributed %" PRIu64 ", newest %" PRIu64 "\n", facts.contributed_step, facts.newest_step);
    fflush(stdout);
    return SUMAC_OK;
}

static enum sumac_status say_rules(const struct member *member)
{
    struct sumac_client_facts facts;

    sumac_client_describe(member->client, &facts);
    printf(
        "members %" PRIu32 " quorum %" PRIu32 " %s\n", facts.step_options.members,
        facts.step_options.quorum,
        facts.step_options.on_loss == SUMAC_ON_LOSS_FAIL       ? "fail"
        : facts.step_options.on_loss == SUMAC_ON_LOSS_CONTINUE ? "continue"
                                                               : "any");
    fflush(stdout);
    return SUMAC_OK;
}

/* "MEMBERS,QUORUM,fail|continue|any", what it takes ps 0's options to be. */
static struct sumac_step_options read_rules(const char *text)
{
    char *end;
    const uint32_t members = (uint32_t)strtoul(text, &end, 10);
    const uint32_t quorum = (uint32_t)strtoul(end + 1, &end, 10);

    return (struct sumac_step_options){
        .members = members,
        .quorum = quorum,
        .on_loss = strcmp(end, ",fail") == 0       ? SUMAC_ON_LOSS_FAIL
                   : strcmp(end, ",continue") == 0 ? SUMAC_ON_LOSS_CONTINUE
                                                   : SUMAC_ON_LOSS_ANY};
}

/* What is done to its end and then said: false when the line is none of these. */
static bool
whole(struct member *member, char *const *words, size_t count, enum sumac_status *status)
{
    const char *said = NULL;

    if (count == 6 && strcmp(words[0], "make") == 0) {
        *status = values_make(member->client, words, &member->error);
        said = "made";
    } else if (count == 7 && strcmp(words[0], "make") == 0) {
        *status = values_make_of(member->client, words, &member->error);
        said = "made";
    } else if (count == 2 && strcmp(words[0], "delete") == 0) {
        *status = sumac_client_variable_delete(member->client, words[1], &member->error);
        said = "deleted";
    } else if (count >= 5 && strcmp(words[0], "put") == 0) {
        *status = values_put(member->client, words, count, &member->error);
        said = "put";
    } else if (count == 3 && strcmp(words[0], "set") == 0) {
        *status = values_set(member->client, words, &member->error);
        said = "set";
    } else if (count >= 3 && strcmp(words[0], "fetch") == 0) {
        *status = values_fetch(member->client, words, count, &member->error);
        said = "fetched";
    } else if (count == 2 && strcmp(words[0], "facts") == 0) {
        *status = values_facts(member->client, words, &member->error);
        said = "described";
    } else if (count == 3 && strcmp(words[0], "push_at_once") == 0) {
        member->waits = true;
        *status = push(member, words[1], words[2], NULL, NULL);
        member->waits = false;
        said = "pushed";
    } else if (count == 1 && strcmp(words[0], "cancel") == 0) {
        sumac_push_cancel(member->begun);
        said = "given up";
    } else if (count == 1 && strcmp(words[0], "list") == 0) {
        *status = values_list(member->client, &member->error);
        said = "listed";
    }
    if (said != NULL && *status == SUMAC_OK)
        say(said);
    return said != NULL;
}

static enum sumac_status obey(struct member *member, char *const *words, size_t count)
{
    enum sumac_status status = SUMAC_OK;

    if (whole(member, words, count, &status))
        return status;
    if (count >= 7 && strcmp(words[0], "create") == 0)
        return create(member, words, count);
    if (count >= 2 && strcmp(words[0], "come") == 0)
        return come(member, words, count);
    if (count == 1 && strcmp(words[0], "who") == 0)
        return say_who(member);
    if ((count == 2 || count == 3) && strcmp(words[0], "pull") == 0) { /* w LAG_MAX */
        const struct sumac_pull_options lag = {
            .bounded = count > 2, .lag_max = count > 2 ? strtoull(words[2], NULL, 10) : 0};
        return pull(member, words[1], &lag);
    }
    if (count == 3 && strcmp(words[0], "pull_at") == 0) {
        const struct sumac_pull_options at = {.at_step = strtoull(words[2], NULL, 10)};
        return pull(member, words[1], &at);
    }
    if (count == 1 && strcmp(words[0], "steps") == 0)
        return say_steps(member);
    if (count == 1 && strcmp(words[0], "rules") == 0)
        return say_rules(member);
    if (count == 4 && strcmp(words[0], "flood") == 0)
        return flood(member, words);
    if (count == 4 && strcmp(words[0], "train") == 0)
        return train(member, words);
    if (count == 4 && strcmp(words[0], "together") == 0)
        return together(member, words);
    if (count == 2 && strcmp(words[0], "fork") == 0)
        return in_a_child(member, words);
    if (count == 4 && strcmp(words[0], "in_turn") == 0)
        return in_turn(member, words);
    if (count == 3 && strcmp(words[0], "step") == 0) {
        const struct sumac_push_options step = {.finishes_step = true};
        status = push(member, words[1], words[2], NULL, &step);
        if (status == SUMAC_OK)
            say("stepped");
    } else if (count >= 3 && strcmp(words[0], "push") == 0) {
        status = push(member, words[1], words[2], count > 3 ? words[3] : NULL, NULL);
        if (status == SUMAC_OK)
            say("pushed");
    } else if (count >= 3 && strcmp(words[0], "begin") == 0) {
        status = begin(member, words[1], words[2], count > 3 ? words[3] : NULL, NULL);
        if (status == SUMAC_OK)
            say("begun");
    } else if (count >= 4 && strcmp(words[0], "contribute") == 0) {
        const double weight = strtod(words[3], NULL);
        const struct sumac_push_options step = {
            .synchronous = true, .weight = weight, .zero_weight = weight <= 0};
        status = begin(member, words[1], words[2], count > 4 ? words[4] : NULL, &step);
        if (status == SUMAC_OK)
            say("begun");
    } else if (count == 1 && strcmp(words[0], "end") == 0) {
        status = end(member);
        if (status == SUMAC_OK)
            say("pushed");
    } else if (count == 2 && strcmp(words[0], "leave") == 0) {
        status = sumac_client_leave(member->client, strcmp(words[1], "done") == 0, &member->error);
        if (status == SUMAC_OK)
            say("left");
    } else {
        say("what?");
    }
    return status;
}

/* Errors of a wait or a round that leave the session open, whatever their exit code. */
static bool leaves_the_session_open(enum sumac_reason reason)
{
    return reason == SUMAC_REASON_TIMED_OUT || reason == SUMAC_REASON_ROUND_TIMED_OUT ||
           reason == SUMAC_REASON_MEMBER_GONE || reason == SUMAC_REASON_STEP_LATE ||
           reason == SUMAC_REASON_CANCELLED;
}

/* Tell a refusal; true when the session is over with it. */
static bool ends(const struct member *member, enum sumac_status status)
{
    if (status == SUMAC_OK)
        return false;
    printf(
        "refused %s %s %s\n", sumac_status_name(status), sumac_reason_name(member->error.reason),
        member->error.text);
    fflush(stdout);
    return !leaves_the_session_open(member->error.reason) &&
           (member->error.reason == SUMAC_REASON_RUN_ENDED ||
            member->error.reason == SUMAC_REASON_REPLACED ||
            sumac_exit_code(&member->error) >= 128);
}

static int converse(struct member *member)
{
    char line[LINE_BYTES];

    while (fgets(line, sizeof line, stdin) != NULL) {
        char *words[8];
        size_t count = 0;
        for (char *word = strtok(line, " \n"); word != NULL && count < 8;
             word = strtok(NULL, " \n"))
            words[count++] = word;
        if (count == 0)
            continue;
        if (ends(member, obey(member, words, count)))
            return sumac_exit_code(&member->error);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct member member = {0};
    struct sumac_cluster cluster = {0};
    enum sumac_status status = sumac_cluster_from_environment(NULL, &cluster, &member.error);
    const struct sumac_client_options options = {
        .cluster = &cluster,
        .timeout_ms = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0,
        .observer = argc > 2 && strcmp(argv[2], "observer") == 0,
        .step_options = argc > 3 ? read_rules(argv[3]) : (struct sumac_step_options){0},
    };

    if (status == SUMAC_OK)
        status = sumac_client_open(&options, &member.client, &member.error);
    if (status != SUMAC_OK) {
        ends(&member, status);
        sumac_cluster_deinit(&cluster);
        return sumac_exit_code(&member.error);
    }
    say("joined");
    const int code = converse(&member);
    sumac_client_close(member.client);
    sumac_buffer_unref(member.begun_buffer);
    sumac_cluster_deinit(&cluster);
    return code;
}
