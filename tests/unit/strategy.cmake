# SPDX-License-Identifier: Apache-2.0
# worker/value and worker/strategy.
sumac_unit_test(value USES worker)
sumac_unit_test(strategy USES worker)
sumac_unit_test(distributed USES worker)
sumac_unit_test(distributed_apply USES worker)
sumac_unit_test(shards USES worker)
sumac_unit_test(strategy_misused USES worker)
sumac_unit_test(strategy_refused USES worker)
sumac_unit_test(strategy_peers USES worker)
target_link_options(unit_strategy_peers PRIVATE -Wl,--wrap=peers_give_up -Wl,--wrap=peers_exchange # other workers
  -Wl,--wrap=peers_finish -Wl,--wrap=sumac_value_none)
sumac_unit_test(together USES worker)
sumac_unit_test(label USES worker)
sumac_unit_test(kept USES worker)
sumac_unit_test(strategy_compare USES worker)
sumac_unit_test(strategy_large USES worker)
sumac_unit_test(pack USES worker)
target_link_options(unit_pack PRIVATE -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=free # count what is taken
  -Wl,--wrap=realloc -Wl,--wrap=strdup -Wl,--wrap=posix_memalign)
sumac_unit_test(slice USES worker)
