# SPDX-License-Identifier: Apache-2.0
sumac_unit_test(worker USES worker)
sumac_unit_test(worker_ends USES worker)
target_link_options(unit_worker_ends PRIVATE -Wl,--wrap=free) # sees whether what is late is freed
sumac_unit_test(worker_steps USES worker)
sumac_unit_test(worker_scarce USES worker)
target_link_options(unit_worker_scarce PRIVATE -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=free # some fail
  -Wl,--wrap=realloc -Wl,--wrap=strdup -Wl,--wrap=posix_memalign)
