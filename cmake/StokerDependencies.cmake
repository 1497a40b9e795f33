# StokerDependencies.cmake - what is on this machine, and the table that says so.
#
# A dependency becomes the target stoker::uring or stoker::deflate and the variable
# STOKER_HAVE_URING or STOKER_HAVE_DEFLATE. The installed stoker-config.cmake makes the
# same targets again for those who link libstoker.a.

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

# stoker_dependency(NAME uring PACKAGE liburing LIBRARY uring SWITCH STOKER_URING
#                   WITH "what it gives" WITHOUT "what happens without it")
macro(stoker_dependency)
  cmake_parse_arguments(dep "" "NAME;PACKAGE;LIBRARY;SWITCH;WITH;WITHOUT" "" ${ARGN})
  string(TOUPPER "${dep_NAME}" dep_upper)
  set(STOKER_HAVE_${dep_upper} FALSE)
  if(NOT ${dep_SWITCH} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "${dep_SWITCH}=${${dep_SWITCH}}: use AUTO, ON or OFF")
  endif()
  if(${dep_SWITCH} STREQUAL "OFF")
    stoker_feature(${dep_PACKAGE} off "${dep_WITHOUT}")
  else()
    pkg_check_modules(STOKER_PKG_${dep_upper} QUIET IMPORTED_TARGET ${dep_PACKAGE})
    if(STOKER_PKG_${dep_upper}_FOUND)
      set(STOKER_HAVE_${dep_upper} TRUE)
      stoker_dependency_target(${dep_NAME} ${dep_upper} ${dep_LIBRARY})
      stoker_feature(${dep_PACKAGE} found "${STOKER_PKG_${dep_upper}_VERSION}: ${dep_WITH}")
    elseif(${dep_SWITCH} STREQUAL "ON")
      message(FATAL_ERROR "${dep_SWITCH}=ON, but pkg-config does not know ${dep_PACKAGE}")
    else()
      stoker_feature(${dep_PACKAGE} missing "${dep_WITHOUT}")
    endif()
  endif()
endmacro()

function(stoker_dependency_target name upper library)
  add_library(stoker::${name} INTERFACE IMPORTED GLOBAL)
  if(NOT STOKER_STATIC_DEPS)
    target_link_libraries(stoker::${name} INTERFACE PkgConfig::STOKER_PKG_${upper})
    return()
  endif()
  find_library(STOKER_ARCHIVE_${upper} NAMES lib${library}.a
               HINTS ${STOKER_PKG_${upper}_LIBRARY_DIRS} ${STOKER_PKG_${upper}_LIBDIR})
  if(NOT STOKER_ARCHIVE_${upper})
    message(FATAL_ERROR "STOKER_STATIC_DEPS=ON, but lib${library}.a is not there")
  endif()
  # The archive's symbols must not leave libstoker.so.
  target_link_libraries(stoker::${name} INTERFACE "${STOKER_ARCHIVE_${upper}}")
  target_link_options(stoker::${name} INTERFACE "LINKER:--exclude-libs,lib${library}.a")
  target_include_directories(stoker::${name} INTERFACE ${STOKER_PKG_${upper}_INCLUDE_DIRS})
endfunction()

stoker_dependency(NAME uring PACKAGE liburing LIBRARY uring SWITCH STOKER_URING
  WITH "the io_uring reader"
  WITHOUT "no io_uring reader; pread serves the same bytes")
stoker_dependency(NAME deflate PACKAGE libdeflate LIBRARY deflate SWITCH STOKER_DEFLATE
  WITH "gzip files"
  WITHOUT "no gzip files; unpack them first")

if(STOKER_BUILD_TESTS)
  pkg_check_modules(CRITERION QUIET IMPORTED_TARGET criterion)
  if(CRITERION_FOUND)
    stoker_feature(criterion found "${CRITERION_VERSION}: the tests")
  else()
    stoker_feature(criterion missing "no unit tests; programs and scripts only")
  endif()
else()
  stoker_feature(criterion off "STOKER_BUILD_TESTS=OFF")
endif()

# Nothing here uses these yet. They are shown so that a log from another machine tells what
# that machine has.
function(stoker_feature_unused name version)
  if(version)
    stoker_feature(${name} found "${version}: not used by this version")
  else()
    stoker_feature(${name} missing "not used by this version")
  endif()
  set(stoker_features "${stoker_features}" PARENT_SCOPE)
endfunction()

pkg_check_modules(STOKER_PKG_PNG QUIET libpng)
stoker_feature_unused(libpng "${STOKER_PKG_PNG_VERSION}")
pkg_check_modules(STOKER_PKG_LZ4 QUIET liblz4)
stoker_feature_unused(lz4 "${STOKER_PKG_LZ4_VERSION}")
find_package(CUDAToolkit QUIET)
stoker_feature_unused(CUDA "${CUDAToolkit_VERSION}")
find_file(STOKER_CUDNN_HEADER cudnn_version.h PATHS ${CUDAToolkit_INCLUDE_DIRS})
mark_as_advanced(STOKER_CUDNN_HEADER)
set(stoker_cudnn_version "")
if(STOKER_CUDNN_HEADER)
  file(STRINGS "${STOKER_CUDNN_HEADER}" stoker_cudnn_lines
       REGEX "^#define CUDNN_(MAJOR|MINOR|PATCHLEVEL) +[0-9]+")
  string(REGEX MATCHALL "[0-9]+" stoker_cudnn_version "${stoker_cudnn_lines}")
  list(JOIN stoker_cudnn_version "." stoker_cudnn_version)
endif()
stoker_feature_unused(cuDNN "${stoker_cudnn_version}")
