/* SPDX-License-Identifier: Apache-2.0 */
/* tf_config.c -- TF_CONFIG, parsed whole and refused at once.
 *
 *   {"cluster": {JOB: ["host:port", …] or {"INDEX": "host:port", …}, …},
 *    "task": {"type": JOB, "index": N}, "rpc_layer": TEXT, "session_master": TEXT}
 *
 * "sparseCluster", as Kubeflow's operator once wrote it, is "cluster".
 *
 * TensorFlow's resolver
 * (tensorflow/python/distribute/cluster_resolver/tfconfig_cluster_resolver.py) fails when a value
 * is asked for, or not at all; here everything is checked beforehand:
 *
 *   text            one JSON object (RFC 8259), no key twice, at most DEPTH_MAX levels; further
 *                   keys are ignored; without a cluster the first of them is kept (unread_key)
 *   address         address.h; none occurs twice
 *   INDEX           plain digits, none twice; a map may leave indices out
 *   JOB             any name but the empty one; without tasks it counts as absent
 *   type, index     an integer or a string, of digits for the index; they name a task of the
 *                   cluster, unless that is empty, or type is `evaluator`
 *   the other two   a string, or null for none
 *
 * Kubeflow's dynamic form tells a ps only of itself: `ps` is then a list of one while some other
 * job is a map, and the one address belongs to the task's own index.
 */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "address.h"
#include "error.h"
#include "member_jobs.h"
#include "nearest.h"
#include "sumac/cluster.h"
#include "text.h"

#define DEPTH_MAX 100
#define INDEX_MAX 2147483647
#define SHOWN_DIGITS JSON_REAL_PRECISION(6)

#define REFUSE(...) fail_argument(error, __VA_ARGS__)

static enum sumac_status no_memory(struct sumac_error *error)
{
    return fail_for_memory(error, "no memory to hold TF_CONFIG's cluster");
}

/* In place of what there was. */
static enum sumac_status copy_text(const char *text, char **copy, struct sumac_error *error)
{
    free(*copy);
    *copy = strdup(text);
    return *copy == NULL ? no_memory(error) : SUMAC_OK;
}

static bool holds_nul(const json_t *string)
{
    return strlen(json_string_value(string)) != json_string_length(string);
}

/* Plain digits, as a number up to INDEX_MAX. */
static bool read_digits(const char *text, uint32_t *index)
{
    return address_read_digits(text, strlen(text), INDEX_MAX, index);
}

/* ---- cluster */

static enum sumac_status read_address(
    const char *job, uint32_t index, const json_t *value, struct sumac_task *task,
    struct sumac_error *error)
{
    if (!json_is_string(value))
        return REFUSE(
            "TF_CONFIG: task %u of job %s in \"cluster\" is not a string \"host:port\"", index,
            job);
    const char *address = json_string_value(value);
    const char *flaw = address_flaw(address, json_string_length(value));
    if (flaw != NULL)
        return REFUSE(
            "TF_CONFIG: task %u of job %s in \"cluster\" is not \"host:port\": \"%.256s\": %s",
            index, job, address, flaw);
    task->index = index;
    return copy_text(address, &task->address, error);
}

static enum sumac_status
read_list(const json_t *list, struct sumac_job *job, struct sumac_error *error)
{
    enum sumac_status status = SUMAC_OK;

    for (size_t i = 0; status == SUMAC_OK && i < json_array_size(list); i++) {
        struct sumac_task *const task = &job->tasks[job->task_count++];
        status = read_address(job->name, (uint32_t)i, json_array_get(list, i), task, error);
    }
    return status;
}

static int order_tasks(const void *a, const void *b)
{
    const struct sumac_task *left = a, *right = b;

    return (left->index > right->index) - (left->index < right->index);
}

static enum sumac_status read_map(json_t *map, struct sumac_job *job, struct sumac_error *error)
{
    const char *key = NULL;
    json_t *value = NULL;

