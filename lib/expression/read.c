/* SPDX-License-Identifier: Apache-2.0 */
/* read.c -- an expression's text becomes nodes, by the grammar of docs/EXPRESSIONS.md.
 *
 * A function for each rule of the grammar, which calls those of the rules that its own has. Only
 * parentheses, functions and signs come back to where they were, and each counts in `depth`.
 */
#include <assert.h>
#include <string.h>

#include "decimal.h"
#include "error.h"
#include "expression.h"
#include "nodes.h"
#include "text.h"

static enum sumac_status read_expression(struct text_reader *reader, uint16_t *node);

static const struct word *at(const struct text_reader *reader) { return &reader->words.at; }

static bool is_at(const struct text_reader *reader, const char *text)
{
    return at(reader)->kind == WORD_SIGN && word_is(at(reader), text);
}

static enum sumac_status expect(struct text_reader *reader, const char *text, const char *where)
{
    if (!is_at(reader, text))
        return word_refuse(at(reader), reader->error, "expected %s %s", text, where);
    words_next(&reader->words);
    return SUMAC_OK;
}

static enum sumac_status go_down(struct text_reader *reader)
{
    if (reader->depth == EXPRESSION_DEPTH_MAX)
        return word_refuse(
            at(reader), reader->error,
            "more than %u parentheses, functions and signs within each other",
            EXPRESSION_DEPTH_MAX);
    reader->depth++;
    return SUMAC_OK;
}

struct known_function {
    const char *name;
    enum expression_operation operation;
    uint32_t arguments;
};

/* clip(x, low, high) is min(max(x, low), high). */
static const struct known_function calls[] = {
    {"where", EXPRESSION_WHERE, 3}, {"min", EXPRESSION_MIN, 2},   {"max", EXPRESSION_MAX, 2},
    {"abs", EXPRESSION_ABS, 1},     {"sign", EXPRESSION_SIGN, 1}, {"sqrt", EXPRESSION_SQRT, 1},
    {"rsqrt", EXPRESSION_RSQRT, 1}, {"exp", EXPRESSION_EXP, 1},   {"log", EXPRESSION_LOG, 1},
    {"pow", EXPRESSION_POW, 2},     {"tanh", EXPRESSION_TANH, 1}, {"clip", EXPRESSION_MAX, 3},
};

