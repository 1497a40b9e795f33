# StokerDependencies.cmake - find the dependencies and print a table of them.
#
# A dependency becomes a target (stoker::uring, stoker::deflate, stoker::png, stoker::jpeg,
# stoker::webp, stoker::lz4, stoker::zstd) and a variable (STOKER_HAVE_URING, ...). The installed stoker-config.cmake
# creates the same targets for projects that link libstoker.a.

include(StokerNvcc)
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

set(stoker_features "")

# stoker_feature(name state text): one row of the table.
function(stoker_feature name state text)
  string(LENGTH "${name}" length)
  math(EXPR pad "12 - ${length}")
  string(REPEAT " " ${pad} name_pad)
  string(LENGTH "${state}" length)
  math(EXPR pad "9 - ${length}")
  string(REPEAT " " ${pad} state_pad)
  set(stoker_features "${stoker_features}  ${name}${name_pad}${state}${state_pad}${text}\n"
      PARENT_SCOPE)
endfunction()

function(stoker_print_features)
  message(STATUS "Stoker ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, ${CMAKE_C_COMPILER_ID} "
                 "${CMAKE_C_COMPILER_VERSION}\n${stoker_features}")
endfunction()

# stoker_dependency(NAME uring PACKAGE liburing LIBRARY uring [MORE...] SWITCH STOKER_URING
#                   WITH "what it provides" WITHOUT "what happens without it")
macro(stoker_dependency)
  cmake_parse_arguments(dep "" "NAME;PACKAGE;SWITCH;WITH;WITHOUT" "LIBRARY" ${ARGN})
  string(TOUPPER "${dep_NAME}" dep_upper)
  set(STOKER_HAVE_${dep_upper} FALSE)
  stoker_check_switch(${dep_SWITCH})
  if(${dep_SWITCH} STREQUAL "OFF")
    stoker_feature(${dep_PACKAGE} off "${dep_WITHOUT}")
  else()
    pkg_check_modules(STOKER_PKG_${dep_upper} QUIET IMPORTED_TARGET ${dep_PACKAGE})
    if(STOKER_PKG_${dep_upper}_FOUND)
      set(STOKER_HAVE_${dep_upper} TRUE)
      stoker_dependency_target(${dep_NAME} ${dep_upper} ${dep_PACKAGE} ${dep_LIBRARY})
      stoker_feature(${dep_PACKAGE} found "${STOKER_PKG_${dep_upper}_VERSION}: ${dep_WITH}")
    elseif(${dep_SWITCH} STREQUAL "ON")
      message(FATAL_ERROR "${dep_SWITCH}=ON, but pkg-config does not find ${dep_PACKAGE}: install its headers, or build with "
                          "${dep_SWITCH}=OFF (${dep_WITHOUT})")
    else()
      stoker_feature(${dep_PACKAGE} missing "${dep_WITHOUT}")
    endif()
  endif()
endmacro()

