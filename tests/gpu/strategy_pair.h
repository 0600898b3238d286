/* SPDX-License-Identifier: Apache-2.0 */
/* strategy_pair.h -- the same strategy on GPUs and on CPUs, and what is run in both. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sumac/sumac.h"

#define REPLICAS_MAX 3u
#define ELEMENTS_MAX 5000u

extern uint32_t replicas; /* as many GPUs as there are, and three at most */

/* Counts them. False: there is none, which is said. */
bool pair_is_there(void);
/* A test that takes more is skipped. */
void enough(uint32_t wanted);

struct sumac_strategy *on(const char *devices, uint32_t timeout_ms);

struct pair {
    struct sumac_strategy *gpus, *cpus;
};
/* Setup and teardown of a test. */
int pair_begin(void **state);
int pair_end(void **state);
#define PAIR_TEST(name) FIXTURE_TEST(name, struct pair *pair, pair_begin, pair_end)

/* ---- values: small whole numbers, of which sums are exact in any order, in any type */

struct sumac_value *tensor(enum sumac_dtype dtype, struct sumac_shape shape, uint32_t replica);
/* What each replica has, of replica i so many times i rows more. */
struct sumac_value *each(enum sumac_dtype dtype, struct sumac_shape shape, uint32_t more);
/* On the strategy's devices. Takes  value. */
struct sumac_value *placed(struct sumac_strategy *strategy, struct sumac_value *value);
/* Of what is no nest: is each replica's on its own GPU? */
bool is_placed(const struct sumac_value *value);
void assert_same(struct sumac_value *there, struct sumac_value *here);
/* Has each replica its own, and are they all known to be the same? */
void assert_each_ones(const struct sumac_value *value);

/* ---- what is run */

struct step {
    enum sumac_reduce_op op; /* 0: it gathers, along … */
    int64_t axis;
    struct sumac_communication_options options;
    uint32_t absent, failing; /* a replica that makes no call, or fails; REPLICAS_MAX: none */
};
#define EVERYBODY .absent = REPLICAS_MAX, .failing = REPLICAS_MAX

/* Each replica's collective, of args[0]: what a `struct step` says. */
sumac_replica_function call_step;
enum sumac_status run_with(
    struct sumac_strategy *strategy, sumac_replica_function *function, void *context,
    struct sumac_value *value, struct sumac_value **result, struct sumac_error *error);
/* Takes  value. */
struct sumac_value *
ran(struct sumac_strategy *strategy, const struct step *step, struct sumac_value *value);
void same_on_both(const struct pair *pair, const struct step *step, struct sumac_value *value);

/* ---- a variable w; one of float32[4, 3]; and a step that trains it by the sum of what replicas
 * have */

/* Takes  initial. */
struct sumac_variable *variable_made(
    struct sumac_strategy *strategy, struct sumac_value *initial,
    const struct sumac_function *function, enum sumac_synchronization how);
struct sumac_variable *
variable_of(struct sumac_strategy *strategy, const char *function, enum sumac_synchronization how);
sumac_replica_function apply_sum;
