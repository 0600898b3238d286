/* SPDX-License-Identifier: Apache-2.0 */
/* client.h -- a session with a cluster of parameter servers: create, push, pull, leave.
 *
 * Threads: any number of threads may use a client at once; each push and each pull is waited for by
 * one. The thread that waits polls the network itself; a background thread does so only while
 * nobody waits (leases, a broken connection). Closing is the last call: no other may be going on.
 *
 * Processes: a client is for the process that opened it. Fork first, then open a client in each
 * process: in a child every call to its parent's client fails with FAILED_PRECONDITION, or does
 * nothing (close: the connections are the parent's, and its session goes on; describe: zeros).
 *
 * Errors: every function returns a gRPC status; `error` (NULL is fine) gets the reason and a
 * sentence that names the peer, the variable, the shape, and the remedy. No call waits without
 * limit: the options' timeout_ms bounds each. Once a session has ended by itself (settled, a ps
 * lost), every call that needs it fails with what ended it: DATA_LOSS (STATE_LOST), ABORTED
 * (SESSION_CLOSED), FAILED_PRECONDITION (RUN_ENDED), … FAILED_PRECONDITION (REPLACED): another
 * process has joined as this task, and the sentence names its host and process.
 *
 * A member that joins says which run it is of: SUMAC_RUN (at most 128 bytes; empty: none), else the
 * Slurm job. ps 0 refuses a member of another run (WRONG_CLUSTER) when both names have one source.
 * It refuses no member without a name: that one takes the task's place, also in a run with a name.
 */
#ifndef SUMAC_CLIENT_H
#define SUMAC_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sumac/cluster.h"
#include "sumac/reduce.h"
#include "sumac/status.h"
#include "sumac/tensor.h"

#define SUMAC_CHUNK_BYTES_MIN 64
#define SUMAC_CHUNK_BYTES_MAX 1048576
/* Of one push, or one pull. Of a pull a ps is asked for 16 384 pieces at most, of which each shard
 * is one: INVALID_ARGUMENT (TOO_MANY_PIECES), where one ps has more of them. */
#define SUMAC_TRANSFER_VARIABLES_MAX 65536
#define SUMAC_HYPERPARAMETERS_MAX 24u /* of one update function */
#define SUMAC_SLOTS_MAX 8u            /* likewise */

struct sumac_client;
struct sumac_client_variable; /* a variable as its client knows it; valid until the client is closed
                               */
struct sumac_push;            /* one push under way */
struct sumac_pull;            /* one pull under way */

enum sumac_synchronization {
    SUMAC_SYNCHRONIZATION_AUTO = 0,
    SUMAC_SYNCHRONIZATION_NONE = 1,
    SUMAC_SYNCHRONIZATION_ON_WRITE = 2,
    SUMAC_SYNCHRONIZATION_ON_READ = 3,
};

enum sumac_initializer_kind {
    SUMAC_INITIALIZER_ZEROS = 0,
    SUMAC_INITIALIZER_ONES = 1,
    SUMAC_INITIALIZER_CONSTANT = 2, /* a */
    SUMAC_INITIALIZER_UNIFORM = 3,  /* [a, b); a below b */
    SUMAC_INITIALIZER_NORMAL = 4,   /* mean a, standard deviation b, above 0 */
    SUMAC_INITIALIZER_ASSIGNED = 5, /* the creator's value: initial_value */
};

enum sumac_partitioner_kind {
    SUMAC_PARTITIONER_NONE = 0,           /* one shard, on one ps */
    SUMAC_PARTITIONER_FIXED_SHARDS = 1,   /* num_shards, but no more than there are rows */
    SUMAC_PARTITIONER_MIN_SIZE = 2,       /* each of min_shard_bytes, about, or more */
    SUMAC_PARTITIONER_MAX_SIZE = 3,       /* each of max_shard_bytes or less */
    SUMAC_PARTITIONER_SHARD_PER_PS = 256, /* FIXED_SHARDS of as many as there are ps: one on each */
};

/* The number of shards, at most 4096, that a variable is split into along its first axis
 * (tf.distribute.experimental.partitioners). Zeroed: one shard. A member that the kind does not use
 * is 0. Without ps, SHARD_PER_PS is one shard. */
