/* SPDX-License-Identifier: Apache-2.0 */
/* cases.c -- files of conformance cases, and what every runner does with them. */
#include "cases.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const file_keys[] = {"format", "about", "cases", NULL};
static const char *const shared_keys[] = {"id",     "op",       "expect", "error", "exact",
                                          "source", "decision", "note",   NULL};
static const char *const error_keys[] = {"code", "mentions", NULL};

static bool is_among(const char *key, const char *const *keys)
{
    for (; keys != NULL && *keys != NULL; keys++) {
        if (strcmp(*keys, key) == 0)
            return true;
    }
    return false;
}

json_t *cases_load(const char *path)
{
    json_error_t where;
    json_t *file = json_load_file(path, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &where);

    if (file == NULL) {
        fprintf(stderr, "%s:%d:%d: %s\n", path, where.line, where.column, where.text);
        return NULL;
    }
    struct cases_run run = {.case_id = path};
    if (cases_keys_known(&run, file, "the file", file_keys) &&
        json_integer_value(json_object_get(file, "format")) == 1 &&
        json_is_array(json_object_get(file, "cases")))
        return file;
    fprintf(
        stderr, "%s: not a file of cases of format 1%s%s\n", path, run.why[0] != '\0' ? ": " : "",
        run.why);
    json_decref(file);
    return NULL;
}

bool cases_fail(struct cases_run *run, const char *format, ...)
{
    if (run->why[0] != '\0')
        return false;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(run->why, sizeof run->why, format, arguments);
    va_end(arguments);
    return false;
}

enum cases_result cases_skip(struct cases_run *run, const char *why)
{
    (void)cases_fail(run, "%s", why);
    return CASES_SKIPPED;
}

bool cases_keys_known(
    struct cases_run *run, json_t *object, const char *what, const char *const *keys)
{
    const char *key = NULL;
    json_t *value = NULL;

    json_object_foreach(object, key, value)
    {
        if (!is_among(key, keys))
            return cases_fail(run, "%s has an unknown key \"%s\"", what, key);
    }
    return true;
}

static bool case_keys_known(struct cases_run *run, json_t *one, const char *const *keys)
{
    const char *key = NULL;
    json_t *value = NULL;

    json_object_foreach(one, key, value)
    {
        if (!is_among(key, shared_keys) && !is_among(key, keys))
            return cases_fail(run, "the case has an unknown key \"%s\"", key);
    }
    if ((json_object_get(one, "expect") == NULL) == (json_object_get(one, "error") == NULL))
        return cases_fail(run, "the case must have one of \"expect\" and \"error\"");
    return true;
}

static void tell(struct cases_run *run, enum cases_result result)
{
    static const char *const words[] = {
        [CASES_PASSED] = "PASS", [CASES_FAILED] = "FAIL", [CASES_SKIPPED] = "SKIP"};

    printf(
        "%s %s%s%s\n", words[result], run->case_id, result == CASES_PASSED ? "" : ": ",
        result == CASES_PASSED ? "" : run->why);
    run->passed += result == CASES_PASSED;
    run->failed += result == CASES_FAILED;
    run->skipped += result == CASES_SKIPPED;
}

static enum cases_result
run_one(struct cases_run *run, json_t *one, const struct cases_operation *operations)
{
    const char *op = json_string_value(json_object_get(one, "op"));

    if (op == NULL || json_string_value(json_object_get(one, "id")) == NULL) {
        (void)cases_fail(run, "the case lacks its \"id\" or its \"op\"");
        return CASES_FAILED;
    }
    while (operations->op != NULL && strcmp(op, operations->op) != 0)
        operations++;
    if (operations->op == NULL)
        return cases_skip(run, "its operation is not run by this program yet");
    return case_keys_known(run, one, operations->keys)
               ? operations->run_case(run, one, operations->context)
               : CASES_FAILED;
}

void cases_each(const json_t *file, struct cases_run *run, const struct cases_operation *operations)
{
    size_t i = 0;
    json_t *one = NULL;

    json_array_foreach(json_object_get(file, "cases"), i, one)
    {
        const char *id = json_string_value(json_object_get(one, "id"));
        run->case_id = id != NULL ? id : "without an id";
        run->why[0] = '\0';
        tell(run, run_one(run, one, operations));
    }
}

/* Does `text` contain `part`, whatever the case of its letters? */
static bool mentions(const char *text, const char *part)
{
    for (; *text != '\0' || *part == '\0'; text++) {
        size_t i = 0;
        while (part[i] != '\0' &&
               tolower((unsigned char)text[i]) == tolower((unsigned char)part[i]))
            i++;
        if (part[i] == '\0')
            return true;
    }
    return false;
}

bool cases_error_matches(
    struct cases_run *run, json_t *expected, enum sumac_status status, const char *text)
{
    if (!cases_keys_known(run, expected, "\"error\"", error_keys))
        return false;
    const char *code = json_string_value(json_object_get(expected, "code"));
    if (code == NULL || strcmp(code, sumac_status_name(status)) != 0)
        return cases_fail(
            run, "expected %s, got %s: %s", code != NULL ? code : "a code that it lacks",
            sumac_status_name(status), text);
    size_t i = 0;
    json_t *part = NULL;
    json_array_foreach(json_object_get(expected, "mentions"), i, part)
    {
        if (!json_is_string(part) || !mentions(text, json_string_value(part)))
            return cases_fail(
                run, "expected a message that mentions %s, got %s", json_string_value(part), text);
    }
    return true;
}

int cases_finish(const struct cases_run *run)
{
    if (run->passed + run->failed == 0)
        fprintf(stderr, "no case was run\n");
    printf("%zu passed, %zu failed, %zu skipped\n", run->passed, run->failed, run->skipped);
    return run->failed > 0 || run->passed == 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
