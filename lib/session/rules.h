/* SPDX-License-Identifier: Apache-2.0 */
/* rules.h -- the rules of the protocol, by name, so that the simulator can take one away and must
 * then object.
 *
 * Both cores are created with a set of broken rules; it is 0 everywhere but in tests/sim --break
 * RULE. The names and what goes wrong without each are docs/protocol/model.py's;
 * tests/house/rules.toml says which of these are the simulator's own, and why C has no others of
 * the model's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RULE_LIST(X)                                                                               \
    X(close_before_settling)         /* a session that is being settled still pushes */            \
    X(carry_refusals)                /* a settle does not carry the voided pushes */               \
    X(tell_closed_client)            /* a live client is not told that its session was closed */   \
    X(done_when_nothing_is_dropped)  /* who leaves as done counts so, whatever was dropped */      \
    X(tell_acked_through)            /* a task does not hear which refusals it had heard of */     \
    X(eager_only_when_alone)         /* any push to one ps carries its own commit */               \
    X(follow_previous)               /* a ps applies its next staged part whatever was before */   \
    X(recognise_duplicates)          /* a part at or below the mark is staged again */             \
    X(commit_when_staged_everywhere) /* commit as soon as one ps has staged its part */            \
    X(journal_before_staged)         /* STAGED does not wait for the part's record */              \
    X(done_says_voided)              /* the turn of a voided push is answered like any other */    \
    X(acked_counts_to_the_mark)      /* an acked_through beyond the own mark is ignored */         \
    X(apply_in_one_operation)        /* the pieces of a part are applied with pulls in between */  \
    X(pulls_hold_up_nothing)         /* nothing is taken from a session that waits for a pull */   \
    X(after_sequence_per_ps)         /* a pull waits for the session's last push on any ps */      \
    X(lag_is_bounded)                /* a pull does not wait for the slowest member */             \
    X(settled_hold_up_nothing)       /* it waits for members that have left, too */                \
    X(clock_to_every_ps)            /* the clock is said only to the ps that the step pushed to */ \
    X(clock_with_the_commit)        /* the clock is said before its pushes are committed */        \
    X(joiner_starts_at_the_slowest) /* who joins has clock 0 */                                    \
    X(at_step_is_exact)             /* a ps that is past a step answers a pull at it, too */       \
    X(cancelled_is_voided)          /* a cancelled push is committed like any other */             \
    X(generation)                   /* what an older stream still delivers is taken */             \
    X(acked_through)                /* refusals are forgotten before their answer was heard */     \
    X(join_nonce)                   /* a retried join opens another session */                     \
    X(arrival_counts_once)          /* what is said again of a barrier is another arrival */       \
    X(barrier_ends_for_all)         /* a deadline ends a round for the one whose it is */          \
    X(barrier_without_the_settled)  /* a round waits for who was settled without having come */    \
    X(no_commit_past_held_step)     /* the client commits past a contribution that is not done */  \
    X(step_in_worker_order)         /* contributions are summed in the order of their coming */    \
    X(contributions_are_compared)   /* one is taken though it differs from others of its step */   \
    X(steps_wait_for_the_new_member) /* steps go on while ps 0 asks where a member begins */       \
    X(first_step_is_the_controllers) /* each ps lets it begin after its own last step */           \
    X(loss_counts_from_final)        /* a loss counts from when ps 0 closes the session */         \
    X(quorum_is_ordered)             /* each ps takes the first contributions that are enough */   \
    X(late_is_late_everywhere)       /* a ps sums a late one, too, when it has it by then */       \
    X(quorum_says_again)             /* who has come, and what was taken, is said only once */     \
    X(repeated_rows_are_summed)      /* a row's occurrences are applied one after the other */     \
    X(last_of_a_row_wins)    /* of several that are assigned to one row the first counts */        \
    X(define_after_every_ps) /* a define is answered before every ps has the function */           \
    X(one_text_for_a_name)   /* another text under a name that is there is taken for it */         \
    X(youngest_gives_way)    /* a full ps waits until its staged parts are applied */              \
    X(ask_before_dropping)   /* a full ps drops a part that is staged without asking its client */ \
    X(steps_come_first)      /* contributions wait for room by their age, like any other push */   \
    X(set_in_its_turn)       /* hyperparameters are set when their part is staged */               \
    X(time_jump)             /* a suspended ps 0 takes its own sleep for everyone's silence */

enum rule {
#define X(name) RULE_##name,
    RULE_LIST(X)
#undef X
        RULE_COUNT
};

/* The set of broken rules that this one alone makes. */
static inline uint64_t rule_bit(enum rule rule) { return UINT64_C(1) << rule; }

/* Does this rule hold under the set of broken ones? */
static inline bool rule_holds(uint64_t broken, enum rule rule)
{
    return (broken & rule_bit(rule)) == 0;
}