struct sumac_partitioner {
    enum sumac_partitioner_kind kind;
    uint64_t num_shards;      /* of FIXED_SHARDS: at least 1 */
    uint64_t min_shard_bytes; /* of MIN_SIZE; 0: 256 KiB */
    uint64_t max_shards;      /* of MIN_SIZE, 0: 1; of MAX_SIZE, 0: any number */
    uint64_t max_shard_bytes; /* of MAX_SIZE: at least 1 */
};

struct sumac_hyperparameter {
    const char *name; /* "learning_rate" */
    double value;
};

enum sumac_schedule_kind {
    SUMAC_SCHEDULE_CONSTANT = 0,          /* base */
    SUMAC_SCHEDULE_EXPONENTIAL_DECAY = 1, /* base·decay_rate^(s ÷ decay_steps) */
    /* base·((1 − alpha)·(1 + cos(π·min(s, decay_steps) ÷ decay_steps)) ÷ 2 + alpha) */
    SUMAC_SCHEDULE_COSINE_DECAY = 2,
};

/* How a variable's learning_rate goes without a push (tf.keras.optimizers.schedules), by the
 * version that each of its shards has before a push is applied: n = version − first_version, or 0
 * before. In the first warmup_steps of them it is learning_rate + (warmup_target −
 * learning_rate)·n ÷ warmup_steps; then as its kind says, with s = n − warmup_steps and
 * warmup_target as base. Without warm-up s = n, and learning_rate is the base. A push of some rows
 * is a version of every shard, so the rate does not depend on the number of shards. A schedule that
 * is set later (sets_hyperparameters) begins at the version that each shard has then. What a kind
 * does not have is 0; zeroed: the rate is as it is given. */
struct sumac_schedule {
    enum sumac_schedule_kind kind;
    uint64_t decay_steps;   /* of a decay: 1 to 2^53 */
    double decay_rate;      /* of exponential decay: finite, above 0 */
    bool staircase;         /* of exponential decay: s ÷ decay_steps is rounded down */
    double alpha;           /* of cosine decay: 0 to 1 */
    uint64_t warmup_steps;  /* at most 2^53 */
    double warmup_target;   /* with warmup_steps: finite, at least 0 */
    uint64_t first_version; /* from which version on */
};

/* An update function by name, "adam", or one that was defined (sumac_client_define);
 * hyperparameters left out keep their defaults (or, in a push, the variable's). The
 * hyperparameters are part of the struct: a copy of it is whole. A place without a name is free. */
struct sumac_function {
    const char *name;
    struct sumac_hyperparameter hyperparameters[SUMAC_HYPERPARAMETERS_MAX];
    /* Of learning_rate. NULL: of a variable that is created, none; in a push the variable's, but
     * none where the push names a learning_rate. */
    const struct sumac_schedule *schedule;
};

/* SUMAC_FUNCTION("momentum", {"learning_rate", 0.1}, {"momentum", 0.8}), or SUMAC_FUNCTION("adam"):
 * a value, in C and in C++. The free place at its end saves the inner macro from having no more
 * arguments, which C99 and C++11 do not allow. */
#define SUMAC_FUNCTION(...) SUMAC_FUNCTION_OF(__VA_ARGS__, {NULL, 0})
#ifdef __cplusplus
#define SUMAC_FUNCTION_OF(function, ...) (sumac_function{(function), {__VA_ARGS__}, nullptr})
#else
#define SUMAC_FUNCTION_OF(function, ...) ((struct sumac_function){(function), {__VA_ARGS__}, NULL})
#endif

struct sumac_client_variable_options {
    /* UTF-8, 1 to 1024 bytes, no control characters, not ending in /part_ and digits */
    const char *name;
    enum sumac_dtype dtype; /* 0: float32 */
    struct sumac_shape shape;
    enum sumac_reduce_op aggregation;
    enum sumac_synchronization synchronization;
    bool frozen;
    enum sumac_initializer_kind initializer;
    double a, b;                              /* of the initializer, as its kind says */
    uint64_t seed;                            /* of UNIFORM and NORMAL */
    const struct sumac_tensor *initial_value; /* of ASSIGNED: the creator's is taken */
    struct sumac_partitioner partitioner;
    struct sumac_function function; /* name NULL: "assign" */
    /* All its shards lie on the ps of the first shard of this variable, which there is already, or
     * of a shard of it, NAME/part_I (tf.distribute.StrategyExtended.colocate_vars_with); NULL:
     * anywhere. A variable that there is already is not moved: ALREADY_EXISTS, if it is elsewhere.
     */
    const char *colocate_with;
};

