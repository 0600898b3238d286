/* SPDX-License-Identifier: Apache-2.0 */
/* core_text.h -- say why gRPC could not connect, in a few words. Inside lib/rpc only. */
#pragma once

#include "sumac/status.h"

/* Replace gRPC's text about a connection that was not made by its cause: "Connection refused". Any
 * other text stays. Threads  any. */
void core_text_make_plain(struct sumac_error *error);
