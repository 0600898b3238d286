# SPDX-License-Identifier: Apache-2.0
sumac_unit_test(update USES update)
sumac_unit_test(update_loops USES update)
sumac_unit_test(update_rules USES update)
sumac_unit_test(update_sum USES update)
sumac_unit_test(update_rows USES update)
sumac_unit_test(update_defined USES update)
sumac_unit_test(initializers USES update)
