/* text.c -- is a text UTF-8, and how it is made so. */
#include "text.h"

#include <stdint.h>
#include <string.h>

/* Bytes of the character that `lead` begins, and the range of the byte after it; 0: no character
 * begins so. */
static size_t character_bytes(uint8_t lead, uint8_t *second_min, uint8_t *second_max)
{
    *second_min = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    *second_max = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (lead < 0x80)
        return 1;
    if (lead < 0xc2)
        return 0;
    if (lead < 0xe0)
        return 2;
    if (lead < 0xf0)
        return 3;
    return lead < 0xf5 ? 4 : 0;
}

/* Bytes of the whole character that `text` begins with; 0: it begins with none. */
static size_t whole_character(const char *text, size_t bytes)
{
    uint8_t second_min = 0, second_max = 0;
    const size_t count = character_bytes((uint8_t)text[0], &second_min, &second_max);
    if (count > bytes)
        return 0;
    for (size_t i = 1; i < count; i++) {
        const uint8_t byte = (uint8_t)text[i];
        if (byte < (i == 1 ? second_min : 0x80) || byte > (i == 1 ? second_max : 0xbf))
            return 0;
    }
    return count;
}

bool text_is_utf8(const char *text, size_t bytes)
{
    size_t at = 0;
    while (at < bytes) {
        const size_t count = whole_character(text + at, bytes - at);
        if (count == 0)
            return false;
        at += count;
    }
    return true;
}

void text_make_line(char *text)
{
    const size_t bytes = strlen(text);
    size_t at = 0;
    while (at < bytes) {
        const size_t count = whole_character(text + at, bytes - at);
        const uint8_t byte = (uint8_t)text[at];
        if (count == 0 || byte < ' ' || byte == 0x7f)
            text[at] = '?';
        at += count > 0 ? count : 1;
    }
}