    json_object_foreach(map, key, value)
    {
        uint32_t index = 0;
        if (!read_digits(key, &index))
            return REFUSE(
                "TF_CONFIG: an index of job %s in \"cluster\" is not a number from 0 to %d in "
                "plain digits: \"%s\"",
                job->name, INDEX_MAX, key);
        const enum sumac_status status =
            read_address(job->name, index, value, &job->tasks[job->task_count++], error);
        if (status != SUMAC_OK)
            return status;
    }
    qsort(job->tasks, job->task_count, sizeof *job->tasks, order_tasks);
    for (uint32_t i = 1; i < job->task_count; i++)
        if (job->tasks[i].index == job->tasks[i - 1].index)
            return REFUSE(
                "TF_CONFIG: job %s in \"cluster\" has index %u twice", job->name,
                job->tasks[i].index);
    return SUMAC_OK;
}

/* Add a job; one without tasks counts as absent. */
static enum sumac_status
read_job(const char *name, json_t *value, struct sumac_cluster *cluster, struct sumac_error *error)
{
    if (name[0] == '\0')
        return REFUSE("TF_CONFIG: a job in \"cluster\" has an empty name");
    if (!json_is_array(value) && !json_is_object(value))
        return REFUSE(
            "TF_CONFIG: job %s in \"cluster\" is neither a list of \"host:port\" nor a map from "
            "index to \"host:port\"",
            name);
    const size_t count = json_is_array(value) ? json_array_size(value) : json_object_size(value);
    if (count == 0)
        return SUMAC_OK;
    if (count > INDEX_MAX)
        return REFUSE("TF_CONFIG: job %s in \"cluster\" has more than %d tasks", name, INDEX_MAX);
    struct sumac_job *job = &cluster->jobs[cluster->job_count++];
    job->sparse = json_is_object(value);
    job->tasks = calloc(count, sizeof *job->tasks);
    if (job->tasks == NULL)
        return no_memory(error);
    const enum sumac_status status = copy_text(name, &job->name, error);
    if (status != SUMAC_OK)
        return status;
    return job->sparse ? read_map(value, job, error) : read_list(value, job, error);
}

struct listed_place {
    const char *address;
    const char *job;
    uint32_t index;
};

static int order_places(const void *a, const void *b)
{
    const struct listed_place *left = a, *right = b;

    return strcmp(left->address, right->address);
}

static enum sumac_status
check_addresses_differ(const struct sumac_cluster *cluster, struct sumac_error *error)
{
    size_t count = 0, filled = 0;

    for (uint32_t i = 0; i < cluster->job_count; i++)
        count += cluster->jobs[i].task_count;
    if (count < 2)
        return SUMAC_OK;
    struct listed_place *places = calloc(count, sizeof *places);
    if (places == NULL)
        return no_memory(error);
    for (uint32_t i = 0; i < cluster->job_count; i++) {
        const struct sumac_job *job = &cluster->jobs[i];
        for (uint32_t j = 0; j < job->task_count; j++)
            places[filled++] =
                (struct listed_place){job->tasks[j].address, job->name, job->tasks[j].index};
    }
    qsort(places, count, sizeof *places, order_places);
    enum sumac_status status = SUMAC_OK;
    for (size_t i = 1; i < count && status == SUMAC_OK; i++) {
        const struct listed_place *first = &places[i - 1], *second = &places[i];
        if (strcmp(first->address, second->address) == 0)
            status = REFUSE(
                "TF_CONFIG: \"cluster\" has the address %s twice, for %s %u and %s %u%s",
                first->address, first->job, first->index, second->job, second->index,
                strcmp(first->job, "master") == 0 || strcmp(second->job, "master") == 0
                    ? ": do not list a master among the workers as well"
                    : "");
    }
    free(places);
    return status;
}

static enum sumac_status
read_cluster(json_t *value, struct sumac_cluster *cluster, struct sumac_error *error)
{
    if (!json_is_object(value))
        return REFUSE("TF_CONFIG: \"cluster\" is not an object from job to tasks");
    const size_t count = json_object_size(value);
    cluster->jobs = calloc(count > 0 ? count : 1, sizeof *cluster->jobs);
    if (cluster->jobs == NULL)
        return no_memory(error);
    const char *name = NULL;
    json_t *tasks = NULL;
    json_object_foreach(value, name, tasks)
    {
        const enum sumac_status status = read_job(name, tasks, cluster, error);
        if (status != SUMAC_OK)
            return status;
    }
    return check_addresses_differ(cluster, error);
}

