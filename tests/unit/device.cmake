# SPDX-License-Identifier: Apache-2.0
sumac_unit_test(device USES worker)
target_link_options(unit_device PRIVATE -Wl,--wrap=pthread_cond_wait # says when a thread would wait
  -Wl,--wrap=pthread_create) # says that there are no more
sumac_unit_test(devices USES worker)
sumac_unit_test(job_queue USES worker)
target_link_options(unit_job_queue PRIVATE -Wl,--wrap=pthread_create -Wl,--wrap=pthread_join -Wl,--wrap=pthread_detach) # sees which thread
