/* SPDX-License-Identifier: Apache-2.0 */
/* absurd_base.c -- the calls of lib/base and lib/cluster, and how each is decided. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "absurd.h"

int calls, wrong;
struct sumac_error why, *error;

void begin(const char *function, const char *what)
{
    calls++;
    printf("%s: %s\n", function, what);
    fflush(stdout);
    why = (struct sumac_error){.status = SUMAC_OK};
}

void is(bool as_it_should_be)
{
    if (as_it_should_be)
        return;
    wrong++;
    printf("  WRONG: %s %s\n", sumac_status_name(why.status), why.text);
}

void is_refused(enum sumac_status status, enum sumac_status wanted, const char *words)
{
    const bool told = words[0] == '\0' || (why.status == wanted && strstr(why.text, words) != NULL);

    if (status == wanted && told)
        return;
    wrong++;
    printf(
        "  WRONG: %s, expected %s with \"%s\": %s\n", sumac_status_name(status),
        sumac_status_name(wanted), words, why.text);
}

/* ---- lib/base */

static void try_statuses(void)
{
    HOLDS(
        sumac_status_name, "77", strcmp(sumac_status_name((enum sumac_status)77), "UNKNOWN") == 0);
    HOLDS(
        sumac_reason_name, "-1",
        strcmp(sumac_reason_name((enum sumac_reason) - 1), "UNSPECIFIED") == 0);
    HOLDS(sumac_version, "", sumac_version()[0] != '\0');
    HOLDS(sumac_exit_code, "NULL", sumac_exit_code(NULL) == 0);
    const struct sumac_error absurd = {.status = (enum sumac_status)77};
    HOLDS(sumac_exit_code, "status 77", sumac_exit_code(&absurd) == 2);
}

static void try_buffers(void)
{
    const struct sumac_place host = {SUMAC_PLACE_HOST, 0};
    const struct sumac_place nowhere = {(enum sumac_place_kind)77, 0};
    struct sumac_buffer *buffer = NULL;
    double byte = 0;

    REFUSED(sumac_buffer_create, "NULL", INVALID_ARGUMENT, "", sumac_buffer_create(8, NULL));
    REFUSED(
        sumac_buffer_create, "2^64 - 1 bytes", RESOURCE_EXHAUSTED, "",
        sumac_buffer_create(UINT64_MAX, &buffer));
    REFUSED(
        sumac_buffer_wrap, "no memory", INVALID_ARGUMENT, "",
        sumac_buffer_wrap(NULL, 8, host, NULL, NULL, &buffer));
    REFUSED(
        sumac_buffer_wrap, "NULL buffer", INVALID_ARGUMENT, "",
        sumac_buffer_wrap(&byte, 8, host, NULL, NULL, NULL));
    REFUSED(
        sumac_buffer_wrap, "place 77", INVALID_ARGUMENT, "",
        sumac_buffer_wrap(&byte, 8, nowhere, NULL, NULL, &buffer));
    HOLDS(sumac_buffer_wrap, "untouched", buffer == NULL);
    HOLDS(sumac_buffer_ref, "NULL", sumac_buffer_ref(NULL) == NULL);
    HOLDS(sumac_buffer_unref, "NULL", (sumac_buffer_unref(NULL), true));
    HOLDS(sumac_check, "OK", (sumac_check(SUMAC_OK, NULL), true));
    HOLDS(sumac_buffer_is_unique, "NULL", !sumac_buffer_is_unique(NULL));
    HOLDS(sumac_buffer_data, "NULL", sumac_buffer_data(NULL) == NULL);
    HOLDS(sumac_buffer_bytes, "NULL", sumac_buffer_bytes(NULL) == 0);
    HOLDS(sumac_buffer_place, "NULL", sumac_buffer_place(NULL).kind == SUMAC_PLACE_HOST);
}

