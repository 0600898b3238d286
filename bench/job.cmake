# SPDX-License-Identifier: Apache-2.0
# bench/job/job drives sumac, digits and read_add from the build folder.
sumac_program(read_add SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/job/read_add.c USES client)