/* ---- task */

static enum sumac_status
read_type(const json_t *value, struct sumac_cluster *cluster, struct sumac_error *error)
{
    if (json_is_integer(value)) {
        char digits[24];
        (void)text_print(digits, sizeof digits, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return copy_text(digits, &cluster->task_type, error);
    }
    if (!json_is_string(value) || holds_nul(value))
        return REFUSE("TF_CONFIG: \"type\" of \"task\" is not the name of a job");
    return copy_text(json_string_value(value), &cluster->task_type, error);
}

static enum sumac_status
read_index(const json_t *value, struct sumac_cluster *cluster, struct sumac_error *error)
{
    bool valid = false;

    if (json_is_integer(value)) {
        const json_int_t number = json_integer_value(value);
        valid = number >= 0 && number <= INDEX_MAX;
        cluster->task_index = valid ? (uint32_t)number : 0;
    } else if (json_is_string(value) && !holds_nul(value)) {
        valid = read_digits(json_string_value(value), &cluster->task_index);
    }
    if (!valid) {
        char *const shown = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | SHOWN_DIGITS);
        (void)REFUSE(
            "TF_CONFIG: \"index\" of \"task\" is not a whole number from 0 to %d: %.64s", INDEX_MAX,
            shown == NULL ? "?" : shown);
        free(shown);
        return SUMAC_INVALID_ARGUMENT;
    }
    cluster->task_index_given = true;
    return SUMAC_OK;
}

static enum sumac_status
read_task(const json_t *value, struct sumac_cluster *cluster, struct sumac_error *error)
{
    if (!json_is_object(value))
        return REFUSE("TF_CONFIG: \"task\" is not an object with \"type\" and \"index\"");
    const json_t *type = json_object_get(value, "type");
    const json_t *index = json_object_get(value, "index");
    const enum sumac_status status = type == NULL ? SUMAC_OK : read_type(type, cluster, error);
    return status != SUMAC_OK || index == NULL ? status : read_index(index, cluster, error);
}

/* ---- the whole */

static const char *the_task(const void *context, size_t index)
{
    (void)context;
    return index == 0 ? "task" : NULL;
}

/* Without a task, commands ask the cluster's ps. A key that is nearly "task" was meant as one. */
static enum sumac_status check_no_task(json_t *root, struct sumac_error *error)
{
    const char *key = NULL;
    json_t *value = NULL;

    json_object_foreach(root, key, value)
    {
        if (nearest_word(key, the_task, NULL) != NULL)
            return REFUSE("TF_CONFIG has \"%.64s\", and no \"task\": did you mean \"task\"?", key);
    }
    return SUMAC_OK;
}

static enum sumac_status
read_text(const json_t *root, const char *key, char **text, struct sumac_error *error)
{
    const json_t *value = json_object_get(root, key);

    if (value == NULL || json_is_null(value))
        return SUMAC_OK;
    if (!json_is_string(value) || holds_nul(value))
        return REFUSE("TF_CONFIG: \"%s\" is neither a string nor null", key);
    return copy_text(json_string_value(value), text, error);
}

/* No array or object lies deeper than DEPTH_MAX, `value` itself being at `depth`. */
static bool depth_is_valid(json_t *value, unsigned depth)
{
    bool valid = depth <= DEPTH_MAX || (!json_is_array(value) && !json_is_object(value));
    const char *key = NULL;
    json_t *inner = NULL;

    for (size_t i = 0; valid && i < json_array_size(value); i++)
        valid = depth_is_valid(json_array_get(value, i), depth + 1);
    json_object_foreach(value, key, inner) { valid = valid && depth_is_valid(inner, depth + 1); }
    return valid;
}

/* Does `text` begin with these characters, whatever blanks are before or between them? */
static bool begins_with(const char *text, const char *characters)
{
    for (; *characters != '\0'; characters++) {
        text += strspn(text, " \t\r\n");
        if (*text++ != *characters)
            return false;
    }
    return true;
}

