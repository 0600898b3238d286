sumac_unit_test(worker USES worker)
