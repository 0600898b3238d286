/* SPDX-License-Identifier: Apache-2.0 */
/* run_ports.c -- let the system choose the ports, and hold all of them until the last is chosen: so
 * they differ. */
#include "run_ports.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static int bound_socket(uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof address;
    const int held = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (held < 0)
        return -1;
    if (bind(held, (struct sockaddr *)&address, sizeof address) != 0 ||
        getsockname(held, (struct sockaddr *)&address, &bytes) != 0) {
        (void)close(held);
        return -1;
    }
    *port = ntohs(address.sin_port);
    return held;
}

bool run_ports_pick(uint16_t *ports, uint32_t count)
{
    int *held = calloc(count + 1, sizeof *held);
    uint32_t picked = 0;

    while (held != NULL && picked < count && (held[picked] = bound_socket(&ports[picked])) >= 0)
        picked++;
    for (uint32_t i = 0; i < picked; i++)
        (void)close(held[i]);
    free(held);
    return picked == count;
}
