/* SPDX-License-Identifier: Apache-2.0 */
/* lane_replay_check.c -- the comparison of a lane with one that its records make objects to each
 * difference. */
#include <math.h>

#include "corrupt.h"
#include "lane_collective.h"
#include "operation_state.h"
#include "replay_check.h"

#define SMALL 6u
#define ASSIGNED 7u
#define TABLE 8u /* 20 rows of 3 float32 */

#define wrong(place, value, words)                                                                 \
    corrupt(lane_replay_check(lane, again, &said), place, value, words)

/* Another value, of the lane that the records make. */
#define differs(place, words) wrong(place, !(place), words)

/* The text begins with another character. */
#define text_differs(place, words) wrong((place)[0], '?', words)

static void expect_right(const struct lane *lane, const struct lane *again)
{
    struct check check = {.text = ""};

    lane_replay_check(lane, again, &check);
    assert_string_equal(check.text, "");
}

static void push(struct world *world, uint8_t session, float value, bool by_sgd)
{
    wire_hyperparameter rate = WIRE_HYPERPARAMETER_INIT;
    const struct talk_part part = {
        .sequence = world->last[session] + 1,
        .previous = world->last[session],
        .shard = SMALL,
        .shards = 1,
        .values = (float[]){value, value, value, value},
        .count = 4,
        .function = by_sgd ? UPDATE_SGD : 0,
        .hyperparameter = by_sgd ? &rate : NULL};

    rate.name = SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_LEARNING_RATE;
    rate.value = 0.5;
    world->last[session]++;
    talk_part(world->talk, world->push[session], &part);
}

/* Rows 2 and 9 of the table. */
static void push_rows(struct world *world, uint8_t session)
{
    const struct {
        int64_t rows[2];
        float values[6];
    } payload = {{2, 9}, {1, 1, 1, 1, 1, 1}};
    wire_piece indices = WIRE_PIECE_INIT, values = WIRE_PIECE_INIT;
    wire_piece *pieces[] = {&indices, &values};
    wire_part part = WIRE_PART_INIT;

    indices.shard_id = values.shard_id = TABLE;
    indices.kind = SUMAC__V1__PIECE__KIND__KIND_ROW_INDICES;
    indices.bytes = sizeof payload.rows;
    values.bytes = sizeof payload.values;
    part.previous = world->last[session];
    part.sequence = ++world->last[session];
    part.first = part.last = true;
    part.bytes = sizeof payload;
    part.weight = 1;
    part.pieces = pieces;
    part.n_pieces = 2;
    talk_push_part(world->talk, world->push[session], &part, &payload, sizeof payload);
}

/* Of session 1 push 1 is applied, 2 is voided, 3 is by sgd, and 4 by rows. Session 3 is closed.
 * Round 1 is over, and session 1 has come to round 2. */
static struct lane *record_all(struct world *world, struct talk *talk)
{
    struct lane_config config = talk_config();

    config.records = talk->disk_is_quick = true;
    begin_with(world, talk, &config);
    talk_variable(talk, SMALL, 4, UPDATE_SGD);
    talk_add(talk, ASSIGNED, 4, 1, SUMAC_FLOAT32, UPDATE_SGD, WIRE_INITIALIZER_ASSIGNED);
    talk_add(talk, TABLE, 20, 3, SUMAC_FLOAT32, UPDATE_SGD, WIRE_INITIALIZER_ZEROS);
    talk_close(talk, 3);
    talk_decide(talk, 3, 0, 0);
    come_with(world, 1, 1, 2, 3, 4);
    come_with(world, 2, 1, 2, 3, 4);
    world->collective.round = 2;
    come_with(world, 2, 1, 2, 3, 4);
    push(world, 1, 1, false);
    talk_commit(talk, world->push[1], world->last[1], 0, 0);
    push(world, 1, NAN, false);
    talk_commit(talk, world->push[1], world->last[1], world->last[1], 0);
    push(world, 1, 1, true);
    push_rows(world, 1);
    push(world, 1, NAN, false);
    talk_tick(talk, 1);
    assert_int_equal(talk->lane->rounds.over.first->uses, 0);
    return talk->lane;
}

static struct lane_session *session_of(const struct lane *lane, uint8_t id)
{
    struct lane_session *session = lane->sessions.first;

    while (session->id[0] != id)
        session = session->in_lane.next;
    return session;
}

