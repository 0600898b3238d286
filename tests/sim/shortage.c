/* SPDX-License-Identifier: Apache-2.0 */
/* shortage.c -- takes that fail. */
#include "shortage.h"

static void *take(void *context, size_t bytes)
{
    struct shortage *shortage = context;

    if (shortage->fails == 0)
        return memory_take(shortage->source, bytes);
    if (shortage->passes > 0) {
        shortage->passes--;
        return memory_take(shortage->source, bytes);
    }
    shortage->fails--;
    shortage->failed++;
    return NULL;
}

static void give(void *context, void *data, size_t bytes)
{
    const struct shortage *shortage = context;

    memory_give(shortage->source, data, bytes);
}

void shortage_init(struct shortage *shortage, const struct memory *source)
{
    *shortage = (struct shortage){
        .memory = {.take = take, .give = give, .context = shortage}, .source = source};
}

void shortage_begin(struct shortage *shortage, uint32_t passes, uint32_t fails)
{
    shortage->passes = passes;
    shortage->fails = fails;
}

void shortage_end(struct shortage *shortage) { shortage_begin(shortage, 0, 0); }
