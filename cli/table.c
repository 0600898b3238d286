/* SPDX-License-Identifier: Apache-2.0 */
/* table.c -- columns as wide as their widest cell. Widths count UTF-8 characters, not bytes. */
#include "table.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "text.h"

#define GAP 2 /* blanks between columns */

/* ---- cells */

/* The next cell, zeroed. */
static struct table_cell *grow(struct table *table)
{
    if (table->cell_count == table->cell_capacity) {
        table->cell_capacity = table->cell_capacity * 2 + 64;
        table->cells = cli_need(realloc(table->cells, table->cell_capacity * sizeof *table->cells));
    }
    table->cells[table->cell_count] = (struct table_cell){0};
    return &table->cells[table->cell_count++];
}

static void __attribute__((format(printf, 3, 0)))
add(struct table *table, bool goes_on, const char *format, va_list values)
{
    struct table_cell *const cell = grow(table);
    va_list again;

    va_copy(again, values);
    const size_t bytes = text_print_bytes(format, values) + 1;
    cell->text = cli_need(malloc(bytes));
    cell->goes_on = goes_on;
    (void)text_print_line_values(cell->text, bytes, format, again);
    va_end(again);
}

void table_add(struct table *table, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    add(table, false, format, values);
    va_end(values);
}

void table_add_rest(struct table *table, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    add(table, true, format, values);
    va_end(values);
    while (table->cell_count % table->column_count != 0)
        (void)grow(table);
}

void table_deinit(struct table *table)
{
    for (size_t i = 0; i < table->cell_count; i++)
        free(table->cells[i].text);
    free(table->cells);
    table->cells = NULL;
    table->cell_count = table->cell_capacity = 0;
}

/* ---- widths */

/* Which columns are shown, and how wide they are. */
struct table_layout {
    size_t widths[TABLE_COLUMNS_MAX];
    bool hidden[TABLE_COLUMNS_MAX];
};

