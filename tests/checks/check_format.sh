#!/usr/bin/env bash
# check_format.sh - the C and CUDA files are as clang-format 14 writes them, and no trailing comment splits a declaration.
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

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
printf 'struct x {\n    const char\n        *name; /* a comment\n                * of two lines */\n    int y; /* short */\n};\n' >"$scratch/split.h"
printf 'struct x {\n    /* above\n       it */\n    int y; /* short */\n    int z;\n    int a; /* short */\n};\n' >"$scratch/whole.h"
if [ "$(split "$scratch/split.h" "$scratch/whole.h" | grep -c 'split.h:2: ')" -ne 1 ] || [ -n "$(split "$scratch/whole.h")" ]; then
    echo "check_format: the self-test failed" >&2
    exit 1
fi

command -v clang-format >/dev/null || { echo "no clang-format here"; exit 77; }
version=$(clang-format --version | sed -E 's/.*version ([0-9]+).*/\1/')
[ "$version" = 14 ] || { echo "clang-format $version; the sources are laid out by 14"; exit 77; }

mapfile -t files < <(tests/checks/sources.sh '*.c' '*.h' '*.cu' '*.cuh')
mapfile -t unlike < <(clang-format --dry-run -Werror "${files[@]}" 2>&1 |
    sed -nE 's/:[0-9]+:[0-9]+: error: .*//p' | sort -u)
declarations=$(split "${files[@]}")
echo "${#files[@]} files, ${#unlike[@]} to be laid out with clang-format -i"
[ ${#unlike[@]} -eq 0 ] || printf '%s\n' "${unlike[@]}" >&2
[ -z "$declarations" ] || printf '%s\n' "$declarations" >&2
[ ${#unlike[@]} -eq 0 ] && [ -z "$declarations" ] && [ ${#files[@]} -gt 0 ]
