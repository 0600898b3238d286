# SPDX-License-Identifier: Apache-2.0
# libsumac, shared and static, out of the modules of lib/ and worker/; what is installed, and how others find it.
#
# Only symbols declared SUMAC_API leave either library. The shared one is linked with hidden visibility and a version
# script; the static one is a single object whose hidden symbols were made local, so that the generated protobuf code, or
# a function that is called `fail`, cannot collide with the user's own.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_modules base value cluster wire proto expression update rpc session client worker)
set(package_libraries grpc gpr protobuf-c jansson m pthread) # as a linker names them
set(package_headers
    lib/base/sumac/buffer.h lib/base/sumac/reduce.h lib/base/sumac/status.h lib/base/sumac/tensor.h
    lib/cluster/sumac/cluster.h lib/client/sumac/client.h lib/client/sumac/collective.h
    lib/update/sumac/plugin.h
    lib/value/sumac/value.h worker/sumac/device.h worker/sumac/replica.h worker/sumac/variable.h worker/sumac/strategy.h worker/sumac/sumac.h worker/sumac/worker.h)
foreach(module ${package_modules})
  list(APPEND package_archives $<TARGET_FILE:sumac_${module}>)
endforeach()
list(TRANSFORM package_modules PREPEND sumac_)
set(package_includes
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/lib/base>
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/lib/cluster>
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/lib/client>
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/lib/update>
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/lib/value>
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/worker>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
file(WRITE ${PROJECT_BINARY_DIR}/package/empty.c "typedef int package_empty; /* the objects come from the modules */\n")

# ---- shared
# Programs load the library by this name. Before 1.0 each minor version may change the interface.
set(package_soversion ${PROJECT_VERSION_MAJOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(package_soversion 0.${PROJECT_VERSION_MINOR})
endif()
add_library(sumac_shared SHARED ${PROJECT_BINARY_DIR}/package/empty.c)
add_library(sumac::sumac ALIAS sumac_shared)
set_target_properties(sumac_shared PROPERTIES
  OUTPUT_NAME sumac EXPORT_NAME sumac VERSION ${PROJECT_VERSION} SOVERSION ${package_soversion}
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/sumac.map)
target_include_directories(sumac_shared PUBLIC ${package_includes})
target_link_libraries(sumac_shared PRIVATE
  -Wl,--whole-archive ${package_archives} -Wl,--no-whole-archive ${package_libraries}
  -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/sumac.map -Wl,--no-undefined -Wl,--as-needed)
add_dependencies(sumac_shared ${package_modules})
set_target_properties(sumac_shared PROPERTIES LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/sumac.map;${package_archives}")

# ---- static
set(package_object ${PROJECT_BINARY_DIR}/package/sumac.o)
add_custom_command(
  OUTPUT ${package_object}
  COMMAND ${CMAKE_LINKER} -r -o ${package_object}.whole --whole-archive ${package_archives}
  COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${package_object}.whole ${package_object}
  COMMAND ${CMAKE_COMMAND} -E rm ${package_object}.whole
  DEPENDS ${package_modules} ${package_archives}
  COMMENT "Making one object of libsumac"
  VERBATIM)
add_library(sumac_static STATIC ${PROJECT_BINARY_DIR}/package/empty.c ${package_object})
add_library(sumac::static ALIAS sumac_static)
set_target_properties(sumac_static PROPERTIES OUTPUT_NAME sumac EXPORT_NAME static)
set_source_files_properties(${package_object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
target_include_directories(sumac_static PUBLIC ${package_includes})
target_link_libraries(sumac_static INTERFACE ${package_libraries})

# ---- both: whoever links code of a sanitizer needs its runtime, in another project and after an install
if(SUMAC_SANITIZE)
  set(package_sanitizer -fsanitize=${SUMAC_SANITIZE})
  target_link_options(sumac_shared INTERFACE ${package_sanitizer})
  target_link_options(sumac_static INTERFACE ${package_sanitizer})
endif()

# ---- installed
if(NOT SUMAC_INSTALL)
  return()
endif()
install(TARGETS sumac_shared sumac_static EXPORT sumac
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT sumac NAMESPACE sumac:: FILE sumacTargets.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sumac)
install(FILES ${package_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sumac)
install(DIRECTORY proto/ DESTINATION ${CMAKE_INSTALL_DATADIR}/sumac/proto
  FILES_MATCHING PATTERN "*.proto")
# `sumac define --help` names EXPRESSIONS.md.
install(FILES LICENSE NOTICE CHANGELOG.md SECURITY.md docs/EXPRESSIONS.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DATADIR}/sumac)
configure_package_config_file(cmake/sumacConfig.cmake.in ${PROJECT_BINARY_DIR}/package/sumacConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sumac)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/sumacConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/sumacConfig.cmake ${PROJECT_BINARY_DIR}/package/sumacConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sumac)
list(TRANSFORM package_libraries PREPEND -l OUTPUT_VARIABLE package_link_flags)
list(JOIN package_link_flags " " package_link_flags)
file(RELATIVE_PATH package_up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /) # wherever it is installed
configure_file(cmake/sumac.pc.in ${PROJECT_BINARY_DIR}/package/sumac.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/sumac.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
