sumac_unit_test(device USES worker)
