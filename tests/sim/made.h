/* SPDX-License-Identifier: Apache-2.0 */
/* made.h -- how often each thing happened that a run is to make happen, so that one sees that it
 * does.
 *
 * What a program or a fault makes rarely is counted where it is made. The summary prints every
 * count, and thousands of seeds that never made one of them are a failure: a check that is never
 * reached finds nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define MADE_LIST(X)                                                                               \
    X(client_hung, "clients hung for ever")                                                        \
    X(ps_hung, "ps hung for ever")                                                                 \
    X(ps_crashed, "ps crashed")                                                                    \
    X(second_crash, "crashed after another")                                                       \
    X(ps0_terminated, "SIGTERM of ps 0")                                                           \
    X(ps_terminated, "of another ps")                                                              \
    X(exit_terminated, "exits of those that heard of it")                                          \
    X(exit_else, "of the others")                                                                  \
    X(ps0_told_itself, "ps 0 told only itself")                                                    \
    X(left_undone, "leaves without done")                                                          \
    X(leave_behind, "leaves of members that die with pushes under way")                            \
    X(duplicate, "calls that came twice")                                                          \
    X(stray_version, "hellos of another version")                                                  \
    X(stray_cluster, "of another cluster")                                                         \
    X(stray_no_id, "of half a session")                                                            \
    X(stray_generation, "of an older stream")                                                      \
    X(commit_first, "commits that overtook a part")                                                \
    X(not_kept, "streams ended by refusals that do not fit")                                       \
    X(closed_forgotten, "clients told to join again by a ps that forgot their closed session")     \
    X(settled_forgotten, "joins that came again when their settled session was forgotten")         \
    X(listed_page, "pages of lists")                                                               \
    X(listed, "lists")                                                                             \
    X(created_many, "creates of several")                                                          \
    X(many_refused, "refused whole")                                                               \
    X(deleted, "variables deleted")                                                                \
    X(call_timed_out, "calls that met their deadline")                                             \
    X(slotted, "parts for slots")                                                                  \
    X(rate_set, "rates set")                                                                       \
    X(rate_decays, "that decay")                                                                   \
    X(in_runs, "pieces in several runs")                                                           \
    X(by_rows, "pushed by rows")                                                                   \
    X(rows_overlap, "over a range, or under one")                                                  \
    X(step_by_rows, "contributions by rows")                                                       \
    X(pulled_rows, "pulled by rows")                                                               \
    X(checked, "parts with a checksum")                                                            \
    X(corrupted, "corrupted pushes")                                                               \
    X(reader, "readers without a session")                                                         \
    X(reader_pulled, "their pulls")                                                                \
    X(bounded, "pulls with bounded lag")                                                           \
    X(round_passed, "rounds of barriers that passed")                                              \
    X(round_late, "that waited too long")                                                          \
    X(round_gone, "that lacked who was settled")                                                   \
    X(function_defined, "functions defined")                                                       \
    X(function_taken, "defines of a name that had another text")                                   \
    X(function_used, "pieces applied by one")                                                      \
    X(step_done, "contributions to synchronous steps")                                             \
    X(step_differs, "refused for another's")                                                       \
    X(step_lost, "failed for a loss")                                                              \
    X(step_joined, "members that joined between steps")                                            \
    X(at_step_read, "pulls at a step")                                                             \
    X(at_step_late, "that came too late")                                                          \
    X(step_taken, "steps that ps 0 took")                                                          \
    X(step_short, "contributions to one that lacks some")                                          \
    X(step_late, "that came late")                                                                 \
    X(in_ranges, "rows pulled in ranges")                                                          \
    X(pull_cancelled, "pulls cancelled")                                                           \
    X(push_cancelled, "pushes cancelled")                                                          \
    X(pull_timed_out, "timed out")                                                                 \
    X(old_row, "steps with old rows that are kept")                                                \
    X(lent, "spans lent")                                                                          \
    X(session_no_memory, "sessions ended without memory")                                          \
    X(push_no_memory, "pushes refused so")                                                         \
    X(create_no_memory, "creates")                                                                 \
    X(pull_no_memory, "pulls")                                                                     \
    X(pull_step_no_memory, "takes for a pull")                                                     \
    X(deaf, "messages held up by one that takes nothing")                                          \
    X(collective_passed, "rounds of collectives that passed")                                      \
    X(collective_split, "results of split ones heard")                                             \
    X(collective_sum, "of sums")                                                                   \
    X(collective_mean, "of means")                                                                 \
    X(collective_min, "of minima")                                                                 \
    X(collective_max, "of maxima")                                                                 \
    X(collective_gather, "gathered")                                                               \
    X(collective_broadcast, "broadcast")                                                           \
    X(collective_concatenate, "concatenated")                                                      \
    X(collective_together, "results of unknown size in one step")                                  \
    X(collective_again, "by a later attempt")                                                      \
    X(collective_differs, "rounds of contributions that differ")                                   \
    X(collective_late, "that waited too long")                                                     \
    X(collective_gone, "that lacked who was gone")                                                 \
    X(collective_deserted, "whose contributors had all left")                                      \
    X(collective_told_again, "failed ones told to a later attempt")                                \
    X(collective_zero_weight, "means of nothing")                                                  \
    X(collective_refused, "contributions refused for a fault")                                     \
    X(collective_no_room, "for want of room")                                                      \
    X(room_kept, "large parts whose room was kept")                                                \
    X(room_waits, "that waited for it")                                                            \
    X(gave_way, "asked to give way")

enum made {
#define X(name, text) MADE_##name,
    MADE_LIST(X)
#undef X
        MADE_COUNT
};

struct made_counts {
    uint64_t of[MADE_COUNT];
};

struct world;

void made(struct world *world, enum made what);
void made_if(struct world *world, enum made what, bool it_is);
/* Print the counts. Returns whether none is 0. */
bool made_print(const struct made_counts *counts);
