# SPDX-License-Identifier: Apache-2.0
sumac_program(bench_expression SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/expression.c USES expression update)
set_target_properties(bench_expression PROPERTIES OUTPUT_NAME expression)
target_compile_options(bench_expression PRIVATE -O3)
target_include_directories(bench_expression PRIVATE ${PROJECT_SOURCE_DIR}/tests/unit)
