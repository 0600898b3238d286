# SPDX-License-Identifier: Apache-2.0
sumac_unit_test(device_group USES worker)
target_link_options(unit_device_group PRIVATE -Wl,--wrap=pthread_cond_wait -Wl,--wrap=pthread_cond_timedwait # until when
  -Wl,--wrap=reduce_values) # stands still within a share
