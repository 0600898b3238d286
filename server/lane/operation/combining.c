/* SPDX-License-Identifier: Apache-2.0 */
/* combining.c -- a round's contributions become one tensor, which lies where the first of them lay:
 * nothing is taken for it, so nothing can fail.
 *
 *   contribution 0   |  chunk  |  chunk  | ··        its bytes, then the result's
 *   contribution 1   |    chunk    |    chunk | ··   in the participants' order onto the first
 *
 * A sum of a half type is of float32, and half as large: each slice of it begins where its slice of
 * contribution 0 did. Of what is joined nothing is made: it is read where it lies.
 */
#include "operation_state.h"

#define COMBINED_SLICE_BYTES 262144u /* of a contribution */

static struct contribution *contribution_at(const struct round *round, uint32_t place)
{
    assert(place < round->collective->task_count);
    return round->places[place].contribution;
}

/* One that weighs nothing in a mean is none. */
static bool counts(const struct round *round, uint32_t place)
{
    return round->collective->operation != COLLECTIVE_MEAN || round->places[place].weight > 0;
}

static const uint8_t *find_bytes(
    const void *context, uint32_t source, const struct update_slice *slice, uint64_t at,
    uint64_t *together_bytes)
{
    const struct round *round = context;
    uint32_t place = 0;
    (void)slice;

    while (!counts(round, place) || source-- > 0)
        place++;
    return lane_contribution_bytes(contribution_at(round, place), at, together_bytes);
}

static void begin(struct lane *lane, const struct round *round)
{
    struct combining *combining = &lane->turns->combining;
    const struct collective_share share =
        collective_share(round->collective, lane->index, lane->ps_count);

    assert(combining->compute.job == 0);
    assert(combining->done == 0);
    combining->elements =
        share.bytes / dtype_bytes(collective_contribution_dtype(round->collective));
    combining->sources = (struct update_sources){.find = find_bytes, .context = round};
    combining->weight = 0;
    for (uint32_t i = 0; i < round->collective->task_count; i++) {
        combining->sources.count += counts(round, i);
        combining->weight += round->places[i].weight;
    }
    assert(combining->sources.count > 0);
}

/* The next elements that lie together in contribution 0. False: there are none. */
static bool cut(struct combining *combining, const struct round *round, struct combine_slice *slice)
{
    const size_t element = dtype_bytes(collective_contribution_dtype(round->collective));
    uint64_t bytes;

    if (combining->done == combining->elements)
        return false;
    uint8_t *const out =
        lane_contribution_bytes(contribution_at(round, 0), combining->done * element, &bytes);
    if (bytes > COMBINED_SLICE_BYTES)
        bytes = COMBINED_SLICE_BYTES;
    assert(bytes <= (combining->elements - combining->done) * element);
    *slice = (struct combine_slice){
        .collective = round->collective,
        .sources = &combining->sources,
        .weight = combining->weight,
        .first = combining->done,
        .count = bytes / element,
        .out = out};
    assert(slice->count > 0 && bytes % element == 0);
    combining->done += slice->count;
    return true;
}

/* Its result can be read, and whoever waits for it looks at it. */
static void finish(struct lane *lane, struct round *round)
{
    assert(round->over && !round->ready);
    round->ready = true;
    lane->readable++;
    lane->turns_taken = true;
    lane_round_let_go(lane, round);
}

static void run_here(struct lane *lane, struct round *round)
{
    struct combining *combining = &lane->turns->combining;
    struct combine_slice slice;

    assert(combining->line.first == NULL);
    begin(lane, round);
    while (cut(combining, round, &slice))
        combine_run(&slice);
    lane->work += combining->elements * combining->sources.count *
                  dtype_bytes(round->collective->dtype) / WORK_VECTOR_BYTES;
    combining->done = 0;
    finish(lane, round);
}

/* The first of the line goes on, or those behind it. */
void combining_go_on(struct lane *lane)
{
    struct combining *combining = &lane->turns->combining;
    struct round *round;

    assert(combining->compute.job == 0);
    while ((round = combining->line.first) != NULL) {
        uint32_t count = 0;
        if (combining->done == 0)
            begin(lane, round);
        while (count < COMBINED_AT_ONCE && cut(combining, round, &combining->slices[count]))
            count++;
        if (count > 0) {
            combining->compute = (struct lane_compute){
                .job = ++lane->turns->last_job,
                .slice_count = count,
                .combines = combining->slices};
            out_add(&lane->out, LANE_EFFECT_COMPUTE)->compute = &combining->compute;
            return;
        }
        combining->done = 0;
        LIST_REMOVE(&combining->line, round, in_line);
        finish(lane, round);
    }
}

void combining_add(struct lane *lane, struct round *round)
{
    struct combining *combining = &lane->turns->combining;
    const enum collective_operation operation = round->collective->operation;
    const uint64_t bytes = collective_share(round->collective, lane->index, lane->ps_count).bytes *
                           round->collective->task_count;
    const bool first = combining->line.first == NULL;

    assert(round->over && !round->ready);
    lane_round_use(lane, round);
    if (operation > COLLECTIVE_MAX)
        finish(lane, round);
    else if (
        lane_reads_records(lane) || (first && !lane->records && bytes <= lane->config.inline_bytes))
        run_here(lane, round);
    else
        LIST_APPEND(&combining->line, round, in_line);
    if (combining->line.first == round && !lane->records)
        combining_go_on(lane);
    /* with records, which this step's may show as they came, it goes on with the next one */
}

bool combining_computed(struct lane *lane, uint64_t job)
{
    struct combining *combining = &lane->turns->combining;

    assert(job != 0);
    if (combining->compute.job != job)
        return false;
    assert(combining->line.first != NULL);
    combining->compute.job = 0;
    combining_go_on(lane);
    return true;
}

bool combining_is_put_off(const struct lane *lane)
{
    const struct combining *combining = &lane->turns->combining;

    return combining->line.first != NULL && combining->compute.job == 0;
}

void combining_drop_all(struct lane *lane)
{
    struct combining *combining = &lane->turns->combining;

    for (struct round *round; (round = combining->line.first) != NULL;) {
        LIST_REMOVE(&combining->line, round, in_line);
        lane_round_let_go(lane, round);
    }
    combining->compute.job = 0;
}

const uint8_t *lane_combined_bytes(
    const struct round *round, uint32_t place, uint64_t at, uint64_t *together_bytes)
{
    const struct contribution *contribution = contribution_at(round, place);
    const size_t element = dtype_bytes(round->collective->dtype);
    const size_t came = dtype_bytes(collective_contribution_dtype(round->collective));

    assert(round->ready);
    if (came == element)
        return lane_contribution_bytes(contribution, at, together_bytes);
    /* in its chunk, each slice of the result begins where that of what came did */
    const uint64_t first = at / element;
    uint64_t left;
    const uint8_t *data = lane_contribution_bytes(contribution, first * came, &left);
    const uint64_t within =
        lane_contribution_offset(contribution, first * came) % COMBINED_SLICE_BYTES;
    if (left > COMBINED_SLICE_BYTES - within)
        left = COMBINED_SLICE_BYTES - within;
    *together_bytes = left / came * element - at % element;
    return data - within + within / came * element + at % element;
}
