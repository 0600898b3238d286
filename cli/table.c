/* SPDX-License-Identifier: Apache-2.0 */
/* table.c -- columns as wide as their widest cell. Widths count UTF-8 characters, not bytes. */
#include "table.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
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

void table_add_number(struct table *table, bool known, uint64_t number)
{
    if (known)
        table_add(table, "%" PRIu64, number);
    else
        table_add(table, "-");
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

/* ---- widths */

/* The columns that are shown, from left to right. */
struct table_layout {
    size_t count;
    struct {
        const struct table_column *column;
        size_t width;
    } shown[TABLE_COLUMNS_MAX];
};

size_t table_characters(const char *text)
{
    size_t count = 0;

    for (; *text != '\0'; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

static const char *title(const struct table_column *column)
{
    return column->title + (column->title[0] == '>');
}

static bool same_group(const struct table_column *one, const struct table_column *other)
{
    return one->group != NULL && other->group != NULL && strcmp(one->group, other->group) == 0;
}

/* The width of the group that begins with `first`; *next is the first one behind it. */
static size_t measure_group(const struct table_layout *layout, size_t first, size_t *next)
{
    size_t width = layout->shown[first].width, i = first + 1;

    for (; i < layout->count && same_group(layout->shown[first].column, layout->shown[i].column);
         i++)
        width += GAP + layout->shown[i].width;
    *next = i;
    return width;
}

/* The widest of a column's cells, and its title. */
static size_t measure_column(const struct table *table, size_t column)
{
    size_t width = table_characters(title(&table->columns[column]));

    for (size_t i = column; i < table->cell_count; i += table->column_count) {
        const struct table_cell *cell = &table->cells[i];
        const size_t wide = cell->text == NULL || cell->goes_on ? 0 : table_characters(cell->text);
        width = wide > width ? wide : width;
    }
    return width;
}

/* A group that is narrower than its name makes its first column wider. Returns a line's width. */
static size_t make_room_for_names(struct table_layout *layout)
{
    size_t next = 0, line = 0;

    for (size_t i = 0; i < layout->count; i = next) {
        const char *const group = layout->shown[i].column->group;
        const size_t width = measure_group(layout, i, &next);
        const size_t named = group != NULL ? table_characters(group) : 0;
        if (named > width)
            layout->shown[i].width += named - width;
        line += (i > 0 ? GAP : 0) + (named > width ? named : width);
    }
    return line;
}

/* All columns; then without those that can best be spared, all of one number at once. */
static void lay_out(const struct table *table, uint32_t width, struct table_layout *layout)
{
    uint32_t most = UINT32_MAX, limit;

    do {
        limit = most;
        most = 0;
        layout->count = 0;
        for (size_t i = 0; i < table->column_count; i++) {
            const struct table_column *const column = &table->columns[i];
            if (column->spare >= limit)
                continue;
            most = column->spare > most ? column->spare : most;
            layout->shown[layout->count].column = column;
            layout->shown[layout->count++].width = measure_column(table, i);
        }
    } while (make_room_for_names(layout) > width && width > 0 && most > 0);
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

static void print_groups(const struct table_layout *layout, FILE *file)
{
    size_t blanks = 0, next = 0;
    bool any = false;

    for (size_t i = 0; i < layout->count; i = next) {
        const char *const name = layout->shown[i].column->group;
        const size_t width = measure_group(layout, i, &next);
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

/* The i-th that is shown. */
static void print_cell(const struct table_layout *layout, size_t i, const char *text, FILE *file)
{
    const bool last = i + 1 == layout->count;
    const int padding = (int)(layout->shown[i].width - table_characters(text));

    if (layout->shown[i].column->title[0] == '>')
        fprintf(file, "%*s%s", padding, "", text);
    else
        fprintf(file, "%s%*s", text, last ? 0 : padding, "");
    fprintf(file, "%*s", last ? 0 : GAP, "");
}

static void
print_row(const struct table *table, const struct table_layout *layout, size_t row, FILE *file)
{
    const struct table_cell *const cells = &table->cells[row * table->column_count];

    for (size_t i = 0; i < layout->count; i++) {
        const struct table_cell *const cell = &cells[layout->shown[i].column - table->columns];
        if (cell->text == NULL)
            break;
        if (cell->goes_on)
            fputs(cell->text, file);
        else
            print_cell(layout, i, cell->text, file);
    }
    fputc('\n', file);
}

bool table_print(struct table *table, uint32_t width, FILE *file)
{
    struct table_layout layout;
    const size_t rows = table->cell_count / table->column_count;
    const bool whole = table->lines_max == 0 || rows <= table->lines_max;
    const size_t shown = whole ? rows : table->lines_max - 1, first = shown - shown / 2;

    assert(table->column_count <= TABLE_COLUMNS_MAX);
    lay_out(table, width, &layout);
    print_groups(&layout, file);
    for (size_t i = 0; i < layout.count; i++)
        print_cell(&layout, i, title(layout.shown[i].column), file);
    fputc('\n', file);
    for (size_t row = 0; row < first; row++)
        print_row(table, &layout, row, file);
    if (!whole)
        fprintf(file, "… %zu more …\n", rows - shown);
    for (size_t row = rows - shown / 2; row < rows; row++)
        print_row(table, &layout, row, file);
    for (size_t i = 0; i < table->cell_count; i++)
        free(table->cells[i].text);
    free(table->cells);
    table->cells = NULL;
    table->cell_count = table->cell_capacity = 0;
    return fflush(file) == 0 && ferror(file) == 0;
}

/* ---- figures */

struct table_figure table_bytes(double bytes)
{
    static const char *const units[] = {"", "K", "M", "G", "T"};
    struct table_figure figure = {"-"};
    size_t unit = 0;

    for (; bytes >= 1024 && unit < 4; unit++)
        bytes /= 1024;
    const int decimals = unit == 0 || bytes >= 99.95 ? 0 : 1;
    if (!isnan(bytes))
        (void)text_print(figure.text, sizeof figure.text, "%.*f%s", decimals, bytes, units[unit]);
    return figure;
}

struct table_figure table_rate(double per_second)
{
    const int decimals = per_second >= 9.95 || per_second <= 0 ? 0 : per_second >= 0.995 ? 1 : 2;
    struct table_figure figure = {"-"};

    if (!isnan(per_second))
        (void)text_print(figure.text, sizeof figure.text, "%.*f", decimals, per_second);
    return figure;
}
