# SPDX-License-Identifier: Apache-2.0
# scale -- whether the time of a create, a look-up, a push and a pull grows with the number of variables.
sumac_program(scale_worker SOURCES scale/worker.c USES client)
configure_file(scale/scale ${CMAKE_CURRENT_BINARY_DIR}/scale.sh @ONLY)
