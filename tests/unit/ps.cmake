if(TARGET ps)
  sumac_unit_test(ps USES ps)
endif()
