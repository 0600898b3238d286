/* SPDX-License-Identifier: Apache-2.0 */
/* main.c -- runs a simulated cluster at random and checks its promises.
 *
 *   sim                               every plan, a few hundred seeds each; exit 1 on any violation
 *   sim --seeds 5000 [--plan kill]    more seeds, shared out among the plans
 *   sim --plan kill --seed 17         replay one run and print its trace
 *   sim --break RULE                  remove one rule: exit 0 if the checker objects; prints the
 *                                     shortest trace that goes wrong
 *   sim --break all                   one rule after the other
 */
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "checker.h"

#define BREAK_SEEDS 5000u
#define ALL_MADE_SEEDS 5000u /* in which everything must have happened that may */
#define BREAK_ENOUGH 6u      /* violations, of which the shortest is shown */

struct options {
    uint64_t first, seeds;
    bool has_seed, trace;
    uint64_t seed;
    const struct plan *plan;
    const char *broken;
};

struct found {
    const struct plan *plan;
    uint64_t seed;
    uint32_t lines;
    char text[SIM_VIOLATION_BYTES];
};

/* What the runs were made of. */
struct tally {
    uint64_t pushes, acknowledged, refused, closed, pulls, lives, silent, rivalled, events;
};

static void count(struct tally *tally, const struct world *world)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->push_count; i++) {
        const enum fate fate = checker->pushes[i]->fate;
        tally->pushes++;
        tally->acknowledged += fate == FATE_OK;
        tally->refused += fate == FATE_REFUSED;
        tally->closed += fate == FATE_CLOSED;
    }
    for (uint32_t i = 0; i < checker->pull_count; i++)
        tally->pulls += checker->pulls[i]->answered;
    tally->lives += checker->life_count;
    for (uint32_t i = 0; i < checker->life_count; i++)
        tally->rivalled += checker->lives[i]->excused && checker->lives[i]->rivalled;
    for (uint32_t i = 0; i < checker->life_count; i++)
        tally->silent += checker->lives[i]->excused && !checker->lives[i]->rivalled;
    tally->events += world->events_run;
}

static const char *const rule_names[] = {
#define X(name) #name,
    RULE_LIST(X)
#undef X
};

static sigjmp_buf assertion_failed;

static void on_abort(int signal_number)
{
    (void)signal_number;
    siglongjmp(assertion_failed, 1);
}

/* A run that an assertion of a core ends is a violation, too. Says whether there was one. */
static bool
run(struct world *world, uint64_t seed, const struct plan *plan, uint64_t broken,
    struct found *found)
{
    *found = (struct found){.plan = plan, .seed = seed};
    if (sigsetjmp(assertion_failed, 1) != 0) {
        snprintf(found->text, sizeof found->text, "an assertion fails");
        found->lines = world->trace.lines;
        world_drop(world);
        return true;
    }
    const uint32_t violations = world_run(world, seed, plan, broken);
    found->lines = world->trace.lines;
    if (violations == 0)
        return false;
    snprintf(found->text, sizeof found->text, "%s", world->checker->first);
    return true;
}

/* ---- all rules hold */

static int run_seeds(struct world *world, const struct options *options)
{
    uint64_t failures = 0;
    struct tally tally = {0};

    for (uint64_t i = 0; i < options->seeds; i++) {
        const uint64_t seed = options->first + i;
        struct found found;
        const struct plan *plan = options->plan != NULL ? options->plan : plan_of(seed);
        const bool bad = run(world, seed, plan, 0, &found);
        count(&tally, world);
        if (!bad)
            continue;
        failures++;
        printf(
            "plan %s seed %" PRIu64 ": %s (%u lines; replay: sim --plan %s --seed %" PRIu64 ")\n",
            plan->name, seed, found.text, found.lines, plan->name, seed);
        fflush(stdout);
    }
    printf(
        "%" PRIu64 " events, %" PRIu64 " sessions (%" PRIu64 " ended after a silence, %" PRIu64
        " for another of their task), "
        "%" PRIu64 " pushes (%" PRIu64 " acknowledged, %" PRIu64 " refused, %" PRIu64
        " lost with their session), %" PRIu64 " pulls\n",
        tally.events, tally.lives, tally.silent, tally.rivalled, tally.pushes, tally.acknowledged,
        tally.refused, tally.closed, tally.pulls);
    const bool all_made = made_print(&world->made);
    if (!all_made && options->seeds >= ALL_MADE_SEEDS && options->plan == NULL) {
        printf("something of this was never made\n");
        failures++;
    }
    printf("%" PRIu64 " seeds, %" PRIu64 " with violations\n", options->seeds, failures);
    return failures == 0 ? 0 : 1;
}

static int replay(struct world *world, const struct options *options, uint64_t broken)
{
    struct found found;
    const struct plan *plan = options->plan != NULL ? options->plan : plan_of(options->seed);

    world->trace.file = stdout;
    const bool bad = run(world, options->seed, plan, broken, &found);
    world->trace.file = NULL;
    printf(
        "plan %s seed %" PRIu64 ": %s\n", plan->name, options->seed,
        bad ? found.text : "no violation");
    return bad ? 1 : 0;
}

