/* SPDX-License-Identifier: Apache-2.0 */
/* program.c -- `sumac-conformance [--rpc] FILE…`: cases of any file of the format, run and told one
 * by one. It knows no case. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster_client.h"
#include "partition.h"
#include "relay.h"
#include "sharded.h"
#include "strategies.h"
#include "update_function.h"
#include "variables.h"

#define EXIT_USAGE 2

static const char help[] =
    "sumac-conformance -- run files of conformance cases, and say of each case what became of it\n"
    "\n"
    "Usage: sumac-conformance [--rpc] FILE...\n"
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
    "  --rpc    update functions, too, through these ps, instead of the loops alone; with "
    "TF_CONFIG\n"
    "           as a worker of the cluster which that describes\n"
    "  --help   this text\n"
    "\n"
    "Operations: update_function, run, values_from_function, reduce, reduce_to, batch_reduce_to,\n"
    "all_reduce, gather, all_gather, variable, update, sharded, partition, placement, row_lookup\n";

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
    count = add(sharded_operations, operations, count);
    count = add(partition_operations, operations, count);
    operations[count].op = NULL;
}

static void run_files(char **paths, const struct target *target, struct cases_run *run)
{
    struct cases_operation operations[OPERATIONS_MAX];

    list_operations(target, operations);
    for (; *paths != NULL; paths++) {
        json_t *file = cases_load(*paths);
        run->failed += file == NULL;
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

static int run_all(char **paths, bool rpc)
{
    const struct target *target = rpc ? &target_ps : &target_loops;
    struct cases_run run = {.passed = 0};
    struct sumac_error error = {0};

    cluster_client_serve_all(rpc);
    if (cluster_client_open(&error) != SUMAC_OK || target->open(&error) != SUMAC_OK) {
        fprintf(stderr, "sumac-conformance: %s\n", error.text);
        return EXIT_FAILURE;
    }
    run_files(paths, target, &run);
    target->close();
    cluster_client_close();
    return cluster_client_index() > 0 ? EXIT_SUCCESS : cases_finish(&run);
}

int main(int argc, char **argv)
{
    int first = 1;
    bool rpc = false;

    for (; first < argc && strncmp(argv[first], "--", 2) == 0; first++) {
        if (strcmp(argv[first], "--help") == 0) {
            fputs(help, stdout);
            return EXIT_SUCCESS;
        }
        if (strcmp(argv[first], "--rpc") != 0) {
            fprintf(
                stderr, "sumac-conformance: there is no option %s; --help says which there are\n",
                argv[first]);
            return EXIT_USAGE;
        }
        rpc = true;
    }
    if (first == argc) {
        fputs("sumac-conformance: it takes files of cases; --help says how\n", stderr);
        return EXIT_USAGE;
    }
    const char *cluster = getenv("TF_CONFIG");
    if ((cluster == NULL || cluster[0] == '\0') && (rpc || takes_processes(argv + first)))
        return relay_run(argc, argv);
    return run_all(argv + first, rpc);
}
