# SPDX-License-Identifier: Apache-2.0
# collective -- all_reduce, all_gather and reduce of local replicas beside one pass over the same memory.
sumac_program(bench_collective SOURCES strategy/collective.c strategy/passes.c strategy/crew.c USES worker)
set_target_properties(bench_collective PROPERTIES OUTPUT_NAME collective)
set_source_files_properties(strategy/passes.c PROPERTIES COMPILE_OPTIONS "-O3")
