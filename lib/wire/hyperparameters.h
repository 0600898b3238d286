/* SPDX-License-Identifier: Apache-2.0 */
/* hyperparameters.h -- which hyperparameters each update function has: one truth for the ps, which reads them, and for the
 * client, which says what there is when a name is none of them. */
#ifndef WIRE_HYPERPARAMETERS_H
#define WIRE_HYPERPARAMETERS_H

#include "wire.h"

/* A bit for each HyperparameterName. */
#define WIRE_HYPERPARAMETER(name) (1u << SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_##name)

#define WIRE_HYPERPARAMETERS_OF_SGD WIRE_HYPERPARAMETER(LEARNING_RATE)
#define WIRE_HYPERPARAMETERS_OF_MOMENTUM                                                           \
    (WIRE_HYPERPARAMETER(LEARNING_RATE) | WIRE_HYPERPARAMETER(MOMENTUM) |                          \
     WIRE_HYPERPARAMETER(NESTEROV))
#define WIRE_HYPERPARAMETERS_OF_ADAM                                                               \
    (WIRE_HYPERPARAMETER(LEARNING_RATE) | WIRE_HYPERPARAMETER(BETA_1) |                            \
     WIRE_HYPERPARAMETER(BETA_2) | WIRE_HYPERPARAMETER(EPSILON))

/* Of the update function of that number; 0: none, or no such function. */
static inline uint32_t wire_hyperparameters_of(int function)
{
    switch (function) {
    case SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_SGD:
        return WIRE_HYPERPARAMETERS_OF_SGD;
    case SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_MOMENTUM:
        return WIRE_HYPERPARAMETERS_OF_MOMENTUM;
    case SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_ADAM:
        return WIRE_HYPERPARAMETERS_OF_ADAM;
    default:
        return 0;
    }
}

#endif
