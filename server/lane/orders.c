/* SPDX-License-Identifier: Apache-2.0 */
/* orders.c -- what ps 0 orders: sessions opened, closed and decided, variables made and published,
 * the end of the run.
 *
 * ps 0 gives an order again when it did not hear the answer, so obeying one twice does nothing. Its
 * own lane is one as the others: the stream that its controller's orders come on is the only one
 * that it obeys.
 */
#include "handlers.h"

#include "error.h"
#include "identity.h"
#include "listing.h"
#include "voided.h"

#define FILL_BYTES_PER_STEP 262144u
#define EXIT_CODE_MAX 255u
#define PROCESS_BYTES 96u
#define WORK_OF_A_PLACEMENT 1u /* that is checked and kept */

/* An address that is longer than what a resolver takes is none. */
/* False: no memory. */
static bool learn_addresses(struct lane *lane, const wire_peer_hello *hello)
{
    if (hello->n_ps_addresses > LANE_PS_MAX)
        return true;
    lane->ps_count = (uint32_t)hello->n_ps_addresses;
    lane_session_bound_pool(lane);
    for (uint32_t i = 0; i < lane->ps_count; i++) {
        const size_t bytes = strlen(hello->ps_addresses[i]) + 1;
        if (lane->ps_addresses[i] != NULL &&
            strcmp(lane->ps_addresses[i], hello->ps_addresses[i]) == 0)
            continue;
        char *copy = arena_take(&lane->strings, bytes);
        if (copy == NULL)
            return false;
        memcpy(copy, hello->ps_addresses[i], bytes);
        lane->ps_addresses[i] = copy;
    }
    assert(lane->ps_count <= LANE_PS_MAX);
    return true;
}

bool lane_order_learn(struct lane *lane, const wire_peer_hello *hello, uint64_t number)
{
    if (!learn_addresses(lane, hello))
        return false;
    lane->controller_hello = number;
    if (!lane->any_hello)
        lane->controller_found[0] = '\0';
    lane->any_hello = true;
    lane->cluster_id = hello->cluster_id;
    lane->epoch = hello->epoch;
    lane->controller_incarnation = hello->controller_incarnation;
    lane->controller_secret = hello->controller_secret;
    if (wire_identity_read(hello->identity, &lane->controller_identity, NULL) != SUMAC_OK)
        lane->controller_identity = (struct run_identity){.pid = 0};
    lane->step_members = hello->step_members;
    lane->step_quorum = hello->quorum;
    for (uint32_t i = 0; i < hello->n_ps_incarnations && i < LANE_PS_MAX; i++) {
        if (i != lane->index && hello->ps_incarnations[i] != 0)
            lane->ps_incarnations[i] = hello->ps_incarnations[i];
    }
    return true;
}

/* Is the state of any ps gone, as far as this hello tells? */
static bool lost_by(struct lane *lane, const wire_peer_hello *hello)
{
    if (lane->controller_incarnation != 0 &&
        (hello->controller_incarnation != lane->controller_incarnation ||
         hello->epoch != lane->epoch)) {
        if (hello->epoch != lane->epoch)
            lane_collective_epoch(lane, hello->epoch);
        lane_shutdown_lost(
            lane, SUMAC_REASON_STATE_LOST,
            "ps 0 came back without its state; start the whole run again, ps and workers");
        return true;
    }
    for (uint32_t i = 0; i < hello->n_ps_incarnations && i < LANE_PS_MAX; i++) {
        const uint64_t known = lane->ps_incarnations[i], told = hello->ps_incarnations[i];
        if (i == lane->index || told == 0)
            continue;
        if (known != 0 && known != told) {
            lane_shutdown_lost(
                lane, SUMAC_REASON_STATE_LOST,
                "ps %u came back without its state; start the whole run again, ps and workers", i);
            return true;
        }
    }
    return false;
}