enum sumac_on_loss {
    SUMAC_ON_LOSS_ANY = 0,
    SUMAC_ON_LOSS_CONTINUE = 1, /* a synchronous step is made without a member that was lost */
    SUMAC_ON_LOSS_FAIL = 2,     /* it fails, and so does each after it */
};

/* How synchronous steps are made: ps 0's --members, --quorum, --on-loss and --step-deadline. */
struct sumac_step_options {
    uint32_t members; /* that begin with step 1, as many as are listed where ps 0 was told nothing;
                         0: none are known, and no step is taken */
    uint32_t quorum;  /* so many contributions make a step; 0: those of all members */
    enum sumac_on_loss on_loss;
    uint32_t deadline_ms; /* with a quorum, after the first; UINT32_MAX: as the last steps took */
};

struct sumac_client_options {
    const struct sumac_cluster *cluster; /* borrowed by open; NULL: `ps_addresses` */
    /* for a reader or an observer: one will do, it knows the others; NULL, too: the cluster is the
     * one in TF_CONFIG */
    const char *const *ps_addresses;
    uint32_t ps_count;
    bool reader; /* no session: finds and pulls only */
    bool any_ps; /* of a reader: one ps that answers is enough to open, and those that hold what is
                    pulled to pull it */
    bool observer; /* a session that holds nothing up; else: a member, the cluster's own task */
    uint32_t local_replicas; /* of this worker; 0: 1 */
    /* What the program takes ps 0's options to be, but for the deadline; 0: it does not mind. The
     * join is refused (FAILED_PRECONDITION, WRONG_CLUSTER) with both where they differ. */
    struct sumac_step_options step_options;
    uint32_t timeout_ms;  /* of each call; 0: 60 000 */
    uint32_t chunk_bytes; /* of a push's messages; 0: 256 KiB; 64 bytes to 1 MiB */
    /* Gets a line without its end, on any thread, and calls no client. NULL: stderr. */
    void (*log)(void *context, const char *line);
    void *log_context;
};

/* Find the ps, and join (members and observers). Waits for ps that are not up, saying so every 5 s.
 * options NULL: as zeroed, which is the member that TF_CONFIG says this process is.
 *
 * Borrows  all that the options point to; the log and its context until the close.
 * Gives    *client; close with sumac_client_close.
 * Fails    UNAVAILABLE (PS_MISSING): some ps did not appear; the text names it. INVALID_ARGUMENT:
 *          the cluster has no ps, the task is no member, or TF_CONFIG is not set or not understood.
 *          FAILED_PRECONDITION (RUN_ENDED, WRONG_CLUSTER, PROTOCOL_VERSION). */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_client_open(
    const struct sumac_client_options *options, struct sumac_client **client,
    struct sumac_error *error);

/* How a task leaves: with its work finished, which lets the run end, or for another attempt to go
 * on with. */
enum sumac_leaving {
    SUMAC_LEAVING_UNFINISHED = 0,
    SUMAC_LEAVING_DONE = 1,
};

/* End the session, when every push under way is applied or refused. The client stays open for
 * sumac_client_close.
 * Fails    DEADLINE_EXCEEDED (TIMED_OUT): not within the options' timeout_ms; else what ended the
 *          session before. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_client_leave(
    struct sumac_client *client, enum sumac_leaving leaving, struct sumac_error *error);

/* Close connections and free everything: variables, and pushes and pulls that were not waited for.
 * Their tensors' bytes are the caller's again. Without a leave before it the session ends with its
 * lease. NULL is fine. */
SUMAC_API void sumac_client_close(struct sumac_client *client);

