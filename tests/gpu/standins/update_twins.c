/* SPDX-License-Identifier: Apache-2.0 */
/* update_twins.c -- each kernel of worker/cuda/updates.cu on the CPU, by its name: update_run. */
#include <string.h>

#include "kernel_arguments.h"
#include "standin.h"
#include "update.h"

#define PREFIX "update_"

/* A gradient that is float32 already is a sum of one. */
struct wide_gradient {
    const uint8_t *data;
    double scale;
};

static const uint8_t *find_gradient(
    const void *context, uint32_t source, const struct update_slice *slice, uint64_t at,
    uint64_t *together_bytes)
{
    const struct wide_gradient *gradient = context;

    (void)source;
    *together_bytes = slice->count * sizeof(float) - at;
    return gradient->data + at;
}

static double scale_of(const void *context, uint32_t source)
{
    const struct wide_gradient *gradient = context;

    (void)source;
    return gradient->scale;
}

/* The arrays, where the host finds them. False: not all are there. */
static bool find_arrays(const struct cuda_update_arguments *given, struct update_slice *slice)
{
    const char *const name = slice->function->name;
    const uint64_t bytes = given->count * sumac_dtype_bytes(slice->dtype);
    const uint64_t slot_bytes = given->count * sumac_dtype_bytes(update_slot_dtype(slice->dtype));

    slice->value_out = standin_array(name, given->value_out, bytes);
    slice->value_in = standin_array(name, given->value_in, bytes);
    slice->gradient = standin_array(name, given->gradient, given->is_wide ? slot_bytes : bytes);
    bool found = slice->value_out != NULL && slice->value_in != NULL && slice->gradient != NULL;
    for (uint32_t i = 0; i < UPDATE_SLOTS_MAX && given->slot_out[i] != 0; i++) {
        slice->slot_out[i] = standin_array(name, given->slot_out[i], slot_bytes);
        slice->slot_in[i] = standin_array(name, given->slot_in[i], slot_bytes);
        found = found && slice->slot_out[i] != NULL && slice->slot_in[i] != NULL;
    }
    return found;
}

static CUresult run(const struct CUfunc_st *function, const void *argument)
{
    const struct cuda_update_arguments *given = argument;
    struct update_slice slice = {
        .function = function->twin,
        .dtype = (enum sumac_dtype)function->number,
        .count = given->count,
        .flag = given->flag != 0,
        .scale = given->is_conditioned ? given->scale : 1,
        .clip = given->is_conditioned ? given->clip : 0,
        .divisor = 1};

    if (!find_arrays(given, &slice))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    memcpy(slice.scalar, given->scalar, sizeof given->scalar);
    const struct wide_gradient wide = {slice.gradient, slice.scale};
    const struct update_sources sources = {1, find_gradient, scale_of, &wide};
    if (given->is_wide)
        slice.sources = &sources;
    update_run(&slice);
    return CUDA_SUCCESS;
}

bool standin_update_twin_find(const char *name, struct CUfunc_st *function)
{
    const struct update_function *row = NULL;
    const char *const dtype_name = strrchr(name, '_');

    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
        return false;
    name += strlen(PREFIX);
    for (uint32_t i = 0; (row = update_at(i)) != NULL; i++)
        if (strlen(row->name) == (size_t)(dtype_name - name) &&
            strncmp(row->name, name, strlen(row->name)) == 0)
            break;
    for (int dtype = SUMAC_FLOAT16; row != NULL && dtype <= SUMAC_FLOAT64; dtype++)
        if (strcmp(sumac_dtype_name((enum sumac_dtype)dtype), dtype_name + 1) == 0) {
            *function = (struct CUfunc_st){
                .run = run,
                .argument_bytes = sizeof(struct cuda_update_arguments),
                .twin = row,
                .number = dtype};
            return true;
        }
    return false;
}
