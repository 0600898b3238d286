/* json_array.c -- nested arrays of numbers. */
#include "json_array.h"

#include <string.h>

#include "half.h"
#include "json.h"

static struct value *element(const struct sumac_tensor *tensor, uint64_t index)
{
    const uint8_t *at =
        (const uint8_t *)sumac_tensor_data(tensor) + index * sumac_dtype_bytes(tensor->dtype);
    switch (tensor->dtype) {
#define ELEMENT(name, type, make)                                                                  \
    case SUMAC_##name: {                                                                           \
        type value;                                                                                \
        memcpy(&value, at, sizeof value);                                                          \
        return make;                                                                               \
    }
        ELEMENT(INT8, int8_t, value_integer(value))
        ELEMENT(INT16, int16_t, value_integer(value))
        ELEMENT(INT32, int32_t, value_integer(value))
        ELEMENT(INT64, int64_t, value_integer(value))
        ELEMENT(UINT8, uint8_t, value_number(value))
        ELEMENT(UINT16, uint16_t, value_number(value))
        ELEMENT(UINT32, uint32_t, value_number(value))
        ELEMENT(UINT64, uint64_t, value_number(value))
        ELEMENT(FLOAT16, uint16_t, value_real((double)float32_of_float16(value)))
        ELEMENT(BFLOAT16, uint16_t, value_real((double)float32_of_bfloat16(value)))
        ELEMENT(FLOAT32, float, value_real((double)value))
        ELEMENT(FLOAT64, double, value_real(value))
#undef ELEMENT
    default:
        return value_bool(*at != 0);
    }
}

/* The elements from *next on, nested from `axis` inwards. */
static struct value *nested(const struct sumac_tensor *tensor, uint32_t axis, uint64_t *next)
{
    if (axis == tensor->shape.rank)
        return element(tensor, (*next)++);
    struct value *array = value_array();
    for (uint64_t i = 0; i < tensor->shape.extent[axis]; i++)
        value_add(array, nested(tensor, axis + 1, next));
    return array;
}

bool json_array_print(const char *name, const struct sumac_tensor *tensor, FILE *file)
{
    struct value *json = value_object();
    struct value *shape = value_array();
    uint64_t next = 0;
    for (uint32_t axis = 0; axis < tensor->shape.rank; axis++)
        value_add(shape, value_number(tensor->shape.extent[axis]));
    value_put(json, "name", value_text(name));
    value_put(json, "dtype", value_text(sumac_dtype_name(tensor->dtype)));
    value_put(json, "shape", shape);
    value_put(json, "values", nested(tensor, 0, &next));
    const bool printed = value_print(json, file);
    value_free(json);
    return printed;
}
