# print_architectures.cmake - what cmake/StokerNvcc.cmake makes of STOKER_NVCC and STOKER_CUDA_ARCHITECTURES, for check_architectures.sh.
cmake_minimum_required(VERSION 3.22)
include("${CMAKE_CURRENT_LIST_DIR}/../../cmake/StokerNvcc.cmake")
stoker_prepare_nvcc(why)
if(why)
  message("unused: ${why}")
else()
  message("${STOKER_NVCC_TARGETS} | ${STOKER_NVCC_FLAGS} | ${STOKER_NVCC_DEFINITIONS}")
endif()
