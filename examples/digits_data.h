/* SPDX-License-Identifier: Apache-2.0 */
/* digits_data.h -- the handwritten digits, and the order in which a worker sees them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "perceptron.h"

#define HELD_BACK_EVERY 5 /* rows 0, 5, 10, … are for testing */

struct digits_data {
    struct example *training, *testing;
    uint32_t training_count, testing_count;
};

/* Read a gzip-compressed CSV file of 64 pixels, 0 to 16, and a label, 0 to 9, a line.
 * False: it could not be read, or a line is something else; says so on standard error. */
bool digits_data_read(const char *path, struct digits_data *data);
void digits_data_free(struct digits_data *data);

/* All training examples in an order of the seed's own, then in another, and so on for ever. */
struct digits_order {
    uint32_t *indices; /* (count) */
    uint32_t count, next;
    uint64_t state;
};

bool digits_order_init(struct digits_order *order, uint32_t count, uint64_t seed);
uint32_t digits_order_next(struct digits_order *order);
