sumac_unit_test(rpc USES rpc)
