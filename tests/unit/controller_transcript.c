/* SPDX-License-Identifier: Apache-2.0 */
/* controller_transcript.c -- what the controller says, as lines; see controller_world.h. */
#include "controller_transcript.h"
#include "controller_state.h"
#include "controller_members.h"

#include <inttypes.h>

#include "unit.h"

void transcript_say(struct world *world, const char *format, ...)
{
    const size_t room = WORLD_TEXT_BYTES - world->text_used;
    va_list arguments;

    va_start(arguments, format);
    const int length = vsnprintf(world->text + world->text_used, room, format, arguments);
    va_end(arguments);
    assert_true(length >= 0 && (size_t)length < room);
    world->text_used += (size_t)length;
}

void world_forget(struct world *world)
{
    world->text_used = world->order_end = 0;
    world->text[0] = world->order_text[0] = '\0';
}

/* An … stands for any text up to the end of the line. */
static bool is_as_expected(const char *said, const char *expected)
{
    const size_t any_bytes = strlen("…");

    while (strncmp(expected, "…", any_bytes) != 0) {
        if (*said != *expected)
            return false;
        if (*said == '\0')
            return true;
        said++;
        expected++;
    }
    for (;; said++) {
        if (is_as_expected(said, expected + any_bytes))
            return true;
        if (*said == '\0' || *said == '\n')
            return false;
    }
}

void world_expect_at(struct world *world, const char *file, int line, const char *expected)
{
    const bool equal = is_as_expected(world->text, expected);

    if (!equal)
        print_error(
            "%s:%d: expected\n%s-- the controller said\n%s", file, line, expected, world->text);
    world_forget(world);
    assert_true(equal);
}

void world_expect_answer_at(struct world *world, const char *file, int line, const char *expected)
{
    char whole[1400];

    (void)snprintf(whole, sizeof whole, "%" PRIu64 ": %s\n", world->calls, expected);
    world_expect_at(world, file, line, whole);
}

uint32_t transcript_session(struct world *world, const uint8_t id[16])
{
    for (uint32_t i = 0; i < world->session_count; i++)
        if (memcmp(world->sessions[i], id, 16) == 0)
            return i + 1;
    assert_true(world->session_count < WORLD_SESSIONS_MAX);
    memcpy(world->sessions[world->session_count], id, 16);
    return ++world->session_count;
}

static void say_order_text(struct world *world, const struct world_order *order)
{
    const uint32_t session = order->kind == ORDER_OPEN || order->kind == ORDER_FIRST_STEP ||
                                     order->kind == ORDER_CLOSE || order->kind == ORDER_DECIDE
                                 ? transcript_session(world, order->session_id)
                                 : 0;

    switch (order->kind) {
    case ORDER_HELLO:
        transcript_say(
            world, "hello %" PRIu64 " of %zu ps", order->expected_incarnation, order->addresses);
        break;
    case ORDER_ALIVE:
        break;
    case ORDER_OPEN:
        transcript_say(world, "open %u", session);
        break;
    case ORDER_DEFINE:
        transcript_say(world, "define %" PRIu64 " %s", order->variable_id, order->text);
        break;
    case ORDER_ADD_SHARDS:
        transcript_say(world, "add %" PRIu64 " %s", order->variable_id, order->text);
        break;
    case ORDER_PUBLISH:
        transcript_say(world, "publish %" PRIu64, order->variable_id);
        break;
    case ORDER_DELETE:
        transcript_say(world, "delete %" PRIu64, order->variable_id);
        break;
    case ORDER_FIRST_STEP:
        transcript_say(world, "count %u from step %" PRIu64 " on", session, order->final);
        break;
    case ORDER_CLOSE:
        transcript_say(world, "close %u%s", session, order->text);
        break;
    case ORDER_DECIDE:
        transcript_say(world, "decide %u at %" PRIu64, session, order->final);
        for (size_t i = 0; i < order->voided_count && i < 8; i++)
            transcript_say(world, "%s %" PRIu64, i == 0 ? " voided" : "", order->voided[i]);
        if (order->acked_through != 0)
            transcript_say(world, " acked %" PRIu64, order->acked_through);
        transcript_say(world, "%s", order->done ? " done" : "");
        break;
    case ORDER_TAKE:
        transcript_say(world, "take step %" PRIu64 " of", order->final);
        for (size_t i = 0; i < order->taken_count; i++)
            transcript_say(world, " %u", transcript_session(world, order->taken[i]));
        break;
    case ORDER_COLLECTIVE:
        transcript_say(world, "collective %s", order->text);
        break;
    case ORDER_MEMBERSHIP:
        transcript_say(
            world, "members %zu epoch %" PRIu64, order->members, order->membership_epoch);
        break;
    case ORDER_END:
        transcript_say(
            world, "end %u %s %s", order->exit_code, sumac_reason_name(order->reason), order->text);
        break;
    }
}

