# SPDX-License-Identifier: Apache-2.0
if(TARGET ps)
  sumac_unit_test(ps USES ps)
endif()