static enum sumac_status
check_hello(const struct lane *lane, const wire_peer_hello *hello, struct sumac_error *error)
{
    if (hello->protocol_version != WIRE_PROTOCOL_VERSION)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_PROTOCOL_VERSION,
            "ps 0 speaks protocol version %u, ps %u version %u", hello->protocol_version,
            lane->index, WIRE_PROTOCOL_VERSION);
    if (lane->any_hello && hello->index != lane->index)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
            "ps 0 takes this for ps %u, it was configured as ps %u", hello->index, lane->index);
    if (hello->cluster_id == 0 || hello->epoch == 0 || hello->controller_incarnation == 0)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED,
            "ps 0 says cluster %016" PRIx64 ", epoch %" PRIu64 ", incarnation %016" PRIx64
            " in its hello; none of them may be 0",
            hello->cluster_id, hello->epoch, hello->controller_incarnation);
    if (hello->expected_incarnation != 0 && hello->expected_incarnation != lane->config.incarnation)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_STATE_LOST,
            "ps %u came back without its state; start the whole run again, ps and workers",
            lane->index);
    return SUMAC_OK;
}

/* " (process 12 on node3)"; "": it is not known. */
static const char *print_process(const struct run_identity *identity, char *text, size_t text_bytes)
{
    assert(text_bytes > 1);
    text[0] = '\0';
    if (identity->pid != 0)
        (void)text_print_line(
            text, text_bytes, " (process %" PRIu32 " on %s)", identity->pid, identity->host);
    return text;
}

static void
refuse_second(struct lane *lane, struct lane_stream *stream, const wire_peer_hello *hello)
{
    const char *const address = lane_ps0_address(lane);
    struct run_identity theirs;
    char first[PROCESS_BYTES], second[PROCESS_BYTES];

    assert(hello->controller_incarnation != lane->controller_incarnation);
    if (wire_identity_read(hello->identity, &theirs, NULL) != SUMAC_OK)
        theirs = (struct run_identity){.pid = 0};
    (void)lane_stream_fail(
        lane, stream, SUMAC_UNAVAILABLE, SUMAC_REASON_BUSY,
        "ps %u belongs to another ps 0: end this ps 0%s, or the one at %s%s, heard from %s ago",
        lane->index, print_process(&theirs, second, sizeof second),
        address == NULL ? "an unknown address" : address,
        print_process(&lane->controller_identity, first, sizeof first),
        text_time_us(lane->now_us - lane->controller_heard_us).text);
}

/* Is this the ps 0 that this ps obeys, on a later stream, or one that may take its place? Anybody
 * can dial; so a ps 0 that is only suspended keeps its place for as long as its stream lives, and
 * for ps_lost_ms at most. */
static bool
check_controller(struct lane *lane, struct lane_stream *stream, const wire_peer_order *order)
{
    const wire_peer_hello *hello = order->hello;
    const bool same = hello->controller_incarnation == lane->controller_incarnation;

    assert(stream->state != STREAM_ENDED);
    if (!lane->any_hello)
        return true;
    if (same && hello->controller_secret != lane->controller_secret)
        return lane_stream_fail(
            lane, stream, SUMAC_PERMISSION_DENIED, SUMAC_REASON_NOT_CONTROLLER,
            "hello %" PRIu64 " of ps 0: it does not know what ps 0 told ps %u in its first hello",
            order->number, lane->index);
    if (same && order->number <= lane->controller_hello)
        return lane_stream_fail(
            lane, stream, SUMAC_ABORTED, SUMAC_REASON_STREAM_REPLACED,
            "hello %" PRIu64 " of ps 0: a stream that began with hello %" PRIu64
            " has taken its place",
            order->number, lane->controller_hello);
    if (!same && (lane->controller != NULL || hello->index != lane->index)) {
        refuse_second(lane, stream, hello);
        return false;
    }
    return true;
}