/* The same to one ps after the other is one line: "ps 0, 1: open 1". */
void transcript_order(struct world *world, uint32_t ps, const struct world_order *order)
{
    char text[sizeof world->order_text];
    const size_t begin = world->text_used;

    say_order_text(world, order);
    (void)snprintf(text, sizeof text, ": %s\n", world->text + begin);
    const bool again = begin == world->order_end && strcmp(text, world->order_text) == 0;
    world->text_used = begin - (again ? strlen(text) : 0);
    transcript_say(world, "%s%u%s", again ? ", " : "ps ", ps, text);
    world->order_end = world->text_used;
    (void)snprintf(world->order_text, sizeof world->order_text, "%s", text);
}

/* What every join is told alike. */
static void assert_cluster(const struct world *world, const wire_join_reply *reply)
{
    assert_int_equal(reply->cluster_id, controller_cluster_id(world->controller));
    assert_int_equal(reply->epoch, 1);
    assert_int_equal(reply->lease_ms, world->config.lease_ms);
    assert_int_equal(reply->ps_lost_ms, world->config.ps_lost_ms);
    assert_int_equal(reply->step_quorum, world->config.step_quorum);
    assert_int_equal(reply->step_deadline_ms, world->config.step_deadline_ms);
    assert_int_equal(reply->step_members, controller_step_members(world->controller));
    assert_int_equal(reply->n_ps_addresses, reply->n_ps_incarnations);
    for (size_t ps = 0; ps < reply->n_ps_addresses && ps < WORLD_PS_MAX; ps++) {
        assert_true(reply->ps_addresses[ps][0] != '\0');
        assert_int_equal(reply->ps_incarnations[ps], world->ps[ps].incarnation);
    }
}

static void say_joined(struct world *world, const wire_join_reply *reply)
{
    assert_cluster(world, reply);
    transcript_say(
        world, "joined %u attempt %" PRIu64 " of %zu ps",
        transcript_session(world, reply->session_id.data), reply->attempt,
        reply->n_ps_incarnations);
    if (reply->previous_final != 0)
        transcript_say(world, " after %" PRIu64, reply->previous_final);
    if (reply->previous_acked_through != 0)
        transcript_say(world, " acked %" PRIu64, reply->previous_acked_through);
    for (size_t i = 0; i < reply->n_previous_voided; i++)
        transcript_say(world, "%s %" PRIu64, i == 0 ? " voided" : "", reply->previous_voided[i]);
    if (reply->clock != 0)
        transcript_say(world, " clock %" PRIu64, reply->clock);
    if (reply->first_step > 1)
        transcript_say(world, " step %" PRIu64, reply->first_step);
    transcript_say(world, " epoch %" PRIu64, reply->membership_epoch);
    const struct replaced replaced = wire_replaced_of(reply->replaced);
    world->replaced_attempt = replaced.attempt;
    (void)wire_replaced_print(&replaced, world->replaced);
}

