/* SPDX-License-Identifier: Apache-2.0 */
/* pack.h -- a value as bytes, and back: how it goes from one worker to the others. Of the same
 * release only, and of the same byte order; who reads it trusts nobody. */
#pragma once

#include "value.h"

/* Bytes that grow as they are written. One that has `failed`, for want of memory, takes no more. */
struct pack {
    uint8_t *bytes;
    size_t used, room;
    bool failed;
};
void pack_deinit(struct pack *pack);
/* Make room for `bytes` more. False: no memory. */
bool pack_reserve(struct pack *pack, size_t bytes);
void pack_bytes(struct pack *pack, const void *bytes, size_t count);
void pack_u32(struct pack *pack, uint32_t number);
void pack_u64(struct pack *pack, uint64_t number);
void pack_text(struct pack *pack, const char *text); /* NULL: "" */

/* The most values in one that is packed: a list of two tensors has three. Reading one takes memory
 * for its elements; beside these it takes at most 48 bytes for each byte that is read, and at most
 * 40 MiB in all. */
#define PACK_VALUES_MAX 65536u
bool pack_fits(const struct sumac_value *value);

/* A value that is not distributed. Does a tensor's elements go along (NULL: all do)? Of one that
 * goes without, the type and shape do. */
typedef bool pack_elements(const void *context, const struct sumac_tensor *tensor);
void pack_value(
    struct pack *pack, const struct sumac_value *value, pack_elements *elements,
    const void *context);

/* What is left to be read. One that has `failed`, being cut or none, gives zeros. */
struct unpack {
    const uint8_t *at, *end;
    bool failed;
    bool no_memory;  /* … and that is why a value could not be made */
    uint32_t values; /* in the value that is read */
};
const uint8_t *unpack_bytes(struct unpack *unpack, size_t count); /* NULL: there are not so many */
uint32_t unpack_u32(struct unpack *unpack);
uint64_t unpack_u64(struct unpack *unpack);
/* Into `text`, cut to fit; returns text. */
const char *unpack_text(struct unpack *unpack, char *text, size_t text_bytes);
/* Gives  *value, whose tensors that came without elements have no memory (value_has_elements).
 *        Those of slices have theirs.
 * Fails  INVALID_ARGUMENT: the bytes are no value. RESOURCE_EXHAUSTED: no memory. */
enum sumac_status unpack_value(struct unpack *unpack, struct sumac_value **value);
bool value_has_elements(const struct sumac_value *tensor);
