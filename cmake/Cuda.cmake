# SPDX-License-Identifier: Apache-2.0
# SUMAC_CUDA: is libsumac built with GPUs? AUTO: where a toolkit with NCCL's header is found. ON: it must be there. OFF: no.
#
# Of the toolkit only headers and the compiler are used, and no library is linked: the driver and NCCL are opened by the program that runs
# (worker/cuda/), so what is built with GPUs runs where there is none. SUMAC_WITH_CUDA says how it was decided,
# SUMAC_CUDA_INCLUDE where the headers are.
set(SUMAC_CUDA AUTO CACHE STRING "Build with GPUs: AUTO (where the CUDA toolkit and NCCL's header are found), ON or OFF")
set_property(CACHE SUMAC_CUDA PROPERTY STRINGS AUTO ON OFF)
if(NOT SUMAC_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "SUMAC_CUDA is ${SUMAC_CUDA}; it is AUTO, ON or OFF")
endif()

set(SUMAC_WITH_CUDA OFF)
set(SUMAC_CUDA_INCLUDE "")
if(SUMAC_CUDA STREQUAL OFF)
  message(STATUS "GPUs: not built (SUMAC_CUDA is OFF)")
  return()
endif()

find_path(SUMAC_CUDA_HEADER_FOLDER cuda.h HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES include)
find_path(SUMAC_NCCL_HEADER_FOLDER nccl.h HINTS ${SUMAC_CUDA_HEADER_FOLDER} ENV NCCL_HOME PATHS /usr/local/cuda PATH_SUFFIXES include)
find_program(SUMAC_NVCC nvcc HINTS ${SUMAC_CUDA_HEADER_FOLDER}/../bin ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
mark_as_advanced(SUMAC_CUDA_HEADER_FOLDER SUMAC_NCCL_HEADER_FOLDER SUMAC_NVCC)
set(SUMAC_CUDA_ARCHITECTURES 80 90 CACHE STRING "The GPUs that kernels are compiled for, by compute capability, the newest last")
if(NOT SUMAC_CUDA_HEADER_FOLDER)
  set(missing "cuda.h was not found: install the CUDA toolkit, or say where it is with -DCUDA_HEADER_FOLDER=…/include")
elseif(NOT SUMAC_NCCL_HEADER_FOLDER)
  set(missing "nccl.h was not found: install NCCL's development package, or say where it is with -DNCCL_HEADER_FOLDER=…/include")
elseif(NOT SUMAC_NVCC)
  set(missing "nvcc was not found: install the CUDA toolkit's compiler, or say where it is with -DNVCC=…/bin/nvcc")
else()
  set(SUMAC_WITH_CUDA ON)
  set(SUMAC_CUDA_INCLUDE ${SUMAC_CUDA_HEADER_FOLDER} ${SUMAC_NCCL_HEADER_FOLDER})
  list(REMOVE_DUPLICATES SUMAC_CUDA_INCLUDE)
  message(STATUS "GPUs: built, with ${SUMAC_CUDA_HEADER_FOLDER}/cuda.h and ${SUMAC_NCCL_HEADER_FOLDER}/nccl.h")
  return()
endif()
if(SUMAC_CUDA STREQUAL ON)
  message(FATAL_ERROR "SUMAC_CUDA is ON, but ${missing}")
endif()
message(STATUS "GPUs: not built (${missing})")