TALK_TEST(a_difference_of_the_cluster_is_found)
{
    struct world world;
    struct lane *lane = record_all(&world, talk), *again = talk_replayed(talk);

    expect_right(lane, again);

    differs(again->any_hello, "the first hello of the cluster");
    differs(again->cluster_id, "the number of the cluster");
    differs(again->epoch, "the epoch of the cluster");
    wrong(again->membership_epoch, 99, "the membership epoch of the cluster");
    differs(again->controller_incarnation, "ps 0 of the cluster");
    differs(again->controller_secret, "the secret of the cluster");
    wrong(again->controller_hello, 99, "the last hello of the cluster");
    differs(again->joined_once, "the first session of the cluster");
    differs(again->ps_count, "ps of the cluster");
    wrong(again->step_over, 99, "the last step of the lane");
    wrong(again->turns->taken_step, 99, "the last step that ps 0 took of the lane");
    wrong(again->turns->step_begun, 99, "members that begin with step 1 of the lane");
    wrong(again->turns->fails_from, 99, "the first step that fails of the lane");
    wrong(again->step_members, 99, "members a step has of the cluster");
    wrong(again->step_quorum, 99, "a step needs of the cluster");
    differs(again->ps_incarnations[0], "the incarnation of a ps of the cluster");
    wrong(again->ps_addresses[0], (char *)"x", "address of a ps of the cluster");
    wrong(again->ps_addresses[0], NULL, "address of a ps of the cluster");
    differs(again->functions.count, "functions of the lane");
    wrong(again->store.position, 99, "the position of the lane");
    wrong(again->last_record, 99, "the last record of the lane");
    expect_right(lane, again);

    lane_destroy(again);
}

TALK_TEST(a_difference_of_a_session_is_found)
{
    struct world world;
    struct lane *lane = record_all(&world, talk), *again = talk_replayed(talk);
    struct lane_session *session = session_of(again, 1);

    expect_right(lane, again);

    wrong(again->sessions.first, NULL, "the records lack worker");
    wrong(again->closed_sessions.first, NULL, "the records lack worker 3");
    differs(session->id[0], "number of worker 1");
    text_differs(session->task, "task of worker 1");
    wrong(session->first_step, 99, "the first step of worker 1");
    differs(session->asks_step, "that its first step is asked of worker 1");
    wrong(session->seen_step, 99, "the step that ps 0 was told of worker 1");
    wrong(session->contributed_step, 99, "the last contribution of worker 1");
    wrong(session->role, 99, "the role of worker 1");
    wrong(session->attempt, 99, "the attempt of worker 1");
    wrong(session->mark, 1, "the mark of worker 1");
    wrong(session->commit_through, 1, "commit_through of worker 1");
    wrong(session->acked_through, 1, "acked_through of worker 1");
    wrong(session->collectives_through, 1, "collectives_through of worker 1");
    wrong(session->contribution_count, 9, "contributions of worker 1");
    wrong(session->clock_said, 9, "the clock that was said of worker 1");
    wrong(session->clock, 9, "the clock of worker 1");
    wrong(session->passed_step, 9, "the last step of worker 1");
    differs(session->closing, "that it is closing of worker 1");
    differs(session->closed, "that it is closed of worker 1");
    differs(session->done, "that it is done of worker 1");
    wrong(session->final, 99, "final of worker 1");
    wrong(session->decided_acked_through, 99, "acked_through of all of worker 1");
    wrong(session->cause.kind, 99, "the cause of its end of worker 1");
    expect_right(lane, again);

    lane_destroy(again);
}

TALK_TEST(a_difference_of_a_voided_push_is_found)
{
    struct world world;
    struct lane *lane = record_all(&world, talk), *again = talk_replayed(talk);
    struct lane_session *session = session_of(again, 1);
    struct refusal *refusal = session->voided[0].refusal;

    expect_right(lane, again);

    wrong(session->voided_count, 1, "voided pushes of worker 1");
    wrong(session->voided[0].sequence, 1, "a voided push of worker 1");
    wrong(session->voided[0].refusal, NULL, "a refusal of worker 1");
    wrong(refusal->error.status, SUMAC_ABORTED, "the status of a refusal of worker 1");
    wrong(refusal->error.reason, SUMAC_REASON_TIMED_OUT, "the reason of a refusal of worker 1");
    text_differs(refusal->error.text, "text of a refusal of worker 1");
    text_differs(refusal->expected, "text of a refusal of worker 1");
    text_differs(refusal->given, "text of a refusal of worker 1");
    expect_right(lane, again);

    lane_destroy(again);
}

TALK_TEST(a_difference_of_a_part_is_found)
{
    struct world world;
    struct lane *lane = record_all(&world, talk), *again = talk_replayed(talk);
    struct lane_part *part = session_of(again, 1)->parts.first;
    struct shard *shard = part->entries[0].shard, *table = store_shard(&again->store, TABLE);

    expect_right(lane, again);

    wrong(session_of(again, 1)->parts.first, NULL, "the records lack push 4 of worker 1");
    wrong(part->sequence, 99, "the number of push 4 of worker 1");
    wrong(part->previous, 99, "what comes before of push 4 of worker 1");
    wrong(part->state, PART_VOID, "the refusal of push 4 of worker 1");
    wrong(part->step, 99, "the synchronous step of push 4 of worker 1");
    wrong(part->bytes, 99, "the bytes of push 4 of worker 1");
    differs(part->allow_non_finite, "what is allowed of push 4 of worker 1");
    wrong(part->weight, 9, "weight of push 4 of worker 1");
    wrong(part->scale, 9, "scale of push 4 of worker 1");
    wrong(part->entry_count, 0, "shards of push 4 of worker 1");
    wrong(part->entries[0].shard, table, "a shard of push 4 of worker 1 was 6");
    wrong(part->entries[0].based_on, 99, "what a shard is based on of push 4 of worker 1");
    wrong(shard->version, 99, "the version of a shard of push 4 of worker 1");
    expect_right(lane, again);

    lane_destroy(again);
}

