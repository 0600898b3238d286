/* table.c -- columns as wide as their widest cell. Widths count UTF-8 characters, not bytes. */
#include "table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

void table_add(struct table *table, const char *format, ...)
{
    char *cell = NULL;
    char **grown = realloc(table->cells, (table->cell_count + 1) * sizeof *grown);
    if (grown != NULL)
        table->cells = grown;
    va_list values;
    va_start(values, format);
    FILE *file = NULL;
    size_t bytes = 0;
    if (grown != NULL && (file = open_memstream(&cell, &bytes)) != NULL) {
        vfprintf(file, format, values);
        if (fclose(file) != 0) {
            free(cell);
            cell = NULL;
        }
    }
    va_end(values);
    if (cell == NULL) {
        table->failed = true;
        return;
    }
    text_make_line(cell);
    table->cells[table->cell_count++] = cell;
}

static size_t characters(const char *text)
{
    size_t count = 0;
    for (; *text != '\0'; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

static const char *title(const struct table *table, size_t column)
{
    return table->titles[column] + (table->titles[column][0] == '>');
}

static void
print_cell(const struct table *table, size_t column, const char *text, size_t width, FILE *file)
{
    const bool right = table->titles[column][0] == '>';
    const bool last = column + 1 == table->columns;
    const int padding = (int)(width - characters(text));
    if (right)
        fprintf(file, "%*s%s", padding, "", text);
    else
        fprintf(file, "%s%*s", text, last ? 0 : padding, "");
    fputs(last ? "\n" : "  ", file);
}

bool table_print(const struct table *table, FILE *file)
{
    size_t widths[TABLE_COLUMNS_MAX] = {0};
    if (table->failed || table->columns > TABLE_COLUMNS_MAX)
        return false;
    for (size_t i = 0; i < table->columns; i++)
        widths[i] = characters(title(table, i));
    for (size_t i = 0; i < table->cell_count; i++) {
        const size_t wide = characters(table->cells[i]);
        if (wide > widths[i % table->columns])
            widths[i % table->columns] = wide;
    }
    for (size_t i = 0; i < table->columns; i++)
        print_cell(table, i, title(table, i), widths[i], file);
    for (size_t i = 0; i < table->cell_count; i++)
        print_cell(table, i % table->columns, table->cells[i], widths[i % table->columns], file);
    return fflush(file) == 0 && ferror(file) == 0;
}

void table_deinit(struct table *table)
{
    for (size_t i = 0; i < table->cell_count; i++)
        free(table->cells[i]);
    free(table->cells);
    table->cells = NULL;
    table->cell_count = 0;
}

const char *table_bytes(double bytes, char *text, size_t text_bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    while (bytes >= 1024 && unit < 4) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, text_bytes, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
    return text;
}

const char *table_duration(double us, char *text, size_t text_bytes)
{
    if (us < 1000)
        snprintf(text, text_bytes, "%.0f µs", us);
    else if (us < 1000000)
        snprintf(text, text_bytes, "%.3g ms", us / 1000);
    else
        snprintf(text, text_bytes, "%.3g s", us / 1000000);
    return text;
}
