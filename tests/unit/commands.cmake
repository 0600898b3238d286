sumac_unit_test(options USES commands)
sumac_unit_test(print_array USES commands)
sumac_unit_test(run_output USES commands)
sumac_unit_test(histogram USES commands)
