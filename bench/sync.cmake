# SPDX-License-Identifier: Apache-2.0
# sync -- what members wait for when they wait for each other, beside push_pull's bare gRPC stream in the same run.
sumac_program(sync
  SOURCES sync/sync.c sync/barrier.c sync/step.c sync/fused.c push_pull/processes.c push_pull/client.c push_pull/bare_client.c push_pull/bare_server.c
  USES client update grpc gpr)
target_include_directories(sync PRIVATE ${CMAKE_CURRENT_LIST_DIR}/push_pull)
target_compile_definitions(sync PRIVATE SYNC_SUMAC="${PROJECT_BINARY_DIR}/sumac")
