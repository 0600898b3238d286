# SPDX-License-Identifier: Apache-2.0
sumac_unit_test(trace USES worker)
target_link_libraries(unit_trace PRIVATE PkgConfig::JANSSON)
sumac_unit_test(worker_trace USES worker)
target_link_libraries(unit_worker_trace PRIVATE PkgConfig::JANSSON)
