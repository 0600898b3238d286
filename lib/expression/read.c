/* SPDX-License-Identifier: Apache-2.0 */
/* read.c -- an expression's text becomes nodes, by the grammar of docs/EXPRESSIONS.md.
 *
 * A function for each rule of the grammar, which calls those of the rules that its own has. Only
 * parentheses, functions and signs come back to where they were, and each counts in `depth`.
 *
 * The first refusal counts. It ends the text, so every rule ends, and nodes that are made then are
 * EXPRESSION_NONE.
 */
#include <assert.h>
#include <string.h>

#include "decimal.h"
#include "error.h"
#include "expression.h"
#include "text.h"
#include "words.h"

enum name_kind { NAME_HYPERPARAMETER, NAME_VALUE, NAME_SLOT, NAME_TEMPORARY };

/* A name, and the node that it stands for where the reader has come to. */
struct name {
    enum name_kind kind;
    uint16_t node;
    uint32_t number;  /* which hyperparameter, slot or temporary */
    bool read;        /* since it was assigned */
    bool old_read;    /* before it was */
    bool assigned;    /* at all */
    struct word said; /* where it was declared, or assigned last */
};

#define NAMES_MAX                                                                                  \
    (EXPRESSION_HYPERPARAMETERS_MAX + EXPRESSION_SLOTS_MAX + EXPRESSION_TEMPORARIES_MAX + 1u)

/* What has been read of a text so far. */
struct text_reader {
    struct words words;
    struct expression *expression;
    struct name names[NAMES_MAX];
    uint32_t name_count, temporary_count, assignment_count, depth;
};

static const struct word *at(const struct text_reader *reader) { return &reader->words.at; }

static void step_on(struct text_reader *reader) { words_next(&reader->words); }

static bool is_at(const struct text_reader *reader, const char *text)
{
    return at(reader)->kind == WORD_SIGN && word_is(at(reader), text);
}

static void expect(struct text_reader *reader, const char *text, const char *where)
{
    if (is_at(reader, text))
        step_on(reader);
    else
        words_refuse(&reader->words, at(reader), "expected %s %s", text, where);
}

static void go_down(struct text_reader *reader)
{
    if (reader->depth == EXPRESSION_DEPTH_MAX)
        words_refuse(
            &reader->words, at(reader),
            "more than %u parentheses, functions and signs within each other",
            EXPRESSION_DEPTH_MAX);
    reader->depth++;
}

/* Equal operations on equal operands are one node. */
static uint16_t
add_node(struct text_reader *reader, const struct word *word, const struct expression_node *wanted)
{
    struct expression *const expression = reader->expression;
    uint32_t i = 0;

    _Static_assert(sizeof *wanted == 4 * sizeof(uint16_t), "a node is compared by its bytes");
    assert(expression->node_count <= EXPRESSION_NODES_MAX);
    while (i < expression->node_count && memcmp(&expression->nodes[i], wanted, sizeof *wanted) != 0)
        i++;
    if (i == EXPRESSION_NODES_MAX)
        words_refuse(
            &reader->words, word,
            "the text has more than %u different operations, numbers and names up to here",
            EXPRESSION_NODES_MAX);
    if (reader->words.failed)
        return EXPRESSION_NONE;
    if (i == expression->node_count)
        expression->nodes[expression->node_count++] = *wanted;
    return (uint16_t)i;
}

/* A leaf: which constant, hyperparameter or slot `number` says. */
static uint16_t
make_leaf(struct text_reader *reader, enum expression_operation operation, uint32_t number)
{
    const struct expression_node leaf = {.operation = (uint8_t)operation, .in = {(uint16_t)number}};

    assert(expression_operands(leaf.operation) == 0);
    return add_node(reader, at(reader), &leaf);
}

static uint16_t make_constant(struct text_reader *reader, double value)
{
    struct expression *const expression = reader->expression;
    uint32_t i = 0;

    while (i < expression->constant_count &&
           memcmp(&expression->constants[i], &value, sizeof value) != 0)
        i++;
    const uint16_t node = make_leaf(reader, EXPRESSION_CONSTANT, i);
    if (i == expression->constant_count && node != EXPRESSION_NONE) {
        assert(i < EXPRESSION_NODES_MAX);
        expression->constants[expression->constant_count++] = value;
    }
    return node;
}

