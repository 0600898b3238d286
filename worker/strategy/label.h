/* SPDX-License-Identifier: Apache-2.0 */
/* label.h -- what tells one call from another: a text, of which the beginning is kept to be shown,
 * and of all of it how long it is, and a digest. Texts that differ behind what is kept differ. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define LABEL_BYTES_MAX 4096u /* that are kept, with the end */

struct label_sum {
    uint64_t bytes, digest; /* FNV-1a, of 64 bits */
};

struct label {
    char text[LABEL_BYTES_MAX];
    size_t used;
    struct label_sum sum;
};

/* Empty. */
void label_init(struct label *label);
/* Of any length. */
void label_add(struct label *label, const char *text);
/* At most LABEL_PRINT_BYTES_MAX of them at once. */
#define LABEL_PRINT_BYTES_MAX 255u
void label_print(struct label *label, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
