/* SPDX-License-Identifier: Apache-2.0 */
/* perceptron_twins.c -- the kernels of examples/perceptron.cu on the CPU, by perceptron.c's own
 * loops: a program's kernels are no stand-in's matter, so they are in a library of their own, which
 * SUMAC_STANDIN_KERNELS names (modules.c). */
#include <string.h>

#include "perceptron_cuda.h"
#include "standin.h"

struct array {
    void *where; /* the pointer to it */
    uint64_t bytes;
};

/* The struct as it was given, with the pointers where the host finds that memory. False: something
 * of it is not the device's. */
static bool find(const char *kernel, const void *argument, struct perceptron_batch *batch)
{
    const struct perceptron_batch *given = argument;
    const uint64_t n = given->count;
    const struct array arrays[] = {
        {&batch->parameters.w1, PIXELS * UNITS * sizeof(float)},
        {&batch->parameters.b1, UNITS * sizeof(float)},
        {&batch->parameters.w2, UNITS * CLASSES * sizeof(float)},
        {&batch->parameters.b2, CLASSES * sizeof(float)},
        {&batch->gradient.w1, PIXELS * UNITS * sizeof(float)},
        {&batch->gradient.b1, UNITS * sizeof(float)},
        {&batch->gradient.w2, UNITS * CLASSES * sizeof(float)},
        {&batch->gradient.b2, CLASSES * sizeof(float)},
        {&batch->pixels, n * PIXELS * sizeof(float)},
        {&batch->labels, n * sizeof(uint32_t)},
        {&batch->hidden, n * UNITS * sizeof(float)},
        {&batch->hidden_slope, n * UNITS * sizeof(float)},
        {&batch->slope, n * CLASSES * sizeof(float)},
        {&batch->probability, n * sizeof(float)},
        {&batch->steps, sizeof(double)},
    };

    *batch = *given;
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        uint64_t address = 0;
        memcpy(&address, arrays[i].where, sizeof address);
        void *const found = standin_array(kernel, address, arrays[i].bytes);
        if (found == NULL)
            return false;
        memcpy(arrays[i].where, &found, sizeof found);
    }
    return true;
}

/* Of the examples alone: what label was given is left as the loss that it makes. */
static CUresult run_examples(const struct CUfunc_st *function, const void *argument)
{
    struct perceptron_batch batch;

    if (!find(function->name, argument, &batch))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    for (uint32_t n = 0; n < batch.count; n++) {
        struct example example = {.label = batch.labels[n]};
        memcpy(example.pixels, batch.pixels + n * PIXELS, sizeof example.pixels);
        batch.probability[n] = perceptron_probability(&batch.parameters, &example);
    }
    return CUDA_SUCCESS;
}

static CUresult run_parameters(const struct CUfunc_st *function, const void *argument)
{
    struct perceptron_batch batch;
    struct example examples[64];
    const struct example *pointers[64];

    if (!find(function->name, argument, &batch) || batch.count > 64)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    for (uint32_t n = 0; n < batch.count; n++) {
        examples[n].label = batch.labels[n];
        memcpy(examples[n].pixels, batch.pixels + n * PIXELS, sizeof examples[n].pixels);
        pointers[n] = &examples[n];
    }
    (void)perceptron_gradient(&batch.parameters, pointers, batch.count, &batch.gradient);
    *batch.steps = 1;
    return CUDA_SUCCESS;
}

const struct CUfunc_st standin_kernel_perceptron_examples = {
    .run = run_examples, .argument_bytes = sizeof(struct perceptron_batch)};
const struct CUfunc_st standin_kernel_perceptron_parameters = {
    .run = run_parameters, .argument_bytes = sizeof(struct perceptron_batch)};
