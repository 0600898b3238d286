/* SPDX-License-Identifier: Apache-2.0 */
/* faults.h -- what goes wrong in a run, a little after each event, until the run's budget is used.
 */
#pragma once

#include "network.h"
#include "wire.h"
#include "world.h"

/* The sizes of a run. */
void faults_draw(struct world *world);
/* Maybe something goes wrong now, after an event; */
void faults_maybe(struct world *world);
/* right after a client has sent a push message, or a ps has got one. */
void faults_after_send(struct world *world, struct stream *stream);
/* right after a ps has said something to ps 0. */
void faults_after_report(
    struct world *world, struct stream *stream, const wire_peer_report *report);
void faults_after_delivery(struct world *world, struct stream *stream);
