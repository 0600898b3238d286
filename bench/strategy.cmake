# SPDX-License-Identifier: Apache-2.0
# strategy -- an empty step of a strategy beside threads that are woken and waited for by hand.
sumac_program(bench_strategy SOURCES strategy/empty_step.c strategy/crew.c USES worker)
set_target_properties(bench_strategy PROPERTIES OUTPUT_NAME strategy)
# workers -- all_reduce over several workers beside a round of a collective.
sumac_program(bench_workers SOURCES strategy/workers.c USES worker)
set_target_properties(bench_workers PROPERTIES OUTPUT_NAME workers)