TALK_TEST(a_difference_of_a_parts_function_is_found)
{
    struct world world;
    struct lane *lane = record_all(&world, talk), *again = talk_replayed(talk);
    struct lane_part *part = session_of(again, 1)->parts.first;
    struct part_function *function = &part->functions[0];
    struct update_function other = *function->function;

    other.number++;
    expect_right(lane, again);

    wrong(part->function_count, 0, "functions of push 4 of worker 1");
    wrong(function->function, &other, "a function of push 4 of worker 1");
    wrong(function->given.set, 99, "hyperparameters of push 4 of worker 1");
    wrong(function->given.value[1], 99, "value of a hyperparameter of push 4 of worker 1");
    wrong(function->given.schedule.kind, 1, "schedule of push 4 of worker 1");
    expect_right(lane, again);

    lane_destroy(again);
}

TALK_TEST(a_difference_of_a_run_is_found)
{
    struct world world;
    struct lane *lane = record_all(&world, talk), *again = talk_replayed(talk);
    struct lane_part *part = session_of(again, 1)->parts.first;
    struct run *run = &part->runs[0], *of_rows = &part->in_session.next->runs[0];
    struct entry other = {.shard = store_shard(&again->store, TABLE)};
    struct entry entries[] = {part->entries[0], other};

    expect_right(lane, again);

    wrong(part->run_count, 0, "runs of push 4 of worker 1");
    differs(run->sets, "the kind of a run of push 4 of worker 1");
    struct entry *const own = part->entries;
    part->entries = entries;
    wrong(run->entry, 1, "the shard of a run of push 4 of worker 1");
    part->entries = own;
    wrong(run->offset, 4, "the place of a run of push 4 of worker 1");
    wrong(run->bytes, 12, "the bytes of a run of push 4 of worker 1");
    wrong(run->function, 0, "the function of a run of push 4 of worker 1");
    differs(run->chunk->data[run->chunk_offset + 15], "values of push 4 of worker 1");
    differs(of_rows->sets, "the kind of a run of push 5 of worker 1");
    wrong(of_rows->bytes, 12, "the bytes of a run of push 5 of worker 1");
    wrong(of_rows->function, 1, "the function of a run of push 5 of worker 1");
    wrong(of_rows->list->row_count, 1, "the rows of a list of push 5 of worker 1");
    wrong(of_rows->list->first->count, 1, "the rows of a piece of push 5 of worker 1");
    wrong(of_rows->list->first->keys[1], 9, "rows of push 5 of worker 1");
    expect_right(lane, again);

    lane_destroy(again);
}

TALK_TEST(a_difference_of_a_variable_is_found)
{
    struct world world;
    struct lane *lane = record_all(&world, talk), *again = talk_replayed(talk);
    struct shard *shard = store_shard(&again->store, SMALL);
    struct shard *assigned = store_shard(&again->store, ASSIGNED);
    struct variable *variable = shard->variable;

    expect_right(lane, again);

    wrong(again->store.variables.first, NULL, "the records lack v6");
    wrong(variable->name, (char *)"x", "name of v6");
    wrong(variable->id, 99, "the number of v6");
    differs(variable->published, "that it is published of v6");
    differs(variable->assigned, "that it is assigned of v6");
    wrong(variable->held_count, 9, "shards of v6");
    wrong(variable->definition.dtype, SUMAC_FLOAT64, "by the records: ");
    wrong(assigned->id, 99, "the number of a shard of v7");
    wrong(assigned->version, 99, "the version of v7");
    wrong(shard->step_count, 99, "the steps of v6");
    wrong(assigned->unassigned_count, 0, "what is not assigned of v7");
    text_differs(shard->last_worker, "last worker of v6");
    differs(assigned->unassigned[0]->bits[0], "assigned elements of v7");
    wrong(shard->hyperparameters.value[1], 99, "hyperparameters of v6");
    differs(shard->list[STORE_VALUE][0]->data[3], "values of v6");
    expect_right(lane, again);

    lane_destroy(again);
}

TALK_TEST(a_difference_of_a_round_is_found)
{
    struct world world;
    struct lane *lane = record_all(&world, talk), *again = talk_replayed(talk);
    struct round *open = again->rounds.open.first, *over = again->rounds.over.first;

    expect_right(lane, again);

    wrong(open->collective->round, 99, "the records lack h");
    wrong(over->collective->round, 99, "the records lack h");
    differs(open->over, "that a round is over of h");
    differs(over->kept, "that a round is over of h");
    differs(open->passes, "that a round passes of h");
    wrong(over->end.status, SUMAC_ABORTED, "its end of h");
    text_differs(over->end.text, "text of its end of h");
    differs(open->places[0].came, "who has come of h");
    differs(open->places[0].heard, "who has heard");
    expect_right(lane, again);

    lane_destroy(again);
}
