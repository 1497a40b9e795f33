# x86-64-v2.cmake - toolchain: this machine's gcc; tests run under qemu as on an x86-64-v2 CPU, which lacks AVX, BMI and PCLMUL.
#
#   cmake -B build/x86-64-v2 -G Ninja -DCMAKE_TOOLCHAIN_FILE=cmake/x86-64-v2.cmake
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER gcc)

find_program(STOKER_QEMU NAMES qemu-x86_64-static qemu-x86_64)
if(STOKER_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR "${STOKER_QEMU};-cpu;Nehalem")
endif()
