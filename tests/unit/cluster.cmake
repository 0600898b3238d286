sumac_unit_test(cluster USES cluster)
