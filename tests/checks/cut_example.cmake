# cut_example.cmake - cut a block of C out of a page, so that what a reader copies is what was
# compiled and run.
#
# usage: cmake -DPAGE=README.md -DNAME=example -DOUT=example.c -P cut_example.cmake
file(READ "${PAGE}" text)
# CMake's lists break at ";" and join "[" to "]": keep the text away from them.
string(FIND "${text}" "<!-- ${NAME}: begin -->" begin)
string(FIND "${text}" "<!-- ${NAME}: end -->" end)
if(begin EQUAL -1 OR end EQUAL -1 OR end LESS begin)
  message(FATAL_ERROR "${PAGE} has no ${NAME} between its markers")
endif()
math(EXPR length "${end} - ${begin}")
string(SUBSTRING "${text}" ${begin} ${length} text)
string(FIND "${text}" "```c\n" open)
string(FIND "${text}" "\n```" close REVERSE)
if(open EQUAL -1 OR close LESS_EQUAL open)
  message(FATAL_ERROR "${PAGE}: ${NAME} is not in a block of C")
endif()
math(EXPR open "${open} + 5")
math(EXPR length "${close} - ${open} + 1")
string(SUBSTRING "${text}" ${open} ${length} text)
file(WRITE "${OUT}" "${text}")
