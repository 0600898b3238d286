/* SPDX-License-Identifier: Apache-2.0 */
/* opener COUNT SECONDS -- open an observer, let it leave and close it, COUNT times; then wait until
 * this process has the descriptors that it had after the first one, SECONDS at most.
 *
 * Print both counts. Exit with 1 if the last one is larger.
 */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sumac/client.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t closed = PTHREAD_COND_INITIALIZER; /* some descriptor */

static int count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    if (folder == NULL)
        return -1;
    while (readdir(folder) != NULL)
        count++;
    (void)closedir(folder);
    return count;
}

static void ignore(void *context, const char *line)
{
    (void)context;
    (void)line;
}

static void open_and_close(void)
{
    const struct sumac_client_options options = {.observer = true, .log = ignore};
    struct sumac_client *client;
    struct sumac_error error;

    sumac_check(sumac_client_open(&options, &client, &error), &error);
    sumac_check(sumac_client_leave(client, SUMAC_LEAVING_UNFINISHED, &error), &error);
    sumac_client_close(client);
}

/* gRPC closes sockets in threads of its own, and calls this function for it. */
__attribute__((visibility("default"))) int close(int descriptor)
{
    const int result = (int)syscall(SYS_close, descriptor);

    (void)pthread_mutex_lock(&lock);
    (void)pthread_cond_broadcast(&closed);
    (void)pthread_mutex_unlock(&lock);
    return result;
}

static int wait_for_descriptors(int wanted, long seconds)
{
    struct timespec until;
    int count;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    (void)pthread_mutex_lock(&lock);
    while ((count = count_descriptors()) > wanted &&
           pthread_cond_timedwait(&closed, &lock, &until) == 0) {
    }
    (void)pthread_mutex_unlock(&lock);
    return count;
}

int main(int count, char **arguments)
{
    const long clients = count > 2 ? strtol(arguments[1], NULL, 10) : 0;
    const long seconds = count > 2 ? strtol(arguments[2], NULL, 10) : 0;

    if (clients < 1)
        return 2;
    open_and_close();
    const int before = count_descriptors();
    for (long i = 1; i < clients; i++)
        open_and_close();
    const int after = wait_for_descriptors(before, seconds);
    printf("%d descriptors after the first client, %d after %ld\n", before, after, clients);
    return after > before;
}
