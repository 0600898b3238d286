/* SPDX-License-Identifier: Apache-2.0 */
/* expression_text.h -- texts of expressions that nobody thought of, from a source of choices. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct text_source {
    uint32_t (*choose)(void *context, uint32_t count); /* one of 0 … count - 1 */
    void *context;
    char text[4000];
    size_t used;
};

static inline void text_say(struct text_source *source, const char *words)
{
    const int bytes =
        snprintf(source->text + source->used, sizeof source->text - source->used, "%s", words);

    source->used += (size_t)bytes;
    if (source->used >= sizeof source->text)
        source->used = sizeof source->text - 1;
}

static inline uint32_t text_choose(struct text_source *source, uint32_t count)
{
    return source->choose(source->context, count);
}

static inline void text_number(struct text_source *source, uint32_t depth);

static inline void text_comparison(struct text_source *source, uint32_t depth)
{
    static const char *const signs[] = {" < ", " <= ", " > ", " >= ", " == ", " != "};

    text_number(source, depth);
    text_say(source, signs[text_choose(source, 6)]);
    text_number(source, depth);
}

static inline void text_leaf(struct text_source *source)
{
    static const char *const leaves[] = {"g", "value", "m", "v", "a", "b",   "t",
                                         "u", "step",  "0", "1", "2", "0.5", "1e-3"};

    text_say(source, leaves[text_choose(source, sizeof leaves / sizeof leaves[0])]);
}

static inline void text_call(struct text_source *source, const char *name, uint32_t depth)
{
    const bool is_where = name[0] == 'w';
    const uint32_t arguments = is_where || name[0] == 'c'         ? 3
                               : name[0] == 'm' || name[0] == 'p' ? 2
                                                                  : 1;

    text_say(source, name);
    text_say(source, "(");
    for (uint32_t i = 0; i < arguments; i++) {
        text_say(source, i > 0 ? ", " : "");
        if (is_where && i == 0)
            text_comparison(source, depth);
        else
            text_number(source, depth);
    }
    text_say(source, ")");
}

static inline void text_number(struct text_source *source, uint32_t depth)
{
    static const char *const calls[] = {"where", "min", "max", "abs", "sign", "sqrt", "where",
                                        "rsqrt", "exp", "log", "pow", "tanh", "clip"};
    static const char *const signs[] = {" + ", " - ", " * ", " / "};

    if (depth == 0 || text_choose(source, 5) == 0) {
        text_leaf(source);
    } else if (text_choose(source, 3) == 0) {
        text_call(source, calls[text_choose(source, sizeof calls / sizeof calls[0])], depth - 1);
    } else if (text_choose(source, 8) == 0) {
        text_say(source, "-");
        text_number(source, depth - 1);
    } else {
        text_say(source, "(");
        text_number(source, depth - 1);
        text_say(source, signs[text_choose(source, 4)]);
        text_number(source, depth - 1);
        text_say(source, ")");
    }
}

/* Everything that is declared is read in the first lines. */
static inline void text_begin(struct text_source *source)
{
    text_say(source, "hyperparameters: a = 0.25, b = 2\nslots: m = 0, v = 1\n");
    text_say(source, "t = a * m + b * v\nu = value - t\n");
}

/* value, m and v are assigned, in any order; t and u may be in between. */
static inline void text_make(struct text_source *source)
{
    static const char *const orders[][3] = {
        {"value", "m", "v"}, {"m", "v", "value"}, {"v", "value", "m"}, {"m", "value", "v"}};
    const uint32_t order = text_choose(source, 4);

    text_begin(source);
    for (uint32_t i = 0; i < 3; i++) {
        text_say(source, orders[order][i]);
        text_say(source, " = ");
        text_number(source, 1 + text_choose(source, 4));
        text_say(source, i == 0 ? " + 0 * u\n" : "\n");
    }
}
