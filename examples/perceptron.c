/* SPDX-License-Identifier: Apache-2.0 */
/* perceptron.c -- forward, softmax cross-entropy, backward, one example at a time. */
#include "perceptron.h"

#include <math.h>
#include <string.h>

/* hidden = relu(pixels · w1 + b1), (UNITS); scores = hidden · w2 + b2, (CLASSES). */
static void forward(
    const struct perceptron *p, const struct example *example, float *restrict hidden,
    float *restrict scores)
{
    memcpy(hidden, p->b1, UNITS * sizeof *hidden);
    for (int i = 0; i < PIXELS; i++) {
        const float pixel = example->pixels[i];
        const float *restrict row = p->w1 + i * UNITS;
        if (pixel == 0)
            continue;
        for (int j = 0; j < UNITS; j++)
            hidden[j] += pixel * row[j];
    }
    memcpy(scores, p->b2, CLASSES * sizeof *scores);
    for (int j = 0; j < UNITS; j++) {
        const float *restrict row = p->w2 + j * CLASSES;
        hidden[j] = hidden[j] > 0 ? hidden[j] : 0;
        for (int c = 0; c < CLASSES; c++)
            scores[c] += hidden[j] * row[c];
    }
}

static void softmax(float *scores)
{
    float largest = scores[0], sum = 0;

    for (int c = 1; c < CLASSES; c++)
        largest = scores[c] > largest ? scores[c] : largest;
    for (int c = 0; c < CLASSES; c++) {
        scores[c] = expf(scores[c] - largest);
        sum += scores[c];
    }
    for (int c = 0; c < CLASSES; c++)
        scores[c] /= sum;
}

/* scores become softmax(scores) − one_hot(label), the cross-entropy's gradient; returns the
 * cross-entropy. */
static double cross_entropy(float *scores, uint32_t label)
{
    softmax(scores);
    const double loss = -log((double)scores[label] + 1e-30);
    scores[label] -= 1;
    return loss;
}

/* Add one example's gradient; `slope` is that of its scores, (CLASSES). */
static void backward(
    const struct perceptron *p, const struct example *example, const float *restrict hidden,
    const float *restrict slope, const struct perceptron *gradient)
{
    float hidden_slope[UNITS];

    for (int c = 0; c < CLASSES; c++)
        gradient->b2[c] += slope[c];
    for (int j = 0; j < UNITS; j++) {
        const float *restrict row = p->w2 + j * CLASSES;
        float *restrict to = gradient->w2 + j * CLASSES;
        float sum = 0;
        for (int c = 0; c < CLASSES; c++) {
            sum += row[c] * slope[c];
            to[c] += hidden[j] * slope[c];
        }
        hidden_slope[j] = hidden[j] > 0 ? sum : 0;
        gradient->b1[j] += hidden_slope[j];
    }
    for (int i = 0; i < PIXELS; i++) {
        const float pixel = example->pixels[i];
        float *restrict to = gradient->w1 + i * UNITS;
        if (pixel == 0)
            continue;
        for (int j = 0; j < UNITS; j++)
            to[j] += pixel * hidden_slope[j];
    }
}

double perceptron_gradient(
    const struct perceptron *parameters, const struct example *const *examples, uint32_t count,
    const struct perceptron *gradient)
{
    float hidden[UNITS], scores[CLASSES];
    const float share = 1.0f / (float)(count > 0 ? count : 1);
    double loss = 0;

    memset(gradient->w1, 0, PIXELS * UNITS * sizeof(float));
    memset(gradient->b1, 0, UNITS * sizeof(float));
    memset(gradient->w2, 0, UNITS * CLASSES * sizeof(float));
    memset(gradient->b2, 0, CLASSES * sizeof(float));
    for (uint32_t n = 0; n < count; n++) {
        forward(parameters, examples[n], hidden, scores);
        loss += cross_entropy(scores, examples[n]->label);
        for (int c = 0; c < CLASSES; c++)
            scores[c] *= share;
        backward(parameters, examples[n], hidden, scores, gradient);
    }
    return loss * (double)share;
}

float perceptron_probability(const struct perceptron *parameters, const struct example *example)
{
    float hidden[UNITS], scores[CLASSES];

    forward(parameters, example, hidden, scores);
    softmax(scores);
    return scores[example->label];
}

uint32_t perceptron_count_right(
    const struct perceptron *parameters, const struct example *examples, uint32_t count)
{
    float hidden[UNITS], scores[CLASSES];
    uint32_t right = 0;

    for (uint32_t n = 0; n < count; n++) {
        uint32_t best = 0;
        forward(parameters, &examples[n], hidden, scores);
        for (uint32_t c = 1; c < CLASSES; c++)
            best = scores[c] > scores[best] ? c : best;
        right += best == examples[n].label;
    }
    return right;
}
