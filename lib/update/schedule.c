/* SPDX-License-Identifier: Apache-2.0 */
/* schedule.c -- learning rates by a shard's versions: what is given of them, and the formulas of
 * Keras' ExponentialDecay and CosineDecay (keras/src/optimizers/schedules).
 */
#include "schedule.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "error.h"
#include "power.h"
#include "random.h"
#include "text.h"

#define RATE_MAX 0x1p127

static const char *const kinds[] = {
#define X(name, text) [UPDATE_SCHEDULE_##name] = text,
    UPDATE_SCHEDULE_LIST(X)
#undef X
};
#define KINDS (sizeof kinds / sizeof *kinds)

const char *update_schedule_name(uint32_t kind) { return kind < KINDS ? kinds[kind] : NULL; }

/* ---- what is given ---- */

static enum sumac_status refuse(
    uint32_t kind, const char *number, double given, const char *range, struct sumac_error *error)
{
    return fail_invalid(
        error, SUMAC_REASON_BAD_HYPERPARAMETER, "%s of the schedule %s is %.9g; it must be %s",
        number, kinds[kind], given, range);
}

struct number {
    bool has; /* the kind does */
    double value;
    const char *name;
};

/* A number that the kind does not have is not given. */
static const char *find_foreign(const wire_schedule *given, double *value)
{
    const bool exponential = (int)given->kind == UPDATE_SCHEDULE_EXPONENTIAL_DECAY;
    const bool cosine = (int)given->kind == UPDATE_SCHEDULE_COSINE_DECAY;
    const struct number numbers[] = {
        {exponential || cosine, (double)given->decay_steps, "decay_steps"},
        {exponential, given->decay_rate, "decay_rate"},
        {exponential, given->staircase != 0, "staircase"},
        {cosine, given->alpha, "alpha"},
        {given->warmup_steps > 0, given->warmup_target, "warmup_target"}};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        *value = numbers[i].value;
        if (!numbers[i].has && *value != 0)
            return numbers[i].name;
    }
    return NULL;
}

enum sumac_status update_schedule_read(
    const wire_schedule *given, struct update_schedule *schedule, struct sumac_error *error)
{
    const uint32_t kind = (uint32_t)given->kind;
    double value = 0;

    if (kind >= KINDS)
        return fail_invalid(
            error, SUMAC_REASON_BAD_HYPERPARAMETER,
            "schedule number %u is not known; there are constant, exponential_decay, cosine_decay",
            kind);
    const char *const foreign = find_foreign(given, &value);
    if (foreign != NULL)
        return refuse(
            kind, foreign, value,
            strcmp(foreign, "warmup_target") == 0 ? "0 without warmup_steps" : "left out", error);
    const bool exponential = kind == UPDATE_SCHEDULE_EXPONENTIAL_DECAY;
    const bool decays = kind != UPDATE_SCHEDULE_CONSTANT;
    if (decays && (given->decay_steps == 0 || given->decay_steps > UPDATE_SCHEDULE_STEPS_MAX))
        return refuse(kind, "decay_steps", (double)given->decay_steps, "in [1, 2^53]", error);
    if (given->warmup_steps > UPDATE_SCHEDULE_STEPS_MAX)
        return refuse(kind, "warmup_steps", (double)given->warmup_steps, "at most 2^53", error);
    if (exponential && !(given->decay_rate > 0 && given->decay_rate <= DBL_MAX))
        return refuse(kind, "decay_rate", given->decay_rate, "finite and above 0", error);
    if (!(given->alpha >= 0 && given->alpha <= 1))
        return refuse(kind, "alpha", given->alpha, "in [0, 1]", error);
    if (!(given->warmup_target >= 0 && given->warmup_target <= DBL_MAX))
        return refuse(kind, "warmup_target", given->warmup_target, "finite and at least 0", error);
    *schedule = (struct update_schedule){
        .kind = (uint16_t)kind,
        .decay_steps = given->decay_steps,
        .decay = exponential ? given->decay_rate : given->alpha,
        .staircase = given->staircase != 0,
        .warmup_steps = given->warmup_steps,
        .warmup_target = given->warmup_target,
        .first_version = given->first_version};
    return SUMAC_OK;
}

