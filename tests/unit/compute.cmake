# SPDX-License-Identifier: Apache-2.0
sumac_unit_test(compute_pool USES compute)
target_link_options(unit_compute_pool PRIVATE -Wl,--wrap=update_run # looks on while a slice runs
  -Wl,--wrap=calloc) # says that there is no memory
sumac_unit_test(release_queue USES compute)
sumac_unit_test(huge_pages USES huge_pages)
