#!/usr/bin/env bash
# check_format.sh - the C and CUDA files are as clang-format 14 would write them.
#
# Another version lays out some lines differently: then the check is skipped (77).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

command -v clang-format >/dev/null || { echo "no clang-format here"; exit 77; }
version=$(clang-format --version | sed -E 's/.*version ([0-9]+).*/\1/')
[ "$version" = 14 ] || { echo "clang-format $version; the sources are laid out by 14"; exit 77; }

mapfile -t files < <(tests/checks/sources.sh '*.c' '*.h' '*.cu' '*.cuh')
mapfile -t unlike < <(clang-format --dry-run -Werror "${files[@]}" 2>&1 |
    sed -nE 's/:[0-9]+:[0-9]+: error: .*//p' | sort -u)
echo "${#files[@]} files, ${#unlike[@]} to be laid out with clang-format -i"
[ ${#unlike[@]} -eq 0 ] || printf '%s\n' "${unlike[@]}" >&2
[ ${#unlike[@]} -eq 0 ] && [ ${#files[@]} -gt 0 ]
