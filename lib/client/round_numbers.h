/* SPDX-License-Identifier: Apache-2.0 */
/* round_numbers.h -- a client's count of the rounds of each name. It keeps a name until the close.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "key_map.h"
#include "list.h"

struct numbered_name {
    LINKS(struct numbered_name) among_names;
    struct key_entry by_name;
    uint64_t last; /* of a barrier: the last round whose end is known. 0: none yet */
    bool waits;    /* a thread waits at this barrier */
    char name[];
};

struct round_numbers {
    LIST(struct numbered_name) names;
    struct key_map by_name;
};

void round_numbers_init(struct round_numbers *numbers);
void round_numbers_deinit(struct round_numbers *numbers);
/* NULL: the name is new. */
struct numbered_name *round_numbers_find(const struct round_numbers *numbers, const char *name);
/* Find the name, or add it with round 0. NULL: no memory. */
struct numbered_name *round_numbers_add(struct round_numbers *numbers, const char *name);
