# SPDX-License-Identifier: Apache-2.0
sumac_unit_test(rpc USES rpc)
sumac_unit_test(rpc_bounds USES rpc)
sumac_unit_test(rpc_bare USES rpc)
sumac_unit_test(rpc_standard USES rpc)
sumac_unit_test(rpc_connections USES rpc)
sumac_unit_test(rpc_ending USES rpc)
sumac_unit_test(rpc_unread USES rpc)
