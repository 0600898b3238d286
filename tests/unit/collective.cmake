# SPDX-License-Identifier: Apache-2.0
sumac_unit_test(collective USES catalogue)
sumac_unit_test(combine USES collective)
sumac_unit_test(rounds USES collective collective_check)
sumac_unit_test(rounds_attempts USES collective collective_check)
sumac_unit_test(rounds_room USES collective collective_check)
sumac_unit_test(rounds_check USES collective collective_check)