/* Create a variable, or find the one that is defined the same way. One that is assigned by its
 * creator is there when its value is: this call pushes it, or waits for whoever does.
 *
 * Borrows  all that the options point to. Refs  the initial value's buffer when DEADLINE_EXCEEDED
 *          is returned while this client is to assign it: the push goes on, so its bytes (plain
 *          memory, too) are to stay as they are until a later create succeeds, or the close.
 * Lends    *variable, until the close.
 * Fails    ALREADY_EXISTS naming the field that differs; INVALID_ARGUMENT: name, shape, dtype,
 *          function, an option that only another initializer or partitioner has; OUT_OF_RANGE: an
 *          initial value that ends past its buffer. FAILED_PRECONDITION (SESSION_CLOSED): of a
 *          reader, or after a leave. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_client_variable_create(
    struct sumac_client *client, const struct sumac_client_variable_options *options,
    struct sumac_client_variable **variable, struct sumac_error *error);

/* Create `count` variables, or find those that are defined the same way: one message for each 256
 * of them, or for fewer that have many shards, and not one for each. Those that their creator
 * assigns are created one by one, after the others.
 *
 * Borrows  all that the options point to, as sumac_client_variable_create. Refs  likewise.
 * Lends    variables[0 … count - 1] in the order of the options, until the close; written on
 *          success only.
 * Fails    as sumac_client_variable_create, naming the variable. Of the 256 that one message takes
 * none is created when one is refused; those of earlier messages stay, and the same call again
 *          finds them. INVALID_ARGUMENT: one name twice. DEADLINE_EXCEEDED: timeout_ms is for each
 *          message, and none is begun when it has passed.
 * Threads  any; others go on beside it. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_client_variable_create_many(
    struct sumac_client *client, const struct sumac_client_variable_options *options, size_t count,
    struct sumac_client_variable **variables, struct sumac_error *error);

/* The variable of that name (asking a ps when it is not known yet). Lends  *variable, until the
 * close. Fails  NOT_FOUND. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_client_variable_find(
    struct sumac_client *client, const char *name, struct sumac_client_variable **variable,
    struct sumac_error *error);

/* Delete a variable and its slots, on every ps. The handle stays valid for its name; pushes to it
 * are refused.
 * Fails    NOT_FOUND. FAILED_PRECONDITION: it is being created; or as sumac_client_variable_create.
 */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_client_variable_delete(
    struct sumac_client *client, const char *name, struct sumac_error *error);

/* Make a text an update function of the cluster: an expression, docs/EXPRESSIONS.md, such as
 * "value = value - 0.1 * g". From then on it is used by its name, with its hyperparameters by
 * theirs, in sumac_client_variable_options and in a push, by this client and by every other one of
 * the cluster. The same text under the same name is the same function, so each worker may define
 * what it uses. Nothing is ever undefined, and a cluster has 64 at most.
 *
 * A client that meets a name which it does not know asks ps 0 for the functions of the cluster,
 * within that create or push, and remembers the answer; a name that is not among them is asked for
 * again the next time.
 *
 * name        a letter, then letters, digits, _, -, . and /, at most 63; no built-in function's.
 * text        UTF-8 of text_bytes bytes, at most 4096, without a NUL; none need end it.
 *
 * Borrows  name and text, until it returns.
 * Fails    INVALID_ARGUMENT at once: BAD_NAME; BAD_EXPRESSION, "line 3, column 9: …" with the word
 *          and what was expected there. ALREADY_EXISTS: the name has another text.
 *          RESOURCE_EXHAUSTED: there are 64. FAILED_PRECONDITION: a ps of another release reads the
 *          text otherwise (UNSUPPORTED); of a reader, or after a leave (SESSION_CLOSED).
 *          DEADLINE_EXCEEDED: not on every ps within timeout_ms; the same call again is answered by
 *          what became of it.
 * Threads  any; others go on beside it. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_client_define(
    struct sumac_client *client, const char *name, const char *text, size_t text_bytes,
    struct sumac_error *error);

/* What it was created with; into how many shards it is split. The name is lent, until the close.
 * Threads  any. Of NULL: NULL, UNSPECIFIED, a scalar, 0. */
SUMAC_API const char *sumac_client_variable_name(const struct sumac_client_variable *variable);
SUMAC_API enum sumac_dtype
sumac_client_variable_dtype(const struct sumac_client_variable *variable);
SUMAC_API struct sumac_shape
sumac_client_variable_shape(const struct sumac_client_variable *variable);
SUMAC_API uint32_t sumac_client_variable_shards(const struct sumac_client_variable *variable);

/* Which rows of the first axis a shard has (of a scalar one), and on which ps it is. */
struct sumac_shard {
    uint32_t ps;
    struct sumac_range rows;
};
/* Of shard `index`, 0 to sumac_client_variable_shards - 1, in the order of their rows; of another,
 * zeroes.
 */
