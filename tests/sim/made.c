/* SPDX-License-Identifier: Apache-2.0 */
/* made.c -- counts of what the runs were made of. */
#include "made.h"

#include <inttypes.h>
#include <stdio.h>

#include "world.h"

#define LINE_COLUMNS 100

void made(struct world *world, enum made what) { made_if(world, what, true); }

void made_if(struct world *world, enum made what, bool it_is) { world->made.of[what] += it_is; }

bool made_print(const struct made_counts *counts)
{
    static const char *const texts[MADE_COUNT] = {
#define X(name, text) [MADE_##name] = text,
        MADE_LIST(X)
#undef X
    };
    bool all = true;
    int column = 0;

    for (uint32_t i = 0; i < MADE_COUNT; i++) {
        char item[80];
        const int bytes = snprintf(item, sizeof item, "%" PRIu64 " %s", counts->of[i], texts[i]);
        if (column > 0 && column + 2 + bytes > LINE_COLUMNS) {
            printf(",\n");
            column = 0;
        }
        column += printf("%s%s", column == 0 ? "" : ", ", item);
        all = all && counts->of[i] > 0;
    }
    printf("\n");
    return all;
}
