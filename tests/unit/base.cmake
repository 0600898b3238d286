# lib/base, a test per noun.
foreach(name status buffer tensor memory text npy)
  sumac_unit_test(${name} USES base)
endforeach()
