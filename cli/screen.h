/* SPDX-License-Identifier: Apache-2.0 */
/* screen.h -- the terminal as a page that is drawn again and again, and given back as it was. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* How wide standard output may be: the terminal's columns, or 120 without a terminal. */
uint32_t screen_columns(void);
/* The terminal's lines; 0 if standard output is no terminal. */
uint32_t screen_lines(void);

/* Take the terminal: its other page, without a cursor. Standard output is one. Before any thread
 * begins. SIGINT, SIGTERM, SIGHUP and SIGTSTP give it back before they do what they do. */
void screen_open(void);
/* Give it back. Nothing happens when it is not taken. */
void screen_close(void);

/* Put `text` in place of what was drawn, lines and columns as far as they fit. False: it could not
 * be written. */
bool screen_draw(const char *text);

/* Wait until `until_us` of CLOCK_MONOTONIC. True: the terminal has another size, or was away; draw
 * again. */
bool screen_wait(uint64_t until_us);
