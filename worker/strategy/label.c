/* SPDX-License-Identifier: Apache-2.0 */
/* label.c -- a text that tells one call from another, as far as there is room, and its digest.
 *
 * FNV-1a: Fowler, Noll, Vo, Eastlake, "The FNV Non-Cryptographic Hash Algorithm", RFC 9923. Labels
 * that differ come of mistakes, and nobody looks for two of one digest.
 */
#include "label.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "text.h"

#define FNV_OFFSET UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x00000100000001b3)

void label_init(struct label *label)
{
    label->text[0] = '\0';
    label->used = 0;
    label->sum = (struct label_sum){.bytes = 0, .digest = FNV_OFFSET};
}

void label_add(struct label *label, const char *text)
{
    uint64_t digest = label->sum.digest, bytes = 0;

    assert(label->used < sizeof label->text);
    for (; text[bytes] != '\0'; bytes++)
        digest = (digest ^ (uint8_t)text[bytes]) * FNV_PRIME;
    if (label->used == label->sum.bytes) /* nothing was cut yet */
        label->used +=
            text_print(label->text + label->used, sizeof label->text - label->used, "%s", text);
    label->sum.digest = digest;
    label->sum.bytes += bytes;
}

void label_print(struct label *label, const char *format, ...)
{
    char text[LABEL_PRINT_BYTES_MAX + 1];
    va_list values;

    assert(label->used <= label->sum.bytes);
    va_start(values, format);
    (void)text_print_values(text, sizeof text, format, values);
    va_end(values);
    label_add(label, text);
}
