/* SPDX-License-Identifier: Apache-2.0 */
/* Strings on the wire: what a peer says in one is a string in C, too. */

#include "unit.h"

#include "wire_unpack.h"

TEST(a_string_that_is_not_utf8_is_refused_and_named)
{
    struct sumac_error error;
    const uint8_t flat[] = {0x12, 2, 0xff, 0xfe}; /* DeleteRequest.name */

    assert_int_equal(
        unpack_all(&sumac__v1__delete_request__descriptor, flat, sizeof flat, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "`name`"));
    const uint8_t repeated[] = {0x0a, 1, 'a', 0x0a, 1, 0xc0}; /* ListRequest.names */
    assert_int_equal(
        unpack_all(&sumac__v1__list_request__descriptor, repeated, sizeof repeated, &error),
        SUMAC_INVALID_ARGUMENT);
    const uint8_t nested[] = {0x12, 3, 0x0a, 1, 0x80}; /* CreateRequest.variable.name */
    assert_int_equal(
        unpack_all(&sumac__v1__create_request__descriptor, nested, sizeof nested, &error),
        SUMAC_INVALID_ARGUMENT);
    const uint8_t good[] = {0x12, 4, 0x0a, 2, 0xc3, 0xa9};
    assert_int_equal(
        unpack_all(&sumac__v1__create_request__descriptor, good, sizeof good, &error), SUMAC_OK);
}

/* In C it would be a shorter string: another name than the one that was meant. */
TEST(a_string_with_a_nul_is_refused_and_named)
{
    struct sumac_error error;
    const uint8_t flat[] = {0x12, 3, 'a', 0, 'b'}; /* DeleteRequest.name */
    const uint8_t first[] = {0x12, 1, 0};
    const uint8_t repeated[] = {0x0a, 1, 'a', 0x0a, 2, 'b', 0}; /* ListRequest.names */
    const uint8_t nested[] = {0x12, 4, 0x0a, 2, 'a', 0};        /* CreateRequest.variable.name */
    const uint8_t elsewhere[] = {0x0a, 2,   0,    0, 0x12,
                                 1,    'a', 0x18, 0}; /* session_id, name, timeout_ms */

    const struct {
        const wire_type *type;
        const uint8_t *bytes;
        size_t count;
        const char *said; /* NULL: it is fine */
    } rows[] = {
        {&sumac__v1__delete_request__descriptor, flat, sizeof flat, "`name` has a NUL"},
        {&sumac__v1__delete_request__descriptor, first, sizeof first, "`name` has a NUL"},
        {&sumac__v1__list_request__descriptor, repeated, sizeof repeated, "`names` has a NUL"},
        {&sumac__v1__create_request__descriptor, nested, sizeof nested, "`name` has a NUL"},
        {&sumac__v1__delete_request__descriptor, elsewhere, sizeof elsewhere, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const enum sumac_status status =
            unpack_all(rows[i].type, rows[i].bytes, rows[i].count, &error);
        assert_int_equal(status, rows[i].said == NULL ? SUMAC_OK : SUMAC_INVALID_ARGUMENT);
        if (rows[i].said != NULL)
            assert_non_null(strstr(error.text, rows[i].said));
    }
}

/* A number of 64 bits, whose upper half looks like a string with a NUL in it, before a string. */
TEST(the_bytes_of_a_number_are_no_string)
{
    static const struct {
        const wire_type *type;
        const char *number, *string;
    } cases[] = {
        {&sumac__v1__join_reply__descriptor, "cluster_id", "ps_addresses"},
        {&sumac__v1__stats_reply__descriptor, "cluster_id", "address"},
        {&sumac__v1__peer_hello__descriptor, "controller_secret", "ps_addresses"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const wire_type *const type = cases[i].type;
        const ProtobufCFieldDescriptor *const number =
            protobuf_c_message_descriptor_get_field_by_name(type, cases[i].number);
        const ProtobufCFieldDescriptor *const string =
            protobuf_c_message_descriptor_get_field_by_name(type, cases[i].string);
        struct sumac_error error;
        assert_non_null(number);
        assert_int_equal(number->type, PROTOBUF_C_TYPE_FIXED64);
        assert_non_null(string);
        assert_int_equal(string->type, PROTOBUF_C_TYPE_STRING);
        assert_true(number->id < 16 && string->id < 16); /* tags of one byte */
        const uint8_t number_tag = (uint8_t)(number->id << 3 | PROTOBUF_C_WIRE_TYPE_64BIT);
        const uint8_t string_tag =
            (uint8_t)(string->id << 3 | PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED);
        const uint8_t bytes[] = {number_tag, 1, 1, 1, 1, string_tag, 2, 0, 0, string_tag, 1, 'h'};

        assert_int_equal(unpack_all(type, bytes, sizeof bytes, &error), SUMAC_OK);
    }
}
