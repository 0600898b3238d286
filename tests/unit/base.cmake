# SPDX-License-Identifier: Apache-2.0
# lib/base, a test per noun.
foreach(name status buffer tensor memory pools reserved_array text)
  sumac_unit_test(${name} USES base)
endforeach()
sumac_unit_test(assert_number USES base)
sumac_unit_test(decimal USES base)
sumac_unit_test(listing USES base)
sumac_unit_test(missing_tasks USES base)
# Takes of memory that fail, each once: the linker puts each_take.c between a core and its memory.
add_library(each_take STATIC ${CMAKE_CURRENT_LIST_DIR}/each_take.c)
target_compile_options(each_take PRIVATE ${SUMAC_WARNINGS})
target_link_libraries(each_take PUBLIC sumac::base)
target_link_options(each_take INTERFACE -Wl,--wrap=pool_take -Wl,--wrap=pool_give
  -Wl,--wrap=sized_pool_take -Wl,--wrap=sized_pool_take_zeroed -Wl,--wrap=sized_pool_take_reserved
  -Wl,--wrap=sized_pool_give -Wl,--wrap=arena_take -Wl,--wrap=arena_take_zeroed
  -Wl,--wrap=id_map_put)
