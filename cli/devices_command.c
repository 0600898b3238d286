/* SPDX-License-Identifier: Apache-2.0 */
/* devices_command.c -- `sumac devices`: what replicas can run on here, and what is missing. */
#define _GNU_SOURCE /* sched_getaffinity */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "gpus.h"
#include "json.h"
#include "table.h"
#include "text.h"

struct devices_options {
    bool json;
};

static const struct option_row rows[] = {
    OPTION_ROW_JSON(struct devices_options),
};

struct cpu {
    char name[96];
    uint32_t cores; /* that this process may use */
    uint64_t memory_bytes;
};

/* Some processors have no name: theirs is "CPU". */
static void read_cpu_name(char *name, size_t name_bytes)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[256];

    (void)text_print(name, name_bytes, "CPU");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *value = strchr(line, ':');
        if (strncmp(line, "model name", strlen("model name")) != 0 || value == NULL)
            continue;
        line[strcspn(line, "\n")] = '\0';
        (void)text_print_line(name, name_bytes, "%s", value + 1 + strspn(value + 1, " "));
        break;
    }
    if (file != NULL)
        (void)fclose(file);
}

static struct cpu find_cpu(void)
{
    cpu_set_t set;
    struct cpu cpu = {.cores = 1};
    const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);

    read_cpu_name(cpu.name, sizeof cpu.name);
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        cpu.cores = (uint32_t)CPU_COUNT(&set);
    if (pages > 0 && page_bytes > 0)
        cpu.memory_bytes = (uint64_t)pages * (uint64_t)page_bytes;
    return cpu;
}

/* One GPU alone needs no NCCL. */
static const struct sumac_error *nccl_missing(const struct gpus *gpus)
{
    return gpus->count > 1 && gpus->nccl_missing.status != SUMAC_OK ? &gpus->nccl_missing : NULL;
}

/* ---- text */

static void add_cpu(struct table *table, const struct cpu *cpu)
{
    table_add(table, "CPU");
    table_add(table, "%s", cpu->name);
    table_add(table, "%s", table_bytes((double)cpu->memory_bytes).text);
    table_add(table, cpu->cores == 1 ? "%" PRIu32 " core" : "%" PRIu32 " cores", cpu->cores);
    table_add(table, "-");
}

static void add_gpu(struct table *table, const struct gpus *gpus, uint32_t index)
{
    const struct gpu *gpu = &gpus->items[index];
    char text[512] = "-";
    size_t used = 0;

    for (uint32_t other = 0; other < gpus->count; other++)
        if ((gpu->reaches >> other & 1) != 0)
            used += text_print(
                text + used, sizeof text - used, "%sGPU:%" PRIu32, used == 0 ? "" : ", ", other);
    table_add(table, "GPU:%" PRIu32, index);
    table_add(table, "%s", gpu->name);
    table_add(table, "%s", table_bytes((double)gpu->memory_bytes).text);
    table_add(table, "%" PRIu32 ".%" PRIu32, gpu->capability_major, gpu->capability_minor);
    table_add(table, "%s", text);
}

/* "driver 580.65.06, CUDA 13.0, NCCL 2.28.9": those that there are. */
static void print_versions(const struct gpus *gpus)
{
    const bool driver = gpus->driver[0] != '\0', cuda = gpus->cuda_major > 0;
    const bool nccl = gpus->nccl_major > 0;

    if (driver)
        printf("driver %s", gpus->driver);
    if (cuda)
        printf(
            "%sCUDA %" PRIu32 ".%" PRIu32, driver ? ", " : "", gpus->cuda_major, gpus->cuda_minor);
    if (nccl)
        printf(
            "%sNCCL %" PRIu32 ".%" PRIu32 ".%" PRIu32, driver || cuda ? ", " : "", gpus->nccl_major,
            gpus->nccl_minor, gpus->nccl_patch);
    if (driver || cuda || nccl)
        putchar('\n');
}

