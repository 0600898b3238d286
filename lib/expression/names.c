/* SPDX-License-Identifier: Apache-2.0 */
/* names.c -- hyperparameters, slots, value, and temporaries. */
#include "names.h"

#include <assert.h>
#include <string.h>

/* None of them can be anything else. */
static const char *const taken[] = {
    "hyperparameters", "slots", "g",   "step", "where", "min", "max", "abs", "sign", "sqrt",
    "rsqrt",           "exp",   "log", "pow",  "tanh",  "clip"};

static bool is_taken(const struct word *word)
{
    for (uint32_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        if (word_is(word, taken[i]))
            return true;
    return false;
}

static bool is_same(const struct word *one, const struct word *other)
{
    return one->bytes == other->bytes && memcmp(one->text, other->text, one->bytes) == 0;
}

struct name *names_find(struct text_reader *reader, const struct word *word)
{
    assert(word->kind == WORD_NAME);
    for (uint32_t i = 0; i < reader->name_count; i++) {
        struct name *const name = &reader->names[i];
        if (name->kind == NAME_VALUE ? word_is(word, "value") : is_same(&name->said, word))
            return name;
    }
    return NULL;
}

struct bound {
    uint32_t *count, most;
    const char *what;
};

static struct bound find_bound(struct text_reader *reader, enum name_kind kind)
{
    struct expression *const expression = reader->expression;

    switch (kind) {
    case NAME_HYPERPARAMETER:
        return (struct bound){
            &expression->hyperparameter_count, EXPRESSION_HYPERPARAMETERS_MAX, "hyperparameters"};
    case NAME_SLOT:
        return (struct bound){&expression->slot_count, EXPRESSION_SLOTS_MAX, "slots"};
    case NAME_VALUE:
    case NAME_TEMPORARY:
        break;
    }
    return (struct bound){&reader->temporary_count, EXPRESSION_TEMPORARIES_MAX, "temporaries"};
}

static enum sumac_status
check_new(struct text_reader *reader, const struct word *word, const struct bound *bound)
{
    if (word->kind != WORD_NAME)
        return word_refuse(word, reader->error, "expected a name");
    if (is_taken(word) || word_is(word, "value"))
        return word_refuse(
            word, reader->error, "it is a word of the language; expected a name of your own");
    const struct name *const there = names_find(reader, word);
    if (there != NULL)
        return word_refuse(
            word, reader->error, "it is there already, in line %u; expected a new name",
            there->said.line);
    if (word->bytes > EXPRESSION_NAME_BYTES_MAX)
        return word_refuse(
            word, reader->error, "a name has at most %u characters", EXPRESSION_NAME_BYTES_MAX);
    if (*bound->count == bound->most)
        return word_refuse(
            word, reader->error, "there are at most %u %s", bound->most, bound->what);
    return SUMAC_OK;
}

enum sumac_status names_add(
    struct text_reader *reader, const struct word *word, enum name_kind kind, struct name **added)
{
    const struct bound bound = find_bound(reader, kind);

    assert(kind != NAME_VALUE);
    assert(reader->name_count < NAMES_MAX);
    const enum sumac_status status = check_new(reader, word, &bound);
    if (status != SUMAC_OK)
        return status;
    struct name *const name = &reader->names[reader->name_count++];
    *name = (struct name){
        .kind = kind, .node = EXPRESSION_NONE, .number = (*bound.count)++, .said = *word};
    *added = name;
    return SUMAC_OK;
}

enum sumac_status names_check_read(struct text_reader *reader, const struct name *name)
{
    assert(name->kind != NAME_HYPERPARAMETER);
    if (name->read || !name->assigned)
        return SUMAC_OK;
    return word_refuse(
        &name->said, reader->error,
        "nothing reads what it is assigned here; leave it out, or use it");
}

static enum sumac_status check_one(struct text_reader *reader, const struct name *name)
{
    switch (name->kind) {
    case NAME_HYPERPARAMETER:
        if (!name->read)
            return word_refuse(
                &name->said, reader->error, "nothing reads this hyperparameter; leave it out");
        break;
    case NAME_VALUE:
        if (!name->assigned)
            return word_refuse(
                &reader->words.at, reader->error,
                "value is never assigned; expected an assignment to it, such as value = value - g");
        break;
    case NAME_SLOT:
        if (!name->assigned)
            return word_refuse(
                &name->said, reader->error,
                "the slot is never assigned; a number does what it would do");
        break;
    case NAME_TEMPORARY:
        return names_check_read(reader, name);
    }
    return SUMAC_OK;
}

/* Does anything read what the slot holds from the push before? */
static bool is_slot_read(const struct expression *expression, uint32_t slot)
{
    for (uint32_t i = 0; i < expression->node_count; i++)
        if (expression->nodes[i].operation == EXPRESSION_SLOT && expression->nodes[i].in[0] == slot)
            return true;
    return false;
}

enum sumac_status names_check_all(struct text_reader *reader)
{
    for (uint32_t i = 0; i < reader->name_count; i++) {
        const struct name *const name = &reader->names[i];
        const enum sumac_status status = check_one(reader, name);
        if (status != SUMAC_OK)
            return status;
        if (name->kind == NAME_SLOT && !is_slot_read(reader->expression, name->number))
            return word_refuse(
                &name->said, reader->error,
                "nothing reads what the slot holds from the push before; a name that is no slot "
                "does what it does");
    }
    return SUMAC_OK;
}
