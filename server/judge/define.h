/* SPDX-License-Identifier: Apache-2.0 */
/* define.h -- what the judge's files ask of define.c: functions that were defined. */
#ifndef JUDGE_DEFINE_H
#define JUDGE_DEFINE_H

#include "judge_state.h"

void judge_define_call(struct judge *judge, const struct judge_event *event);
void judge_functions_call(struct judge *judge, const struct judge_event *event);
/* What is known of it, with its name; and as an order says it, in the step's arena. */
const struct defined_function *
judge_function_known(const struct judge *judge, const struct judge_function *function);
const wire_define_function *
judge_function_message(struct judge *judge, const struct judge_function *function);
void judge_define_answered(
    struct judge *judge, struct judge_function *function, uint32_t ps,
    const wire_peer_report *report);
void judge_define_complete(struct judge *judge, struct judge_function *function);
/* Those that not every ps has, and that no order is on its way for, get one. */
void judge_defines_order(struct judge *judge);

#endif
