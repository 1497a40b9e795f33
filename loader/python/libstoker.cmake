# libstoker.cmake - the library that the package carries, or the one outside that it uses.
set(STOKER_PYTHON_LIBSTOKER "" CACHE FILEPATH "The libstoker.so to link, instead of compiling one into the package")
option(STOKER_PYTHON_PROGRAMS "Put loaderbench and stoker-pack into the package" ON)
set(STOKER_PYTHON_LICENCES "" CACHE PATH "Folder of the licenses of libraries that are linked statically")
find_package(Threads REQUIRED)

if(STOKER_PYTHON_LIBSTOKER)
  add_library(stoker::stoker SHARED IMPORTED)
  set_target_properties(stoker::stoker PROPERTIES
    IMPORTED_LOCATION "${STOKER_PYTHON_LIBSTOKER}"
    INTERFACE_INCLUDE_DIRECTORIES "${stoker_root}/loader/include")
  return()
endif()

# One copy, which the module and the programs share: it contains the GPU's kernels.
set(BUILD_SHARED_LIBS ON)
set(STOKER_NVCC_KERNELS AUTO CACHE STRING "Compile the GPU's kernels with nvcc: AUTO, ON or OFF")
set(STOKER_BUILD_BENCH ${STOKER_PYTHON_PROGRAMS})
# pip shows no table of what was found, so a package without these would surprise. To do without one: pip install
# --config-settings=cmake.define.STOKER_JPEG=OFF
foreach(codec IN ITEMS PNG JPEG)
  set(STOKER_${codec} ON CACHE STRING "Decode ${codec} files: AUTO, ON or OFF")
endforeach()
set(STOKER_BUILD_TRAINER OFF)
add_subdirectory("${stoker_root}" stoker EXCLUDE_FROM_ALL)

# Its name has the version, so that the loader never takes a libstoker.so.1 of the system for it; and a wheel has no links.
get_target_property(stoker_version stoker VERSION)
set_target_properties(stoker PROPERTIES OUTPUT_NAME "stoker-${stoker_version}")
set_property(TARGET stoker PROPERTY VERSION)
set_property(TARGET stoker PROPERTY SOVERSION)
install(TARGETS stoker LIBRARY DESTINATION stoker COMPONENT python)
if(STOKER_PYTHON_PROGRAMS)
  add_custom_target(stoker_python_programs ALL DEPENDS loaderbench stoker-pack)
  set_target_properties(loaderbench stoker-pack PROPERTIES INSTALL_RPATH "$ORIGIN/..")
  install(TARGETS loaderbench stoker-pack RUNTIME DESTINATION stoker/bin COMPONENT python)
endif()
if(STOKER_PYTHON_LICENCES)
  install(DIRECTORY "${STOKER_PYTHON_LICENCES}/" DESTINATION stoker/licenses COMPONENT python)
endif()
