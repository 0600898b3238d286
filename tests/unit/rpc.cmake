# SPDX-License-Identifier: Apache-2.0
sumac_unit_test(rpc USES rpc)
target_link_options(unit_rpc PRIVATE -Wl,--wrap=malloc) # says that there is no memory
sumac_unit_test(rpc_acceptor USES rpc)
target_link_options(unit_rpc_acceptor PRIVATE -Wl,--wrap=poll -Wl,--wrap=accept4
  -Wl,--wrap=grpc_server_add_channel_from_fd)
sumac_unit_test(rpc_bounds USES rpc)
sumac_unit_test(rpc_channel USES rpc)
target_link_options(unit_rpc_channel PRIVATE -Wl,--wrap=grpc_channel_create) # its arguments
sumac_unit_test(rpc_bare USES rpc)
sumac_unit_test(rpc_core_text USES rpc)
sumac_unit_test(rpc_standard USES rpc)
sumac_unit_test(rpc_connections USES rpc)
sumac_unit_test(rpc_greeting USES rpc)
sumac_unit_test(rpc_ending USES rpc)
target_link_options(unit_rpc_ending PRIVATE -Wl,--wrap=grpc_call_cancel
  -Wl,--wrap=grpc_call_get_peer) # of calls that are none
sumac_unit_test(rpc_unread USES rpc)
sumac_unit_test(rpc_moves USES rpc)