static void try_shapes(void)
{
    const struct sumac_shape four = SUMAC_SHAPE(ROWS);
    const struct sumac_shape deep = {.rank = UINT32_MAX};
    char text[8];

    REFUSED(
        sumac_shape_size, "NULL", INVALID_ARGUMENT, "",
        sumac_shape_size(NULL, SUMAC_INT8, NULL, NULL));
    REFUSED(
        sumac_shape_size, "rank 2^32 - 1", INVALID_ARGUMENT, "",
        sumac_shape_size(&deep, SUMAC_INT8, NULL, NULL));
    REFUSED(
        sumac_shape_size, "dtype 77", INVALID_ARGUMENT, "",
        sumac_shape_size(&four, (enum sumac_dtype)77, NULL, NULL));
    HOLDS(
        sumac_shape_size, "nothing wanted",
        sumac_shape_size(&four, SUMAC_INT8, NULL, NULL) == SUMAC_OK);
    HOLDS(sumac_shape_equal, "NULL a", !sumac_shape_equal(NULL, &four));
    HOLDS(sumac_shape_equal, "NULL b", !sumac_shape_equal(&four, NULL));
    HOLDS(sumac_shape_equal, "rank 2^32 - 1", sumac_shape_equal(&deep, &deep));
    HOLDS(sumac_shape_print, "NULL shape", sumac_shape_print(NULL, text, 8)[0] == '\0');
    HOLDS(sumac_shape_print, "NULL text", sumac_shape_print(&four, NULL, 8)[0] == '\0');
    HOLDS(sumac_shape_print, "no room", sumac_shape_print(&four, text, 0)[0] == '\0');
    HOLDS(sumac_shape_print, "rank 2^32 - 1", strlen(sumac_shape_print(&deep, text, 8)) < 8);
    HOLDS(sumac_dtype_bytes, "77", sumac_dtype_bytes((enum sumac_dtype)77) == 0);
    HOLDS(
        sumac_dtype_name, "-1",
        strcmp(sumac_dtype_name((enum sumac_dtype) - 1), "unspecified") == 0);
    HOLDS(sumac_dtype_parse, "NULL", sumac_dtype_parse(NULL) == SUMAC_DTYPE_UNSPECIFIED);
    HOLDS(sumac_dtype_kind, "77", sumac_dtype_kind((enum sumac_dtype)77) == SUMAC_KIND_NONE);
    HOLDS(sumac_dtype_is_float, "77", !sumac_dtype_is_float((enum sumac_dtype)77));
}

