/* json_array.h -- a tensor as one JSON document: {"name", "dtype", "shape", "values"}, values nested as the axes are. */
#ifndef CLI_JSON_ARRAY_H
#define CLI_JSON_ARRAY_H

#include <stdbool.h>
#include <stdio.h>

#include "sumac/tensor.h"

/* NaN and infinities, which JSON has not, are null. False: it could not be written. */
bool json_array_print(const char *name, const struct sumac_tensor *tensor, FILE *file);

#endif
