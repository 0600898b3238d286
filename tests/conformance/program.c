/* SPDX-License-Identifier: Apache-2.0 */
/* program.c -- `sumac-conformance [--rpc] [--devices gpu] FILE…`: cases of any file of the format,
 * run and told one by one. It knows no case. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster_client.h"
#include "one_case.h"
#include "partition.h"
#include "programs.h"
#include "relay.h"
#include "sharded.h"
#include "strategies.h"
#include "update_function.h"
#include "variables.h"

#define EXIT_USAGE 2
#define PLACED_PS_MAX 8u

static const char help[] =
    "sumac-conformance -- run files of conformance cases, and say of each case what became of it\n"
    "\n"
    "Usage: sumac-conformance [--rpc] [--devices DEVICES] FILE...\n"
    "\n"
    "Prints PASS id, FAIL id: expected ..., got ... or SKIP id: why for each case, and closes "
    "with\n"
    "N passed, N failed, N skipped. A case of an operation that it does not run is skipped; one "
    "that\n"
    "it cannot express has failed. Exit code: 0 when none failed and some passed, else 1; 2 when "
    "it\n"
    "was called wrongly.\n"
    "\n"
    "Cases of multi_worker and parameter_server run in worker processes of two ps: all of these "
    "are\n"
    "started and ended by this program, with the sumac beside it.\n"
    "\n"
    "Options:\n"
    "  --rpc         cases without a strategy through ps, too, instead of in this process alone; "
    "with\n"
    "                TF_CONFIG as a worker of the cluster which that describes\n"
    "  --devices gpu, --devices gpu:0,1\n"
    "                replicas on GPUs, with what they are given in their memory; cases of more "
    "replicas\n"
    "                than these, and of the default strategy, are skipped\n"
    "  --ps N        but for placements over another number of ps\n"
    "  --only-ps N   placements over so many ps alone\n"
    "  --help        this text\n"
    "\n"
    "Operations: update_function, run, values_from_function, reduce, reduce_to, batch_reduce_to,\n"
    "all_reduce, gather, all_gather, variable, update, program, sharded, partition, placement,\n"
    "row_lookup\n";

#define OPERATIONS_MAX 24u

static uint32_t
add(const struct cases_operation *more, struct cases_operation operations[OPERATIONS_MAX],
    uint32_t count)
{
    for (; more->op != NULL; more++) {
        assert(count + 1 < OPERATIONS_MAX);
        operations[count++] = *more;
    }
    return count;
}

/* Those that strategies and their variables have, and that of the target. */
static void
list_operations(const struct target *target, struct cases_operation operations[OPERATIONS_MAX])
{
    uint32_t count = 0;

    operations[count++] = (struct cases_operation){
        .op = "update_function",
        .keys = update_function_keys,
        .run_case = update_function_run,
        .context = (void *)(uintptr_t)target};
    count = add(strategy_operations, operations, count);
    count = add(variable_operations, operations, count);
    count = add(program_operations, operations, count);
    count = add(sharded_operations, operations, count);
    count = add(partition_operations, operations, count);
    operations[count].op = NULL;
}

/* Of how many ps a case of placement is; 0: it is none. */
static uint32_t placed_over(json_t *one)
{
    const char *op = json_string_value(json_object_get(one, "op"));

    return op == NULL || strcmp(op, "placement") != 0
               ? 0
               : (uint32_t)json_integer_value(json_object_get(one, "ps"));
}

/* Which cases this process has: all, or none of a placement over another number of ps than `ps`, or
 * `alone` those over this one. */
struct share {
    uint32_t ps;
    bool alone;
};

static void keep_share(json_t *file, const struct share *share)
{
    json_t *cases = json_object_get(file, "cases");

    for (size_t i = json_array_size(cases); share->ps > 0 && i > 0; i--) {
        const uint32_t ps = placed_over(json_array_get(cases, i - 1));
        if (ps == 0 ? share->alone : ps != share->ps)
            (void)json_array_remove(cases, i - 1);
    }
}

static void run_files(
    char **paths, const struct target *target, const struct share *share, struct cases_run *run)
{
    struct cases_operation operations[OPERATIONS_MAX];

    list_operations(target, operations);
    for (; *paths != NULL; paths++) {
        json_t *file = cases_load(*paths);
        run->failed += file == NULL;
        keep_share(file, share);
        cases_each(file, run, operations);
        json_decref(file);
    }
}

/* Has a file cases of a strategy over several processes? */
static bool takes_processes(char **paths)
{
    bool found = false;

    for (; *paths != NULL && !found; paths++) {
        json_t *file = cases_load(*paths), *one = NULL;
        size_t i = 0;
        json_array_foreach(json_object_get(file, "cases"), i, one)
        {
            json_t *strategy = json_object_get(one, "strategy");
            const char *kind = json_string_value(json_object_get(strategy, "kind"));
            found = found || (kind != NULL && (strcmp(kind, "multi_worker") == 0 ||
                                               strcmp(kind, "parameter_server") == 0));
        }
        json_decref(file);
    }
    return found;
}

