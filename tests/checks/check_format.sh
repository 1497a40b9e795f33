#!/usr/bin/env bash
# check_format.sh - the C and CUDA files are as clang-format 14 writes them, no line but those of drawings and tables in comments has more than 100
# columns, and no trailing comment splits a declaration.
#
# Another version of clang-format lays out some lines differently: then the check is skipped (77).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# split FILE...: print each line that holds only the type of a declaration, because the comment behind its name is long.
split() {
    awk 'FNR == 1 { type = "" }
         type != "" && /^ *\**[a-z_][a-z_0-9]*(\[[A-Za-z_0-9 +*]*\])*;[ ]+\/\*/ {
             print FILENAME ":" FNR - 1 ": a trailing comment splits this declaration: put it above"
         }
         { type = /^ *[A-Za-z_][A-Za-z_0-9 ,*]*$/ && !/^ *(else|do|return)$/ ? $0 : "" }' "$@"
}

# wide FILE...: print each line of more than 100 columns. Drawings and tables in comments may have up to 130.
wide() {
    python3 - "$@" <<'PYTHON'
import re
import sys
drawing = re.compile(r"^ \* {2,}|[\u2500-\u257f\u25b2-\u25c0]")
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if len(line.rstrip("\n")) > (130 if drawing.search(line) or line.endswith("\\\n") else 100):
                print(f"{path}:{number}: {len(line) - 1} columns")
PYTHON
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
printf 'struct x {\n    const char\n        *name; /* a comment\n                * of two lines */\n    int y; /* short */\n};\n' >"$scratch/split.h"
printf 'struct x {\n    /* above\n       it */\n    int y; /* short */\n    int z;\n    int a; /* short */\n};\n' >"$scratch/whole.h"
if [ "$(split "$scratch/split.h" "$scratch/whole.h" | grep -c 'split.h:2: ')" -ne 1 ] || [ -n "$(split "$scratch/whole.h")" ]; then
    echo "check_format: the self-test failed" >&2
    exit 1
fi

printf '%s\n%s\n' "/* $(printf '─%.0s' {1..94}) */" "/* $(printf 'x%.0s' {1..95}) */" >"$scratch/wide.h"
if [ "$(wide "$scratch/wide.h")" != "$scratch/wide.h:2: 101 columns" ]; then
    echo "check_format: the self-test of columns failed" >&2
    exit 1
fi

command -v clang-format >/dev/null || { echo "no clang-format here"; exit 77; }
version=$(clang-format --version | sed -E 's/.*version ([0-9]+).*/\1/')
[ "$version" = 14 ] || { echo "clang-format $version; the sources are laid out by 14"; exit 77; }

mapfile -t files < <(tests/checks/sources.sh '*.c' '*.h' '*.cu' '*.cuh')
mapfile -t unlike < <(clang-format --dry-run -Werror "${files[@]}" 2>&1 |
    sed -nE 's/:[0-9]+:[0-9]+: error: .*//p' | sort -u)
declarations=$(split "${files[@]}")
columns=$(wide "${files[@]}")
echo "${#files[@]} files, ${#unlike[@]} to be laid out with clang-format -i"
[ ${#unlike[@]} -eq 0 ] || printf '%s\n' "${unlike[@]}" >&2
[ -z "$declarations" ] || printf '%s\n' "$declarations" >&2
[ -z "$columns" ] || printf '%s\n' "$columns" >&2
[ ${#unlike[@]} -eq 0 ] && [ -z "$declarations$columns" ] && [ ${#files[@]} -gt 0 ]