SUMAC_API struct sumac_shard
sumac_client_variable_shard(const struct sumac_client_variable *variable, uint32_t index);

/* What the ps say of a variable now. The names are lent, until the close. */
struct sumac_client_variable_facts {
    uint64_t version_min, version_max; /* updates applied: the least and the most of all shards */
    enum sumac_reduce_op aggregation;
    enum sumac_synchronization synchronization;
    bool trainable;
    /* With every hyperparameter, as pushes have changed them since. Its `schedule` is NULL: */
    struct sumac_function function;
    bool has_schedule; /* … then `schedule` is the one of its learning_rate */
    struct sumac_schedule schedule;
    uint32_t slot_count;                /* tensors of its shape that the function keeps beside it */
    const char *slots[SUMAC_SLOTS_MAX]; /* (slot_count): "m", "v"; sumac_fetch reads them */
};

/* Ask each ps that has a shard of it. The ps answer one after the other: with pushes under way the
 * versions are not of one moment.
 *
 * Gives    *facts, written on success only.
 * Fails    NOT_FOUND: it was deleted. Else as a call to a ps: UNAVAILABLE, DEADLINE_EXCEEDED.
 * Threads  any. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_client_variable_describe(
    struct sumac_client_variable *variable, struct sumac_client_variable_facts *facts,
    struct sumac_error *error);

/* All variables of the run, in the order of their creation.
 *
 * variables (capacity)
 * Gives    *count: the number of variables. Of more than `capacity` the first `capacity` are
 *          written.
 * Lends    variables[0 …], until the close.
 * Fails    as a call to a ps. capacity 0 asks for the count: variables may then be NULL.
 * Threads  any. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_client_list(
    struct sumac_client *client, struct sumac_client_variable **variables, size_t capacity,
    size_t *count, struct sumac_error *error);

/* Counts of a ps since its start (`sumac stats` shows more). */
struct sumac_ps_facts {
    uint64_t uptime_ms;
    uint64_t pushes, push_bytes; /* applied */
    uint64_t pulls, pull_bytes;  /* answered */
    uint64_t refused;            /* pushes; of them, … */
    uint64_t non_finite, late;   /* … for a value that is not finite; too late for their step */
    uint64_t duplicates;         /* received again, and recognised */
    uint64_t variables, shards;  /* of the run; on this ps */
    uint64_t resident_bytes;     /* of the process; 0: not known */
    uint64_t state_bytes;        /* of values and slots */
};

/* Gives    *facts, written on success only.
 * Fails    INVALID_ARGUMENT: there is no ps of that index. Else as a call to a ps.
 * Threads  any. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_client_stats(
    struct sumac_client *client, uint32_t ps, struct sumac_ps_facts *facts,
    struct sumac_error *error);

/* Memory that fits a variable: zeroed, 64-byte aligned, of its dtype and shape; sumac_tensor_data
 * has the first element.
 *
 * Gives    tensor->buffer; release with sumac_buffer_unref when no push or pull uses it any more.
 *          It does not depend on the client: it may be kept after the close.
 * Fails    RESOURCE_EXHAUSTED, with the bytes.
 * Threads  any. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_client_variable_tensor(
    const struct sumac_client_variable *variable, struct sumac_tensor *tensor,
    struct sumac_error *error);

/* One variable of a push. */
struct sumac_delta {
    struct sumac_client_variable *variable;
    struct sumac_tensor value; /* of the variable's dtype and shape, or of `rows` of it */
    bool has_rows;             /* push these rows of the first axis only */
    struct sumac_range rows;
    const struct sumac_function *function; /* NULL: the variable's own, as created */
    /* Not NULL: push these rows of the first axis only (TensorFlow's IndexedSlices, and with
     * `function` its scatter_add, scatter_update, …): int64, of one axis, `value` has one row for
     * each. Any order, in any shard; beside no `rows`. Rows that occur several times in one delta
     * are summed first, in their order; of several that are assigned the last wins. The function is
     * then applied to those rows alone: other rows, and their slots, stay as they are; adam's t
     * counts all pushes of the variable, whichever rows they have, on all its shards. Of a
     * synchronous push each member has rows of its own: they are taken together, in worker order.
     */
    const struct sumac_tensor *indices;
    /* Change the variable's hyperparameters while training goes on: what `function`, which is the
     * one that it was created with, names – hyperparameters, a schedule – is the variable's own
     * from here on, and what it does not name stays. No value is given, nor rows. It is a push like
     * any other: on all shards or none, in the order of the pushes, and of the deltas of one push;
     * of a synchronous push all members set the same, and all ps have it from that step on (set by
     * another push, one ps may have a step more than the next has before it);
     * a version of each shard. A learning_rate without a schedule ends the one that there was. A
     * create compares with what the variable was created with, whatever is changed. Refused (the
     * wait says so) as in a create; and initial_accumulator_value, or what needs a slot that the
     * variable was created without. */
    bool sets_hyperparameters;
};

