/* SPDX-License-Identifier: Apache-2.0 */
/* tensors.h -- tensors of conformance cases: their bytes, and when two of them are equal. */
#pragma once

#include "cases.h"
#include "sumac/tensor.h"

struct case_tensor {
    enum sumac_dtype dtype;
    struct sumac_shape shape;
    uint64_t elements, bytes;
    void *data; /* row-major, as on the wire */
};

/* Read {"dtype": NAME, "shape": [N, …], "data": [VALUE, …]}; "nan", "inf" and "-inf" stand for
 * themselves, an integer beyond 2^53 is a decimal string. Says what is wrong with it. Gives
 * *tensor; release with case_tensor_deinit. */
bool case_tensor_read(struct cases_run *run, json_t *value, struct case_tensor *tensor);
void case_tensor_deinit(struct case_tensor *tensor);

/* Are the bytes at `actual` those of `expected`? Integers and bools exactly; floats exactly, or
 * within the tolerance of FORMAT.md, "When two values are equal". Says which element is not. */
bool case_tensor_equal(
    struct cases_run *run, const char *what, const struct case_tensor *expected, const void *actual,
    bool exactly);