static void say_variable(struct world *world, const wire_variable *variable)
{
    transcript_say(world, " %" PRIu64, variable->variable_id);
    for (size_t i = 0; i < variable->n_shards; i++)
        transcript_say(
            world, " shard %" PRIu64 " on ps %u", variable->shards[i]->shard_id,
            variable->shards[i]->ps);
    for (size_t i = 0; i < variable->function->n_hyperparameters; i++) {
        const wire_hyperparameter *one = variable->function->hyperparameters[i];
        if (one->name == SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_LEARNING_RATE)
            transcript_say(world, " rate %g", one->value);
    }
    transcript_say(world, "%s", variable->published ? " published" : "");
}

static void say_created(struct world *world, const wire_create_reply *reply)
{
    transcript_say(world, "created");
    if (reply->variable != NULL)
        say_variable(world, reply->variable);
    for (size_t i = 0; i < reply->n_variables; i++)
        say_variable(world, reply->variables[i]);
    transcript_say(world, "%s", reply->assign ? " assign" : "");
}

static void say_renewed(struct world *world, const wire_renew_reply *reply)
{
    assert_int_equal(reply->epoch, 1);
    world->renewed_membership_epoch = reply->membership_epoch;
    transcript_say(world, "renewed");
}

static void say_round(struct world *world, const wire_barrier_reply *reply)
{
    if (reply->status == 0)
        transcript_say(world, "round %" PRIu64 " passes", reply->round);
    else
        transcript_say(
            world, "round %" PRIu64 " ends %s %s %s", reply->round,
            sumac_status_name((enum sumac_status)reply->status),
            sumac_reason_name((enum sumac_reason)reply->reason), reply->message);
}

static void say_functions(struct world *world, const wire_functions_reply *reply)
{
    transcript_say(world, "functions");
    for (size_t i = UPDATE_FUNCTIONS_MAX; i < reply->n_functions; i++) {
        const wire_known_function *const one = reply->functions[i];
        if (one->plugin[0] == '\0')
            transcript_say(world, " %u %s \"%s\"", one->number, one->name, one->text);
        else
            transcript_say(
                world,
                " %u %s of %s \"%s\", %zu hyperparameters, %zu slots, %zu types%s, repeats %d",
                one->number, one->name, one->plugin, one->rule, one->n_hyperparameters,
                one->n_slots, one->n_data_types, one->counts_steps ? ", counts" : "",
                (int)one->repeats);
    }
}

static void say_reply(struct world *world, const wire_message *reply)
{
    if (reply->descriptor == &sumac__v1__join_reply__descriptor)
        say_joined(world, (const wire_join_reply *)reply);
    else if (reply->descriptor == &sumac__v1__create_reply__descriptor)
        say_created(world, (const wire_create_reply *)reply);
    else if (reply->descriptor == &sumac__v1__define_reply__descriptor)
        transcript_say(world, "function %u", ((const wire_define_reply *)reply)->function->number);
    else if (reply->descriptor == &sumac__v1__functions_reply__descriptor)
        say_functions(world, (const wire_functions_reply *)reply);
    else if (reply->descriptor == &sumac__v1__leave_reply__descriptor)
        transcript_say(world, "left at %" PRIu64, ((const wire_leave_reply *)reply)->final);
    else if (reply->descriptor == &sumac__v1__barrier_reply__descriptor)
        say_round(world, (const wire_barrier_reply *)reply);
    else if (reply->descriptor == &sumac__v1__renew_reply__descriptor)
        say_renewed(world, (const wire_renew_reply *)reply);
    else
        transcript_say(world, "%s", reply->descriptor->short_name);
}

void transcript_answer(struct world *world, const struct lane_effect *effect)
{
    transcript_say(world, "%" PRIu64 ": ", effect->call);
    if (effect->kind == LANE_EFFECT_REPLY)
        say_reply(world, effect->reply);
    else
        transcript_say(
            world, "%s %s %s", sumac_status_name(effect->error.status),
            sumac_reason_name(effect->error.reason), effect->error.text);
    transcript_say(world, "\n");
}