struct sumac_push_options {
    double weight;         /* examples or replicas the deltas stand for: finite, at least 0; 0: 1 */
    bool allow_non_finite; /* else a value that is not finite refuses the push */
    bool finishes_step;    /* the last push of a step: the session's clock advances */
    /* This member's contribution to its next synchronous step: a sum over what it stands for, and
     * `weight` says how much that is (0: 1; at most 2^60). Applied with those of all other members
     * as one update, in worker order: of variables with aggregation MEAN Σ contributions ÷ Σ
     * weights, with SUM their sum, with ONLY_FIRST_REPLICA that of the first. All members push the
     * same variables and rows with the same functions. Of half types the tensors are float32.
     * Where ps 0 was started with --quorum K, the step is taken with K of N (backup workers: Chen
     * et al., "Revisiting Distributed Synchronous SGD", 2016): what comes later than that is
     * applied nowhere, and its wait says ABORTED (STEP_LATE). Pull, and contribute to the next:
     * that is the newest that is not over, as far as this client has heard. */
    bool synchronous;
    /* With `synchronous`: the weight is 0, and this contribution adds nothing, though it counts as
     * come: for a member that has no examples in a step. Its deltas are to be finite all the same.
     * When all of a step are so it is refused (FAILED_PRECONDITION, ZERO_WEIGHT). */
    bool zero_weight;
    bool earlier_pull; /* computed from the pull before the last one: for the staleness */
    /* What every value is multiplied by on the ps before its function, in the type of the
     * arithmetic: 1 ÷ the loss scale of a loss that was scaled. Finite, at most 2^127 in magnitude;
     * 0: 1. The values themselves are sent as they are. Float types only. */
    double scale;
    /* Clip by the norm of all that is pushed (tf.clip_by_global_norm; Pascanu et al., "On the
     * difficulty of training recurrent neural networks", 2013): where √Σ(scale·value)² over all
     * deltas – of a synchronous contribution ÷ `weight`, for it is a sum –, is larger, the scale is
     * made smaller by as much. Of rows by index each counts as it is given, repeated ones, too (so
     * does tf.linalg.global_norm of IndexedSlices). The norm is computed here, in float64, before
     * the push is split.
     * Finite, at least 0; 0: not clipped. (Clipping each element by itself is a hyperparameter of
     * the functions, clip_value.) */
    double clip_norm;
};

/* Push deltas to variables, all or nothing over every ps, applied exactly once, in the order of the
 * calls. Returns at once with a handle, unless 1024 pushes are under way. options NULL: as zeroed.
 *
 * Borrows  the tensors' bytes, until sumac_push_wait returns with another status than
 * DEADLINE_EXCEEDED; the arrays.
 * Gives    *push; ends with sumac_push_wait, at the latest with the client. push NULL: the call
 *          waits as sumac_push_wait does, for the client's timeout_ms. It then cancels the push,
 *          waits up to a second for the outcome, and fails with DEADLINE_EXCEEDED. If the text says
 *          that no ps told the outcome, the push borrows the tensors' bytes until the close.
 * Waits    for ps 0, once, where a function's name is not known yet (sumac_client_define).
 * Fails    INVALID_ARGUMENT at once: dtype, shape, weight, `zero_weight` beside a weight or without
 *          `synchronous`, scale, clip_norm, either of these with a variable of no float type,
 *          clip_norm with values that have no finite norm (NON_FINITE), an unknown function or
 *          hyperparameter, another client's variable, a tensor without memory; `indices` that are
 *          not int64 of one axis, or of a row that the variable has not, rows of more than 1 MiB
 *          by index. OUT_OF_RANGE: rows, a tensor that ends past its buffer. What a ps refuses,
 *          the wait tells. RESOURCE_EXHAUSTED (PART_TOO_LARGE): larger than the staging a ps
 *          grants, with both figures. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_client_push(
    struct sumac_client *client, const struct sumac_delta *deltas, size_t count,
    const struct sumac_push_options *options, struct sumac_push **push, struct sumac_error *error);

/* Wait until the push is applied on every ps, or was refused and applied on none; timeout_ms 0: the
 * client's.
 * Takes    push, unless the status is DEADLINE_EXCEEDED: it is then still under way, and may be
 *          waited for again. The text of a wait of a second or more says what the push waits for
 *          at a ps that is well, such as the members whose contributions are missing: the ps is
 *          asked for that in the wait's last second, or half of less than two.
 * Fails    the refusal's status and reason; ABORTED (STEP_LATE): its synchronous step was taken
 *          without it, and it is applied nowhere; ABORTED (SESSION_CLOSED): the session was
 *          settled, and the push is applied nowhere. OK when the session was settled with the push
 *          in it: it is decided, and a ps may be about to apply it. UNAVAILABLE, DATA_LOSS: a ps is
 *          lost, and what it had not answered may or may not have been applied. */