# Some distributions build archives without -fPIC; those cannot be linked into libstoker.so.
function(stoker_check_archive archive package)
  execute_process(
    COMMAND "${CMAKE_C_COMPILER}" -shared -Wl,--whole-archive "${archive}" -Wl,--no-whole-archive
            -o "${CMAKE_BINARY_DIR}/CMakeFiles/stoker_archive.so"
    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(failed)
    message(FATAL_ERROR "STOKER_STATIC_DEPS=ON, but ${archive} of ${package} was not compiled with "
                        "-fPIC and cannot go into a shared libstoker; add -DBUILD_SHARED_LIBS=OFF")
  endif()
endfunction()

# A switch is AUTO, ON or OFF.
function(stoker_check_switch name)
  if(NOT ${name} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "${name}=${${name}}: use AUTO, ON or OFF")
  endif()
endfunction()

function(stoker_dependency_target name upper package)
  add_library(stoker::${name} INTERFACE IMPORTED GLOBAL)
  if(NOT STOKER_STATIC_DEPS)
    target_link_libraries(stoker::${name} INTERFACE PkgConfig::STOKER_PKG_${upper})
    return()
  endif()
  foreach(library IN LISTS ARGN)
    find_library(STOKER_ARCHIVE_${library} NAMES lib${library}.a
                 HINTS ${STOKER_PKG_${upper}_LIBRARY_DIRS} ${STOKER_PKG_${upper}_LIBDIR})
    mark_as_advanced(STOKER_ARCHIVE_${library})
    if(NOT STOKER_ARCHIVE_${library})
      message(FATAL_ERROR "STOKER_STATIC_DEPS=ON, but lib${library}.a of ${package} was not found")
    endif()
    if(BUILD_SHARED_LIBS)
      stoker_check_archive("${STOKER_ARCHIVE_${library}}" ${package})
    endif()
    # The archive's symbols must not leave libstoker.so.
    target_link_libraries(stoker::${name} INTERFACE "${STOKER_ARCHIVE_${library}}")
    target_link_options(stoker::${name} INTERFACE "LINKER:--exclude-libs,lib${library}.a")
  endforeach()
  target_link_libraries(stoker::${name} INTERFACE m) # libpng and libwebp need it
  target_include_directories(stoker::${name} INTERFACE ${STOKER_PKG_${upper}_INCLUDE_DIRS})
endfunction()

stoker_dependency(NAME uring PACKAGE liburing LIBRARY uring SWITCH STOKER_URING
  WITH "the io_uring reader"
  WITHOUT "no io_uring reader, the pread reader is used instead")
stoker_dependency(NAME deflate PACKAGE libdeflate LIBRARY deflate SWITCH STOKER_DEFLATE
  WITH "gzip files, and the fast path for PNG files"
  WITHOUT "no gzip files (unpack them first), PNG files at the speed of libpng")
stoker_dependency(NAME png PACKAGE libpng LIBRARY png16 z SWITCH STOKER_PNG
  WITH "PNG files"
  WITHOUT "no PNG files")
stoker_dependency(NAME jpeg PACKAGE libjpeg LIBRARY jpeg SWITCH STOKER_JPEG
  WITH "JPEG files"
  WITHOUT "no JPEG files")
stoker_dependency(NAME webp PACKAGE libwebp LIBRARY webp SWITCH STOKER_WEBP
  WITH "WebP files"
  WITHOUT "no WebP files")
stoker_dependency(NAME lz4 PACKAGE liblz4 LIBRARY lz4 SWITCH STOKER_LZ4
  WITH "LZ4 shards"
  WITHOUT "no LZ4 shards")
stoker_dependency(NAME zstd PACKAGE libzstd LIBRARY zstd SWITCH STOKER_ZSTD
  WITH "Zstandard shards"
  WITHOUT "no Zstandard shards")

# oneDNN has no pkg-config file, and its CMake package requires OpenCL, which we do not use.
set(STOKER_HAVE_DNNL FALSE)
stoker_check_switch(STOKER_DNNL)
if(STOKER_DNNL STREQUAL "OFF" OR NOT STOKER_BUILD_TRAINER)
  stoker_feature(oneDNN off "the trainer's cpu back end runs plain, slower loops")
elseif(STOKER_STATIC_DEPS AND STOKER_DNNL STREQUAL "ON")
  message(FATAL_ERROR "STOKER_DNNL=ON, but STOKER_STATIC_DEPS=ON: oneDNN is only a shared library")
elseif(STOKER_STATIC_DEPS)
  stoker_feature(oneDNN off "STOKER_STATIC_DEPS=ON, and it is only a shared library; the trainer runs plain, slower loops")
else()
  find_path(STOKER_DNNL_INCLUDE oneapi/dnnl/dnnl.h)
  find_library(STOKER_DNNL_LIBRARY dnnl)
  mark_as_advanced(STOKER_DNNL_INCLUDE STOKER_DNNL_LIBRARY)
  if(STOKER_DNNL_INCLUDE AND STOKER_DNNL_LIBRARY)
    set(STOKER_HAVE_DNNL TRUE)
    add_library(stoker::dnnl INTERFACE IMPORTED GLOBAL)
    target_include_directories(stoker::dnnl SYSTEM INTERFACE "${STOKER_DNNL_INCLUDE}")
    target_link_libraries(stoker::dnnl INTERFACE "${STOKER_DNNL_LIBRARY}")
    file(STRINGS "${STOKER_DNNL_INCLUDE}/oneapi/dnnl/dnnl_version.h" stoker_dnnl_lines
         REGEX "^#define DNNL_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
    string(REGEX MATCHALL "[0-9]+" stoker_dnnl_version "${stoker_dnnl_lines}")
    list(JOIN stoker_dnnl_version "." stoker_dnnl_version)
    stoker_feature(oneDNN found "${stoker_dnnl_version}: the trainer's cpu back end")
  elseif(STOKER_DNNL STREQUAL "ON")
    message(FATAL_ERROR "STOKER_DNNL=ON, but oneDNN was not found")
  else()
    stoker_feature(oneDNN missing "the trainer's cpu back end runs plain, slower loops")
  endif()
endif()

# MPI libraries differ in their binary interface, so only a plugin, libstoker_mpi.so, is compiled with one. It is loaded when
# ranks are asked for.
set(STOKER_HAVE_MPI FALSE)
stoker_check_switch(STOKER_MPI)
if(STOKER_MPI STREQUAL "OFF" OR NOT STOKER_BUILD_TRAINER)
  stoker_feature(MPI off "one process trains")
else()
  find_package(MPI QUIET COMPONENTS C)
  if(MPI_C_FOUND AND MPI_C_VERSION VERSION_GREATER_EQUAL 3.0)
    set(STOKER_HAVE_MPI TRUE)
    stoker_feature(MPI found "${MPI_C_VERSION}: several ranks, through libstoker_mpi.so")
  elseif(STOKER_MPI STREQUAL "ON")
    message(FATAL_ERROR "STOKER_MPI=ON, but no MPI 3.0 or later was found for C (found: ${MPI_C_VERSION})")
  else()
    stoker_feature(MPI missing "one process trains")
  endif()
endif()

if(STOKER_BUILD_TESTS)
  pkg_check_modules(CRITERION QUIET IMPORTED_TARGET criterion)
  if(CMAKE_CROSSCOMPILING)
    stoker_feature(criterion off "only its headers: tests/support/forked_criterion.c runs the tests")
  elseif(CRITERION_FOUND)
    stoker_feature(criterion found "${CRITERION_VERSION}: the tests")
  else()
    stoker_feature(criterion missing "no unit tests; programs and scripts only")
  endif()
else()
  stoker_feature(criterion off "STOKER_BUILD_TESTS=OFF")
endif()

# stoker_headers_compile(OUT FOLDERS HEADER...): TRUE if they are complete and fit each other. Wheels and distributions split
# them, and others than the chosen ones may lie where the compiler looks.
function(stoker_headers_compile out folders)
  set(source "${CMAKE_BINARY_DIR}/CMakeFiles/stoker_headers.c")
  set(text "")
  foreach(header IN LISTS ARGN)
    string(APPEND text "#include <${header}>\n")
  endforeach()
  file(WRITE "${source}" "${text}int stoker_headers;\n")
  list(TRANSFORM folders PREPEND "-isystem")
  if(CMAKE_SYSROOT)
    list(APPEND folders "--sysroot=${CMAKE_SYSROOT}")
  endif()
  execute_process(COMMAND "${CMAKE_C_COMPILER}" -std=gnu17 -fsyntax-only ${folders} "${source}"
                  RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  set(result FALSE)
  if(failed EQUAL 0)
    set(result TRUE)
  endif()
  set(${out} ${result} PARENT_SCOPE)
endfunction()

# Only the CUDA headers are needed to build, of 12.0 or later: the runtime is loaded when a program requests a GPU.
set(STOKER_HAVE_CUDA FALSE)
stoker_check_switch(STOKER_CUDA)
find_package(CUDAToolkit QUIET)
find_path(STOKER_CUDA_INCLUDE cuda_runtime_api.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
mark_as_advanced(STOKER_CUDA_INCLUDE)
if(STOKER_CUDA STREQUAL "OFF")
  stoker_feature(CUDA off "batches in host memory only")
elseif(STOKER_CUDA_INCLUDE)
  # The version of the runtime, which is part of its library's name; the toolkit's may be unknown.
  file(STRINGS "${STOKER_CUDA_INCLUDE}/cuda_runtime_api.h" STOKER_CUDA_VERSION
       REGEX "^#define CUDART_VERSION +[0-9]+")
  string(REGEX REPLACE ".* ([0-9]+)0([0-9]+)[0-9]$" "\\1.\\2" STOKER_CUDA_VERSION
         "${STOKER_CUDA_VERSION}")
  stoker_headers_compile(stoker_cuda_complete "${STOKER_CUDA_INCLUDE}" cuda_runtime_api.h)
  if(STOKER_CUDA_VERSION VERSION_LESS 12.0)
    set(stoker_cuda_needs "the headers of CUDA 12.0 or later")
  elseif(NOT stoker_cuda_complete)
    set(stoker_cuda_needs "headers that ${STOKER_CUDA_INCLUDE} lacks: cuda_runtime_api.h does not compile")
  else()
    set(stoker_cuda_needs "")
  endif()
  if(stoker_cuda_needs AND STOKER_CUDA STREQUAL "ON")
    message(FATAL_ERROR "STOKER_CUDA=ON, but ${STOKER_CUDA_INCLUDE} is of CUDA ${STOKER_CUDA_VERSION}; needs ${stoker_cuda_needs}")
  elseif(stoker_cuda_needs)
    stoker_feature(CUDA unused "${STOKER_CUDA_VERSION}, needs ${stoker_cuda_needs}; batches in host memory only")
  else()
    set(STOKER_HAVE_CUDA TRUE)
    stoker_feature(CUDA found "${STOKER_CUDA_VERSION}: batches in GPU memory, if there is a GPU at run time")
  endif()
elseif(STOKER_CUDA STREQUAL "ON")
  message(FATAL_ERROR "STOKER_CUDA=ON, but cuda_runtime_api.h was not found")
else()
  stoker_feature(CUDA missing "batches in host memory only")
endif()

# NVTX is a header of the CUDA toolkit, with nothing to link. It looks for its tool at run time.
set(STOKER_HAVE_NVTX FALSE)
stoker_check_switch(STOKER_NVTX)
if(STOKER_NVTX STREQUAL "OFF")
  stoker_feature(NVTX off "no ranges for Nsight Systems")
else()
  find_path(STOKER_NVTX_INCLUDE nvtx3/nvToolsExt.h HINTS ${CUDAToolkit_INCLUDE_DIRS}
            PATHS ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES include)
  mark_as_advanced(STOKER_NVTX_INCLUDE)
  if(STOKER_NVTX_INCLUDE)
    set(STOKER_HAVE_NVTX TRUE)
    stoker_feature(NVTX found "ranges for Nsight Systems, if it is attached")
  elseif(STOKER_NVTX STREQUAL "ON")
    message(FATAL_ERROR "STOKER_NVTX=ON, but nvtx3/nvToolsExt.h was not found")
  else()
    stoker_feature(NVTX missing "no ranges for Nsight Systems")
  endif()
endif()

# Only nvcc decides whether the library contains GPU kernels; the build machine needs no GPU.
set(STOKER_HAVE_NVCC FALSE)
stoker_check_switch(STOKER_NVCC_KERNELS)
if(STOKER_NVCC_KERNELS STREQUAL "OFF")
  stoker_feature(nvcc off "no kernels: images are transformed on the CPU")
else()
  find_program(STOKER_NVCC NAMES nvcc HINTS ${CUDAToolkit_BIN_DIR} /usr/local/cuda/bin)
  mark_as_advanced(STOKER_NVCC)
  if(STOKER_NVCC)
    stoker_prepare_nvcc(stoker_nvcc_refused)
  endif()
  if(STOKER_NVCC AND NOT stoker_nvcc_refused)
    set(STOKER_HAVE_NVCC TRUE)
    stoker_feature(nvcc found "${STOKER_NVCC_VERSION}: kernels for ${STOKER_NVCC_TARGETS}")
  elseif(STOKER_NVCC AND STOKER_NVCC_KERNELS STREQUAL "ON")
    message(FATAL_ERROR "STOKER_NVCC_KERNELS=ON, but ${STOKER_NVCC} (${STOKER_NVCC_VERSION}) cannot be used: ${stoker_nvcc_refused}")
  elseif(STOKER_NVCC)
    stoker_feature(nvcc unused "${STOKER_NVCC_VERSION}, no kernels, images are transformed on the CPU: ${stoker_nvcc_refused}")
  elseif(STOKER_NVCC_KERNELS STREQUAL "ON")
    message(FATAL_ERROR "STOKER_NVCC_KERNELS=ON, but nvcc was not found")
  else()
    stoker_feature(nvcc missing "no kernels: images are transformed on the CPU")
  endif()
endif()

# Only the cuDNN headers are needed to build: the library is loaded when a GPU is used.
set(STOKER_HAVE_CUDNN FALSE)
stoker_check_switch(STOKER_CUDNN)
if(STOKER_CUDNN STREQUAL "OFF" OR NOT STOKER_BUILD_TRAINER)
  stoker_feature(cuDNN off "no convolutions on a GPU")
else()
  find_path(STOKER_CUDNN_INCLUDE cudnn_graph.h HINTS ${STOKER_CUDA_INCLUDE} ${CUDAToolkit_INCLUDE_DIRS})
  mark_as_advanced(STOKER_CUDNN_INCLUDE)
  set(stoker_cudnn_version "")
  if(STOKER_HAVE_CUDA AND STOKER_CUDNN_INCLUDE)
    file(STRINGS "${STOKER_CUDNN_INCLUDE}/cudnn_version.h" stoker_cudnn_lines
         REGEX "^#define CUDNN_(MAJOR|MINOR|PATCHLEVEL) +[0-9]+")
    string(REGEX MATCHALL "[0-9]+" stoker_cudnn_version "${stoker_cudnn_lines}")
    list(JOIN stoker_cudnn_version "." stoker_cudnn_version)
  endif()
  # cuDNN 9.8 added plans for described (absent) devices, which the tests use.
  if(stoker_cudnn_version VERSION_GREATER_EQUAL 9.8 AND stoker_cudnn_version VERSION_LESS 10)
    set(STOKER_HAVE_CUDNN TRUE)
    stoker_feature(cuDNN found "${stoker_cudnn_version}: convolutions on a GPU")
  elseif(STOKER_CUDNN STREQUAL "ON")
    message(FATAL_ERROR "STOKER_CUDNN=ON, but the headers of cuDNN 9.8 or a later 9.x were not found "
                        "beside CUDA's (found: ${stoker_cudnn_version})")
  else()
    stoker_feature(cuDNN missing "no convolutions on a GPU")
  endif()
endif()

# cuBLASLt is part of the CUDA toolkit; its library is loaded when a GPU is used. The trainer's CUDA back end
# needs it and cuDNN.
set(STOKER_HAVE_CUDA_TRAINER FALSE)
find_path(STOKER_CUBLASLT_INCLUDE cublasLt.h HINTS ${STOKER_CUDA_INCLUDE} ${CUDAToolkit_INCLUDE_DIRS})
mark_as_advanced(STOKER_CUBLASLT_INCLUDE)
if(NOT STOKER_HAVE_CUDNN)
  stoker_feature(cuBLASLt off "no training on a GPU without cuDNN")
elseif(STOKER_CUBLASLT_INCLUDE)
  stoker_headers_compile(STOKER_HAVE_CUDA_TRAINER "${STOKER_CUDA_INCLUDE};${STOKER_CUDNN_INCLUDE};${STOKER_CUBLASLT_INCLUDE}"
                         cuda_runtime_api.h cudnn_graph.h cublasLt.h)
  if(STOKER_HAVE_CUDA_TRAINER)
    stoker_feature(cuBLASLt found "training on GPUs, if there is one at run time")
  else()
    stoker_feature(cuBLASLt unused "no training on a GPU: ${STOKER_CUBLASLT_INCLUDE}/cublasLt.h is not of CUDA ${STOKER_CUDA_VERSION}")
  endif()
else()
  stoker_feature(cuBLASLt missing "no training on a GPU")
endif()
