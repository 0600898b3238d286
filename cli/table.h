/* table.h -- rows of words in aligned columns. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define TABLE_COLUMNS_MAX 16

struct table {
    const char *const
        *titles; /* (columns); a title that begins with '>' stands to the right, as numbers do */
    size_t columns;
    char **cells; /* (rows, columns), owned */
    size_t cell_count;
    bool failed; /* there was no memory for a cell */
};

/* Add the next cell, left to right, row by row. */
void table_add(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Titles and rows, two blanks between columns. False: not all could be kept or written. */
bool table_print(const struct table *table, FILE *file);
void table_deinit(struct table *table);

/* 1536 as "1.5 KiB", into `text`. Lends  text. */
const char *table_bytes(double bytes, char *text, size_t text_bytes);
/* 1536 µs as "1.54 ms". */
const char *table_duration(double us, char *text, size_t text_bytes);

#endif