/* ---- a rule removed */

static const struct plan *find_plan(const char *name)
{
    for (uint32_t i = 0; i < plan_count; i++)
        if (strcmp(plans[i].name, name) == 0)
            return &plans[i];
    fprintf(stderr, "sim: no plan %s; there are", name);
    for (uint32_t i = 0; i < plan_count; i++)
        fprintf(stderr, " %s", plans[i].name);
    fprintf(stderr, "\n");
    exit(2);
}

/* What rules that few runs of other plans come to are looked for in. */
static const char *const aims[RULE_COUNT] = {
    [RULE_loss_counts_from_final] = "loss",   [RULE_define_after_every_ps] = "functions",
    [RULE_one_text_for_a_name] = "functions", [RULE_youngest_gives_way] = "room5",
    [RULE_ask_before_dropping] = "room",      [RULE_steps_come_first] = "room3",
};

static const struct plan *
plan_to_break(const struct options *options, enum rule rule, uint64_t seed)
{
    if (options->plan != NULL)
        return options->plan;
    return aims[rule] != NULL ? find_plan(aims[rule]) : plan_of(seed);
}

static bool
break_rule(struct world *world, const struct options *options, enum rule rule, bool print)
{
    struct found shortest = {.lines = UINT32_MAX};
    uint32_t count = 0;
    uint64_t tried = 0;

    for (; tried < options->seeds && count < BREAK_ENOUGH; tried++) {
        const uint64_t seed = options->first + tried;
        const struct plan *plan = plan_to_break(options, rule, seed);
        struct found found;
        struct found unbroken;
        if (!run(world, seed, plan, rule_bit(rule), &found) || run(world, seed, plan, 0, &unbroken))
            continue; /* only what the missing rule alone has done */
        count++;
        if (found.lines < shortest.lines)
            shortest = found;
    }
    if (count == 0) {
        printf("%-30s NOT FOUND in %" PRIu64 " seeds\n", rule_names[rule], tried);
        return false;
    }
    printf(
        "%-30s %u of %" PRIu64 " seeds; plan %s seed %" PRIu64 ": %s\n", rule_names[rule], count,
        tried, shortest.plan->name, shortest.seed, shortest.text);
    if (print) {
        struct options again = *options;
        again.plan = shortest.plan;
        again.seed = shortest.seed;
        replay(world, &again, rule_bit(rule));
    }
    return true;
}

static int break_rules(struct world *world, const struct options *options)
{
    const bool all = strcmp(options->broken, "all") == 0;
    bool all_found = true;
    bool known = false;

    signal(SIGABRT, on_abort);
    for (uint32_t rule = 0; rule < RULE_COUNT; rule++) {
        if (!all && strcmp(options->broken, rule_names[rule]) != 0)
            continue;
        known = true;
        if (options->has_seed)
            return replay(world, options, rule_bit(rule));
        all_found = break_rule(world, options, (enum rule)rule, !all) && all_found;
        fflush(stdout);
    }
    if (!known)
        fprintf(stderr, "sim: no rule %s; see lib/session/rules.h\n", options->broken);
    return known && all_found ? 0 : 1;
}

/* ---- the command line */

static void parse(int count, char **arguments, struct options *options)
{
    for (int i = 1; i < count; i++) {
        const char *name = arguments[i];
        const char *value = i + 1 < count ? arguments[i + 1] : NULL;
        if (strcmp(name, "--trace") == 0) {
            options->trace = true;
            continue;
        }
        if (value == NULL) {
            fprintf(
                stderr, "usage: sim [--seeds N] [--first N] [--plan PLAN] [--seed N [--trace]]"
                        " [--break RULE|all]\n");
            exit(2);
        }
        i++;
        if (strcmp(name, "--seeds") == 0) {
            options->seeds = strtoull(value, NULL, 10);
        } else if (strcmp(name, "--first") == 0) {
            options->first = strtoull(value, NULL, 10);
        } else if (strcmp(name, "--plan") == 0) {
            options->plan = find_plan(value);
        } else if (strcmp(name, "--break") == 0) {
            options->broken = value;
        } else if (strcmp(name, "--seed") == 0) {
            options->has_seed = true;
            options->seed = strtoull(value, NULL, 10);
        } else {
            fprintf(stderr, "sim: no option %s\n", name);
            exit(2);
        }
    }
}

int main(int count, char **arguments)
{
    struct options options = {.first = 1, .seeds = 0};
    static struct world world;
    int code;

    parse(count, arguments, &options);
    if (options.seeds == 0)
        options.seeds = options.broken != NULL ? BREAK_SEEDS : 300u * plan_count;
    world_init(&world);
    if (options.broken != NULL)
        code = break_rules(&world, &options);
    else if (options.has_seed)
        code = replay(&world, &options, 0);
    else
        code = run_seeds(&world, &options);
    world_deinit(&world);
    return code;
}
