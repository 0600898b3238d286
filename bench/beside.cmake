# SPDX-License-Identifier: Apache-2.0
# beside -- how long a small pull waits while large pushes are applied; crowd -- how long a small push takes while hundreds of
# streams read. Workers of `sumac run`, started by the scripts beside them.
sumac_program(beside_worker SOURCES beside/worker.c USES client)
configure_file(beside/beside ${CMAKE_CURRENT_BINARY_DIR}/beside.sh @ONLY)
sumac_program(crowd_worker SOURCES beside/crowd.c USES client rpc)
configure_file(beside/crowd ${CMAKE_CURRENT_BINARY_DIR}/crowd.sh @ONLY)
