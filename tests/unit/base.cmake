# SPDX-License-Identifier: Apache-2.0
# lib/base, a test per noun.
foreach(name status buffer tensor memory pools reserved_array text)
  sumac_unit_test(${name} USES base)
endforeach()
sumac_unit_test(assert_number USES base)
sumac_unit_test(decimal USES base)
