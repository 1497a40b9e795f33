# StokerLibrary.cmake - the same sources built twice.
#
#   stoker           what is installed: hidden visibility, no fault injection
#   stoker_testing   what tests link: a static library with STOKER_FAULT_INJECTION=1,
#                    so that a test can open anything and fail any allocation

# stoker_sources(FILE...): add files to libstoker and to its testing twin.
function(stoker_sources)
  target_sources(stoker PRIVATE ${ARGN})
  if(TARGET stoker_testing)
    target_sources(stoker_testing PRIVATE ${ARGN})
  endif()
endfunction()

# stoker_third_party(file dependency): the one file that may include a third-party header.
# Only this file gets the include path, and the libraries get the dependency to link.
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

# stoker_add_library(name STATIC|"" ): what both twins have in common.
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