/* A hello that is refused changes nothing: the stream that orders came on stays the one. */
static bool
take_controller(struct lane *lane, struct lane_stream *stream, const wire_peer_order *order)
{
    struct sumac_error error;

    assert(stream->kind == LANE_STREAM_PEER);
    if (!check_controller(lane, stream, order))
        return false;
    if (check_hello(lane, order->hello, &error) != SUMAC_OK) {
        if (stream->state == STREAM_GREETED)
            lane_stream_move(stream, STREAM_SILENT);
        if (lane->controller == stream)
            lane->controller = NULL;
        if (stream->place == PLACE_CONTROLLER)
            lane_place_estrange(lane, stream);
        lane_report_refusal(lane, stream, order->number, &error);
        return false;
    }
    if (lane->controller != NULL && lane->controller != stream)
        (void)lane_stream_fail(
            lane, lane->controller, SUMAC_ABORTED, SUMAC_REASON_STREAM_REPLACED,
            "a later stream of ps 0 has taken this one's place");
    lane->controller = stream;
    lane->controller_heard_us = lane->now_us;
    if (stream->state == STREAM_SILENT)
        lane_stream_move(stream, STREAM_GREETED);
    return stream->place == PLACE_CONTROLLER || lane_place_take(lane, stream);
}

/* False: nothing else that the message says is obeyed. */
static bool obey_hello(struct lane *lane, struct lane_stream *stream, const wire_peer_order *order)
{
    const wire_peer_hello *hello = order->hello;
    struct sumac_error error;

    assert(stream->kind == LANE_STREAM_PEER);
    if (!take_controller(lane, stream, order))
        return false;
    if (lane->index != 0 && lane_order_check_lists(lane, hello, &error) != SUMAC_OK) {
        lane_shutdown_misconfigured(lane, &error);
        return false;
    }
    if (lost_by(lane, hello))
        return false;
    if (!lane->any_hello && lane->index != 0)
        out_log(
            &lane->out, "ps %u was called by ps 0 at %s, cluster %016" PRIx64, lane->index,
            hello->n_ps_addresses > 0 ? hello->ps_addresses[0] : "an unknown address",
            hello->cluster_id);
    if (!lane_order_learn(lane, hello, order->number))
        return lane_stream_fail(
            lane, stream, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "ps %u has no memory for the addresses of the ps", lane->index);
    (void)lane_record_order(lane, RECORD_HELLO, NULL, order->number, &hello->base);
    lane_report_answer(lane, order->number, NULL);
    lane_reports_assigned_again(lane);
    lane_step_say_again(lane);
    return true;
}

static enum sumac_status answer(struct lane *lane, const wire_peer_order *order)
{
    lane_report_answer(lane, order->number, NULL);
    return SUMAC_OK;
}

static enum sumac_status check_id(const wire_bytes *id, struct sumac_error *error)
{
    if (id->len == 16)
        return SUMAC_OK;
    return fail_invalid(error, SUMAC_REASON_MALFORMED, "a session id of %zu bytes", id->len);
}

static enum sumac_status check_places(const struct lane *lane, struct sumac_error *error)
{
    uint32_t open = 0;

    assert(lane->config.sessions_max > 0);
    LIST_FOREACH(const struct lane_session, session, &lane->sessions, in_lane)
        open++;
    if (open < lane->config.sessions_max)
        return SUMAC_OK;
    return fail(
        error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_TOO_MANY_SESSIONS,
        "ps %u has %u sessions open, as many as its --sessions-max; give every ps the same",
        lane->index, open);
}

/* And how many of those that begin with synchronous step 1 have come, where no session says so. */
static void learn_membership(struct lane *lane, uint64_t membership_epoch, uint32_t initial)
{
    assert(lane->index != 0 || lane->any_hello);
    lane->membership_epoch = membership_epoch;
    (void)lane_record_write(
        lane,
        &(struct record){.kind = RECORD_MEMBERSHIP, .first = membership_epoch, .second = initial});
}

