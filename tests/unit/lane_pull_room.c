/* SPDX-License-Identifier: Apache-2.0 */
/* lane_pull_room.c -- the room of pulls whose session, or stream, has ended. */
#include "lane_opened.h"
#include "pull_state.h"

#define UNASSIGNED 7u
#define PIECES 1100u /* of which a step lets go of 1024 at a time */

static void begin_with_room(struct talk *talk, uint64_t pulls_bytes_max)
{
    struct lane_config config = talk_config();

    config.pulls_bytes_max = pulls_bytes_max;
    (void)begin_with(talk, &config);
    talk_add(talk, UNASSIGNED, 4, 1, SUMAC_FLOAT32, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ASSIGNED);
    talk_forget(talk);
}

/* It waits for a variable that is never assigned. */
static void pull_and_wait(struct talk *talk, uint64_t stream, uint64_t request, uint32_t pieces)
{
    static wire_piece piece[PIECES];
    static wire_piece *pointers[PIECES];
    wire_pull_request pull = WIRE_PULL_REQUEST_INIT;
    const struct lane_event event = {
        .kind = LANE_EVENT_PULL, .stream = stream, .pull_request = &pull};

    for (uint32_t i = 0; i < pieces; i++) {
        piece[i] = (wire_piece)WIRE_PIECE_INIT;
        piece[i].shard_id = UNASSIGNED;
        pointers[i] = &piece[i];
    }
    pull.request = request;
    pull.pieces = pointers;
    pull.n_pieces = pieces;
    talk_step(talk, &event);
}

/* Each session may have half of what readers may have. */
TALK_TEST(pulls_of_closed_sessions_may_fill_the_room_of_readers)
{
    const uint64_t of_one = sized_pool_bytes(sizeof(struct lane_pull)) + 64;

    begin_with_room(talk, 128 * of_one);
    for (uint8_t session = 3; session <= 4; session++) {
        talk_open(talk, session);
        const uint64_t stream = talk_pull_stream(talk, session);
        for (uint64_t request = 1; request <= 28; request++)
            pull_and_wait(talk, stream, request, 1);
        talk_close(talk, session);
        talk_decide(talk, session, 0, 0);
        assert_int_equal(talk->lane->pulls->reader_bytes, (session - 2u) * 28 * of_one);
    }

    assert_int_equal(talk->lane->pulls->reader_bytes, talk->lane->pulls->bounds.readers_max);
    assert_null(strstr(talk->text, "end of stream"));
}

/* A step has no time to let go of all pulls of a stream that ends. The last one was refused. */
TALK_TEST(a_refused_pull_that_leaves_later_gives_its_own_room_back)
{
    uint64_t request = 0;

    begin_with_room(talk, 16u << 20);
    const uint64_t stream = talk->deaf = talk_pull_stream(talk, 1);
    while (talk->lane->pulls->refused_bytes < 4 * sizeof(struct lane_pull))
        pull_and_wait(talk, stream, ++request, PIECES);
    assert_true(request * 1024 / PIECES_PER_WORK > WORK_PER_STEP_MAX);

    talk_hang_up(talk, stream);

    assert_non_null(talk->lane->pulls_leaving.first);
    assert_true(talk->lane->pulls->refused_bytes > 0);
    for (uint32_t i = 0; i < 100 && talk->lane->pulls_leaving.first != NULL; i++)
        talk_tick(talk, 1);
    assert_int_equal(talk->lane->pull_bytes, 0);
    assert_int_equal(talk->lane->pulls->refused_bytes, 0);
    assert_int_equal(talk->lane->pulls->reader_bytes, 0);
}
