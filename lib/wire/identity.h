/* SPDX-License-Identifier: Apache-2.0 */
/* identity.h -- the identity of a process, between the wire and what is kept of it. */
#pragma once

#include "run_identity.h"
#include "sumac/status.h"
#include "wire.h"

/* Copies. NULL: no identity.
 * Fails  INVALID_ARGUMENT (MALFORMED): a text is too long, or has a control character. */
SUMAC_CHECKED enum sumac_status wire_identity_read(
    const wire_identity *wire, struct run_identity *identity, struct sumac_error *error);

/* Borrows  the texts of `identity`, as long as *wire is used. */
void wire_identity_fill(const struct run_identity *identity, wire_identity *wire);