/* The record has the clock that it starts at. */
static enum sumac_status open_session(
    struct lane *lane, const wire_open_session *open, uint64_t slowest, struct sumac_error *error)
{
    wire_open_session opened = *open;

    if (check_places(lane, error) != SUMAC_OK)
        return error->status;
    struct lane_session *session = lane_session_open(lane, open);
    if (session == NULL)
        return fail_for_memory(error, "ps %u has no memory for another session", lane->index);
    if (session->clock < slowest &&
        rule_holds(lane->config.broken, RULE_joiner_starts_at_the_slowest)) {
        session->clock_said = slowest;
        lane_session_set_clock(lane, session, slowest);
    }
    if (!lane->joined_once && lane->index != 0)
        out_log(&lane->out, "ps %u opens its first session, of %s", lane->index, session->task);
    lane->joined_once = true;
    lane_step_opened(lane, session, open);
    assert(session->clock >= open->clock);
    opened.clock = session->clock;
    (void)lane_record_order(lane, RECORD_OPEN, NULL, 0, &opened.base);
    return SUMAC_OK;
}

static enum sumac_status
obey_open(struct lane *lane, const wire_peer_order *order, struct sumac_error *error)
{
    const uint64_t slowest = lane_session_slowest_clock(lane, 0);
    const wire_open_session *open = order->open;

    if (check_id(&open->session_id, error) != SUMAC_OK ||
        (lane_session_find(lane, open->session_id.data) == NULL &&
         open_session(lane, open, slowest, error) != SUMAC_OK))
        return error->status;
    if (open->membership_epoch > lane->membership_epoch)
        learn_membership(lane, open->membership_epoch, 0);
    const struct lane_session *opened = lane_session_find(lane, open->session_id.data);
    lane_report_opened(lane, order->number, slowest, opened->seen_step);
    lane_turn_take_steps(lane);
    return SUMAC_OK;
}

/* From which synchronous step on it counts. */
static enum sumac_status
obey_first_step(struct lane *lane, const wire_peer_order *order, struct sumac_error *error)
{
    const wire_first_step *first = order->first_step;

    if (check_id(&first->session_id, error) != SUMAC_OK)
        return error->status;
    if (first->step == 0)
        return fail_invalid(error, SUMAC_REASON_MALFORMED, "a first step of 0: steps count from 1");
    struct lane_session *session = lane_session_find(lane, first->session_id.data);
    if (session != NULL && session->first_step == 0 && !session->closed) {
        lane_step_begins(lane, session, first->step);
        (void)lane_record_order(lane, RECORD_FIRST_STEP, session, 0, &first->base);
    }
    lane_report_answer(lane, order->number, NULL);
    lane_turn_take_steps(lane);
    return SUMAC_OK;
}

/* What a synchronous step is made of, where there is a quorum. */
static enum sumac_status
obey_take(struct lane *lane, const wire_peer_order *order, struct sumac_error *error)
{
    for (size_t i = 0; i < order->take->n_session_ids; i++) {
        if (check_id(&order->take->session_ids[i], error) != SUMAC_OK)
            return error->status;
    }
    if (lane_step_take(lane, order->take, error) != SUMAC_OK)
        return error->status;
    lane_report_answer(lane, order->number, NULL);
    lane_turn_take_steps(lane);
    return SUMAC_OK;
}

static enum sumac_status
obey_define(struct lane *lane, const wire_peer_order *order, struct sumac_error *error)
{
    const wire_define_function *given = order->define;
    const uint32_t before = lane->functions.count;

    if (functions_add(
            &lane->functions, given->number, given->name, given->text, strlen(given->text),
            error) != SUMAC_OK) {
        assert(lane->functions.count == before);
        return error->status;
    }
    if (lane->functions.count > before)
        (void)lane_record_order(lane, RECORD_DEFINE, NULL, 0, &given->base);
    return answer(lane, order);
}

