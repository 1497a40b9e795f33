# StokerLibrary.cmake - libraries from the same sources.
#
#   stoker           installed: hidden visibility, no fault injection
#   stoker_testing   linked by tests: a static library of the same objects, so that a test can call internal functions;
#                    those that ask fault.h are compiled again with STOKER_FAULT_INJECTION=1, so that it can fail any allocation
#   stoker_grown     libstoker of a later version, whose structs have one member more, for check.frozen_headers

set(STOKER_LIBRARIES stoker stoker_testing stoker_grown)

# The files that include base/fault.h: the others are the same in stoker_testing.
set(STOKER_FAULTY loader/base/fault.c loader/base/memory/memory.c loader/base/cpu/thread.c loader/cache/segment.c
    loader/codec/jpeg/jpeg.c loader/codec/png/png.c loader/codec/zstd.c datasets/gzip.c datasets/source.c
    datasets/zip/unpack.c)

# stoker_sources(FILE...): add files to all of them.
function(stoker_sources)
  if(TARGET stoker_testing)
    foreach(file IN LISTS ARGN)
      file(STRINGS "${file}" asks REGEX "^#include \"loader/base/fault.h\"")
      file(RELATIVE_PATH name "${PROJECT_SOURCE_DIR}" "${file}")
      if(name IN_LIST STOKER_FAULTY)
        target_sources(stoker_testing PRIVATE "${file}")
      elseif(asks)
        message(FATAL_ERROR "${name} includes fault.h, but is not in STOKER_FAULTY (cmake/StokerLibrary.cmake)")
      endif()
    endforeach()
  endif()
  foreach(library IN LISTS STOKER_LIBRARIES)
    if(TARGET ${library} AND NOT library STREQUAL "stoker_testing")
      target_sources(${library} PRIVATE ${ARGN})
    endif()
  endforeach()
endfunction()

# stoker_take_objects(NAME TARGET EXCLUDE|INCLUDE REGEX): add TARGET's objects to NAME, those that match or all others, which were
# compiled once for both.
function(stoker_take_objects name target how regex)
  target_sources(${name} PRIVATE "$<FILTER:$<TARGET_OBJECTS:${target}>,${how},${regex}>")
endfunction()

# stoker_third_party(file dependency): give one file the include path of a dependency, and link the libraries
# to it.
function(stoker_third_party file dependency)
  string(TOUPPER "${dependency}" upper)
  if(NOT STOKER_HAVE_${upper})
    return()
  endif()
  foreach(library IN LISTS STOKER_LIBRARIES)
    if(TARGET ${library})
      set_source_files_properties("${file}" TARGET_DIRECTORY ${library} PROPERTIES
        INCLUDE_DIRECTORIES "${STOKER_PKG_${upper}_INCLUDE_DIRS}")
      target_link_libraries(${library} PRIVATE "$<LINK_ONLY:stoker::${dependency}>")
    endif()
  endforeach()
endfunction()

# stoker_version_symbols(name): give the exported symbols of a shared library their version.
function(stoker_version_symbols name)
  get_target_property(type ${name} TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    target_link_options(${name} PRIVATE "LINKER:--version-script=${PROJECT_SOURCE_DIR}/loader/stoker.map")
    set_property(TARGET ${name} APPEND PROPERTY LINK_DEPENDS "${PROJECT_SOURCE_DIR}/loader/stoker.map")
  endif()
endfunction()

# stoker_add_library(name STATIC|SHARED|""): settings common to them.
function(stoker_add_library name kind)
  add_library(${name} ${kind})
  target_include_directories(${name}
    PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/loader/include>"
           "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>"
    PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_definitions(${name} PRIVATE STOKER_OWN_DECODERS=$<BOOL:${STOKER_OWN_DECODERS}>
    $<$<BOOL:${STOKER_HAVE_URING}>:STOKER_HAVE_URING=1>
    $<$<BOOL:${STOKER_HAVE_DEFLATE}>:STOKER_HAVE_DEFLATE=1>)
  target_sources(${name} PRIVATE $<TARGET_OBJECTS:stoker_kernels>)
  target_link_libraries(${name} PRIVATE Threads::Threads m)
  stoker_version_symbols(${name})
endfunction()
