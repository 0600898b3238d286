# SPDX-License-Identifier: Apache-2.0
# Lists what the cores' objects ask of others; fails when that is a socket, a clock, the heap, a thread, a file.
#
# cmake -DNM=nm -DARCHIVES=a.a,b.a -P symbols.cmake. What one of the archives defines is fine, and so is what ALLOWED
# names: memory and text functions, mathematics, assertions, and the house's base, expression, wire and generated messages.
cmake_minimum_required(VERSION 3.25)
set(ALLOWED
    "^(mem(cpy|set|move|cmp|chr)|str(len|n?cmp|n?cpy|chr|rchr|c?spn|nlen|str)|v?snprintf)$"
    "^__(mem(cpy|set|move)|v?snprintf|str(n?cpy))_chk$"
    "^__(assert_fail|stack_chk_fail|popcountdi2|cpu_model|cpu_features2|cpu_indicator_init)$"
    "^_GLOBAL_OFFSET_TABLE_$"
    "^(sqrt|pow|exp|exp2|log|log2|sin|cos|sincos|floor|ceil|fabs|frexp|ldexp|l?l?rint|l?l?round|trunc|fmod|fma)f?$"
    "^__(asan|ubsan|tsan)_.*$|^__st(art|op)_asan_globals$"
    "^expression_(plan|read|run|takes)$|^(arena|pool|sized_pool|id_map|key_map|dtype_list|reserved_array|listing|missing_tasks)_.*$|^fail(_(again|argument|for_memory|for_null|invalid|unsupported))?$|^(text|utf8|half|loopback|run_identity|silence)_.*$|^sumac_(dtype|shape|status|reason|version)(_.*)?$"
    "^(sumac__v1__.*|wire_.*|placement_.*|protobuf_c_empty_string|XXH[0-9]*_.*)$")

string(REPLACE "," ";" archives "${ARCHIVES}")
set(defined)
set(undefined)
foreach(archive ${archives})
  execute_process(COMMAND ${NM} ${archive} OUTPUT_VARIABLE lines RESULT_VARIABLE code ERROR_QUIET)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "nm can't read ${archive}")
  endif()
  string(REPLACE "\n" ";" lines "${lines}")
  foreach(line ${lines})
    if(line MATCHES "^ +[Uw] ([^ @]+)")
      list(APPEND undefined ${CMAKE_MATCH_1})
    elseif(line MATCHES "^[0-9a-f]+ [A-Zabd-tvx-z] ([^ ]+)$")
      list(APPEND defined ${CMAKE_MATCH_1})
    endif()
  endforeach()
endforeach()

list(REMOVE_DUPLICATES undefined)
list(SORT undefined)
set(forbidden)
foreach(name ${undefined})
  set(fine FALSE)
  if(name IN_LIST defined)
    set(fine TRUE)
  endif()
  foreach(pattern ${ALLOWED})
    if(name MATCHES "${pattern}")
      set(fine TRUE)
    endif()
  endforeach()
  if(NOT fine)
    list(APPEND forbidden ${name})
  else()
    message(STATUS "${name}")
  endif()
endforeach()
if(forbidden)
  list(JOIN forbidden "\n  " forbidden)
  message(FATAL_ERROR "the cores ask for what they must not know:\n  ${forbidden}")
endif()
