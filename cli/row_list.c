/* SPDX-License-Identifier: Apache-2.0 */
/* row_list.c -- rows by index: read, and looked up in each variable. */
#include "row_list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "error.h"
#include "plural.h"

enum sumac_status
row_list_parse(const char *text, struct listed_rows *list, struct sumac_error *error)
{
    *list = (struct listed_rows){.count = 0};
    for (const char *at = text;;) {
        char *end = NULL;
        errno = 0;
        const int64_t row = strtoll(at, &end, 10);
        if (end == at || errno != 0 || (*end != ',' && *end != '\0'))
            return fail_argument(
                error,
                "--rows is row numbers with commas between them, such as 3,1,7 or -1, not %.100s%s",
                at, strchr(at, ':') != NULL ? "; --slice FIRST:END is a range" : "");
        list->rows = cli_grow(list->rows, list->count, sizeof *list->rows);
        list->rows[list->count++] = row;
        if (*end == '\0')
            return SUMAC_OK;
        at = end + 1;
    }
}

static enum sumac_status apply_to(
    const struct listed_rows *list, struct wanted *item, int64_t *indices,
    struct sumac_error *error)
{
    if (item->shape.rank == 0 || item->has_rows)
        return fail_argument(
            error,
            item->has_rows ? "%.300s has its rows, and --rows says other ones: give them once"
                           : "%.300s is a scalar: it has no rows",
            item->label);
    const int64_t rows_all = (int64_t)item->shape.extent[0];
    uint64_t elements = 0;
    for (size_t i = 0; i < list->count; i++) {
        const int64_t row = list->rows[i];
        if (row >= rows_all || row < -rows_all)
            return fail(
                error, SUMAC_OUT_OF_RANGE, SUMAC_REASON_UNSPECIFIED,
                "row %" PRId64 " of %.300s: it has %" PRId64 " row%s, from 0 to %" PRId64, row,
                item->name, rows_all, plural((uint64_t)rows_all), rows_all - 1);
        indices[i] = row < 0 ? row + rows_all : row;
    }
    item->shape.extent[0] = list->count;
    return sumac_shape_size(&item->shape, item->dtype, &elements, &item->bytes) == SUMAC_OK
               ? SUMAC_OK
               : fail_invalid(
                     error, SUMAC_REASON_BAD_SHAPE,
                     "%zu rows of %.300s have more bytes than can be counted", list->count,
                     item->name);
}

enum sumac_status
row_list_apply(struct listed_rows *list, struct wanted_list *wanted, struct sumac_error *error)
{
    list->indices = cli_alloc(wanted->count * list->count, sizeof *list->indices);
    list->tensors = cli_alloc(wanted->count, sizeof *list->tensors);
    for (size_t i = 0; i < wanted->count; i++) {
        int64_t *const indices = list->indices + i * list->count;
        const enum sumac_status status = apply_to(list, &wanted->items[i], indices, error);
        if (status != SUMAC_OK)
            return status;
        list->tensors[i] = sumac_tensor_over(indices, SUMAC_INT64, SUMAC_SHAPE(list->count));
    }
    return SUMAC_OK;
}
