/* SPDX-License-Identifier: Apache-2.0 */
/* perceptron.cu -- perceptron.c's loss and gradient on a GPU, in two launches, with the same sums
 * in the same order: a block for each example, then a thread for each parameter.
 *
 * The matrices are 64 × 128 and 128 × 10, and a batch has 32 examples: a library's product of such
 * matrices (cuBLAS) takes a launch each, and has nothing to gain.
 */
#include "perceptron_cuda.h"

/* Thread j has hidden unit j; the first ones a class each, too. */
extern "C" __global__ void perceptron_examples(const struct perceptron_batch batch)
{
    __shared__ float hidden[UNITS], scores[CLASSES], slope[CLASSES];
    const uint32_t n = blockIdx.x, j = threadIdx.x;
    const float *pixels = batch.pixels + n * PIXELS;
    float sum = batch.parameters.b1[j];

    for (int i = 0; i < PIXELS; i++)
        sum += pixels[i] * batch.parameters.w1[i * UNITS + j];
    hidden[j] = sum > 0 ? sum : 0;
    __syncthreads();
    if (j < CLASSES) {
        float score = batch.parameters.b2[j];
        for (int k = 0; k < UNITS; k++)
            score += hidden[k] * batch.parameters.w2[k * CLASSES + j];
        scores[j] = score;
    }
    __syncthreads();
    if (j < CLASSES) { /* softmax, by each of them */
        float largest = scores[0], all = 0;
        for (int c = 1; c < CLASSES; c++)
            largest = scores[c] > largest ? scores[c] : largest;
        for (int c = 0; c < CLASSES; c++)
            all += expf(scores[c] - largest);
        const float probability = expf(scores[j] - largest) / all;
        const bool is_label = j == batch.labels[n];
        if (is_label)
            batch.probability[n] = probability;
        slope[j] = (is_label ? probability - 1 : probability) * batch.share;
        batch.slope[n * CLASSES + j] = slope[j];
    }
    __syncthreads();
    float back = 0;
    for (int c = 0; c < CLASSES; c++)
        back += batch.parameters.w2[j * CLASSES + c] * slope[c];
    batch.hidden[n * UNITS + j] = hidden[j];
    batch.hidden_slope[n * UNITS + j] = hidden[j] > 0 ? back : 0;
}

/* Σ over the examples of left[n] · right[n]; no left: of right[n]. */
static __device__ float sum_of(
    const struct perceptron_batch &batch, const float *left, int left_count, const float *right,
    int right_count)
{
    float sum = 0;

    for (uint32_t n = 0; n < batch.count; n++)
        sum += left == nullptr ? right[n * right_count]
                               : left[n * left_count] * right[n * right_count];
    return sum;
}

extern "C" __global__ void perceptron_parameters(const struct perceptron_batch batch)
{
    int at = (int)(blockIdx.x * blockDim.x + threadIdx.x);

    if (at == 0)
        *batch.steps = 1;
    if (at < PIXELS * UNITS) {
        batch.gradient.w1[at] = sum_of(
            batch, batch.pixels + at / UNITS, PIXELS, batch.hidden_slope + at % UNITS, UNITS);
        return;
    }
    at -= PIXELS * UNITS;
    if (at < UNITS * CLASSES) {
        batch.gradient.w2[at] =
            sum_of(batch, batch.hidden + at / CLASSES, UNITS, batch.slope + at % CLASSES, CLASSES);
        return;
    }
    at -= UNITS * CLASSES;
    if (at < UNITS)
        batch.gradient.b1[at] = sum_of(batch, nullptr, 0, batch.hidden_slope + at, UNITS);
    else if (at < UNITS + CLASSES)
        batch.gradient.b2[at - UNITS] =
            sum_of(batch, nullptr, 0, batch.slope + at - UNITS, CLASSES);
}