static void try_tensors(void)
{
    const struct sumac_shape four = SUMAC_SHAPE(ROWS);
    const struct sumac_shape deep = {.rank = UINT32_MAX};
    const struct sumac_range one = {0, 1}, far = {UINT64_MAX, 2}, many = {1, UINT64_MAX};
    struct sumac_buffer *buffer = NULL;
    struct sumac_tensor whole = {.dtype = SUMAC_FLOAT64, .shape = four}, rows;
    float floats[ROWS] = {0};

    if (sumac_buffer_create(sizeof floats, &buffer) != SUMAC_OK)
        exit(1);
    REFUSED(
        sumac_tensor_view, "NULL buffer", INVALID_ARGUMENT, "",
        sumac_tensor_view(NULL, 0, SUMAC_FLOAT32, &four, &rows));
    REFUSED(
        sumac_tensor_view, "NULL shape", INVALID_ARGUMENT, "",
        sumac_tensor_view(buffer, 0, SUMAC_FLOAT32, NULL, &rows));
    REFUSED(
        sumac_tensor_view, "NULL tensor", INVALID_ARGUMENT, "",
        sumac_tensor_view(buffer, 0, SUMAC_FLOAT32, &four, NULL));
    REFUSED(
        sumac_tensor_view, "offset_bytes 2^64 - 4", OUT_OF_RANGE, "",
        sumac_tensor_view(buffer, UINT64_MAX - 3, SUMAC_FLOAT32, &four, &rows));
    REFUSED(
        sumac_tensor_view, "dtype 77", INVALID_ARGUMENT, "",
        sumac_tensor_view(buffer, 0, (enum sumac_dtype)77, &four, &rows));
    REFUSED(
        sumac_tensor_slice_rows, "NULL whole", INVALID_ARGUMENT, "",
        sumac_tensor_slice_rows(NULL, one, &rows));
    REFUSED(
        sumac_tensor_slice_rows, "NULL rows", INVALID_ARGUMENT, "",
        sumac_tensor_slice_rows(&whole, one, NULL));
    REFUSED(
        sumac_tensor_slice_rows, "first 2^64 - 1", OUT_OF_RANGE, "",
        sumac_tensor_slice_rows(&whole, far, &rows));
    REFUSED(
        sumac_tensor_slice_rows, "count 2^64 - 1", OUT_OF_RANGE, "",
        sumac_tensor_slice_rows(&whole, many, &rows));
    whole.dtype = (enum sumac_dtype)77;
    REFUSED(
        sumac_tensor_slice_rows, "dtype 77", INVALID_ARGUMENT, "",
        sumac_tensor_slice_rows(&whole, one, &rows));
    whole = (struct sumac_tensor){.dtype = SUMAC_FLOAT64, .shape = deep};
    REFUSED(
        sumac_tensor_slice_rows, "rank 2^32 - 1", INVALID_ARGUMENT, "",
        sumac_tensor_slice_rows(&whole, one, &rows));
    HOLDS(sumac_tensor_data, "NULL", sumac_tensor_data(NULL) == NULL);
    HOLDS(sumac_tensor_data, "neither buffer nor memory", sumac_tensor_data(&whole) == NULL);
    HOLDS(sumac_tensor_bytes, "NULL", sumac_tensor_bytes(NULL) == 0);
    HOLDS(sumac_tensor_bytes, "rank 2^32 - 1", sumac_tensor_bytes(&whole) == 0);
    whole = sumac_tensor_over(NULL, (enum sumac_dtype)77, deep);
    HOLDS(sumac_tensor_over, "NULL, 77, rank 2^32 - 1", sumac_tensor_bytes(&whole) == 0);
    sumac_buffer_unref(buffer);
}

void try_base(void)
{
    try_statuses();
    try_buffers();
    try_shapes();
    try_tensors();
}

/* ---- lib/cluster */

void try_clusters(void)
{
    struct sumac_cluster cluster = {.jobs = NULL};
    char *master = NULL;

    REFUSED(
        sumac_cluster_parse, "NULL cluster", INVALID_ARGUMENT, "cluster is NULL",
        sumac_cluster_parse("{}", NULL, NULL, error));
    HOLDS(
        sumac_cluster_parse, "NULL text",
        sumac_cluster_parse(NULL, NULL, &cluster, error) == SUMAC_OK && cluster.job_count == 0);
    REFUSED(
        sumac_cluster_from_environment, "NULL cluster", INVALID_ARGUMENT, "cluster is NULL",
        sumac_cluster_from_environment(NULL, NULL, error));
    HOLDS(sumac_cluster_deinit, "NULL", (sumac_cluster_deinit(NULL), true));
    HOLDS(sumac_cluster_job, "NULL cluster", sumac_cluster_job(NULL, "ps") == NULL);
    HOLDS(sumac_cluster_job, "NULL name", sumac_cluster_job(&cluster, NULL) == NULL);
    HOLDS(sumac_cluster_address, "NULL cluster", sumac_cluster_address(NULL, "ps", 0) == NULL);
    HOLDS(sumac_cluster_address, "NULL job", sumac_cluster_address(&cluster, NULL, 0) == NULL);
    HOLDS(
        sumac_cluster_address, "index 2^32 - 1",
        sumac_cluster_address(&cluster, "ps", UINT32_MAX) == NULL);
    REFUSED(
        sumac_cluster_master, "NULL cluster", INVALID_ARGUMENT, "cluster is NULL",
        sumac_cluster_master(NULL, &master, error));
    REFUSED(
        sumac_cluster_master, "NULL master", INVALID_ARGUMENT, "master is NULL",
        sumac_cluster_master(&cluster, NULL, error));
    REFUSED(
        sumac_cluster_check_task, "NULL", INVALID_ARGUMENT, "cluster is NULL",
        sumac_cluster_check_task(NULL, error));
    sumac_cluster_deinit(&cluster);
}