/* Is a ']' or '}' the last character that was read, and a comma the one before it? */
static bool ends_with_comma(const char *text, size_t read_bytes)
{
    if (read_bytes == 0 || strchr("]}", text[--read_bytes]) == NULL)
        return false;
    while (read_bytes > 0 && strchr(" \t\r\n", text[read_bytes - 1]) != NULL)
        read_bytes--;
    return read_bytes > 0 && text[read_bytes - 1] == ',';
}

/* The remedy for a text that is not JSON, behind a semicolon; "": none is known. */
static const char *remedy(const char *text, size_t read_bytes)
{
    static const struct {
        const char *beginning, *remedy;
    } rows[] = {
        {"{'", "; JSON has double quotes, and this text has single ones: write it with Python's "
               "json.dumps"},
        {"'{", "; leave out the quotes around it"}, /* `docker run --env-file` keeps them */
        {"\"{", "; leave out the quotes around it"},
        {"{\\", "; leave out each backslash before a quote"},
        {"{\xe2\x80\x9c", "; JSON has straight double quotes, and this text has typographic ones"},
        {"{\xe2\x80\x9d", "; JSON has straight double quotes, and this text has typographic ones"},
        {"TF_CONFIG", "; leave out the name at its beginning"},
        {"/", "; it is the text itself, not the name of a file"},
        {"./", "; it is the text itself, not the name of a file"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (begins_with(text, rows[i].beginning))
            return rows[i].remedy;
    return ends_with_comma(text, read_bytes) ? "; leave out the comma before it" : "";
}

static enum sumac_status load(const char *text, json_t **root, struct sumac_error *error)
{
    if (strncmp(text, "\xef\xbb\xbf", 3) == 0)
        return REFUSE("TF_CONFIG begins with a byte-order mark: leave it out");
    json_error_t where;
    *root = json_loads(text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &where);
    if (*root == NULL)
        return REFUSE(
            "TF_CONFIG is not JSON: line %d, column %d: %s%s", where.line, where.column, where.text,
            remedy(text, (size_t)where.position));
    if (json_is_string(*root))
        return REFUSE("TF_CONFIG is a JSON string, not an object: it is quoted twice");
    if (!json_is_object(*root))
        return REFUSE(
            "TF_CONFIG is %s, not a JSON object: it must begin with '{'",
            json_is_null(*root)    ? "null"
            : json_is_array(*root) ? "an array"
                                   : "a number or a boolean");
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(*root, key, value)
    {
        if (!depth_is_valid(value, 2))
            return REFUSE("TF_CONFIG: \"%s\" is nested deeper than %d levels", key, DEPTH_MAX);
    }
    return SUMAC_OK;
}

static enum sumac_status apply_overrides(
    const struct sumac_cluster_overrides *overrides, struct sumac_cluster *cluster,
    struct sumac_error *error)
{
    if (overrides == NULL)
        return SUMAC_OK;
    if (overrides->has_task_index) {
        if (overrides->task_index > INDEX_MAX)
            return REFUSE("the task's index %u is above %d", overrides->task_index, INDEX_MAX);
        cluster->task_index = overrides->task_index;
        cluster->task_index_given = true;
    }
    enum sumac_status status = SUMAC_OK;
    if (overrides->task_type != NULL)
        status = copy_text(overrides->task_type, &cluster->task_type, error);
    if (status == SUMAC_OK && overrides->rpc_layer != NULL)
        status = copy_text(overrides->rpc_layer, &cluster->rpc_layer, error);
    return status;
}

static json_t *find_jobs(const json_t *root)
{
    json_t *const jobs = json_object_get(root, "cluster");

    return jobs == NULL ? json_object_get(root, "sparseCluster") : jobs;
}

/* A key that may be meant as a cluster, of a text without one. */
static enum sumac_status
keep_unread_key(json_t *root, struct sumac_cluster *cluster, struct sumac_error *error)
{
    static const char *const known[] = {"task", "rpc_layer", "session_master", "environment"};
    const char *key = NULL;
    json_t *value = NULL;

    json_object_foreach(root, key, value)
    {
        bool is_known = false;
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
            is_known = is_known || strcmp(key, known[i]) == 0;
        if (!is_known)
            return copy_text(key, &cluster->unread_key, error);
    }
    return SUMAC_OK;
}

/* Is some job given as a map, were it an empty one? */
static bool some_job_is_a_map(const json_t *root)
{
    json_t *jobs = find_jobs(root);
    const char *name = NULL;
    json_t *tasks = NULL;
    bool some = false;

    json_object_foreach(jobs, name, tasks) { some = some || json_is_object(tasks); }
    return some;
}

/* The task must be one of the cluster's, when it has any; an evaluator may stand outside. */
static enum sumac_status
place_task(const json_t *root, struct sumac_cluster *cluster, struct sumac_error *error)
{
    if (cluster->job_count == 0 || cluster->task_type == NULL)
        return SUMAC_OK;
    const struct sumac_job *const own = sumac_cluster_job(cluster, cluster->task_type);
    char jobs[JOBS_BYTES];
    if (own == NULL && strcmp(cluster->task_type, "evaluator") != 0)
        return REFUSE(
            "TF_CONFIG: \"cluster\" has no job for this process's task type: \"%.64s\"; it has %s",
            cluster->task_type, cluster_print_jobs(cluster, jobs, sizeof jobs));
    if (own == NULL || !cluster->task_index_given)
        return SUMAC_OK;
    cluster->told_only_itself = !own->sparse && own->task_count == 1 && some_job_is_a_map(root);
    if (cluster->told_only_itself)
        own->tasks[0].index = cluster->task_index;
    if (sumac_cluster_address(cluster, own->name, cluster->task_index) == NULL &&
        strcmp(own->name, "evaluator") != 0)
        return REFUSE(
            "TF_CONFIG: \"cluster\" has no task %u of this process's job %s, which has %u; the "
            "first is 0",
            cluster->task_index, own->name, own->task_count);
    return SUMAC_OK;
}

static enum sumac_status read_root(
    json_t *root, const struct sumac_cluster_overrides *overrides, struct sumac_cluster *cluster,
    struct sumac_error *error)
{
    json_t *const jobs = find_jobs(root), *const task = json_object_get(root, "task");
    enum sumac_status status =
        jobs == NULL ? keep_unread_key(root, cluster, error) : read_cluster(jobs, cluster, error);

    cluster->empty = jobs != NULL && json_object_size(jobs) == 0;
    if (status == SUMAC_OK)
        status = task == NULL ? check_no_task(root, error) : read_task(task, cluster, error);
    if (status == SUMAC_OK)
        status = read_text(root, "rpc_layer", &cluster->rpc_layer, error);
    if (status == SUMAC_OK)
        status = read_text(root, "session_master", &cluster->session_master, error);
    if (status == SUMAC_OK)
        status = apply_overrides(overrides, cluster, error);
    if (status == SUMAC_OK)
        status = place_task(root, cluster, error);
    return status;
}

enum sumac_status sumac_cluster_parse(
    const char *tf_config, const struct sumac_cluster_overrides *overrides,
    struct sumac_cluster *cluster, struct sumac_error *error)
{
    const char *text = tf_config != NULL && tf_config[0] != '\0' ? tf_config : "{}";
    struct sumac_cluster read = {0};
    json_t *root = NULL;

    if (cluster == NULL)
        return fail_for_null(error, "sumac_cluster_parse", "cluster");
    enum sumac_status status = load(text, &root, error);
    if (status == SUMAC_OK)
        status = read_root(root, overrides, &read, error);
    json_decref(root);
    if (status != SUMAC_OK) {
        sumac_cluster_deinit(&read);
        return status;
    }
    *cluster = read;
    return SUMAC_OK;
}

enum sumac_status sumac_cluster_from_environment(
    const struct sumac_cluster_overrides *overrides, struct sumac_cluster *cluster,
    struct sumac_error *error)
{
    return sumac_cluster_parse(getenv("TF_CONFIG"), overrides, cluster, error);
}
