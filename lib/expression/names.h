/* SPDX-License-Identifier: Apache-2.0 */
/* names.h -- what the names of an expression stand for, word after word. */
#pragma once

#include "expression.h"
#include "words.h"

enum name_kind { NAME_HYPERPARAMETER, NAME_VALUE, NAME_SLOT, NAME_TEMPORARY };

/* A name, and the node that it stands for where the reader has come to. */
struct name {
    enum name_kind kind;
    uint16_t node;
    uint32_t number;  /* which hyperparameter, slot or temporary */
    bool read;        /* since it was assigned */
    bool assigned;    /* at all */
    struct word said; /* where it was declared, or assigned last */
};

#define NAMES_MAX                                                                                  \
    (EXPRESSION_HYPERPARAMETERS_MAX + EXPRESSION_SLOTS_MAX + EXPRESSION_TEMPORARIES_MAX + 1u)

/* What has been read of a text so far. */
struct text_reader {
    struct words words;
    struct expression *expression;
    struct sumac_error *error;
    struct name names[NAMES_MAX];
    uint32_t name_count, temporary_count, assignment_count, depth;
};

/* NULL: nothing has that name. */
struct name *names_find(struct text_reader *reader, const struct word *word);

/* A new one, which stands for nothing yet. Fails  INVALID_ARGUMENT: it is a word of the language,
 * it is there already, it is too long, or there are as many as there may be. */
enum sumac_status names_add(
    struct text_reader *reader, const struct word *word, enum name_kind kind, struct name **added);

/* May it be assigned again? Fails  INVALID_ARGUMENT: nobody has read what it was assigned. */
enum sumac_status names_check_read(struct text_reader *reader, const struct name *name);

/* At the end of the text: what was said has been read, slots and value are assigned. */
enum sumac_status names_check_all(struct text_reader *reader);
