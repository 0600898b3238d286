/* faults.h -- what goes wrong in a run, a little after each event, until the run's budget is used.
 */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include "world.h"

/* The sizes of a run. */
void faults_draw(struct world *world);
/* Maybe something goes wrong now. */
void faults_maybe(struct world *world);

#endif
