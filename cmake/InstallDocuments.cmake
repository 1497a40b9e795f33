# InstallDocuments.cmake - install documents so that their relative links work where they are then.
#
# Run by `cmake --install`, with
#   stoker_source     the source tree
#   stoker_scratch    a folder for the changed documents
#   stoker_documents  files of the source tree; each keeps its folder
#   stoker_to         where they go, and
#   stoker_headers    where the public headers are; both relative to the prefix, or absolute
#
#   a link to     becomes
#   a document    itself, since the folders are kept
#   a header      a link to the installed one
#   others        its text: sources and tests are not installed
cmake_policy(VERSION 3.22)

# Set ${out} to where `target`, a file of the source tree, is from the installed folder; "" = it is not installed.
function(stoker_place target folder out)
  set(place "")
  if(target IN_LIST stoker_documents)
    cmake_path(RELATIVE_PATH target BASE_DIRECTORY "${folder}" OUTPUT_VARIABLE place)
  elseif(target MATCHES "^(loader|trainer)/include/(.*)$")
    cmake_path(APPEND stoker_headers "${CMAKE_MATCH_2}" OUTPUT_VARIABLE place)
    cmake_path(APPEND stoker_to "${folder}" OUTPUT_VARIABLE from)
    cmake_path(ABSOLUTE_PATH place BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}")
    cmake_path(ABSOLUTE_PATH from BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}")
    cmake_path(RELATIVE_PATH place BASE_DIRECTORY "${from}")
  endif()
  set(${out} "${place}" PARENT_SCOPE)
endfunction()

# Change the relative links in ${${variable}}, a document of that folder.
function(stoker_link variable folder)
  set(done "")
  set(rest "${${variable}}")
  while(TRUE)
    string(FIND "${rest}" "](" at)
    if(at EQUAL -1)
      break()
    endif()
    string(SUBSTRING "${rest}" 0 ${at} before)
    string(SUBSTRING "${rest}" ${at} -1 rest)
    string(REGEX MATCH "^..([^)# ]*)(#[^) ]*)?[)]" link "${rest}")
    set(anchor "${CMAKE_MATCH_2}")
    cmake_path(APPEND folder "${CMAKE_MATCH_1}" OUTPUT_VARIABLE target)
    cmake_path(NORMAL_PATH target)
    string(LENGTH "${link}" length)
    if(link STREQUAL "" OR link MATCHES "^..(#|[a-z]+:)" OR NOT EXISTS "${stoker_source}/${target}")
      string(APPEND done "${before}](")
      string(SUBSTRING "${rest}" 2 -1 rest)
      continue()
    endif()
    string(SUBSTRING "${rest}" ${length} -1 rest)
    stoker_place("${target}" "${folder}" place)
    if(NOT place STREQUAL "")
      string(APPEND done "${before}](${place}${anchor})")
    else()
      string(FIND "${before}" "[" open REVERSE)
      string(SUBSTRING "${before}" 0 ${open} words)
      math(EXPR open "${open} + 1")
      string(SUBSTRING "${before}" ${open} -1 before)
      string(APPEND done "${words}${before}")
    endif()
  endwhile()
  set(${variable} "${done}${rest}" PARENT_SCOPE)
endfunction()

foreach(document IN LISTS stoker_documents)
  cmake_path(GET document PARENT_PATH folder)
  file(READ "${stoker_source}/${document}" text)
  if(document MATCHES "[.]md$")
    stoker_link(text "${folder}")
  endif()
  file(WRITE "${stoker_scratch}/${document}" "${text}")
  cmake_path(APPEND stoker_to "${folder}" OUTPUT_VARIABLE to)
  cmake_path(ABSOLUTE_PATH to BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}")
  file(INSTALL "${stoker_scratch}/${document}" DESTINATION "${to}" TYPE FILE)
endforeach()
