# StokerLibrary.cmake - two libraries from the same sources.
#
#   stoker           installed: hidden visibility, no fault injection
#   stoker_testing   linked by tests: a static library with STOKER_FAULT_INJECTION=1, so that a test can call
#                    internal functions and fail any allocation

# stoker_sources(FILE...): add files to both libraries.
function(stoker_sources)
  target_sources(stoker PRIVATE ${ARGN})
  if(TARGET stoker_testing)
    target_sources(stoker_testing PRIVATE ${ARGN})
  endif()
endfunction()

# stoker_third_party(file dependency): give one file the include path of a dependency, and link both libraries
# to it.
function(stoker_third_party file dependency)
  string(TOUPPER "${dependency}" upper)
  if(NOT STOKER_HAVE_${upper})
    return()
  endif()
  foreach(library IN ITEMS stoker stoker_testing)
    if(TARGET ${library})
      set_source_files_properties("${file}" TARGET_DIRECTORY ${library} PROPERTIES
        INCLUDE_DIRECTORIES "${STOKER_PKG_${upper}_INCLUDE_DIRS}")
      target_link_libraries(${library} PRIVATE "$<LINK_ONLY:stoker::${dependency}>")
    endif()
  endforeach()
endfunction()

# stoker_add_library(name STATIC|""): settings common to both libraries.
function(stoker_add_library name kind)
  add_library(${name} ${kind})
  target_include_directories(${name}
    PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/loader/include>"
           "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>"
    PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_definitions(${name} PRIVATE
    $<$<BOOL:${STOKER_HAVE_URING}>:STOKER_HAVE_URING=1>
    $<$<BOOL:${STOKER_HAVE_DEFLATE}>:STOKER_HAVE_DEFLATE=1>)
  target_sources(${name} PRIVATE $<TARGET_OBJECTS:stoker_kernels>)
  target_link_libraries(${name} PRIVATE Threads::Threads m)
endfunction()
