/* SPDX-License-Identifier: Apache-2.0 */
/* digits_data.c -- read data/digits.csv.gz with zlib, and shuffle it. */
#include "digits_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#define ROWS_MAX 10000
#define LINE_BYTES 1024

static bool parse_line(const char *line, struct example *example)
{
    char *end = NULL;

    for (int i = 0; i <= PIXELS; i++) {
        const unsigned long number = strtoul(line, &end, 10);
        if (end == line || (i < PIXELS && *end != ',') ||
            number > (i < PIXELS ? 16ul : CLASSES - 1ul))
            return false;
        if (i < PIXELS)
            example->pixels[i] = (float)number / 16.0f;
        else
            example->label = (uint32_t)number;
        line = end + 1;
    }
    return true;
}

static bool read_rows(gzFile file, const char *path, struct digits_data *data)
{
    char line[LINE_BYTES];

    for (uint32_t row = 0; row < ROWS_MAX && gzgets(file, line, sizeof line) != NULL; row++) {
        struct example *example = row % HELD_BACK_EVERY == 0
                                      ? &data->testing[data->testing_count++]
                                      : &data->training[data->training_count++];
        if (!parse_line(line, example)) {
            fprintf(stderr, "digits: %s, line %u: not 64 pixels and a label\n", path, row + 1);
            return false;
        }
    }
    if (data->training_count == 0)
        fprintf(stderr, "digits: %s holds no rows\n", path);
    return data->training_count > 0;
}

bool digits_data_read(const char *path, struct digits_data *data)
{
    *data = (struct digits_data){
        .training = calloc(ROWS_MAX, sizeof *data->training),
        .testing = calloc(ROWS_MAX, sizeof *data->testing),
    };
    gzFile file = gzopen(path, "rb");
    bool read = false;
    if (file == NULL)
        fprintf(stderr, "digits: cannot open %s; say where the data is with --data FILE\n", path);
    else if (data->training != NULL && data->testing != NULL)
        read = read_rows(file, path, data);
    if (file != NULL)
        gzclose(file);
    if (!read)
        digits_data_free(data);
    return read;
}

void digits_data_free(struct digits_data *data)
{
    free(data->training);
    free(data->testing);
    *data = (struct digits_data){0};
}

/* splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). */
static uint64_t random_bits(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Fisher and Yates. */
static void shuffle(struct digits_order *order)
{
    for (uint32_t i = order->count - 1; i > 0; i--) {
        const uint32_t j = (uint32_t)(random_bits(&order->state) % (i + 1));
        const uint32_t kept = order->indices[i];
        order->indices[i] = order->indices[j];
        order->indices[j] = kept;
    }
    order->next = 0;
}

bool digits_order_init(struct digits_order *order, uint32_t count, uint64_t seed)
{
    *order = (struct digits_order){
        .indices = calloc(count, sizeof *order->indices),
        .count = count,
        .state = seed,
    };
    for (uint32_t i = 0; order->indices != NULL && i < count; i++)
        order->indices[i] = i;
    if (order->indices != NULL)
        shuffle(order);
    return order->indices != NULL;
}

uint32_t digits_order_next(struct digits_order *order)
{
    if (order->next == order->count)
        shuffle(order);
    return order->indices[order->next++];
}
