# aarch64.cmake - toolchain: cross-build for 64-bit ARM Linux, such as Grace hosts, with Debian's gcc; run tests under qemu.
#
#   cmake/aarch64-sysroot.sh build/aarch64.sysroot
#   cmake -B build/aarch64 -G Ninja -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake
#
# STOKER_AARCH64_SYSROOT: folder with the target's libraries and headers; default build/aarch64.sysroot.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)

if(NOT STOKER_AARCH64_SYSROOT)
  get_filename_component(STOKER_AARCH64_SYSROOT "${CMAKE_CURRENT_LIST_DIR}/../build/aarch64.sysroot" ABSOLUTE)
endif()
if(NOT EXISTS "${STOKER_AARCH64_SYSROOT}/complete")
  message(FATAL_ERROR "No libraries for arm64 in ${STOKER_AARCH64_SYSROOT}: run cmake/aarch64-sysroot.sh ${STOKER_AARCH64_SYSROOT}")
endif()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES STOKER_AARCH64_SYSROOT)
set(CMAKE_SYSROOT "${STOKER_AARCH64_SYSROOT}")
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

# CUDA's headers are the same for every processor: those of this machine serve.
find_path(stoker_cuda_headers cuda_runtime_api.h PATHS ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES include NO_CACHE
          NO_CMAKE_FIND_ROOT_PATH)
if(stoker_cuda_headers)
  get_filename_component(stoker_cuda_folder "${stoker_cuda_headers}" DIRECTORY)
  list(APPEND CMAKE_FIND_ROOT_PATH "${stoker_cuda_folder}")
endif()

# Programs of this machine, libraries and headers of the other.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${CMAKE_SYSROOT}")
set(ENV{PKG_CONFIG_LIBDIR} "${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig")

find_program(STOKER_QEMU NAMES qemu-aarch64-static qemu-aarch64)
if(STOKER_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR "${STOKER_QEMU};-L;${CMAKE_SYSROOT}")
endif()