SUMAC_API SUMAC_CHECKED enum sumac_status
sumac_push_wait(struct sumac_push *push, uint32_t timeout_ms, struct sumac_error *error);

/* Is it over? Never blocks; polls the network once. */
SUMAC_API bool sumac_push_done(struct sumac_push *push);

/* Give up a push: the client sends no more of its bytes. sumac_push_wait still ends the push, and
 * soon returns CANCELLED (reason CANCELLED), if the push is applied nowhere. A push that every ps
 * has, or that its only ps has applied, counts; the wait then returns OK. A synchronous
 * step is made without a cancelled contribution. push NULL, or over: no effect. Never blocks.
 *
 * Threads  any, also while another thread waits for the push. */
SUMAC_API void sumac_push_cancel(struct sumac_push *push);

/* One variable of a pull. */
struct sumac_fetch {
    struct sumac_client_variable *variable;
    struct sumac_tensor into; /* written; of the variable's dtype and shape, or of `rows` of it */
    bool has_rows;            /* pull these rows of the first axis only */
    struct sumac_range rows;
    /* Not NULL: pull these rows of the first axis only (TensorFlow's gather, embedding_lookup):
     * int64, of one axis, `into` gets one row for each, in their order. Any order, in any shard,
     * beside no `rows`; one that occurs several times is sent once. At most 65 536 different ones
     * of one ps in a pull. Read until the pull is over. */
    const struct sumac_tensor *indices;
    /* Not NULL: pull the slot of that name, which the variable's function keeps beside each element
     * ("m", "momentum"; sumac_client_variable_facts has the names), and not the value. `into` has
     * the variable's shape, or that of `rows`, and of a half type float32; beside no `indices`.
     * With others of one variable in one pull it is of the same moment. */
    const char *slot;
};

struct sumac_pull_options {
    bool skip_own_pushes; /* else the session's own pushes so far are in it */
    /* Bounded lag (stale synchronous parallel: Ho et al., "More Effective Distributed ML via a
     * Stale Synchronous Parallel Parameter Server", 2013): wait until no other member is more than
     * lag_max steps behind the steps that this session has finished so far; settled members don't
     * count. Who pulls so before each step is never more than lag_max + 1 steps ahead of the
     * slowest. */
    bool bounded;
    uint64_t lag_max; /* with `bounded` */
    /* Read a synchronous step: the values as they are on every ps after this step and before the
     * next, for which the pull waits. All contributions to the steps up to it are in them, one's
     * own, too (`skip_own_pushes` is not looked at), and none to a later one; of other pushes
     * what each ps has applied by then. No older state is kept: once a later step is over the pull
     * fails (OUT_OF_RANGE, STEP_OVER), and the facts' newest_step says at which the next may be.
     * 0: whatever is there, which is of whole steps on each ps. */
    uint64_t at_step;
    uint32_t timeout_ms; /* then the pull is over, answered or not; 0: the client's */
};

