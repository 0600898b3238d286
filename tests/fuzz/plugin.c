/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c -- any table of a plug-in, and anything that is said of one: refused in one sentence of
 * UTF-8, or a row that is run over guarded memory, and is the same when it has been said.
 *
 * The first byte says which: even, a table; odd, a KnownFunction. The rest are choices.
 */
#include <math.h>
#include <string.h>

#include "described.h"
#include "fuzz.h"
#include "input.h"
#include "plugged.h"
#include "text.h"

#define COUNT 600u /* more than a tile */
#define GUARD 0x5a5a5a5a5a5a5a5au
#define TEXT_BYTES 600u
#define LISTED_MAX 20u

static const double numbers[] = {0,     1,    -1,   0.5,   2,        -0.0,      1e300,      -1e300,
                                 1e-40, 3e38, 4e38, 65536, HUGE_VAL, -HUGE_VAL, (double)NAN};

static double number(struct input *input)
{
    return numbers[below(input, sizeof numbers / sizeof *numbers)];
}

/* One of the usual names, or any bytes. */
static const char *text(struct input *input, char *made)
{
    static const char *const usual[] = {"a",    "learning_rate", "beta_1", "clip_value", "m", "sgd",
                                        "mine", "other/one-2.0", "",       "two words",  "é", "\n"};
    const uint32_t choice = below(input, 16);
    size_t bytes = 0;

    if (choice < sizeof usual / sizeof *usual)
        return usual[choice];
    if (choice == 15)
        return NULL;
    const size_t bytes_max = choice == 14 ? 3u * next(input) % TEXT_BYTES : below(input, 12);
    for (; bytes < bytes_max; bytes++)
        made[bytes] = input->left > 0 ? (char)next(input) : 'x';
    made[bytes] = '\0';
    return made;
}

struct texts {
    char made[2 + 2 * LISTED_MAX + 2 * LISTED_MAX][TEXT_BYTES];
    uint32_t count;
};

static const char *new_text(struct input *input, struct texts *texts)
{
    MUST(texts->count < sizeof texts->made / sizeof *texts->made);
    return text(input, texts->made[texts->count++]);
}

static void loop(const struct sumac_plugin_tile *tile)
{
    const size_t bytes =
        tile->count *
        (tile->dtype == SUMAC_FLOAT64 || tile->dtype == SUMAC_INT64 || tile->dtype == SUMAC_UINT64
             ? 8
         : tile->dtype == SUMAC_FLOAT32 ? 4
                                        : 1);

    MUST(tile->dtype != SUMAC_FLOAT16 && tile->dtype != SUMAC_BFLOAT16);
    memmove(tile->value_out, tile->gradient, bytes);
    for (int i = 0; i < 3 && tile->slot_out[i] != NULL; i++)
        memmove(tile->slot_out[i], tile->value_in, bytes);
}

struct elements {
    uint64_t before;
    _Alignas(64) uint8_t data[COUNT * sizeof(double)];
    uint64_t after;
};

static void run(const struct update_function *function, struct input *input)
{
    static struct elements value, slots[3], gradient;
    struct update_hyperparameters merged;
    struct update_slice slice = {.function = function, .count = 1 + 3u * next(input) % COUNT};

    MUST(update_hyperparameters_read(function, NULL, NULL, &merged, NULL) == SUMAC_OK);
    for (uint32_t dtype = 1; dtype <= SUMAC_FLOAT64; dtype++) {
        if ((function->dtypes >> dtype & 1u) == 0 ||
            update_hyperparameters_check(function, (enum sumac_dtype)dtype, &merged, NULL) !=
                SUMAC_OK)
            continue;
        struct elements *const all[] = {&value, &slots[0], &slots[1], &slots[2], &gradient};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            all[i]->before = all[i]->after = GUARD;
        slice.dtype = (enum sumac_dtype)dtype;
        slice.value_in = slice.value_out = value.data;
        slice.gradient = gradient.data;
        for (uint32_t i = 0; i < function->slot_count; i++) {
            slice.slot_in[i] = slice.slot_out[i] = slots[i].data;
            update_fill_slot(function, i, slice.dtype, &merged, slice.count, slots[i].data);
        }
        update_prepare(function, slice.dtype, &merged, 1, &slice);
        update_run(&slice);
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            MUST(all[i]->before == GUARD && all[i]->after == GUARD);
    }
}

static void check_refusal(enum sumac_status status, const struct sumac_error *error)
{
    MUST(status == SUMAC_INVALID_ARGUMENT || status == SUMAC_FAILED_PRECONDITION);
    MUST(error->text[0] != '\0' && text_is_utf8(error->text, strlen(error->text)));
}

/* Said and read again, it is the same. */
static void say(const struct update_function *function)
{
    static struct update_plugged again;
    struct sumac_error error = {.text = ""};
    struct arena arena;

    arena_init(&arena, &memory_heap, 1u << 20);
    const wire_known_function *const said = update_describe(function, &arena);
    MUST(said != NULL);
    MUST(update_read_described(said, &again, &error) == SUMAC_OK);
    MUST(update_digest(&again.function) == update_digest(function));
    arena_deinit(&arena);
}

