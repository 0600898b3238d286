/* SPDX-License-Identifier: Apache-2.0 */
/* address.c -- what is wrong with a text that should be "host:port". */
#include "address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#define PORT_MAX 65535u
#define HOST_BYTES_MAX 253u /* RFC 1123: of a name, and of a part of it between dots */
#define LABEL_BYTES_MAX 63u
#define IPV6_BYTES_MAX 128u /* with its zone */

#define NOBODYS "its host is an address that no single host has"

bool address_read_digits(const char *digits, size_t count, uint32_t most, uint32_t *number)
{
    uint32_t read = 0;

    for (size_t i = 0; i < count; i++) {
        const uint32_t unit = (uint32_t)(digits[i] - '0');
        if (digits[i] < '0' || digits[i] > '9' || read > (most - unit) / 10)
            return false;
        read = read * 10 + unit;
    }
    *number = read;
    return count > 0;
}

static bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }

/* In a name of DNS, or of Docker's, which has '_'. */
static bool is_of_name(char byte)
{
    return is_digit(byte) || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           byte == '-' || byte == '_';
}

/* "::1", "fe80::1%eth0" */
static const char *ipv6_flaw(const char *host, size_t bytes)
{
    const char *zone = memchr(host, '%', bytes);
    const size_t number_bytes = zone != NULL ? (size_t)(zone - host) : bytes;
    char number[IPV6_BYTES_MAX];
    struct in6_addr parsed;
    bool valid = number_bytes < sizeof number && memchr(host, '\0', bytes) == NULL;

    if (valid) {
        memcpy(number, host, number_bytes);
        number[number_bytes] = '\0';
        valid = inet_pton(AF_INET6, number, &parsed) == 1 && number_bytes + 1 != bytes;
    }
    for (size_t i = number_bytes + 1; valid && i < bytes; i++)
        valid = is_of_name(host[i]) || host[i] == '.';
    if (!valid)
        return "what its host has in brackets is no IPv6 address";
    return IN6_IS_ADDR_UNSPECIFIED(&parsed) || IN6_IS_ADDR_MULTICAST(&parsed) ? NOBODYS : NULL;
}

/* "127.0.0.1", and "127.1", which inet_aton reads alike; a name of digits alone is a name. */
static const char *ipv4_flaw(const char *host)
{
    struct in_addr parsed;

    if (inet_aton(host, &parsed) == 0)
        return strchr(host, '.') != NULL ? "its host is no IPv4 address: four numbers, 0 to 255"
                                         : NULL;
    const uint32_t number = ntohl(parsed.s_addr);
    return number == INADDR_ANY || number == INADDR_BROADCAST || IN_MULTICAST(number) ? NOBODYS
                                                                                      : NULL;
}

static const char *character_flaw(const char *host, size_t bytes)
{
    if (memchr(host, '/', bytes) != NULL)
        return "leave out what is before the host, and every /";
    for (size_t i = 0; i < bytes; i++) {
        if (host[i] == ':' || host[i] == '[' || host[i] == ']')
            return "an IPv6 address goes in brackets, [::1]:2222";
        if (host[i] == '$' || host[i] == '<' || host[i] == '{')
            return "its host is a placeholder: fill it in";
        if (host[i] != '.' && !is_of_name(host[i]))
            return "a host has letters, digits, '-', '_' and '.' only";
    }
    return NULL;
}

/* The parts between the dots; one dot may end a name. */
static const char *label_flaw(const char *host, size_t bytes)
{
    size_t begin = 0;

    for (size_t i = 0; i <= bytes; i++) {
        if (i < bytes && host[i] != '.')
            continue;
        const bool after_last_dot = i == bytes && begin == bytes && begin > 1;
        const size_t length = i - begin;
        if (!after_last_dot &&
            (length == 0 || length > LABEL_BYTES_MAX || host[begin] == '-' || host[i - 1] == '-'))
            return "each part of a host's name has 1 to 63 characters, and '-' is neither its "
                   "first nor its last";
        begin = i + 1;
    }
    return NULL;
}

/* What Python and JSON print for no value. */
static bool is_no_value(const char *host, size_t bytes)
{
    return bytes == 4 && (memcmp(host, "None", bytes) == 0 || memcmp(host, "null", bytes) == 0);
}

static const char *host_flaw(const char *host, size_t bytes)
{
    const char *flaw = character_flaw(host, bytes);
    char text[HOST_BYTES_MAX + 2];
    bool is_number = true;

    if (flaw == NULL && bytes > HOST_BYTES_MAX + (host[bytes - 1] == '.'))
        flaw = "a host's name has 253 characters at most";
    if (flaw == NULL)
        flaw = label_flaw(host, bytes);
    if (flaw == NULL && is_no_value(host, bytes))
        flaw = "its host is what a program prints for no value: fill it in";
    if (flaw != NULL)
        return flaw;
    memcpy(text, host, bytes);
    text[bytes] = '\0';
    for (size_t i = 0; i < bytes; i++)
        is_number = is_number && (is_digit(host[i]) || host[i] == '.');
    return is_number ? ipv4_flaw(text) : NULL;
}

const char *address_flaw(const char *address, size_t bytes)
{
    size_t end = bytes; /* just past the last colon */
    uint32_t port = 0;

    if (memchr(address, ',', bytes) != NULL)
        return "it has a comma: give each address by itself";
    while (end > 0 && address[end - 1] != ':')
        end--;
    if (end == 0)
        return "it has no port";
    if (!address_read_digits(address + end, bytes - end, PORT_MAX, &port) || port == 0)
        return "its port is no number from 1 to 65535";
    const size_t host_bytes = end - 1;
    if (host_bytes == 0)
        return "it has no host";
    if (host_bytes > 2 && address[0] == '[' && address[host_bytes - 1] == ']')
        return ipv6_flaw(address + 1, host_bytes - 2);
    return host_flaw(address, host_bytes);
}
