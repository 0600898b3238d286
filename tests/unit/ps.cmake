# SPDX-License-Identifier: Apache-2.0
sumac_unit_test(ps USES ps)
sumac_unit_test(ps_config USES ps)
target_link_options(unit_ps_config PRIVATE -Wl,--wrap=ps_processors) # as many as another machine has
sumac_unit_test(ps_step USES ps)
# What the core is told, the handler of a stream to another ps, what has arrived, and what is sent
# on a call that there is not; who was refused, and what is logged of it.
target_link_options(unit_ps_step PRIVATE -Wl,--wrap=ps_core_step -Wl,--wrap=rpc_channel_call
  -Wl,--wrap=rpc_poll -Wl,--wrap=rpc_listen -Wl,--wrap=rpc_call_writable -Wl,--wrap=rpc_call_send
  -Wl,--wrap=rpc_server_connections -Wl,--wrap=rpc_server_tick -Wl,--wrap=ps_log
  -Wl,--wrap=rpc_channel_open -Wl,--wrap=rpc_channel_close -Wl,--wrap=compute_pool_submit)
# The machine below, the network and the core as the test has them.
sumac_unit_test(ps_loop USES ps)
target_link_options(unit_ps_loop PRIVATE -Wl,--wrap=ps_core_step -Wl,--wrap=ps_now_us
  -Wl,--wrap=ps_cpu_us -Wl,--wrap=ps_resident_bytes -Wl,--wrap=ps_heap_trim
  -Wl,--wrap=ps_signals_take -Wl,--wrap=rpc_poll -Wl,--wrap=rpc_listen -Wl,--wrap=rpc_call_writable
  -Wl,--wrap=rpc_server_connections -Wl,--wrap=rpc_server_tick -Wl,--wrap=ps_log
  -Wl,--wrap=update_run)
# Signals, what the core says, and how far its end has come.
sumac_unit_test(ps_life USES ps)
target_link_options(unit_ps_life PRIVATE -Wl,--wrap=ps_signals_take -Wl,--wrap=ps_random_bits
  -Wl,--wrap=ps_core_create -Wl,--wrap=ps_core_step -Wl,--wrap=ps_services_end
  -Wl,--wrap=rpc_server_drain -Wl,--wrap=rpc_server_start -Wl,--wrap=ps_log
  -Wl,--wrap=rpc_server_open -Wl,--wrap=update_run -Wl,--wrap=ps_heap_trim -Wl,--wrap=ps_exit_within
  -Wl,--wrap=ps_now_us -Wl,--wrap=rpc_poll -Wl,--wrap=ps_peers_end -Wl,--wrap=rpc_server_calls
  -Wl,--wrap=rpc_server_is_down -Wl,--wrap=ps_exit_at_once)
# A server and its client, and no core: whether it seeks ps 0, and where, the test says.
sumac_unit_test(ps_probe USES ps)
target_link_options(unit_ps_probe PRIVATE -Wl,--wrap=ps_core_step -Wl,--wrap=ps_core_lane
  -Wl,--wrap=lane_stream_has_pulls -Wl,--wrap=ps_log -Wl,--wrap=lane_seeks_ps0
  -Wl,--wrap=lane_ps0_address)
# The same without a say of the test.
foreach(test ps_served ps_peers)
  sumac_unit_test(${test} USES ps)
  target_link_options(unit_${test} PRIVATE -Wl,--wrap=ps_core_step -Wl,--wrap=ps_core_lane
    -Wl,--wrap=lane_stream_has_pulls -Wl,--wrap=ps_log)
endforeach()
