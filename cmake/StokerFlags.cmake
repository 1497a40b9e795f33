# StokerFlags.cmake - compiler and linker flags of every target.

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# Relative, so that an installed tree can be moved.
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

# The default build is -O3 with assertions, so that a wrong byte never passes silently; Release has none.
# Flags that the user changed from CMake's default stay, and a parent project's are not affected.
# No -march: the kernels choose their variant at run time.
if(CMAKE_C_FLAGS_RELWITHDEBINFO STREQUAL "-O2 -g -DNDEBUG")
  set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O3 -g")
endif()

add_compile_definitions(_GNU_SOURCE $<$<NOT:$<BOOL:${STOKER_AVX512}>>:STOKER_NO_AVX512>)
add_compile_options(-Wall -Wextra -Wpedantic -Wconversion -Wshadow)
if(STOKER_WERROR)
  add_compile_options(-Werror)
endif()

if(STOKER_SANITIZE)
  if(NOT STOKER_SANITIZE MATCHES "^(address|undefined|thread)(,(address|undefined|thread))*$")
    message(FATAL_ERROR "STOKER_SANITIZE=${STOKER_SANITIZE}: use address,undefined or thread")
  endif()
  add_compile_options(-fsanitize=${STOKER_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${STOKER_SANITIZE})
else()
  # Not with a sanitizer: the program provides its symbols.
  add_link_options("$<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY>:-Wl,-z,defs>")
endif()

# stoker_hot(FILE... [TARGET_DIRECTORY TARGET]): files that run long in tests, of TARGET's folder or of this one. `./run test` compiles
# the ASan build with -O0, which takes clang a third of the time of -O1; what loops over pixels, bytes or weights takes -O1, for it would
# run for longer than that.
set(STOKER_HOT "")
if(STOKER_SANITIZE)
  set(STOKER_HOT -O1)
endif()
function(stoker_hot)
  set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS ${STOKER_HOT})
endfunction()

if(STOKER_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "STOKER_FUZZ needs clang: set CMAKE_C_COMPILER=clang")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

if(STOKER_COVERAGE)
  if(CMAKE_C_COMPILER_ID MATCHES "Clang")
    add_compile_options(-fprofile-instr-generate -fcoverage-mapping)
    add_link_options(-fprofile-instr-generate)
  else()
    add_compile_options(--coverage)
    add_link_options(--coverage)
  endif()
endif()
