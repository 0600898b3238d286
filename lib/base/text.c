/* text.c -- is a text UTF-8? */
#include "text.h"

#include <stdint.h>

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

bool text_is_utf8(const char *text, size_t bytes)
{
    size_t at = 0;
    while (at < bytes) {
        uint8_t second_min = 0, second_max = 0;
        const size_t count = character_bytes((uint8_t)text[at], &second_min, &second_max);
        if (count == 0 || count > bytes - at)
            return false;
        for (size_t i = 1; i < count; i++) {
            const uint8_t byte = (uint8_t)text[at + i];
            if (byte < (i == 1 ? second_min : 0x80) || byte > (i == 1 ? second_max : 0xbf))
                return false;
        }
        at += count;
    }
    return true;
}