static void print_text(const struct cpu *cpu, const struct gpus *gpus)
{
    static const struct table_column columns[] = {
        {NULL, "DEVICE", 0},  {NULL, "NAME", 0},    {NULL, ">MEMORY", 0},
        {NULL, "COMPUTE", 0}, {NULL, "REACHES", 0},
    };
    struct table table = {.columns = columns, .column_count = sizeof columns / sizeof columns[0]};

    add_cpu(&table, cpu);
    for (uint32_t i = 0; i < gpus->count; i++)
        add_gpu(&table, gpus, i);
    (void)table_print(&table, 0, stdout);
    print_versions(gpus);
    if (gpus->missing.status != SUMAC_OK)
        printf("%s: %s\n", gpus->count == 0 ? "no GPU" : "not every GPU", gpus->missing.text);
    if (nccl_missing(gpus) != NULL)
        printf("no NCCL: %s\n", nccl_missing(gpus)->text);
}

/* ---- JSON */

static json_t *gpu_value(const struct gpus *gpus, uint32_t index)
{
    const struct gpu *gpu = &gpus->items[index];
    json_t *const others = json_array();

    for (uint32_t other = 0; other < gpus->count; other++)
        if ((gpu->reaches >> other & 1) != 0)
            json_add(others, json_number(other));
    return JSON_OBJECT(
        {"index", json_number(index)}, {"name", json_string(gpu->name)},
        {"memory_bytes", json_number(gpu->memory_bytes)},
        {"compute_capability",
         json_sprintf("%" PRIu32 ".%" PRIu32, gpu->capability_major, gpu->capability_minor)},
        {"reaches", others});
}

/* What is not there has no key. */
static void print_json(const struct cpu *cpu, const struct gpus *gpus)
{
    json_t *const items = json_array(), *const missing = json_array();
    json_t *const cuda =
        gpus->cuda_major == 0
            ? NULL
            : json_sprintf("%" PRIu32 ".%" PRIu32, gpus->cuda_major, gpus->cuda_minor);
    json_t *const nccl = gpus->nccl_major == 0
                             ? NULL
                             : json_sprintf(
                                   "%" PRIu32 ".%" PRIu32 ".%" PRIu32, gpus->nccl_major,
                                   gpus->nccl_minor, gpus->nccl_patch);

    for (uint32_t i = 0; i < gpus->count; i++)
        json_add(items, gpu_value(gpus, i));
    if (gpus->missing.status != SUMAC_OK)
        json_add(missing, json_string(gpus->missing.text));
    if (nccl_missing(gpus) != NULL)
        json_add(missing, json_string(nccl_missing(gpus)->text));
    json_t *const processor = JSON_OBJECT(
        {"name", json_string(cpu->name)}, {"cores", json_number(cpu->cores)},
        {"memory_bytes", json_number(cpu->memory_bytes)});
    (void)json_print(
        JSON_OBJECT(
            {"cpu", processor}, {"gpus", items},
            {"driver", gpus->driver[0] != '\0' ? json_string(gpus->driver) : NULL}, {"cuda", cuda},
            {"nccl", nccl}, {"missing", missing}),
        false, stdout);
}

static int list(const void *given, struct command_words words)
{
    const struct devices_options *const options = given;
    const struct cpu cpu = find_cpu();
    struct gpus gpus;
    (void)words;

    gpus_find(&gpus);
    (options->json ? print_json : print_text)(&cpu, &gpus);
    return EXIT_FINE;
}

const struct command devices_command = {
    .name = "devices",
    .summary = "list the devices of this machine, and say what is missing for more",
    .arguments = "",
    .about =
        "The CPU, whose devices CPU:0, CPU:1, … are as many as are asked for; and each GPU that "
        "programs see here (CUDA_VISIBLE_DEVICES hides and orders them), with its memory, its "
        "compute capability, and the GPUs whose memory it reads and writes without the host. Then "
        "the driver's release, the latest CUDA that it knows, and NCCL, which several GPUs need. "
        "Each missing part is named with its remedy. No ps is asked.",
    .examples = "  sumac devices\n"
                "  CUDA_VISIBLE_DEVICES=1 sumac devices --json\n",
    COMMAND_OPTIONS(struct devices_options, 0),
    .no_words = "means nothing here; see `sumac devices --help`",
    .run = list,
};
