# SPDX-License-Identifier: Apache-2.0
sumac_program(bench_update SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/update.c USES compute)
set_target_properties(bench_update PROPERTIES OUTPUT_NAME update)
target_compile_options(bench_update PRIVATE -O3)
