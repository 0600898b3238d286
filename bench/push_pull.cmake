# SPDX-License-Identifier: Apache-2.0
# push_pull -- Sumac beside raw TCP and a bare gRPC stream, in one run. The bare stream uses gRPC without lib/rpc: it is what
# lib/rpc is measured against.
sumac_program(push_pull
  SOURCES push_pull/push_pull.c push_pull/report.c push_pull/client.c push_pull/raw.c push_pull/bare_client.c push_pull/bare_server.c
          push_pull/sumac.c push_pull/processes.c
  USES client grpc gpr)
target_compile_definitions(push_pull PRIVATE PUSH_PULL_SUMAC="${PROJECT_BINARY_DIR}/sumac")