/* Has a file placements over so many ps? */
static bool places_over(char **paths, uint32_t ps)
{
    bool found = false;

    for (; *paths != NULL && !found; paths++) {
        json_t *file = cases_load(*paths), *one = NULL;
        size_t i = 0;
        json_array_foreach(json_object_get(file, "cases"), i, one) found =
            found || placed_over(one) == ps;
        json_decref(file);
    }
    return found;
}

struct relay {
    int argc;
    char **paths;
    bool rpc;
    const char *devices;
    struct relay_counts counts;
};

/* As so many workers of so many ps; `share` is the option that says which cases are theirs. */
static int relay_over(struct relay *relay, uint32_t ps, const char *workers, const char *share)
{
    char **arguments = calloc((size_t)relay->argc + 7, sizeof *arguments), number[16];
    uint32_t count = 1;

    if (arguments == NULL)
        return EXIT_FAILURE;
    (void)snprintf(number, sizeof number, "%" PRIu32, ps);
    if (relay->rpc) {
        arguments[count++] = (char *)(uintptr_t) "--rpc";
        arguments[count++] = (char *)(uintptr_t)share;
        arguments[count++] = number;
    }
    if (relay->devices != NULL) {
        arguments[count++] = (char *)(uintptr_t) "--devices";
        arguments[count++] = (char *)(uintptr_t)relay->devices;
    }
    for (char **path = relay->paths; *path != NULL; path++)
        arguments[count++] = *path;
    const int code = relay_run(number, workers, (int)count, arguments, &relay->counts);
    free(arguments);
    return code;
}

/* In processes of two ps, and with --rpc in one of each other number that a placement is over. */
static int relay_all(struct relay *relay)
{
    const struct relay_counts *counts = &relay->counts;

    int code = relay_over(relay, 2, "4", "--ps");
    for (uint32_t ps = 1; relay->rpc && ps <= PLACED_PS_MAX; ps++) {
        if (ps == 2 || !places_over(relay->paths, ps))
            continue;
        const int also = relay_over(relay, ps, "1", "--only-ps");
        code = code == EXIT_SUCCESS ? also : code;
    }
    if (counts->passed + counts->failed + counts->skipped > 0)
        printf(
            "%zu passed, %zu failed, %zu skipped\n", counts->passed, counts->failed,
            counts->skipped);
    return code;
}

static int run_all(char **paths, bool rpc, const struct share *share)
{
    const struct target *target = rpc ? &target_ps : &target_loops;
    struct cases_run run = {.passed = 0};
    struct sumac_error error = {0};

    cluster_client_serve_all(rpc);
    if (cluster_client_open(&error) != SUMAC_OK || target->open(&error) != SUMAC_OK) {
        fprintf(stderr, "sumac-conformance: %s\n", error.text);
        return EXIT_FAILURE;
    }
    run_files(paths, target, share, &run);
    target->close();
    cluster_client_close();
    return cluster_client_index() > 0 ? EXIT_SUCCESS : cases_finish(&run);
}

struct options {
    bool rpc;
    const char *devices; /* NULL: CPUs */
    struct share share;
};

/* The options, up to the first file, whose place that is; 0: one is none, which is said. */
static int read_options(int argc, char **argv, struct options *options)
{
    int at = 1;

    for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
        const bool alone = strcmp(argv[at], "--only-ps") == 0;
        const bool has_value = at + 1 < argc;
        if ((alone || strcmp(argv[at], "--ps") == 0) && has_value) {
            options->share =
                (struct share){.ps = (uint32_t)strtoul(argv[++at], NULL, 10), .alone = alone};
        } else if (strcmp(argv[at], "--devices") == 0 && has_value) {
            options->devices = argv[++at];
        } else if (strcmp(argv[at], "--rpc") == 0) {
            options->rpc = true;
        } else {
            fprintf(
                stderr, "sumac-conformance: there is no option %s; --help says which there are\n",
                argv[at]);
            return 0;
        }
    }
    if (at < argc)
        return at;
    fputs("sumac-conformance: it takes files of cases; --help says how\n", stderr);
    return 0;
}

int main(int argc, char **argv)
{
    struct options options = {.rpc = false};
    struct sumac_error error = {0};

    for (int i = 1; i < argc && strncmp(argv[i], "--", 2) == 0; i++)
        if (strcmp(argv[i], "--help") == 0) {
            fputs(help, stdout);
            return EXIT_SUCCESS;
        }
    const int first = read_options(argc, argv, &options);
    if (first == 0)
        return EXIT_USAGE;
    if (options.devices != NULL && one_use_devices(options.devices, &error) != SUMAC_OK) {
        fprintf(stderr, "sumac-conformance: %s\n", error.text);
        return EXIT_USAGE;
    }
    const char *cluster = getenv("TF_CONFIG");
    if ((cluster == NULL || cluster[0] == '\0') && (options.rpc || takes_processes(argv + first)))
        return relay_all(&(struct relay){
            .argc = argc, .paths = argv + first, .rpc = options.rpc, .devices = options.devices});
    return run_all(argv + first, options.rpc, &options.share);
}
