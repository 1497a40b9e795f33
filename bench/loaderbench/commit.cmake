# commit.cmake - write the commit of a source tree into a header, at each build, but only if it changed.
#
# cmake -DSOURCE=DIR -DHEADER=FILE -P commit.cmake
# "unknown" outside a git checkout, or without git; "-dirty" behind a commit that was changed since.
set(commit "unknown")
find_program(GIT git)
if(GIT AND EXISTS "${SOURCE}/.git")
  execute_process(COMMAND "${GIT}" -C "${SOURCE}" describe --always --dirty --abbrev=12 "--exclude=*"
                  OUTPUT_VARIABLE found RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT failed AND found MATCHES "^[0-9a-f]+(-dirty)?$")
    set(commit "${found}")
  endif()
endif()
set(text "#define BENCH_COMMIT \"${commit}\"\n")
set(old "")
if(EXISTS "${HEADER}")
  file(READ "${HEADER}" old)
endif()
if(NOT text STREQUAL old)
  file(WRITE "${HEADER}" "${text}")
endif()
