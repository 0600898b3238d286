# SPDX-License-Identifier: Apache-2.0
# sumac_module(NAME SOURCES … USES … INCLUDES …): one folder of the house as a static library, with the house's warnings. Its target is
# sumac_NAME, with the alias sumac::NAME. USES are modules, by NAME, or libraries that its users get as well; INCLUDES are folders to find
# its headers in (its own is always one).

set(SUMAC_WARNINGS
    -Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes
    -Wvla -Wundef -Wformat=2 -Wdouble-promotion)
# Assertions stay on in every build type: the costly ones are not written as assert.
list(APPEND SUMAC_WARNINGS -UNDEBUG)
if(SUMAC_WERROR)
  list(APPEND SUMAC_WARNINGS -Werror)
endif()

# Put sumac:: before each name in the list `names` that is a module's.
function(sumac_targets names)
  set(targets)
  foreach(name ${${names}})
    if(TARGET sumac::${name})
      list(APPEND targets sumac::${name})
    else()
      list(APPEND targets ${name})
    endif()
  endforeach()
  set(${names} ${targets} PARENT_SCOPE)
endfunction()

function(sumac_module name)
  cmake_parse_arguments(module "" "" "SOURCES;USES;INCLUDES" ${ARGN})
  add_library(sumac_${name} STATIC ${module_SOURCES})
  add_library(sumac::${name} ALIAS sumac_${name})
  target_include_directories(sumac_${name} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR} ${module_INCLUDES})
  target_compile_options(sumac_${name} PRIVATE ${SUMAC_WARNINGS})
  sumac_targets(module_USES)
  target_link_libraries(sumac_${name} PUBLIC ${module_USES})
endfunction()

# sumac_program(NAME SOURCES … USES …): an executable with the house's warnings.
function(sumac_program name)
  cmake_parse_arguments(program "" "" "SOURCES;USES" ${ARGN})
  add_executable(${name} ${program_SOURCES})
  target_compile_options(${name} PRIVATE ${SUMAC_WARNINGS})
  sumac_targets(program_USES)
  target_link_libraries(${name} PRIVATE ${program_USES})
endfunction()
