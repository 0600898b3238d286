/* SPDX-License-Identifier: Apache-2.0 */
/* values.h -- variables of any type and rank, their values in files: what tests compare byte by
 * byte.
 *
 * Each function takes the words of a line (see member.c), does it to its end, and says nothing.
 */
#pragma once

#include <stddef.h>

#include "sumac/client.h"

/* make NAME DTYPE SHAPE SHARDS FUNCTION: a SHAPE is "2,3", "-" for a scalar. */
enum sumac_status
values_make(struct sumac_client *client, char *const *words, struct sumac_error *error);

/* make NAME DTYPE SHAPE SHARDS FUNCTION FILE: the same, with the file's bytes as its first value if
 * this is who creates it. */
enum sumac_status
values_make_of(struct sumac_client *client, char *const *words, struct sumac_error *error);

/* put NAME DTYPE SHAPE FILE [FUNCTION[,HYPERPARAMETER=VALUE…]|- [any|- [FIRST]]]: push the file's
 * bytes, as rows from FIRST on or as the whole; "any" allows what is not finite. */
enum sumac_status values_put(
    struct sumac_client *client, char *const *words, size_t count, struct sumac_error *error);

/* set NAME FUNCTION[,HYPERPARAMETER=VALUE…]: what is named is the variable's from here on. A
 * FUNCTION here, and above, may have schedule=KIND, too, and with it the numbers of struct
 * sumac_schedule. */
enum sumac_status
values_set(struct sumac_client *client, char *const *words, struct sumac_error *error);

/* fetch NAME FILE [SLOT]: pull all of it, or of a slot, into the file. */
enum sumac_status values_fetch(
    struct sumac_client *client, char *const *words, size_t count, struct sumac_error *error);

/* facts NAME: "facts LEAST_VERSION MOST FUNCTION NAME=VALUE … slot:NAME …". */
enum sumac_status
values_facts(struct sumac_client *client, char *const *words, struct sumac_error *error);

/* list: "list COUNT COUNT_OF_PS_0 NAME …". */
enum sumac_status values_list(struct sumac_client *client, struct sumac_error *error);
