# SPDX-License-Identifier: Apache-2.0
sumac_unit_test(trace USES worker)
target_link_libraries(unit_trace PRIVATE PkgConfig::JANSSON)