/* How a split round ends. Without memory, the stream ends and ps 0 gives the order again. */
static enum sumac_status
obey_collective(struct lane *lane, const wire_peer_order *order, struct sumac_error *error)
{
    const enum sumac_status status =
        lane_collective_obey(lane, order->number, order->collective, error);

    if (status != SUMAC_RESOURCE_EXHAUSTED)
        return status == SUMAC_OK ? answer(lane, order) : status;
    (void)lane_stream_fail(lane, lane->controller, status, error->reason, "%s", error->text);
    return SUMAC_OK;
}

static void give_up_adding(struct lane *lane, struct variable *variable, struct sumac_error *error)
{
    const uint64_t number = variable->add_number;

    assert(!variable->filled);
    (void)lane_record_order(lane, RECORD_DELETE, NULL, variable->id, NULL);
    lane_reports_forget(lane, variable);
    store_delete(&lane->store, variable);
    lane_orders_reclaim(lane);
    sized_pool_trim(&lane->store.bytes); /* the answer itself needs memory */
    lane_report_answer(lane, number, error);
}

void lane_orders_reclaim(struct lane *lane)
{
    while (store_is_leaving(&lane->store) && lane_has_time(lane))
        lane->work += 1 + store_reclaim(&lane->store) / WORK_GIVEN_BYTES;
}

void lane_orders_fill(struct lane *lane)
{
    struct sumac_error error;
    struct variable *variable = lane->store.unfilled.first;
    uint64_t done;

    if (variable == NULL || lane->store.leaving.first != NULL)
        return;
    assert(!variable->filled);
    assert(!variable->deleted);
    const enum sumac_status filled =
        store_fill(&lane->store, variable, FILL_BYTES_PER_STEP, &done, &error);
    lane->work += done / WORK_VECTOR_BYTES;
    if (filled != SUMAC_OK) {
        give_up_adding(lane, variable, &error);
        return;
    }
    if (!variable->filled)
        return;
    const uint64_t number = variable->add_number;
    variable->add_number = 0;
    lane_report_answer(lane, number, NULL);
}

static enum sumac_status
obey_add_shards(struct lane *lane, const wire_peer_order *order, struct sumac_error *error)
{
    const wire_variable *given = order->add_shards->variable;

    if (given == NULL)
        return fail_invalid(error, SUMAC_REASON_MALFORMED, "add_shards names no variable");
    struct variable *variable = store_find(&lane->store, given->variable_id);
    if (variable == NULL) {
        if (store_add(&lane->store, given, lane->index, &variable, error) != SUMAC_OK)
            return error->status;
        (void)lane_record_order(lane, RECORD_ADD, NULL, 0, &given->base);
        lane->work += given->n_shards * WORK_OF_A_PLACEMENT;
    }
    if (variable->filled)
        return answer(lane, order);
    assert(lane->store.unfilled.first != NULL);
    variable->add_number = order->number;
    if (lane_has_time(lane)) /* else with the next step, which comes at once */
        lane_orders_fill(lane);
    return SUMAC_OK;
}

static enum sumac_status
obey_publish(struct lane *lane, const wire_peer_order *order, struct sumac_error *error)
{
    const uint64_t id = order->publish->variable_id;
    struct variable *variable = store_find(&lane->store, id);

    if (variable == NULL)
        return fail(
            error, SUMAC_NOT_FOUND, SUMAC_REASON_UNKNOWN_VARIABLE, "ps %u has no variable %" PRIu64,
            lane->index, id);
    store_publish(&lane->store, variable);
    (void)lane_record_order(lane, RECORD_PUBLISH, NULL, id, NULL);
    return answer(lane, order);
}

