# SPDX-License-Identifier: Apache-2.0
# sumac_module(NAME SOURCES … USES … INCLUDES …): one folder of the house as a static library `NAME`, with the house's warnings.
# USES are modules or libraries that its users get as well; INCLUDES are folders to find its headers in (its own is always one).

set(SUMAC_WARNINGS
    -Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes
    -Wvla -Wundef -Wformat=2 -Wdouble-promotion)
# Assertions stay on in every build type: the costly ones are not written as assert.
list(APPEND SUMAC_WARNINGS -UNDEBUG)
if(SUMAC_WERROR)
  list(APPEND SUMAC_WARNINGS -Werror)
endif()

function(sumac_module name)
  cmake_parse_arguments(module "" "" "SOURCES;USES;INCLUDES" ${ARGN})
  add_library(${name} STATIC ${module_SOURCES})
  target_include_directories(${name} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR} ${module_INCLUDES})
  target_compile_options(${name} PRIVATE ${SUMAC_WARNINGS})
  target_link_libraries(${name} PUBLIC ${module_USES})
endfunction()

# sumac_program(NAME SOURCES … USES …): an executable with the house's warnings.
function(sumac_program name)
  cmake_parse_arguments(program "" "" "SOURCES;USES" ${ARGN})
  add_executable(${name} ${program_SOURCES})
  target_compile_options(${name} PRIVATE ${SUMAC_WARNINGS})
  target_link_libraries(${name} PRIVATE ${program_USES})
endfunction()
