# SPDX-License-Identifier: Apache-2.0
# lib/value, worker/strategy, worker/collective and worker/variable.
sumac_unit_test(value USES worker)
sumac_unit_test(strategy USES worker)
sumac_unit_test(distributed USES worker)
sumac_unit_test(distributed_apply USES worker)
sumac_unit_test(distributed_changes USES worker)
sumac_unit_test(creation USES worker)
sumac_unit_test(reduce_to USES worker)
sumac_unit_test(scatter_div USES worker)
sumac_unit_test(shards USES worker)
sumac_unit_test(strategy_misused USES worker)
sumac_unit_test(strategy_refused USES worker)
sumac_unit_test(strategy_ends USES worker)
sumac_unit_test(strategy_peers USES worker)
target_link_options(unit_strategy_peers PRIVATE -Wl,--wrap=peers_give_up -Wl,--wrap=peers_exchange # other workers
  -Wl,--wrap=peers_finish -Wl,--wrap=sumac_value_none)
sumac_unit_test(array_pass USES worker)
sumac_unit_test(all_variables USES worker)
sumac_unit_test(label USES worker)
sumac_unit_test(spare_memory USES worker)
sumac_unit_test(strategy_compare USES worker)
sumac_unit_test(strategy_large USES worker)
sumac_unit_test(strategy_own USES worker)
sumac_unit_test(strategy_axes USES worker)
sumac_unit_test(pack USES worker)
target_link_options(unit_pack PRIVATE -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=free # count what is taken
  -Wl,--wrap=realloc -Wl,--wrap=strdup -Wl,--wrap=posix_memalign)
sumac_unit_test(slice USES worker)
sumac_unit_test(strategy_scarce USES worker)
target_link_options(unit_strategy_scarce PRIVATE -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=free # some fail
  -Wl,--wrap=realloc -Wl,--wrap=strdup -Wl,--wrap=posix_memalign)
sumac_unit_test(remote USES worker)
target_link_options(unit_remote PRIVATE -Wl,--wrap=sumac_client_variable_create -Wl,--wrap=sumac_client_push # are the test's
  -Wl,--wrap=push_keep -Wl,--wrap=sumac_push_wait -Wl,--wrap=sumac_client_pull -Wl,--wrap=sumac_client_variable_name
  -Wl,--wrap=sumac_client_variable_shards -Wl,--wrap=sumac_client_variable_describe)
sumac_unit_test(peers_open USES worker)
target_link_options(unit_peers_open PRIVATE -Wl,--wrap=client_count_strategy -Wl,--wrap=client_collective_place # are the test's
  -Wl,--wrap=sumac_client_describe)
