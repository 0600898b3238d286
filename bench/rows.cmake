# SPDX-License-Identifier: Apache-2.0
sumac_program(bench_rows SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/rows.c USES update)
set_target_properties(bench_rows PROPERTIES OUTPUT_NAME rows)
target_compile_options(bench_rows PRIVATE -O3 -fno-math-errno)
sumac_program(bench_rows_worker SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/rows_worker.c USES client)
set_target_properties(bench_rows_worker PROPERTIES OUTPUT_NAME rows_worker)