/* The first operand of where is a comparison, and all others are numbers. */
static uint16_t make_node(
    struct text_reader *reader, const struct word *word, enum expression_operation operation,
    const uint16_t in[3])
{
    struct expression_node made = {
        .operation = (uint8_t)operation,
        .is_condition = operation >= EXPRESSION_LESS && operation <= EXPRESSION_NOT_EQUAL};

    for (uint32_t i = 0; i < expression_operands(made.operation) && !reader->words.failed; i++) {
        const bool wanted = operation == EXPRESSION_WHERE && i == 0;
        assert(in[i] < reader->expression->node_count);
        const bool given = reader->expression->nodes[in[i]].is_condition;
        if (wanted && !given)
            words_refuse(
                &reader->words, word,
                "its first argument is a number; expected a comparison, such as g > 0");
        if (!wanted && given)
            words_refuse(
                &reader->words, word,
                "it takes numbers, and is given a comparison; where(comparison, 1, 0) is a number");
        made.in[i] = in[i];
    }
    return add_node(reader, word, &made);
}

/* What is applied to arguments. clip(x, low, high) is min(max(x, low), high). */
static const struct known_function {
    const char *name;
    enum expression_operation operation;
    uint32_t arguments;
} calls[] = {
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

/* A name of the language, which can be nothing else. */
static bool is_taken(const struct word *word)
{
    return find_call(word) != NULL || word_is(word, "hyperparameters") || word_is(word, "slots") ||
           word_is(word, "value") || word_is(word, "g") || word_is(word, "step");
}

/* NULL: nothing has that name. */
static struct name *find_name(struct text_reader *reader, const struct word *word)
{
    assert(word->kind == WORD_NAME);
    for (uint32_t i = 0; i < reader->name_count; i++) {
        const struct word *const said = &reader->names[i].said;
        if (reader->names[i].kind == NAME_VALUE
                ? word_is(word, "value")
                : said->bytes == word->bytes && memcmp(said->text, word->text, word->bytes) == 0)
            return &reader->names[i];
    }
    return NULL;
}

static void check_new_name(struct text_reader *reader, const struct word *word)
{
    if (word->kind != WORD_NAME) {
        words_refuse(&reader->words, word, "expected a name");
        return;
    }
    const struct name *const there = find_name(reader, word);
    if (is_taken(word))
        words_refuse(
            &reader->words, word, "it is a word of the language; expected a name of your own");
    if (there != NULL)
        words_refuse(
            &reader->words, word, "it is there already, in line %u; expected a new name",
            there->said.line);
    if (word->bytes > EXPRESSION_NAME_BYTES_MAX)
        words_refuse(
            &reader->words, word, "a name has at most %u characters", EXPRESSION_NAME_BYTES_MAX);
}

struct name_bound {
    uint32_t *count, most;
    const char *what;
};

/* A new name, which stands for nothing yet; NULL: a refusal. */
static struct name *
add_name(struct text_reader *reader, const struct word *word, enum name_kind kind)
{
    struct expression *const expression = reader->expression;
    const struct name_bound bounds[] = {
        [NAME_HYPERPARAMETER] =
            {&expression->hyperparameter_count, EXPRESSION_HYPERPARAMETERS_MAX, "hyperparameters"},
        [NAME_SLOT] = {&expression->slot_count, EXPRESSION_SLOTS_MAX, "slots"},
        [NAME_TEMPORARY] = {&reader->temporary_count, EXPRESSION_TEMPORARIES_MAX, "temporaries"},
    };

    assert(kind != NAME_VALUE);
    check_new_name(reader, word);
    if (*bounds[kind].count == bounds[kind].most)
        words_refuse(
            &reader->words, word, "there are at most %u %s", bounds[kind].most, bounds[kind].what);
    if (reader->words.failed)
        return NULL;
    assert(reader->name_count < NAMES_MAX);
    struct name *const name = &reader->names[reader->name_count++];
    *name = (struct name){
        .kind = kind, .node = EXPRESSION_NONE, .number = (*bounds[kind].count)++, .said = *word};
    return name;
}

/* May it be assigned again? */
static void check_is_read(struct text_reader *reader, const struct name *name)
{
    assert(name->kind != NAME_HYPERPARAMETER);
    if (!name->read && name->assigned)
        words_refuse(
            &reader->words, &name->said,
            "nothing reads what it is assigned here; leave it out, or use it");
}

/* At the end of the text: what was said has been read, slots and value are assigned. */
static void check_name(struct text_reader *reader, const struct name *name)
{
    if (name->kind == NAME_TEMPORARY)
        check_is_read(reader, name);
    if (name->kind == NAME_HYPERPARAMETER && !name->read)
        words_refuse(
            &reader->words, &name->said, "nothing reads this hyperparameter; leave it out");
    if (name->kind == NAME_VALUE && !name->assigned)
        words_refuse(
            &reader->words, at(reader),
            "value is never assigned; expected an assignment to it, such as value = value - g");
    if (name->kind == NAME_SLOT && !name->assigned)
        words_refuse(
            &reader->words, &name->said,
            "the slot is never assigned; a number does what it would do");
    if (name->kind == NAME_SLOT && !name->old_read)
        words_refuse(
            &reader->words, &name->said,
            "nothing reads what the slot holds from the push before; a name that is no slot "
            "does what it does");
}

/* The rules, loosest first. */
enum level { LEVEL_COMPARISON, LEVEL_SUM, LEVEL_PRODUCT, LEVEL_UNARY };

static uint16_t read_level(struct text_reader *reader, enum level level);

static uint16_t read_expression(struct text_reader *reader)
{
    return read_level(reader, LEVEL_COMPARISON);
}

static uint16_t read_call(struct text_reader *reader, const struct known_function *call)
{
    const struct word word = *at(reader);
    uint16_t in[3] = {0};

    assert(call->arguments <= 3);
    step_on(reader);
    go_down(reader);
    expect(reader, "(", "and what the function is applied to");
    for (uint32_t i = 0; i < call->arguments; i++) {
        const bool last = i + 1 == call->arguments;
        in[i] = read_expression(reader);
        if (last && is_at(reader, ","))
            words_refuse(
                &reader->words, at(reader), "%s takes %u, and this is one more; expected )",
                call->name, call->arguments);
        if (!last && is_at(reader, ")"))
            words_refuse(
                &reader->words, at(reader), "%s takes %u, and there are %u; expected ,", call->name,
                call->arguments, i + 1);
        expect(reader, last ? ")" : ",", "here");
    }
    reader->depth--;
    const uint16_t node = make_node(reader, &word, call->operation, in);
    if (expression_operands((uint8_t)call->operation) == call->arguments)
        return node;
    return make_node(reader, &word, EXPRESSION_MIN, (const uint16_t[3]){node, in[2]});
}

/* The node that a name stands for: of what has not been assigned, a leaf. */
static uint16_t read_known(struct text_reader *reader, struct name *name)
{
    static const enum expression_operation leaves[] = {
        [NAME_HYPERPARAMETER] = EXPRESSION_HYPERPARAMETER,
        [NAME_VALUE] = EXPRESSION_VALUE,
        [NAME_SLOT] = EXPRESSION_SLOT};

    name->read = true;
    if (name->node == EXPRESSION_NONE) {
        assert(name->kind != NAME_TEMPORARY);
        name->node = make_leaf(reader, leaves[name->kind], name->number);
        name->old_read = true;
    }
    return name->node;
}

static uint16_t read_name(struct text_reader *reader)
{
    const bool is_step = word_is(at(reader), "step");
    const struct known_function *const call = find_call(at(reader));
    struct name *const name = find_name(reader, at(reader));
    uint16_t node;

    if (call != NULL)
        return read_call(reader, call);
    if (name != NULL)
        node = read_known(reader, name);
    else if (is_step || word_is(at(reader), "g"))
        node = make_leaf(reader, is_step ? EXPRESSION_STEP : EXPRESSION_GRADIENT, 0);
    else {
        words_refuse(
            &reader->words, at(reader),
            "nothing has this name here; expected a number, g, value, step, a function, or a "
            "hyperparameter, a slot or a name that is assigned above");
        return EXPRESSION_NONE;
    }
    reader->expression->counts_steps |= is_step;
    step_on(reader);
    return node;
}

static uint16_t read_unary(struct text_reader *reader)
{
    const struct word word = *at(reader);
    const bool negates = is_at(reader, "-");
    uint16_t node = EXPRESSION_NONE;

    if (word.kind == WORD_NAME)
        return read_name(reader);
    if (word.kind == WORD_NUMBER) {
        node = make_constant(reader, word.number);
        step_on(reader);
    } else if (negates || is_at(reader, "(")) {
        go_down(reader);
        step_on(reader);
        node = negates ? read_unary(reader) : read_expression(reader);
        reader->depth--;
        if (negates)
            return make_node(reader, &word, EXPRESSION_NEGATE, (const uint16_t[3]){node});
        expect(reader, ")", "here");
    } else if (word.kind == WORD_WRONG && *word.text >= '.' && *word.text <= '9')
        words_refuse(&reader->words, &word, "no number, or one beyond 19 digits or 1.8e308");
    else
        words_refuse(&reader->words, &word, "expected a number, a name, a function, - or ( here");
    return node;
}

/* a > b is b < a. */
static const struct sign {
    const char *text;
    enum level level;
    enum expression_operation operation;
    bool swapped;
} signs[] = {
    {"<", LEVEL_COMPARISON, EXPRESSION_LESS, false},
    {"<=", LEVEL_COMPARISON, EXPRESSION_LESS_EQUAL, false},
    {">", LEVEL_COMPARISON, EXPRESSION_LESS, true},
    {">=", LEVEL_COMPARISON, EXPRESSION_LESS_EQUAL, true},
    {"==", LEVEL_COMPARISON, EXPRESSION_EQUAL, false},
    {"!=", LEVEL_COMPARISON, EXPRESSION_NOT_EQUAL, false},
    {"+", LEVEL_SUM, EXPRESSION_ADD, false},
    {"-", LEVEL_SUM, EXPRESSION_SUBTRACT, false},
    {"*", LEVEL_PRODUCT, EXPRESSION_MULTIPLY, false},
    {"/", LEVEL_PRODUCT, EXPRESSION_DIVIDE, false},
};

static const struct sign *find_sign(const struct text_reader *reader, enum level level)
{
    for (uint32_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if (signs[i].level == level && is_at(reader, signs[i].text))
            return &signs[i];
    return NULL;
}

/* What has signs of that level between operands of the next one, from left to right. */
static uint16_t read_level(struct text_reader *reader, enum level level)
{
    if (level == LEVEL_UNARY)
        return read_unary(reader);
    uint16_t left = read_level(reader, level + 1);
    const struct sign *sign;
    while ((sign = find_sign(reader, level)) != NULL) {
        const struct word word = *at(reader);
        step_on(reader);
        const uint16_t right = read_level(reader, level + 1);
        if (level == LEVEL_COMPARISON && find_sign(reader, level) != NULL)
            words_refuse(
                &reader->words, at(reader),
                "a comparison is not compared again: where(0 < g, where(g < 1, a, b), b)");
        const uint16_t in[3] = {sign->swapped ? right : left, sign->swapped ? left : right};
        left = make_node(reader, &word, sign->operation, in);
    }
    return left;
}

/* NAME = EXPRESSION. The name is known from the next line on. */
static void read_assignment(struct text_reader *reader)
{
    const struct word word = *at(reader);

    if (word.kind != WORD_NAME) {
        words_refuse(&reader->words, &word, "expected an assignment, such as value = value - g");
        return;
    }
    if (reader->assignment_count++ == EXPRESSION_ASSIGNMENTS_MAX)
        words_refuse(
            &reader->words, &word, "there are at most %u assignments", EXPRESSION_ASSIGNMENTS_MAX);
    step_on(reader);
    if (is_at(reader, ":"))
        words_refuse(
            &reader->words, &word,
            "what is declared comes first: the hyperparameters, then the slots, each once");
    expect(reader, "=", "after what is assigned");
    const uint16_t node = read_expression(reader);
    struct name *target = find_name(reader, &word);
    if (target == NULL)
        target = add_name(reader, &word, NAME_TEMPORARY);
    else if (target->kind == NAME_HYPERPARAMETER)
        words_refuse(
            &reader->words, &word,
            "a hyperparameter is not assigned; expected value, a slot or a name of your own");
    else
        check_is_read(reader, target);
    if (reader->words.failed)
        return;
    if (target->kind != NAME_TEMPORARY && reader->expression->nodes[node].is_condition)
        words_refuse(
            &reader->words, &word,
            "it is a number, and is assigned a comparison; where(comparison, 1, 0) is a number");
    target->node = node;
    target->said = word;
    target->assigned = true;
    target->read = false;
}

/* "-0.5" */
static double read_number(struct text_reader *reader)
{
    const bool negative = is_at(reader, "-");

    if (negative)
        step_on(reader);
    const double number = at(reader)->number;
    if (at(reader)->kind != WORD_NUMBER)
        words_refuse(
            &reader->words, at(reader), "expected a number of at most %u digits that float64 holds",
            DECIMAL_DIGITS_MAX);
    step_on(reader);
    return negative ? -number : number;
}

/* A slot starts from a number, or from what a hyperparameter is when the variable is created. */
static void read_initial(struct text_reader *reader, uint32_t slot)
{
    struct expression *const expression = reader->expression;
    struct name *const from = at(reader)->kind == WORD_NAME ? find_name(reader, at(reader)) : NULL;

    expression->slot_initial_from[slot] = EXPRESSION_NONE;
    if (from == NULL || from->kind != NAME_HYPERPARAMETER) {
        expression->slot_initial[slot] = read_number(reader);
        return;
    }
    expression->slot_initial_from[slot] = (uint16_t)from->number;
    from->read = true;
    step_on(reader);
}

/* NAME = NUMBER */
static void read_declaration(struct text_reader *reader, enum name_kind kind)
{
    struct expression *const expression = reader->expression;
    const struct name *const name = add_name(reader, at(reader), kind);

    if (name == NULL)
        return;
    assert(name->said.bytes <= EXPRESSION_NAME_BYTES_MAX);
    memcpy(
        kind == NAME_SLOT ? expression->slot_names[name->number]
                          : expression->hyperparameter_names[name->number],
        name->said.text, name->said.bytes);
    step_on(reader);
    expect(reader, "=", "and the number that it starts from");
    if (kind == NAME_SLOT)
        read_initial(reader, name->number);
    else
        expression->defaults[name->number] = read_number(reader);
}

static void end_line(struct text_reader *reader)
{
    if (at(reader)->kind != WORD_END_OF_LINE && at(reader)->kind != WORD_END)
        words_refuse(&reader->words, at(reader), "expected an operator, or the end of the line");
    while (at(reader)->kind == WORD_END_OF_LINE)
        step_on(reader);
}

/* "slots: m = 0, v = 0"; a text need not have it. */
static void read_declarations(struct text_reader *reader, const char *title, enum name_kind kind)
{
    if (!word_is(at(reader), title))
        return;
    step_on(reader);
    expect(reader, ":", "after the title of the line");
    read_declaration(reader, kind);
    while (is_at(reader, ",")) {
        step_on(reader);
        read_declaration(reader, kind);
    }
    end_line(reader);
}

static void read_all(struct text_reader *reader)
{
    struct expression *const expression = reader->expression;

    while (at(reader)->kind == WORD_END_OF_LINE)
        step_on(reader);
    read_declarations(reader, "hyperparameters", NAME_HYPERPARAMETER);
    read_declarations(reader, "slots", NAME_SLOT);
    while (at(reader)->kind != WORD_END) {
        read_assignment(reader);
        end_line(reader);
    }
    for (uint32_t i = 0; i < reader->name_count; i++) {
        const struct name *const name = &reader->names[i];
        check_name(reader, name);
        if (name->kind == NAME_VALUE)
            expression->results[0] = name->node;
        if (name->kind == NAME_SLOT)
            expression->results[1 + name->number] = name->node;
    }
}

enum sumac_status expression_read(
    const char *text, size_t bytes, struct expression *expression, struct sumac_error *error)
{
    struct text_reader reader = {
        .expression = expression,
        .names = {{.kind = NAME_VALUE, .node = EXPRESSION_NONE}},
        .name_count = 1};

    assert(text != NULL && expression != NULL);
    if (bytes > EXPRESSION_TEXT_BYTES_MAX)
        return fail_invalid(
            error, SUMAC_REASON_BAD_EXPRESSION,
            "the text has %zu bytes; an expression has at most %u", bytes,
            EXPRESSION_TEXT_BYTES_MAX);
    if (!text_is_utf8(text, bytes))
        return fail_invalid(error, SUMAC_REASON_BAD_EXPRESSION, "the text is not UTF-8");
    memset(expression, 0, sizeof *expression);
    words_begin(&reader.words, text, bytes, error);
    read_all(&reader);
    if (reader.words.failed)
        return SUMAC_INVALID_ARGUMENT;
    assert(reader.depth == 0);
    assert(expression->node_count > 0);
    return SUMAC_OK;
}
