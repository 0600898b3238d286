/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_files.c -- dlopen, and what can be wrong with a library. */
#include "plugin_files.h"

#include <assert.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"
#include "text.h"

#define PATH_BYTES_MAX 4096u

/* dlopen looks for a name without a slash where the linker does, and not in the working directory:
 * whoever says libmine.so means the file that lies there. */
static const char *name_file(const char *path, char *text, size_t text_bytes)
{
    assert(text_bytes > 0);
    if (strchr(path, '/') != NULL)
        return path;
    (void)text_print(text, text_bytes, "./%s", path);
    return access(text, F_OK) == 0 ? text : path;
}

/* The bytes that an ELF file's segments say it has; 0 of what is none, which dlopen says better. */
static uint64_t wanted_bytes(int file)
{
    ElfW(Ehdr) header;
    ElfW(Phdr) segment;
    uint64_t wanted = 0;

    assert(file >= 0);
    if (pread(file, &header, sizeof header, 0) != (ssize_t)sizeof header ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof segment)
        return 0;
    for (uint32_t i = 0; i < header.e_phnum; i++) {
        const uint64_t at = header.e_phoff + (uint64_t)i * sizeof segment;
        if (pread(file, &segment, sizeof segment, (off_t)at) != (ssize_t)sizeof segment)
            return at + sizeof segment;
        if (segment.p_type == PT_LOAD && segment.p_offset + segment.p_filesz > wanted)
            wanted = segment.p_offset + segment.p_filesz;
    }
    return wanted;
}

/* dlopen waits for a writer where it opens a FIFO, and maps a file that was copied in part, and
 * reads behind its end: a SIGBUS that names nothing. */
static enum sumac_status check_file(const char *path, const char *name, struct sumac_error *error)
{
    const int file = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat stat;

    assert(path[0] != '\0');
    if (file < 0)
        return SUMAC_OK; /* dlopen may find it elsewhere, or says why not */
    const bool known = fstat(file, &stat) == 0;
    const uint64_t wanted = known && S_ISREG(stat.st_mode) ? wanted_bytes(file) : 0;
    (void)close(file);
    if (known && !S_ISREG(stat.st_mode))
        return fail_argument(
            error, "cannot load the plug-in %s: it is not a regular file; name a shared library",
            path);
    if (!known || (uint64_t)stat.st_size >= wanted)
        return SUMAC_OK;
    return fail_argument(
        error,
        "cannot load the plug-in %s: it is cut short: it has %" PRIu64 " bytes, and says that it "
        "has %" PRIu64 "; copy it again",
        path, (uint64_t)stat.st_size, wanted);
}

static enum sumac_status open_library(const char *path, void **handle, struct sumac_error *error)
{
    char text[PATH_BYTES_MAX];

    if (path[0] == '\0')
        return fail_argument(error, "cannot load the plug-in %s: it has no name", path);
    const char *const name = name_file(path, text, sizeof text);
    if (check_file(path, name, error) != SUMAC_OK)
        return SUMAC_INVALID_ARGUMENT;
    *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (*handle != NULL)
        return SUMAC_OK;
    const char *const why = dlerror();
    return fail_argument(
        error, "cannot load the plug-in %s: %s", path, why == NULL ? "unknown" : why);
}

/* The functions of a library that is open. */
static enum sumac_status
read_table(struct plugin_files *files, const char *path, void *handle, struct sumac_error *error)
{
    const struct sumac_plugin *const table = dlsym(handle, "sumac_plugin");
    struct sumac_error why = {0};

    for (uint32_t i = 0; i < files->count; i++)
        if (files->handles[i] == handle)
            return fail_invalid(
                error, SUMAC_REASON_ALREADY_EXISTS,
                "the plug-in %s is given twice, as %s and as %s", path, files->paths[i], path);
    if (table == NULL)
        return fail_argument(
            error,
            "%s is no plug-in: it has no object sumac_plugin, which is to be marked "
            "SUMAC_PLUGIN_EXPORT (sumac/plugin.h)",
            path);
    const enum sumac_status status = plugins_add(&files->plugins, table, &why);
    if (status == SUMAC_OK)
        return SUMAC_OK;
    return fail(error, status, why.reason, "the plug-in %s: %s", path, why.text);
}

void plugin_files_init(struct plugin_files *files)
{
    *files = (struct plugin_files){.count = 0};
    plugins_init(&files->plugins, &memory_heap);
}

enum sumac_status
plugin_files_open(struct plugin_files *files, const char *path, struct sumac_error *error)
{
    void *handle = NULL;

    if (files->count == PLUGIN_FILES_MAX)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_UNSPECIFIED,
            "the plug-in %s: there are %u, the most there may be", path, PLUGIN_FILES_MAX);
    enum sumac_status status = open_library(path, &handle, error);
    if (status != SUMAC_OK)
        return status;
    status = read_table(files, path, handle, error);
    files->paths[files->count] = path;
    files->handles[files->count++] = handle;
    return status;
}

void plugin_files_close(struct plugin_files *files)
{
    plugins_deinit(&files->plugins);
    while (files->count > 0)
        (void)dlclose(files->handles[--files->count]);
    assert(files->plugins.count == 0);
}
