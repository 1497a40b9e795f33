# StokerNvcc.cmake - the GPUs that the kernels are compiled for: STOKER_CUDA_ARCHITECTURES.
#
# Sets STOKER_NVCC_VERSION (13.0), STOKER_NVCC_FLAGS (-gencode ...) and, for fatbin.c, which says at run time what the
# library has, STOKER_NVCC_DEFINITIONS. Reads STOKER_NVCC.

# 7.5 T4, RTX 20; 8.0 A100; 8.6 RTX 30, A40; 8.9 RTX 40, L4; 9.0 H100; 10.0 B200; 12.0 RTX 50. The PTX of 9.0 is for what lies
# between and behind them; the driver compiles it when it is first used.
set(stoker_all_architectures 75-real 80-real 86-real 89-real 90 100-real 120-real)

# stoker_read_nvcc(VERSION KNOWN): the version, and the numbers of the architectures that it compiles for. Empty if it does not
# run.
function(stoker_read_nvcc version known)
  execute_process(COMMAND "${STOKER_NVCC}" --version OUTPUT_VARIABLE text ERROR_QUIET)
  execute_process(COMMAND "${STOKER_NVCC}" --list-gpu-arch OUTPUT_VARIABLE list ERROR_QUIET)
  set(found "")
  if(text MATCHES "release ([0-9]+\\.[0-9]+)")
    set(found "${CMAKE_MATCH_1}")
  endif()
  string(REGEX MATCHALL "compute_[0-9]+" list "${list}")
  list(TRANSFORM list REPLACE "compute_" "")
  set(${version} "${found}" PARENT_SCOPE)
  set(${known} "${list}" PARENT_SCOPE)
endfunction()

# stoker_choose_architectures(OUT KNOWN...): what STOKER_CUDA_ARCHITECTURES means for this nvcc. Of `all` it leaves out what nvcc does
# not know; anything else must be known.
function(stoker_choose_architectures out)
  set(chosen ${STOKER_CUDA_ARCHITECTURES})
  if(chosen STREQUAL "all")
    set(chosen ${stoker_all_architectures})
  endif()
  set(result "")
  foreach(architecture IN LISTS chosen)
    if(NOT architecture MATCHES "^([0-9]+)(-real|-virtual)?$")
      message(FATAL_ERROR "STOKER_CUDA_ARCHITECTURES=${STOKER_CUDA_ARCHITECTURES}: use all, or a list such as "
                          "\"80-real;90\": a number for machine code and PTX, -real or -virtual for one of them")
    endif()
    if(CMAKE_MATCH_1 IN_LIST ARGN)
      list(APPEND result "${architecture}")
    elseif(NOT STOKER_CUDA_ARCHITECTURES STREQUAL "all")
      list(JOIN ARGN ", " known)
      message(FATAL_ERROR "STOKER_CUDA_ARCHITECTURES has ${architecture}, which nvcc ${STOKER_NVCC_VERSION} does not "
                          "know (known: ${known})")
    endif()
  endforeach()
  list(SORT result COMPARE NATURAL)
  set(${out} "${result}" PARENT_SCOPE)
endfunction()

# stoker_describe_architectures(ARCHITECTURE...): sets STOKER_NVCC_FLAGS and STOKER_NVCC_TARGETS, such as "8.0 9.0 PTX 9.0".
function(stoker_describe_architectures)
  set(flags -Xfatbin=-compress-all) # a sixth of the size
  set(code "")
  set(ptx "")
  foreach(architecture IN LISTS ARGN)
    string(REGEX MATCH "^[0-9]+" number "${architecture}")
    string(REGEX REPLACE "^([0-9]+)([0-9])$" "\\1.\\2" capability "${number}")
    set(forms "sm_${number},compute_${number}")
    if(architecture MATCHES "-real$")
      set(forms "sm_${number}")
    elseif(architecture MATCHES "-virtual$")
      set(forms "compute_${number}")
    endif()
    if(forms MATCHES "sm_")
      list(APPEND code "${capability}")
    endif()
    if(forms MATCHES "compute_")
      list(APPEND ptx "${capability}")
    endif()
    list(APPEND flags -gencode "arch=compute_${number},code=[${forms}]")
  endforeach()
  if(ptx)
    list(PREPEND ptx PTX)
  endif()
  list(JOIN code " " targets)
  list(JOIN ptx " " ptx)
  string(STRIP "${targets} ${ptx}" targets)
  set(STOKER_NVCC_FLAGS "${flags}" PARENT_SCOPE)
  set(STOKER_NVCC_TARGETS "${targets}" PARENT_SCOPE)
endfunction()

# stoker_prepare_nvcc(): all of the above.
function(stoker_prepare_nvcc)
  stoker_read_nvcc(version known)
  set(STOKER_NVCC_VERSION "${version}")
  set(STOKER_NVCC_VERSION "${version}" PARENT_SCOPE)
  if(version STREQUAL "" OR version VERSION_LESS 12.0)
    return()
  endif()
  if(STOKER_SANITIZE) # runs on no GPU: that the kernels compile is enough
    set(chosen 75-virtual)
  else()
    stoker_choose_architectures(chosen ${known})
  endif()
  stoker_describe_architectures(${chosen})
  string(REPLACE "." ";" parts "${version}")
  list(GET parts 0 major)
  list(GET parts 1 minor)
  math(EXPR number "${major} * 1000 + ${minor} * 10")
  set(STOKER_NVCC_FLAGS "${STOKER_NVCC_FLAGS}" PARENT_SCOPE)
  set(STOKER_NVCC_TARGETS "${STOKER_NVCC_TARGETS}" PARENT_SCOPE)
  set(STOKER_NVCC_DEFINITIONS "STK_FATBIN_TOOLKIT=${number}" "STK_FATBIN_TARGETS=\"${STOKER_NVCC_TARGETS}\"" PARENT_SCOPE)
endfunction()
