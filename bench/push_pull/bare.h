/* SPDX-License-Identifier: Apache-2.0 */
/* bare.h -- what both ends of the bare gRPC stream agree on: a message is a chunk, headed by its
 * place in its operation. */
#pragma once

#include <stdint.h>

#define BARE_METHOD "/bench.Bare/Stream"

struct bare_head {
    uint64_t total;  /* bytes of the operation; 0: the sum of all values is wanted */
    uint64_t offset; /* of this chunk */
};
