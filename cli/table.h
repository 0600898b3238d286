/* SPDX-License-Identifier: Apache-2.0 */
/* table.h -- rows of words in aligned columns, under titles and the names of groups of columns. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TABLE_COLUMNS_MAX 24

struct table_column {
    const char *group; /* stands above neighbours of the same group; NULL: none */
    const char *title; /* one that begins with '>' stands to the right, as numbers do */
    /* Where a line is too long, columns with the largest go first; of 0 none goes. */
    uint32_t spare;
};

struct table_cell {
    char *text; /* owned; NULL: the cell before it goes on to the end of the row */
    bool goes_on;
};

struct table {
    const struct table_column *columns; /* (column_count) */
    size_t column_count;
    struct table_cell *cells; /* (rows, columns), owned */
    size_t cell_count, cell_capacity;
    /* The most lines of rows, at least 3: when there are more rows, a line counts those left out of
     * the middle. 0: all rows are printed. */
    uint32_t lines_max;
};

/* Add the next cell, left to right, row by row. */
void table_add(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Add a number, or "-" where it is not `known`. */
void table_add_number(struct table *table, bool known, uint64_t number);
/* Add a text that goes from here, a column that is never spared, to the end of the row, and makes
 * no column wider. */
void table_add_rest(struct table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Titles and rows, two blanks between columns, in lines of `width` characters if spare columns can
 * give way (0: all of them are shown). The table is empty then. False: not all could be written. */
bool table_print(struct table *table, uint32_t width, FILE *file);

/* Characters of a UTF-8 text: the columns that it takes. */
size_t table_characters(const char *text);

/* A number for people; "-" for NAN. */
struct table_figure {
    char text[32];
};
/* 1536 bytes as "1.5K", in at most five characters, as options are written. */
struct table_figure table_bytes(double bytes);
/* 12.3 as "12", 0.123 as "0.12": three characters before the point, or two digits after it. */
struct table_figure table_rate(double per_second);
