sumac_unit_test(reduce USES worker)
