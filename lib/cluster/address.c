/* SPDX-License-Identifier: Apache-2.0 */
/* address.c -- is a text "host:port"? */
#include "address.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

#define PORT_MAX 65535u
#define IPV6_BYTES_MAX 128u /* with its zone */

static bool port_is_valid(const char *digits, size_t count)
{
    uint32_t port = 0;

    for (size_t i = 0; i < count; i++) {
        if (digits[i] < '0' || digits[i] > '9')
            return false;
        port = port * 10 + (uint32_t)(digits[i] - '0');
        if (port > PORT_MAX)
            return false;
    }
    return port > 0;
}

static bool name_is_valid(const char *host, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char byte = (unsigned char)host[i];
        if (byte <= ' ' || byte == 0x7f || strchr("/:[]", byte) != NULL)
            return false;
    }
    return bytes > 0;
}

/* "::1", "fe80::1%eth0" */
static bool ipv6_is_valid(const char *host, size_t bytes)
{
    const char *zone = memchr(host, '%', bytes);
    const size_t number_bytes = zone != NULL ? (size_t)(zone - host) : bytes;
    char number[IPV6_BYTES_MAX];

    if (number_bytes >= sizeof number || memchr(host, '\0', bytes) != NULL)
        return false;
    memcpy(number, host, number_bytes);
    number[number_bytes] = '\0';
    struct in6_addr parsed;
    if (inet_pton(AF_INET6, number, &parsed) != 1)
        return false;
    return zone == NULL || name_is_valid(zone + 1, bytes - number_bytes - 1);
}

bool address_is_valid(const char *address, size_t bytes)
{
    size_t end = bytes; /* just past the last colon */

    while (end > 0 && address[end - 1] != ':')
        end--;
    if (end == 0 || !port_is_valid(address + end, bytes - end))
        return false;
    const size_t host_bytes = end - 1;
    if (host_bytes > 2 && address[0] == '[' && address[host_bytes - 1] == ']')
        return ipv6_is_valid(address + 1, host_bytes - 2);
    return name_is_valid(address, host_bytes);
}
