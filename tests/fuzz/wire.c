/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c -- any bytes as any message of the services: refused in one sentence, or unpacked the same
 * however they are cut.
 *
 * The first byte of an input picks the message type, the second the size of the spans that the rest
 * arrives in.
 */
#include <string.h>

#include "fuzz.h"
#include "wire.h"

#define ARENA_BYTES_MAX (1u << 20)
#define SPANS_MAX 65536u

/* What an outsider may send: the requests of every service; and what a client is answered on its
 * streams. */
static const wire_type *pick_type(uint8_t number)
{
    static const wire_service *const services[] = {
        WIRE_SESSIONS, WIRE_VARIABLES, WIRE_TRANSFER, WIRE_OBSERVE, WIRE_PEER};
    const size_t service_count = sizeof services / sizeof *services;
    const wire_service *service = services[number % service_count];
    const ProtobufCMethodDescriptor *method =
        &service->methods[number / service_count % service->n_methods];

    return (number & 0x80u) != 0 ? method->output : method->input;
}

static bool lies_within(const uint8_t *data, size_t bytes, struct span span)
{
    return span.bytes > 0 && span.data >= data && span.bytes <= bytes &&
           span.data - data <= (ptrdiff_t)(bytes - span.bytes);
}

static void check_payload(const struct wire_received *received, const uint8_t *data, size_t bytes)
{
    uint64_t payload_bytes = 0;

    for (size_t i = 0; i < received->payload_spans; i++) {
        MUST(lies_within(data, bytes, received->payload[i]));
        payload_bytes += received->payload[i].bytes;
    }
    MUST(payload_bytes == received->payload_bytes);
}

/* Has the message, or one within it, fields of other releases? They are kept as they came, well
 * formed or not. */
static bool has_unknown_fields(const wire_message *message)
{
    if (message->n_unknown_fields > 0)
        return true;
    const uint8_t *base = (const uint8_t *)message;
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        if (field->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        const bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
        const void *member = base + field->offset;
        wire_message *const *items = repeated ? *(wire_message *const *const *)member : member;
        const size_t count =
            repeated ? *(const size_t *)(const void *)(base + field->quantifier_offset) : 1;
        for (size_t j = 0; j < count; j++) {
            if (items[j] != NULL && has_unknown_fields(items[j]))
                return true;
        }
    }
    return false;
}

/* What was unpacked is packed again, and is then the same bytes when unpacked and packed once
 * more. */
static void check_packing(const wire_type *type, const struct wire_received *received)
{
    if (has_unknown_fields(received->message))
        return;
    const size_t bytes = wire_packed_bytes(received->message, 0);
    uint8_t *first = malloc(bytes + 1), *second = malloc(bytes + 1);
    MUST(first != NULL && second != NULL);
    wire_pack(received->message, 0, first);
    const struct span whole = {.data = first, .bytes = bytes};
    struct arena arena;
    struct wire_received again;
    arena_init(&arena, &memory_heap, 4 * ARENA_BYTES_MAX);
    MUST(wire_unpack(type, &whole, 1, &arena, &again, NULL) == SUMAC_OK);
    MUST(wire_packed_bytes(again.message, 0) == bytes);
    wire_pack(again.message, 0, second);
    MUST(memcmp(first, second, bytes) == 0);
    arena_deinit(&arena);
    free(first);
    free(second);
}

static size_t cut(const uint8_t *data, size_t bytes, size_t span_bytes, struct span *spans)
{
    size_t count = 0;

    for (size_t at = 0; at < bytes; at += span_bytes)
        spans[count++] = (struct span){
            .data = data + at, .bytes = bytes - at < span_bytes ? bytes - at : span_bytes};
    return count;
}

/* The status of unpacking the bytes in spans of `span_bytes`; 0: in one. */
static enum sumac_status
unpack(const wire_type *type, const uint8_t *data, size_t bytes, size_t span_bytes)
{
    struct span *spans = malloc((bytes + 1) * sizeof *spans);

    MUST(spans != NULL);
    const size_t count = cut(data, bytes, span_bytes > 0 ? span_bytes : bytes + 1, spans);
    struct arena arena;
    struct wire_received received;
    struct sumac_error error = {.status = SUMAC_OK};
    arena_init(&arena, &memory_heap, ARENA_BYTES_MAX + SPANS_MAX * sizeof *spans);
    const enum sumac_status status = wire_unpack(type, spans, count, &arena, &received, &error);
    MUST(status == error.status);
    if (status == SUMAC_OK) {
        MUST(received.message->descriptor == type);
        check_payload(&received, data, bytes);
        check_packing(type, &received);
    } else {
        MUST(status == SUMAC_INVALID_ARGUMENT || status == SUMAC_RESOURCE_EXHAUSTED);
        MUST(error.text[0] != '\0');
    }
    arena_deinit(&arena);
    free(spans);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 2 || bytes > SPANS_MAX)
        return 0;
    const wire_type *type = pick_type(data[0]);
    const enum sumac_status whole = unpack(type, data + 2, bytes - 2, 0);
    const enum sumac_status cut_up = unpack(type, data + 2, bytes - 2, data[1]);
    /* The spans and the joined header take of the arena too: only its bound may come into it. */
    MUST(
        whole == cut_up || whole == SUMAC_RESOURCE_EXHAUSTED || cut_up == SUMAC_RESOURCE_EXHAUSTED);
    return 0;
}
