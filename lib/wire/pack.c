/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c -- from a message to bytes, up to where its payload begins. */
#include <assert.h>

#include "wire.h"

static size_t varint_bytes(uint64_t value)
{
    size_t bytes = 1;

    while (value >= 0x80) {
        value >>= 7;
        bytes++;
    }
    return bytes;
}

size_t wire_packed_bytes(const wire_message *message, uint64_t payload_bytes)
{
    const size_t header_bytes = protobuf_c_message_get_packed_size(message);

    return payload_bytes == 0 ? header_bytes : header_bytes + 1 + varint_bytes(payload_bytes);
}

void wire_pack(const wire_message *message, uint64_t payload_bytes, uint8_t *out)
{
    out += protobuf_c_message_pack(message, out);
    if (payload_bytes == 0)
        return;
    assert(wire_has_payload(message->descriptor));
    *out++ = WIRE_PAYLOAD_FIELD << 3 | 2; /* a length-delimited field */
    for (; payload_bytes >= 0x80; payload_bytes >>= 7)
        *out++ = (uint8_t)(payload_bytes | 0x80);
    *out = (uint8_t)payload_bytes;
}
