# SPDX-License-Identifier: Apache-2.0
# worker/value and worker/strategy.
sumac_unit_test(value USES worker)
sumac_unit_test(strategy USES worker)
sumac_unit_test(distributed USES worker)
sumac_unit_test(distributed_apply USES worker)
sumac_unit_test(shards USES worker)
sumac_unit_test(strategy_misused USES worker)
sumac_unit_test(strategy_refused USES worker)
sumac_unit_test(together USES worker)
sumac_unit_test(label USES worker)
sumac_unit_test(strategy_large USES worker)
sumac_unit_test(pack USES worker)
sumac_unit_test(slice USES worker)
