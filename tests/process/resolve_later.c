/* SPDX-License-Identifier: Apache-2.0 */
/* resolve_later.c -- preloaded into a process: names that end in ".later.invalid" do not resolve
 * until the file that SUMAC_RESOLVE_LATER names is there; from then on they are this host. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUFFIX ".later.invalid"

int getaddrinfo(
    const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
    int (*really)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

    *(void **)&really = dlsym(RTLD_NEXT, "getaddrinfo");
    const char *path = getenv("SUMAC_RESOLVE_LATER");
    const size_t length = name != NULL ? strlen(name) : 0;
    if (path == NULL || length < sizeof SUFFIX ||
        strcmp(name + length - (sizeof SUFFIX - 1), SUFFIX) != 0)
        return really(name, service, hints, found);
    if (access(path, F_OK) != 0)
        return EAI_NONAME;
    return really("127.0.0.1", service, hints, found);
}
