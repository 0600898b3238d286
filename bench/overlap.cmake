# SPDX-License-Identifier: Apache-2.0
# overlap -- how much of a step's transfers is hidden behind what it computes, on a CPU and on a GPU.
set(folder ${CMAKE_CURRENT_SOURCE_DIR}/overlap)
sumac_program(bench_overlap SOURCES ${folder}/overlap.c USES worker)
set_target_properties(bench_overlap PROPERTIES OUTPUT_NAME overlap)
if(SUMAC_WITH_CUDA)
  set(image ${CMAKE_CURRENT_BINARY_DIR}/spin.fatbin)
  add_custom_command(
    OUTPUT ${image}
    COMMAND ${SUMAC_NVCC} -fatbin -O3 -gencode arch=compute_80,code=[compute_80,sm_80] -gencode arch=compute_90,code=[compute_90,sm_90]
            -o ${image} ${folder}/spin.cu
    DEPENDS ${folder}/spin.cu
    VERBATIM)
  set_source_files_properties(${folder}/overlap.c PROPERTIES OBJECT_DEPENDS ${image} COMPILE_DEFINITIONS OVERLAP_IMAGE="${image}")
endif()