void update_schedule_write(const struct update_schedule *schedule, wire_schedule *message)
{
    const bool exponential = schedule->kind == UPDATE_SCHEDULE_EXPONENTIAL_DECAY;

    assert(schedule->kind < KINDS);
    *message = (wire_schedule)WIRE_SCHEDULE_INIT;
    message->kind = (Sumac__V1__Schedule__Kind)schedule->kind;
    message->decay_steps = schedule->decay_steps;
    message->decay_rate = exponential ? schedule->decay : 0;
    message->alpha = exponential ? 0 : schedule->decay;
    message->staircase = schedule->staircase;
    message->warmup_steps = schedule->warmup_steps;
    message->warmup_target = schedule->warmup_target;
    message->first_version = schedule->first_version;
}

/* There is no NaN, and no negative 0 that would count, in one. */
static bool same(double a, double b) { return a <= b && a >= b; }

bool update_schedule_same(const struct update_schedule *a, const struct update_schedule *b)
{
    return a->kind == b->kind && a->decay_steps == b->decay_steps && a->staircase == b->staircase &&
           a->warmup_steps == b->warmup_steps && a->first_version == b->first_version &&
           same(a->decay, b->decay) && same(a->warmup_target, b->warmup_target);
}

const char *
update_schedule_print(const struct update_schedule *schedule, char *text, size_t text_bytes)
{
    const uint32_t kind = schedule->kind;
    size_t used = 0;

    assert(kind < KINDS);
    if (!update_schedule_is_any(schedule)) {
        (void)text_print(text, text_bytes, "none");
        return text;
    }
    used = text_print(text, text_bytes, "%s(", kinds[kind]);
    if (kind != UPDATE_SCHEDULE_CONSTANT)
        used += text_print(
            text + used, text_bytes - used, "decay_steps %" PRIu64 ", %s %.9g%s",
            schedule->decay_steps, kind == UPDATE_SCHEDULE_COSINE_DECAY ? "alpha" : "decay_rate",
            schedule->decay, schedule->staircase ? ", staircase" : "");
    if (schedule->warmup_steps > 0)
        used += text_print(
            text + used, text_bytes - used, "%swarmup_steps %" PRIu64 ", warmup_target %.9g",
            kind == UPDATE_SCHEDULE_CONSTANT ? "" : ", ", schedule->warmup_steps,
            schedule->warmup_target);
    if (schedule->first_version > 0)
        used += text_print(
            text + used, text_bytes - used, ", first_version %" PRIu64, schedule->first_version);
    (void)text_print(text + used, text_bytes - used, ")");
    return text;
}

/* ---- the rate ---- */

static double exponential_of(const struct update_schedule *schedule, uint64_t steps)
{
    const double exact = (double)steps / (double)schedule->decay_steps;
    const double decays = schedule->staircase ? (double)(steps / schedule->decay_steps) : exact;

    assert(schedule->decay > 0);
    return power_real(schedule->decay, decays);
}

static double cosine_of(const struct update_schedule *schedule, uint64_t steps)
{
    const uint64_t within = steps < schedule->decay_steps ? steps : schedule->decay_steps;
    double cosine, sine;

    random_turn(0.5 * ((double)within / (double)schedule->decay_steps), &cosine, &sine);
    assert(cosine >= -1 && cosine <= 1);
    return (1 - schedule->decay) * (0.5 * (1 + cosine)) + schedule->decay;
}

double
update_schedule_rate(const struct update_schedule *schedule, double learning_rate, uint64_t version)
{
    const uint64_t first = schedule->first_version, warmup = schedule->warmup_steps;
    const uint64_t steps = version > first ? version - first : 0;
    double rate = warmup > 0 ? schedule->warmup_target : learning_rate;

    assert(schedule->kind < KINDS);
    if (steps < warmup)
        rate = learning_rate + (rate - learning_rate) * ((double)steps / (double)warmup);
    else if (schedule->kind == UPDATE_SCHEDULE_EXPONENTIAL_DECAY)
        rate *= exponential_of(schedule, steps - warmup);
    else if (schedule->kind == UPDATE_SCHEDULE_COSINE_DECAY)
        rate *= cosine_of(schedule, steps - warmup);
    return rate < RATE_MAX ? rate : rate > RATE_MAX ? RATE_MAX : rate;
}
