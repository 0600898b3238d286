# SPDX-License-Identifier: Apache-2.0
sumac_unit_test(meeting USES catalogue)
sumac_unit_test(combine USES meet)
sumac_unit_test(rounds USES meet meet_check)
sumac_unit_test(rounds_attempts USES meet meet_check)
sumac_unit_test(rounds_room USES meet meet_check)
sumac_unit_test(rounds_check USES meet meet_check)