size_t table_characters(const char *text)
{
    size_t count = 0;

    for (; *text != '\0'; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

static const char *title(const struct table *table, size_t column)
{
    const char *text = table->columns[column].title;

    return text + (text[0] == '>');
}

static bool same_group(const struct table *table, size_t one, size_t other)
{
    const char *a = table->columns[one].group, *b = table->columns[other].group;

    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

/* The next column that is shown, or the number of columns. */
static size_t
next_shown(const struct table *table, const struct table_layout *layout, size_t column)
{
    while (column < table->column_count && layout->hidden[column])
        column++;
    return column;
}

/* The width of the group that begins with `column`; *next is the first shown column behind it. */
static size_t measure_group(
    const struct table *table, const struct table_layout *layout, size_t column, size_t *next)
{
    size_t width = layout->widths[column];
    size_t i = next_shown(table, layout, column + 1);

    for (; i < table->column_count && same_group(table, column, i);
         i = next_shown(table, layout, i + 1))
        width += GAP + layout->widths[i];
    *next = i;
    return width;
}

static void measure_cells(const struct table *table, struct table_layout *layout)
{
    for (size_t i = 0; i < table->column_count; i++)
        layout->widths[i] = table_characters(title(table, i));
    for (size_t i = 0; i < table->cell_count; i++) {
        const struct table_cell *cell = &table->cells[i];
        const size_t wide = cell->text == NULL || cell->goes_on ? 0 : table_characters(cell->text);
        if (wide > layout->widths[i % table->column_count])
            layout->widths[i % table->column_count] = wide;
    }
}

static size_t line_width(const struct table *table, const struct table_layout *layout)
{
    size_t width = 0;

    for (size_t i = next_shown(table, layout, 0); i < table->column_count;
         i = next_shown(table, layout, i + 1))
        width += (width > 0 ? GAP : 0) + layout->widths[i];
    return width;
}

/* Hide the columns that can best be spared, all of one number at once. False: none is left. */
static bool spare_some(const struct table *table, struct table_layout *layout)
{
    uint32_t most = 0;

    for (size_t i = 0; i < table->column_count; i++)
        if (!layout->hidden[i] && table->columns[i].spare > most)
            most = table->columns[i].spare;
    for (size_t i = 0; most > 0 && i < table->column_count; i++)
        layout->hidden[i] = layout->hidden[i] || table->columns[i].spare == most;
    return most > 0;
}

/* A group that is narrower than its name makes its first column wider. */
static void make_room_for_names(const struct table *table, struct table_layout *layout)
{
    size_t next = 0;

    for (size_t i = next_shown(table, layout, 0); i < table->column_count; i = next) {
        const size_t width = measure_group(table, layout, i, &next);
        const size_t named =
            table->columns[i].group != NULL ? table_characters(table->columns[i].group) : 0;
        if (named > width)
            layout->widths[i] += named - width;
    }
}

static void lay_out(const struct table *table, uint32_t width, struct table_layout *layout)
{
    *layout = (struct table_layout){0};
    measure_cells(table, layout);
    do
        make_room_for_names(table, layout);
    while (width > 0 && line_width(table, layout) > width && spare_some(table, layout));
}

/* ---- lines */

static void print_times(const char *text, size_t times, FILE *file)
{
    while (times-- > 0)
        fputs(text, file);
}

/* "── push ──", as wide as what is below it; where that is too narrow for lines, the name alone in
 * its middle. Returns the blanks that are left to be printed. */
static size_t print_group(const char *name, size_t width, FILE *file)
{
    const size_t letters = table_characters(name);
    const size_t left = (width - letters) / 2, right = width - letters - left;

    if (left < 2) {
        fprintf(file, "%*s%s", (int)left, "", name);
        return right;
    }
    print_times("─", left - 1, file);
    fprintf(file, " %s ", name);
    print_times("─", right - 1, file);
    return 0;
}

static void print_groups(const struct table *table, const struct table_layout *layout, FILE *file)
{
    size_t blanks = 0, next = 0;
    bool any = false;

    for (size_t i = next_shown(table, layout, 0); i < table->column_count; i = next) {
        const size_t width = measure_group(table, layout, i, &next);
        const char *name = table->columns[i].group;
        if (name != NULL) {
            print_times(" ", blanks, file);
            blanks = print_group(name, width, file);
            any = true;
        } else {
            blanks += width;
        }
        blanks += GAP;
    }
    if (any)
        fputc('\n', file);
}

static void print_cell(
    const struct table *table, const struct table_layout *layout, size_t column, const char *text,
    FILE *file)
{
    const bool right = table->columns[column].title[0] == '>';
    const bool last = next_shown(table, layout, column + 1) == table->column_count;
    const int padding = (int)(layout->widths[column] - table_characters(text));

    if (right)
        fprintf(file, "%*s%s", padding, "", text);
    else
        fprintf(file, "%s%*s", text, last ? 0 : padding, "");
    fprintf(file, "%*s", last ? 0 : GAP, "");
}

static void print_row(
    const struct table *table, const struct table_layout *layout, const struct table_cell *cells,
    FILE *file)
{
    for (size_t i = 0; i < table->column_count; i++) {
        const bool cut = cells[i].text != NULL && cells[i].goes_on;
        if (cut)
            fputs(cells[i].text, file);
        if (cut)
            break;
        if (!layout->hidden[i])
            print_cell(table, layout, i, cells[i].text, file);
    }
    fputc('\n', file);
}

static void print_rows(
    const struct table *table, const struct table_layout *layout, size_t from, size_t to,
    FILE *file)
{
    for (size_t row = from; row < to; row++)
        print_row(table, layout, &table->cells[row * table->column_count], file);
}

bool table_print(const struct table *table, uint32_t width, FILE *file)
{
    struct table_layout layout;
    const size_t rows = table->cell_count / table->column_count;
    const bool whole = table->lines_max == 0 || rows <= table->lines_max;
    const size_t shown = whole ? rows : table->lines_max - 1, first = shown - shown / 2;

    assert(table->column_count <= TABLE_COLUMNS_MAX);
    lay_out(table, width, &layout);
    print_groups(table, &layout, file);
    for (size_t i = 0; i < table->column_count; i++)
        if (!layout.hidden[i])
            print_cell(table, &layout, i, title(table, i), file);
    fputc('\n', file);
    print_rows(table, &layout, 0, first, file);
    if (!whole)
        fprintf(file, "… %zu more …\n", rows - shown);
    print_rows(table, &layout, rows - shown / 2, rows, file);
    return fflush(file) == 0 && ferror(file) == 0;
}

/* ---- figures */

static double scale(double bytes, size_t unit_max, size_t *unit)
{
    for (*unit = 0; bytes >= 1024 && *unit < unit_max; (*unit)++)
        bytes /= 1024;
    return bytes;
}

const char *table_bytes(double bytes, char *text, size_t text_bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;

    bytes = scale(bytes, 4, &unit);
    (void)text_print(text, text_bytes, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
    return text;
}

const char *table_size(double bytes, char *text, size_t text_bytes)
{
    static const char *const units[] = {"", "K", "M", "G", "T"};
    size_t unit = 0;

    bytes = scale(bytes, 4, &unit);
    const int decimals = unit == 0 || bytes >= 99.95 ? 0 : 1;
    (void)text_print(text, text_bytes, "%.*f%s", decimals, bytes, units[unit]);
    return text;
}

const char *table_duration(double us, char *text, size_t text_bytes)
{
    (void)text_print(text, text_bytes, "%s", text_time_us((uint64_t)(us + 0.5)).text);
    return text;
}

const char *table_rate(double per_second, char *text, size_t text_bytes)
{
    const int decimals = per_second >= 9.95 || per_second <= 0 ? 0 : per_second >= 0.995 ? 1 : 2;

    (void)text_print(text, text_bytes, "%.*f", decimals, per_second);
    return text;
}
