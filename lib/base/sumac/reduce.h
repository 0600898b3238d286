/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.h -- how several tensors become one: across replicas, workers, or the rows of a lookup. */
#ifndef SUMAC_REDUCE_H
#define SUMAC_REDUCE_H

/* A call names the operations that it has, and refuses the others. NONE to ONLY_FIRST_REPLICA have
 * the wire's numbers (enum Aggregation).
 * Counterparts: tf.distribute.ReduceOp, tf.VariableAggregation, the combiner of
 * tf.nn.embedding_lookup_sparse. */
enum sumac_reduce_op {
    SUMAC_REDUCE_NONE = 0, /* in options: the default */
    SUMAC_REDUCE_SUM = 1,  /* Σ t; every dtype but bool */
    SUMAC_REDUCE_MEAN = 2, /* Σ t ÷ their number; each call says how weights count */
    SUMAC_REDUCE_ONLY_FIRST_REPLICA = 3,
    SUMAC_REDUCE_MIN = 4,
    SUMAC_REDUCE_MAX = 5,
    SUMAC_REDUCE_SQRTN = 6, /* Σ weight·t ÷ √Σ weight² */
};

#endif
