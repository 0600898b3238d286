sumac_unit_test(wire USES wire)