static enum sumac_status
obey_delete(struct lane *lane, const wire_peer_order *order, struct sumac_error *error)
{
    const uint64_t id = order->delete_->variable_id;
    struct variable *variable = store_find(&lane->store, id);
    (void)error;

    if (variable != NULL) {
        lane_pull_end_variable(lane, variable);
        lane_reports_forget(lane, variable);
        store_delete(&lane->store, variable);
        (void)lane_record_order(lane, RECORD_DELETE, NULL, id, NULL);
    }
    return answer(lane, order);
}

/* From now on it takes nothing from the session. */
static enum sumac_status
obey_close(struct lane *lane, const wire_peer_order *order, struct sumac_error *error)
{
    const wire_close_session *close = order->close;

    if (check_id(&close->session_id, error) != SUMAC_OK)
        return error->status;
    struct lane_session *session = lane_session_find(lane, close->session_id.data);
    if (session == NULL)
        return fail(
            error, SUMAC_NOT_FOUND, SUMAC_REASON_SESSION_UNKNOWN,
            "ps %u does not know the session to be closed", lane->index);
    session->cause = wire_close_cause_of(close->cause);
    lane_step_closing(lane, session, close->lost);
    if (rule_holds(lane->config.broken, RULE_close_before_settling))
        lane_session_close(lane, session);
    session->closed_record = lane_record_order(lane, RECORD_CLOSE, session, 0, &close->base);
    session->close_number = order->number;
    lane_report_close(lane, session);
    return SUMAC_OK;
}

static void
decide(struct lane *lane, struct lane_session *session, const wire_decide_session *decided)
{
    lane_session_decide(lane, session, decided);
    lane_step_decided(lane, session, decided);
    lane_pull_disown(lane, session);
    lane_session_end(lane, session);
    session->closed_record = lane_record_order(lane, RECORD_DECIDE, session, 0, &decided->base);
    lane_turn_take(lane, session);
    lane_turn_take_steps(lane);
    lane_pull_end_session(lane, session);
    lane_pull_end_lost(lane);
    if (rule_holds(lane->config.broken, RULE_tell_closed_client))
        lane_answer_closed(lane, session);
    if (session->push_stream == NULL)
        lane_voided_drop_reasons(lane, session);
}

static enum sumac_status
obey_decide(struct lane *lane, const wire_peer_order *order, struct sumac_error *error)
{
    /* No more than all ps together may remember of one session. */
    const uint64_t voided_max = (uint64_t)lane->ps_count * lane->config.voided_per_session_max;
    const wire_decide_session *decided = order->decide;

    if (check_id(&decided->session_id, error) != SUMAC_OK)
        return error->status;
    if (decided->n_voided > voided_max)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED,
            "decide names %zu voided pushes: %u ps together remember %" PRIu64
            " of a session at most",
            decided->n_voided, lane->ps_count, voided_max);
    struct lane_session *session = lane_session_find(lane, decided->session_id.data);
    if (session == NULL) { /* decided and forgotten, or it was never opened here */
        if (lane_step_begin_with(lane, decided->initial))
            learn_membership(lane, lane->membership_epoch, decided->initial);
        return answer(lane, order);
    }
    if (!session->closed && !lane_voided_reserve(lane, session, decided->n_voided))
        return fail_for_memory(
            error, "ps %u has no memory for the %zu voided pushes of %s", lane->index,
            decided->n_voided, session->task);
    assert(session->final == 0 || session->closed);
    session->decide_number = order->number;
    if (!session->closed)
        decide(lane, session, decided);
    else
        lane_turn_take(lane, session);
    return SUMAC_OK;
}

static enum sumac_status
obey_membership(struct lane *lane, const wire_peer_order *order, struct sumac_error *error)
{
    (void)error;
    learn_membership(lane, order->membership->membership_epoch, 0);
    return answer(lane, order);
}

static enum sumac_status
obey_end(struct lane *lane, const wire_peer_order *order, struct sumac_error *error)
{
    if (order->end->exit_code > EXIT_CODE_MAX)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED,
            "order %" PRIu64 ": an end with exit code %u, and a process has one of 0 to %u",
            order->number, order->end->exit_code, EXIT_CODE_MAX);
    lane_shutdown_end(lane, order->number, order->end);
    return SUMAC_OK;
}

