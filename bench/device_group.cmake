# SPDX-License-Identifier: Apache-2.0
# device_group -- all_reduce, all_gather and reduce of local replicas beside one pass over the same memory.
sumac_program(bench_device_group SOURCES strategy/device_group.c strategy/passes.c strategy/crew.c USES worker)
set_target_properties(bench_device_group PROPERTIES OUTPUT_NAME device_group)
set_source_files_properties(strategy/passes.c PROPERTIES COMPILE_OPTIONS "-O3")
