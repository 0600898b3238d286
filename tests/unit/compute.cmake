# SPDX-License-Identifier: Apache-2.0
sumac_unit_test(compute_pool USES compute)
sumac_unit_test(release_queue USES compute)