static enum sumac_status
obey_unsupported(struct lane *lane, const wire_peer_order *order, struct sumac_error *error)
{
    return fail(
        error, SUMAC_UNIMPLEMENTED, SUMAC_REASON_UNSUPPORTED,
        "order %" PRIu64 ": ps %u makes no views", order->number, lane->index);
}

/* An order that is refused is answered here with the reason. The function of one that is obeyed
 * answers by itself: at once, or when all of it is done. */
static void obey(struct lane *lane, struct lane_stream *stream, const wire_peer_order *order)
{
    const struct {
        const void *given;
        enum sumac_status (*obey)(struct lane *, const wire_peer_order *, struct sumac_error *);
    } table[] = {
        {order->open, obey_open},
        {order->define, obey_define},
        {order->collective, obey_collective},
        {order->add_shards, obey_add_shards},
        {order->publish, obey_publish},
        {order->delete_, obey_delete},
        {order->close, obey_close},
        {order->decide, obey_decide},
        {order->membership, obey_membership},
        {order->first_step, obey_first_step},
        {order->take, obey_take},
        {order->end, obey_end},
        {order->freeze, obey_unsupported},
        {order->cut, obey_unsupported},
        {order->rollback, obey_unsupported},
    };
    struct sumac_error error;

    if (order->hello != NULL && !obey_hello(lane, stream, order))
        return;
    assert(stream == lane->controller || stream->state == STREAM_ENDED);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (table[i].given != NULL && table[i].obey(lane, order, &error) != SUMAC_OK)
            lane_report_answer(lane, order->number, &error);
    }
    if (order->alive)
        lane_stream_owe(lane, stream, DUE_ALIVE);
}

/* Two ps that are each the first of their own list, or have index 0 in one list; or one that calls
 * itself under another name. */
static void
refuse_another_ps_0(struct lane *lane, struct lane_stream *stream, const wire_peer_hello *hello)
{
    struct listing ours = {0}, theirs = {0};
    struct sumac_error error;

    assert(lane->index == 0);
    if (hello == NULL || hello->n_ps_addresses > LANE_PS_MAX) {
        (void)fail(
            &error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
            "this is ps 0, which gives orders and takes none");
    } else if (listing_same_ps(
                   lane->config.ps_addresses, lane->config.ps_count,
                   (const char *const *)hello->ps_addresses, hello->n_ps_addresses)) {
        (void)lane_order_fail_other_index(lane, hello, &error);
    } else {
        listing_add_addresses(&ours, lane->config.ps_addresses, lane->config.ps_count);
        listing_add_addresses(
            &theirs, (const char *const *)hello->ps_addresses, hello->n_ps_addresses);
        (void)fail(
            &error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
            "this is ps 0 of %s, called by ps 0 of %s; give every task the same, in the same order",
            listing_end(&ours), listing_end(&theirs));
    }
    (void)lane_stream_fail(lane, stream, error.status, error.reason, "%s", error.text);
}

void lane_order_received(struct lane *lane, const struct lane_event *event)
{
    struct lane_stream *stream = lane_stream_find(lane, event->stream);

    if (stream == NULL || stream->state == STREAM_ENDED || stream->kind != LANE_STREAM_PEER)
        return;
    if (lane->index == 0 && stream->id != LANE_STREAM_OWN) {
        refuse_another_ps_0(lane, stream, event->order->hello);
        return;
    }
    if (event->order->hello == NULL && stream->state == STREAM_SILENT) {
        (void)lane_stream_fail(
            lane, stream, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "an order on a stream whose hello was not taken");
        return;
    }
    if (stream == lane->controller)
        lane->controller_heard_us = lane->now_us;
    obey(lane, stream, event->order);
}