static void try_table(struct input *input)
{
    static struct update_plugged plugged;
    static struct texts texts;
    struct sumac_plugin_hyperparameter takes[LISTED_MAX];
    struct sumac_plugin_slot keeps[LISTED_MAX];
    struct sumac_error error = {.text = ""};

    texts.count = 0;
    for (uint32_t i = 0; i < LISTED_MAX; i++) {
        takes[i] = (struct sumac_plugin_hyperparameter){
            .name = new_text(input, &texts),
            .default_value = number(input),
            .least = number(input),
            .most = number(input),
            .flags = next(input) % 9};
        keeps[i] = (struct sumac_plugin_slot){
            .name = new_text(input, &texts),
            .initial = number(input),
            .initial_from = sometimes(input) ? new_text(input, &texts) : NULL};
        if (input->left == 0)
            break;
    }
    const uint32_t hyperparameter_count = below(input, 18), slot_count = below(input, 5);
    const struct sumac_plugin_function given = {
        .name = sometimes(input) ? new_text(input, &texts) : "mine",
        .rule = sometimes(input) ? new_text(input, &texts) : "a rule",
        .hyperparameters = sometimes(input) ? NULL : takes,
        .hyperparameter_count = hyperparameter_count,
        .slots = sometimes(input) ? NULL : keeps,
        .slot_count = slot_count,
        .dtypes = (uint32_t)next(input) << (next(input) % 16),
        .repeats = (enum sumac_plugin_repeats)below(input, 4),
        .counts_steps = sometimes(input),
        .loop = loop};
    const enum sumac_status status =
        update_plug(UPDATE_PLUGGED_FIRST, "lib 1", &given, &plugged, &error);
    if (status != SUMAC_OK) {
        check_refusal(status, &error);
        return;
    }
    run(&plugged.function, input);
    say(&plugged.function);
}

static char *said_text(struct input *input, struct texts *texts)
{
    static char empty[] = "";
    const char *const made = new_text(input, texts);

    return made == NULL ? empty : (char *)(uintptr_t)made;
}

/* A text of a message is never NULL; numbers and counts are whatever somebody likes. */
static void try_message(struct input *input)
{
    static struct update_plugged plugged;
    static struct texts texts;
    wire_known_hyperparameter takes[LISTED_MAX], *take[LISTED_MAX];
    wire_known_slot keeps[LISTED_MAX], *keep[LISTED_MAX];
    Sumac__V1__DataType dtypes[LISTED_MAX];
    wire_known_function said = WIRE_KNOWN_FUNCTION_INIT;
    struct sumac_error error = {.text = ""};

    texts.count = 0;
    said.number = UPDATE_PLUGGED_FIRST + next(input) - (sometimes(input) ? 200 : 0);
    said.name = sometimes(input) ? said_text(input, &texts) : (char[]){"mine"};
    said.rule = sometimes(input) ? said_text(input, &texts) : (char[]){"a rule"};
    said.plugin = sometimes(input) ? (char[]){""} : (char[]){"lib 1"};
    said.repeats = (Sumac__V1__KnownFunction__Repeats)below(input, 4);
    said.n_hyperparameters = below(input, LISTED_MAX);
    said.n_slots = below(input, 5);
    said.n_data_types = below(input, LISTED_MAX);
    said.hyperparameters = take;
    said.slots = keep;
    said.data_types = dtypes;
    for (size_t i = 0; i < said.n_hyperparameters; i++) {
        take[i] = &takes[i];
        takes[i] = (wire_known_hyperparameter)WIRE_KNOWN_HYPERPARAMETER_INIT;
        takes[i].number = next(input);
        takes[i].name = said_text(input, &texts);
        takes[i].default_value = number(input);
        takes[i].least = number(input);
        takes[i].most = number(input);
        takes[i].above_least = sometimes(input);
        takes[i].below_most = sometimes(input);
        takes[i].whole = sometimes(input);
    }
    for (size_t i = 0; i < said.n_slots; i++) {
        keep[i] = &keeps[i];
        keeps[i] = (wire_known_slot)WIRE_KNOWN_SLOT_INIT;
        keeps[i].name = said_text(input, &texts);
        keeps[i].initial = number(input);
        keeps[i].initial_from = sometimes(input) ? next(input) : 0;
    }
    for (size_t i = 0; i < said.n_data_types; i++)
        dtypes[i] = (Sumac__V1__DataType)((int)next(input) - 8);
    const enum sumac_status status = update_read_described(&said, &plugged, &error);
    if (status != SUMAC_OK)
        check_refusal(status, &error);
    else
        say(&plugged.function);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct input input = {data, bytes};

    if (next(&input) % 2 == 0)
        try_table(&input);
    else
        try_message(&input);
    return 0;
}
