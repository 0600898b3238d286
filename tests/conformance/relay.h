/* SPDX-License-Identifier: Apache-2.0 */
/* relay.h -- the same program as the one worker of two ps, which `sumac run` starts and ends. */
#ifndef CONFORMANCE_RELAY_H
#define CONFORMANCE_RELAY_H

/* Run this program with these arguments under the `sumac` that lies beside it, and print what the
 * worker prints; what the ps say goes to stderr. Returns  the program's exit code. */
int relay_run(int argc, char **argv);

#endif