static const struct known_function *find_call(const struct word *word)
{
    for (uint32_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (word_is(word, calls[i].name))
            return &calls[i];
    return NULL;
}

static enum sumac_status
read_arguments(struct text_reader *reader, const struct known_function *call, uint16_t *in)
{
    enum sumac_status status = expect(reader, "(", "and what the function is applied to");

    for (uint32_t i = 0; i < call->arguments && status == SUMAC_OK; i++) {
        const bool last = i + 1 == call->arguments;
        status = read_expression(reader, &in[i]);
        if (status != SUMAC_OK)
            return status;
        if (last && is_at(reader, ","))
            return word_refuse(
                at(reader), reader->error, "%s takes %u, and this is one more; expected )",
                call->name, call->arguments);
        if (!last && is_at(reader, ")"))
            return word_refuse(
                at(reader), reader->error, "%s takes %u, and there are %u; expected ,", call->name,
                call->arguments, i + 1);
        status = expect(reader, last ? ")" : ",", "here");
    }
    return status;
}

static enum sumac_status
read_call(struct text_reader *reader, const struct known_function *call, uint16_t *node)
{
    const struct word word = *at(reader);
    uint16_t in[3] = {EXPRESSION_NONE, EXPRESSION_NONE, EXPRESSION_NONE};

    assert(call->arguments <= 3);
    words_next(&reader->words);
    enum sumac_status status = go_down(reader);
    if (status == SUMAC_OK)
        status = read_arguments(reader, call, in);
    if (status != SUMAC_OK)
        return status;
    reader->depth--;
    status = nodes_make(reader, &word, call->operation, in, node);
    if (status != SUMAC_OK || nodes_operands((uint8_t)call->operation) == call->arguments)
        return status;
    const uint16_t clipped[3] = {*node, in[2], EXPRESSION_NONE};
    return nodes_make(reader, &word, EXPRESSION_MIN, clipped, node);
}

/* The node that a name stands for: of what has not been assigned, a leaf. */
static enum sumac_status read_known(struct text_reader *reader, struct name *name, uint16_t *node)
{
    static const enum expression_operation leaves[] = {
        [NAME_HYPERPARAMETER] = EXPRESSION_HYPERPARAMETER,
        [NAME_VALUE] = EXPRESSION_VALUE,
        [NAME_SLOT] = EXPRESSION_SLOT};

    name->read = true;
    if (name->node == EXPRESSION_NONE) {
        assert(name->kind != NAME_TEMPORARY);
        const enum sumac_status status =
            nodes_leaf(reader, at(reader), leaves[name->kind], (uint16_t)name->number, &name->node);
        if (status != SUMAC_OK)
            return status;
    }
    *node = name->node;
    words_next(&reader->words);
    return SUMAC_OK;
}

static enum sumac_status read_name(struct text_reader *reader, uint16_t *node)
{
    const bool is_step = word_is(at(reader), "step");
    const struct known_function *const call = find_call(at(reader));
    struct name *const name = names_find(reader, at(reader));

    if (call != NULL)
        return read_call(reader, call, node);
    if (name != NULL)
        return read_known(reader, name, node);
    if (!is_step && !word_is(at(reader), "g"))
        return word_refuse(
            at(reader), reader->error,
            "nothing has this name here; expected a number, g, value, step, a function, or a "
            "hyperparameter, a slot or a name that is assigned above");
    const enum sumac_status status =
        nodes_leaf(reader, at(reader), is_step ? EXPRESSION_STEP : EXPRESSION_GRADIENT, 0, node);
    reader->expression->counts_steps |= is_step;
    words_next(&reader->words);
    return status;
}

static enum sumac_status read_parentheses(struct text_reader *reader, uint16_t *node)
{
    enum sumac_status status = go_down(reader);

    if (status != SUMAC_OK)
        return status;
    words_next(&reader->words);
    status = read_expression(reader, node);
    reader->depth--;
    return status == SUMAC_OK ? expect(reader, ")", "here") : status;
}

static enum sumac_status read_unary(struct text_reader *reader, uint16_t *node)
{
    const struct word word = *at(reader);
    enum sumac_status status;

    if (word.kind == WORD_NUMBER) {
        status = nodes_constant(reader, &word, word.number, node);
        words_next(&reader->words);
        return status;
    }
    if (word.kind == WORD_NAME)
        return read_name(reader, node);
    if (is_at(reader, "("))
        return read_parentheses(reader, node);
    if (word.kind == WORD_WRONG && *word.text >= '.' && *word.text <= '9')
        return word_refuse(&word, reader->error, "no number, or one beyond 19 digits or 1.8e308");
    if (!is_at(reader, "-"))
        return word_refuse(
            &word, reader->error, "expected a number, a name, a function, - or ( here");
    status = go_down(reader);
    if (status != SUMAC_OK)
        return status;
    words_next(&reader->words);
    uint16_t in[3] = {EXPRESSION_NONE, EXPRESSION_NONE, EXPRESSION_NONE};
    status = read_unary(reader, &in[0]);
    reader->depth--;
    return status == SUMAC_OK ? nodes_make(reader, &word, EXPRESSION_NEGATE, in, node) : status;
}

static enum sumac_status read_product(struct text_reader *reader, uint16_t *node)
{
    enum sumac_status status = read_unary(reader, node);

    while (status == SUMAC_OK && (is_at(reader, "*") || is_at(reader, "/"))) {
        const struct word word = *at(reader);
        uint16_t in[3] = {*node, EXPRESSION_NONE, EXPRESSION_NONE};
        words_next(&reader->words);
        status = read_unary(reader, &in[1]);
        if (status == SUMAC_OK)
            status = nodes_make(
                reader, &word, word.text[0] == '*' ? EXPRESSION_MULTIPLY : EXPRESSION_DIVIDE, in,
                node);
    }
    return status;
}

static enum sumac_status read_sum(struct text_reader *reader, uint16_t *node)
{
    enum sumac_status status = read_product(reader, node);

    while (status == SUMAC_OK && (is_at(reader, "+") || is_at(reader, "-"))) {
        const struct word word = *at(reader);
        uint16_t in[3] = {*node, EXPRESSION_NONE, EXPRESSION_NONE};
        words_next(&reader->words);
        status = read_product(reader, &in[1]);
        if (status == SUMAC_OK)
            status = nodes_make(
                reader, &word, word.text[0] == '+' ? EXPRESSION_ADD : EXPRESSION_SUBTRACT, in,
                node);
    }
    return status;
}

/* a > b is b < a. */
static const struct comparison {
    const char *sign;
    enum expression_operation operation;
    bool swapped;
} comparisons[] = {
    {"<", EXPRESSION_LESS, false},   {"<=", EXPRESSION_LESS_EQUAL, false},
    {">", EXPRESSION_LESS, true},    {">=", EXPRESSION_LESS_EQUAL, true},
    {"==", EXPRESSION_EQUAL, false}, {"!=", EXPRESSION_NOT_EQUAL, false},
};

static const struct comparison *find_comparison(const struct text_reader *reader)
{
    for (uint32_t i = 0; i < sizeof comparisons / sizeof comparisons[0]; i++)
        if (is_at(reader, comparisons[i].sign))
            return &comparisons[i];
    return NULL;
}

static enum sumac_status read_expression(struct text_reader *reader, uint16_t *node)
{
    uint16_t sides[2];
    enum sumac_status status = read_sum(reader, &sides[0]);
    const struct comparison *const comparison = find_comparison(reader);
    const struct word word = *at(reader);

    *node = sides[0];
    if (status != SUMAC_OK || comparison == NULL)
        return status;
    words_next(&reader->words);
    status = read_sum(reader, &sides[1]);
    if (status != SUMAC_OK)
        return status;
    if (find_comparison(reader) != NULL)
        return word_refuse(
            at(reader), reader->error,
            "a comparison is not compared again: where(0 < g, where(g < 1, a, b), b)");
    const uint16_t in[3] = {
        sides[comparison->swapped ? 1 : 0], sides[comparison->swapped ? 0 : 1], EXPRESSION_NONE};
    return nodes_make(reader, &word, comparison->operation, in, node);
}

/* What `word` names, to be assigned. */
static enum sumac_status
read_target(struct text_reader *reader, const struct word *word, struct name **target)
{
    *target = names_find(reader, word);
    if (*target == NULL)
        return names_add(reader, word, NAME_TEMPORARY, target);
    if ((*target)->kind == NAME_HYPERPARAMETER)
        return word_refuse(
            word, reader->error,
            "a hyperparameter is not assigned; expected value, a slot or a name of your own");
    return names_check_read(reader, *target);
}

/* NAME = EXPRESSION. The name is known from the next line on. */
static enum sumac_status read_assignment(struct text_reader *reader)
{
    const struct word word = *at(reader);
    struct name *target = NULL;
    uint16_t node = EXPRESSION_NONE;

    if (word.kind != WORD_NAME)
        return word_refuse(
            &word, reader->error, "expected an assignment, such as value = value - g");
    if (reader->assignment_count++ == EXPRESSION_ASSIGNMENTS_MAX)
        return word_refuse(
            &word, reader->error, "there are at most %u assignments", EXPRESSION_ASSIGNMENTS_MAX);
    words_next(&reader->words);
    if (is_at(reader, ":"))
        return word_refuse(
            &word, reader->error,
            "what is declared comes first: the hyperparameters, then the slots, each once");
    enum sumac_status status = expect(reader, "=", "after what is assigned");
    if (status == SUMAC_OK)
        status = read_expression(reader, &node);
    if (status == SUMAC_OK)
        status = read_target(reader, &word, &target);
    if (status != SUMAC_OK)
        return status;
    if (target->kind != NAME_TEMPORARY && reader->expression->nodes[node].is_condition)
        return word_refuse(
            &word, reader->error,
            "it is a number, and is assigned a comparison; where(comparison, 1, 0) is a number");
    target->node = node;
    target->said = word;
    target->assigned = true;
    target->read = false;
    return SUMAC_OK;
}

/* "-0.5" */
static enum sumac_status read_number(struct text_reader *reader, double *number)
{
    const bool negative = is_at(reader, "-");

    if (negative)
        words_next(&reader->words);
    if (at(reader)->kind != WORD_NUMBER)
        return word_refuse(
            at(reader), reader->error, "expected a number of at most %u digits that float64 holds",
            DECIMAL_DIGITS_MAX);
    *number = negative ? -at(reader)->number : at(reader)->number;
    words_next(&reader->words);
    return SUMAC_OK;
}

/* A slot starts from a number, or from what a hyperparameter is when the variable is created. */
static enum sumac_status read_initial(struct text_reader *reader, uint32_t slot)
{
    struct expression *const expression = reader->expression;
    struct name *const from = at(reader)->kind == WORD_NAME ? names_find(reader, at(reader)) : NULL;

    expression->slot_initial_from[slot] = EXPRESSION_NONE;
    if (from == NULL || from->kind != NAME_HYPERPARAMETER)
        return read_number(reader, &expression->slot_initial[slot]);
    expression->slot_initial_from[slot] = (uint16_t)from->number;
    from->read = true;
    words_next(&reader->words);
    return SUMAC_OK;
}

static void copy_name(const struct name *name, char *text)
{
    assert(name->said.bytes <= EXPRESSION_NAME_BYTES_MAX);
    memcpy(text, name->said.text, name->said.bytes);
    text[name->said.bytes] = '\0';
}

/* NAME = NUMBER */
static enum sumac_status read_declaration(struct text_reader *reader, enum name_kind kind)
{
    struct expression *const expression = reader->expression;
    struct name *name = NULL;

    enum sumac_status status = names_add(reader, at(reader), kind, &name);
    if (status != SUMAC_OK)
        return status;
    words_next(&reader->words);
    status = expect(reader, "=", "and the number that it starts from");
    if (status != SUMAC_OK)
        return status;
    if (kind == NAME_SLOT) {
        copy_name(name, expression->slot_names[name->number]);
        return read_initial(reader, name->number);
    }
    copy_name(name, expression->hyperparameter_names[name->number]);
    return read_number(reader, &expression->defaults[name->number]);
}

static enum sumac_status end_line(struct text_reader *reader)
{
    if (at(reader)->kind != WORD_END_OF_LINE && at(reader)->kind != WORD_END)
        return word_refuse(
            at(reader), reader->error, "expected an operator, or the end of the line");
    while (at(reader)->kind == WORD_END_OF_LINE)
        words_next(&reader->words);
    return SUMAC_OK;
}

/* "slots: m = 0, v = 0"; a text need not have it. */
static enum sumac_status
read_declarations(struct text_reader *reader, const char *title, enum name_kind kind)
{
    if (!word_is(at(reader), title))
        return SUMAC_OK;
    words_next(&reader->words);
    enum sumac_status status = expect(reader, ":", "after the title of the line");
    for (bool more = true; more && status == SUMAC_OK;) {
        status = read_declaration(reader, kind);
        more = is_at(reader, ",");
        if (more)
            words_next(&reader->words);
    }
    return status == SUMAC_OK ? end_line(reader) : status;
}

static enum sumac_status read_all(struct text_reader *reader)
{
    while (at(reader)->kind == WORD_END_OF_LINE)
        words_next(&reader->words);
    enum sumac_status status = read_declarations(reader, "hyperparameters", NAME_HYPERPARAMETER);
    if (status == SUMAC_OK)
        status = read_declarations(reader, "slots", NAME_SLOT);
    while (status == SUMAC_OK && at(reader)->kind != WORD_END) {
        status = read_assignment(reader);
        if (status == SUMAC_OK)
            status = end_line(reader);
    }
    return status == SUMAC_OK ? names_check_all(reader) : status;
}

static uint16_t result_of(const struct text_reader *reader, enum name_kind kind, uint32_t number)
{
    for (uint32_t i = 0; i < reader->name_count; i++)
        if (reader->names[i].kind == kind && reader->names[i].number == number)
            return reader->names[i].node;
    assert(false); /* value and the slots have names */
    return EXPRESSION_NONE;
}

enum sumac_status expression_read(
    const char *text, size_t bytes, struct expression *expression, struct sumac_error *error)
{
    struct text_reader reader = {.expression = expression, .error = error, .name_count = 1};

    assert(text != NULL && expression != NULL);
    if (bytes > EXPRESSION_TEXT_BYTES_MAX)
        return fail_invalid(
            error, SUMAC_REASON_BAD_EXPRESSION,
            "the text has %zu bytes; an expression has at most %u", bytes,
            EXPRESSION_TEXT_BYTES_MAX);
    if (!text_is_utf8(text, bytes))
        return fail_invalid(error, SUMAC_REASON_BAD_EXPRESSION, "the text is not UTF-8");
    memset(expression, 0, sizeof *expression);
    reader.names[0] = (struct name){.kind = NAME_VALUE, .node = EXPRESSION_NONE};
    words_begin(&reader.words, text, bytes);
    const enum sumac_status status = read_all(&reader);
    if (status != SUMAC_OK)
        return status;
    assert(reader.depth == 0);
    assert(expression->node_count > 0);
    expression->results[0] = result_of(&reader, NAME_VALUE, 0);
    for (uint32_t i = 0; i < expression->slot_count; i++)
        expression->results[1 + i] = result_of(&reader, NAME_SLOT, i);
    return SUMAC_OK;
}
