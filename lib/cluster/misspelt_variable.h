/* SPDX-License-Identifier: Apache-2.0 */
/* misspelt_variable.h -- a variable in the environment whose name is nearly one of Sumac's. */
#ifndef CLUSTER_MISSPELT_VARIABLE_H
#define CLUSTER_MISSPELT_VARIABLE_H

#define MISSPELT_VARIABLE_BYTES 64

/* Find the first "SUMAC_…" that no process of Sumac reads and that is near a name that one reads.
 * Other names are left alone: they may be the user's own.
 *
 * Lends    `name`, and the name that is meant; NULL: no name is misspelt.
 * Threads  any, while none sets the environment. */
const char *misspelt_variable(char name[MISSPELT_VARIABLE_BYTES]);

#endif