/* Read variables; on each ps they are of one moment. Returns at once with a handle. options NULL:
 * as zeroed.
 *
 * Borrows  the tensors' bytes, until sumac_pull_wait returns with another status than
 * DEADLINE_EXCEEDED; the array.
 * Gives    *pull; ends with sumac_pull_wait, at the latest with the client. pull NULL: the call
 *          waits until the pull is over, and fails as sumac_pull_wait, without DEADLINE_EXCEEDED.
 * Fails    INVALID_ARGUMENT: dtype, shape, another client's variable, a tensor without memory;
 *          `bounded` of a reader, which has no steps; lag_max without `bounded`; `indices` as in
 *          a push; a slot that the variable's function does not have, or beside `indices`.
 *          OUT_OF_RANGE: rows, a tensor that ends past its buffer. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_client_pull(
    struct sumac_client *client, const struct sumac_fetch *fetches, size_t count,
    const struct sumac_pull_options *options, struct sumac_pull **pull, struct sumac_error *error);

/* Wait until all of it is read; timeout_ms 0: the client's. A wait as long as the pull itself lasts
 * up to a second longer, for the ps to say what the pull waited for.
 * Takes    pull, unless the status is DEADLINE_EXCEEDED: it is then still under way, and may be
 *          waited for again.
 * Fails    UNAVAILABLE (TIMED_OUT): it was over without an answer after the options' timeout_ms,
 *          naming the ps. NOT_FOUND: a variable was deleted. ABORTED (VIEW_ENDED): too slow a
 *          reader; pull again. With at_step: OUT_OF_RANGE (STEP_OVER): a later step is over;
 *          ABORTED (MEMBER_LOST): the step is never over, for a member was lost that it lacks;
 *          FAILED_PRECONDITION (UNSUPPORTED): ps 0 does not know how many members a step has. The
 *          text of TIMED_OUT names who is missing from the step that is next. */
SUMAC_API SUMAC_CHECKED enum sumac_status
sumac_pull_wait(struct sumac_pull *pull, uint32_t timeout_ms, struct sumac_error *error);
/* Is it over? Never blocks; polls the network once. */
SUMAC_API bool sumac_pull_done(struct sumac_pull *pull);

/* Give up a pull. sumac_pull_wait still ends the pull, and returns CANCELLED (reason CANCELLED) as
 * soon as nothing more is written to the tensors. pull NULL, or over: no effect. Never blocks.
 *
 * Threads  any, also while another thread waits for the pull. */
SUMAC_API void sumac_pull_cancel(struct sumac_pull *pull);

/* The facts of the session; zeros for a reader, but for the cluster's and newest_step.
 *
 * Who this member is among all: the chief is 0, worker i is i, or i + 1 beside a chief; and how
 * many the cluster lists. A count of 0: unknown, as the cluster lists some of its workers only.
 * Zeros for an observer. */
struct sumac_client_facts {
    uint64_t cluster_id, epoch, attempt, previous_final;
    uint32_t ps_count, lease_ms;
    uint32_t pushes_in_flight;
    uint32_t member_index, member_count;
    /* Synchronous steps: the last one that this member has made a contribution for, 0: none; and
     * the newest one that is over on some ps, as the answers to pulls at a step have said, 0: none
     * has. */
    uint64_t contributed_step, newest_step;
    struct sumac_step_options step_options; /* as ps 0 said when this client joined */
    double staleness_mean; /* of the latest pushes: versions that a shard gained between pull and
                              push */
};
/* NULL facts: nothing is done. */
SUMAC_API void sumac_client_describe(struct sumac_client *client, struct sumac_client_facts *facts);

/* The exit code that tells a scheduler what to do about `error`:
 * - 0: OK, or the run ended well (RUN_ENDED)
 * - 2: a call to fix (permanent)
 * - 128 or more: what a restart may mend (a lost peer, a closed session) */
SUMAC_API int sumac_exit_code(const struct sumac_error *error);

/* For programs: unless status is OK, print the error's sentence on standard error and exit with
 * sumac_exit_code. The program's name comes before the sentence. After STEP_LATE it prints the
 * sentence and returns: the worker pulls, and contributes to the next step. The library never calls
 * it. error NULL: the status's name is printed. */
SUMAC_API void sumac_check(enum sumac_status status, const struct sumac_error *error);

/* Tune glibc's malloc for gRPC's receive buffers (mallopt: M_TRIM_THRESHOLD, M_TOP_PAD). Changes
 * the whole process: a program calls it first thing in main, a library never. */
SUMAC_API void sumac_tune_malloc(void);

#endif
