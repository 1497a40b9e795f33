#!/usr/bin/env bash
# check_headers.sh - each public header compiles alone, as C11 and as C++20.
#
# usage: check_headers.sh CC CXX
# A user may include any one header first, in either language, with all warnings on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cc=${1:-cc}
cxx=${2:-c++}
strict=(-Wall -Wextra -Wpedantic -Werror -fsyntax-only -I loader/include -I trainer/include)
failures=0

# Twice, so that a missing include guard shows; and a declaration, because ISO C wants one.
compiles() {
    local header=$1
    shift
    if ! printf '#include <%s>\n#include <%s>\nextern int after;\n' "$header" "$header" | "$@" "${strict[@]}" -; then
        echo "$header does not stand alone: $*" >&2
        failures=$((failures + 1))
    fi
}

count=0
for path in {loader,trainer}/include/stoker/*.h; do
    header=stoker/${path##*/}
    compiles "$header" "$cc" -std=c11 -x c
    compiles "$header" "$cxx" -std=c++20 -x c++
    count=$((count + 1))
done

# The check itself must be able to fail.
if printf 'size_t lost;\n' | "$cc" -std=c11 -x c "${strict[@]}" - 2>/dev/null; then
    echo "check_headers: $cc accepts a header without its includes" >&2
    failures=$((failures + 1))
fi
echo "$count headers, $failures failures"
[ "$failures" -eq 0 ] && [ "$count" -gt 0 ]
