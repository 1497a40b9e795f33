#!/usr/bin/env bash
# check_headers.sh - each public header compiles alone, as C11, C++17 and C++20 (stoker.hpp: C++20), and its defaults are the same.
#
# usage: check_headers.sh CC CXX
# A user may include any one header first, in either language, with all warnings on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/checks/scratch.sh

cc=${1:-cc}
cxx=${2:-c++}
strict=(-Wall -Wextra -Wpedantic -Werror -fsyntax-only -I loader/include -I trainer/include)

# Twice, so that a missing include guard shows; and a declaration, because ISO C wants one.
compiles() {
    local header=$1
    shift
    if ! printf '#include <%s>\n#include <%s>\nextern int after;\n' "$header" "$header" | "$@" "${strict[@]}" -; then
        fail "$header does not compile alone: $*"
    fi
}

compiles stoker/stoker.hpp "$cxx" -std=c++20 -x c++
count=1
for path in {loader,trainer}/include/stoker/*.h; do
    header=stoker/${path##*/}
    compiles "$header" "$cc" -std=c11 -x c
    compiles "$header" "$cxx" -std=c++17 -x c++
    compiles "$header" "$cxx" -std=c++20 -x c++
    count=$((count + 1))
done

# The INIT macros, used: without a warning in each language, with one outcome.
macros=$(cat {loader,trainer}/include/stoker/*.h | sed -nE 's/^#define (STOKER_[A-Z_]+_INIT)\b.*/\1/p' | sort -u)

# initializes NAME COMPILER...: NAME.txt gets each struct, byte by byte.
initializes() {
    local name=$1 macro type
    shift
    {
        printf '#include <stdio.h>\n#include <stoker/stoker.h>\n#include <stoker/trainer.h>\n#include <stoker/training_log.h>\nint main(void)\n{\n'
        for macro in $macros; do
            type=$(printf '%s' "${macro%_INIT}" | tr '[:upper:]' '[:lower:]')
            printf '    {\n        static %s made;\n        %s init = %s;\n        made = init;\n' "$type" "$type" "$macro"
            printf '        const unsigned char *bytes = (const unsigned char *)&made;\n        printf("%s");\n' "$type"
            printf '        for (size_t i = 0; i < sizeof(made); i++)\n            printf(" %%x", bytes[i]);\n        printf("\\n");\n    }\n'
        done
        printf '    return 0;\n}\n'
    } >"$scratch/$name.source"
    if ! "$@" "${strict[@]/-fsyntax-only/-O0}" "$scratch/$name.source" -o "$scratch/$name" || ! "$scratch/$name" >"$scratch/$name.txt"; then
        fail "the INIT macros do not compile: $*"
    fi
}

initializes c11 "$cc" -std=c11 -x c
initializes c++17 "$cxx" -std=c++17 -x c++
initializes c++20 "$cxx" -std=c++20 -x c++
for name in c++17 c++20; do
    cmp "$scratch/c11.txt" "$scratch/$name.txt" || fail "the defaults differ between $name and C"
done
[ "$(wc -l <"$scratch/c11.txt")" -ge 5 ] || fail "fewer than 5 INIT macros were found"

# The check itself must be able to fail.
if printf 'size_t lost;\n' | "$cc" -std=c11 -x c "${strict[@]}" - 2>/dev/null; then
    fail "$cc accepts a header without its includes"
fi
echo "$count headers"
[ "$count" -gt 1 ] && verdict
