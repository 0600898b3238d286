# SPDX-License-Identifier: Apache-2.0
# steps -- how long a ps's longest step is, for the largest message of each kind.
sumac_program(bench_steps SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/steps/steps.c USES ps_core client)
set_target_properties(bench_steps PROPERTIES OUTPUT_NAME steps)
