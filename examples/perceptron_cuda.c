/* SPDX-License-Identifier: Apache-2.0 */
/* perceptron_cuda.c -- a step for GPUs, as a program in C writes one: copies and launches go into
 * the replica's stream, and nothing waits for them. */
#include "perceptron_cuda.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What nvcc made of perceptron.cu; PERCEPTRON_IMAGE is the file. */
__asm__(".section .rodata\n"
        ".balign 64\n"
        ".global perceptron_image\n"
        ".hidden perceptron_image\n"
        "perceptron_image:\n"
        ".incbin \"" PERCEPTRON_IMAGE "\"\n"
        ".previous\n");
extern const unsigned char perceptron_image[];

/* The arrays, one behind the other: there, with those between the kernels; here only the first. */
struct layout {
    float pixels[PERCEPTRON_BATCH_MAX][PIXELS];
    uint32_t labels[PERCEPTRON_BATCH_MAX];
    float probability[PERCEPTRON_BATCH_MAX];
    float hidden[PERCEPTRON_BATCH_MAX][UNITS], hidden_slope[PERCEPTRON_BATCH_MAX][UNITS];
    float slope[PERCEPTRON_BATCH_MAX][CLASSES];
};
#define SENT_BYTES offsetof(struct layout, probability)
#define HERE_BYTES offsetof(struct layout, hidden)

static struct perceptron view(const struct sumac_tensor *tensors)
{
    return (struct perceptron){
        .w1 = sumac_tensor_data(&tensors[0]),
        .b1 = sumac_tensor_data(&tensors[1]),
        .w2 = sumac_tensor_data(&tensors[2]),
        .b2 = sumac_tensor_data(&tensors[3]),
    };
}

static enum sumac_status prepare(
    struct perceptron_cuda *cuda, const struct sumac_replica *replica, struct sumac_error *error)
{
    enum sumac_status status = SUMAC_OK;

    if (cuda->there == NULL)
        status = sumac_device_buffer_create(
            sumac_replica_device(replica), sizeof(struct layout), &cuda->there, error);
    if (status == SUMAC_OK && cuda->here == NULL)
        status = sumac_device_host_buffer_create(
            sumac_replica_device(replica), HERE_BYTES, &cuda->here, error);
    return status;
}

static enum sumac_status launch(
    const struct sumac_replica *replica, const char *kernel, uint32_t blocks,
    const struct perceptron_batch *batch, struct sumac_error *error)
{
    void *const parameters[] = {(void *)(uintptr_t)batch};
    const struct sumac_launch launch = {
        .image = perceptron_image,
        .kernel = kernel,
        .blocks = blocks,
        .threads = UNITS,
        .parameters = parameters,
    };

    return sumac_device_launch(sumac_replica_device(replica), &launch, error);
}

enum sumac_status perceptron_cuda_step(
    struct perceptron_cuda *cuda, const struct sumac_replica *replica,
    const struct example *const *examples, uint32_t count, struct sumac_error *error)
{
    if (count > PERCEPTRON_BATCH_MAX) {
        (void)snprintf(
            error->text, sizeof error->text, "%u examples, and a step has %d at most", count,
            PERCEPTRON_BATCH_MAX);
        return error->status = SUMAC_INVALID_ARGUMENT;
    }
    enum sumac_status status = prepare(cuda, replica, error);
    if (status != SUMAC_OK)
        return status;
    struct layout *here = sumac_buffer_data(cuda->here); /* the step before is over */
    struct layout *there = sumac_buffer_data(cuda->there);
    cuda->count = count;
    for (uint32_t n = 0; n < count; n++) {
        memcpy(here->pixels[n], examples[n]->pixels, sizeof here->pixels[n]);
        here->labels[n] = examples[n]->label;
    }
    const struct perceptron_batch batch = {
        .parameters = view(sumac_replica_value(replica, 0)),
        .gradient = view(sumac_replica_gradient(replica, 0)),
        .pixels = there->pixels[0],
        .labels = there->labels,
        .hidden = there->hidden[0],
        .hidden_slope = there->hidden_slope[0],
        .slope = there->slope[0],
        .probability = there->probability,
        .steps = sumac_tensor_data(sumac_replica_gradient(replica, 4)),
        .count = count,
        .share = 1.0f / (float)(count > 0 ? count : 1),
    };
    const struct sumac_copy send = {.to = cuda->there, .from = cuda->here, .bytes = SENT_BYTES};
    const struct sumac_copy fetch = {
        .to = cuda->here,
        .from = cuda->there,
        .to_offset = SENT_BYTES,
        .from_offset = SENT_BYTES,
        .bytes = count * sizeof(float)};
    status = sumac_device_copy(sumac_replica_device(replica), &send, error);
    if (status == SUMAC_OK && count > 0)
        status = launch(replica, "perceptron_examples", count, &batch, error);
    if (status == SUMAC_OK)
        status = launch(
            replica, "perceptron_parameters", (PERCEPTRON_PARAMETERS + UNITS - 1) / UNITS, &batch,
            error);
    if (status == SUMAC_OK)
        status = sumac_device_copy(sumac_replica_device(replica), &fetch, error);
    return status;
}

double perceptron_cuda_loss(const struct perceptron_cuda *cuda)
{
    const struct layout *here = sumac_buffer_data(cuda->here);
    double loss = 0;

    for (uint32_t n = 0; n < cuda->count; n++)
        loss += -log((double)here->probability[n] + 1e-30);
    return cuda->count > 0 ? loss * (double)(1.0f / (float)cuda->count) : 0;
}

void perceptron_cuda_deinit(struct perceptron_cuda *cuda)
{
    sumac_buffer_unref(cuda->there);
    sumac_buffer_unref(cuda->here);
    *cuda = (struct perceptron_cuda){.count = 0};
}
