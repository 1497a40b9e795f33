#!/usr/bin/env bash
# check_links.sh - each relative link in a Markdown file leads to a file or folder that is there.
#
# usage: check_links.sh [FOLDER]    of the installed documents; without it, all of this tree
set -euo pipefail
installed=${1:+$(cd "$1" && pwd)}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# dead FILE: print each target that is not there, seen from the folder of FILE.
dead() {
    local target
    { grep -oE '\]\([^)# ]+' "$1" || true; } | cut -c 3- | while read -r target; do
        case $target in
        *://* | mailto:*) ;;
        *) [ -e "$(dirname "$1")/$target" ] || echo "$1: $target is not there" ;;
        esac
    done
}

. tests/checks/scratch.sh
printf 'see [a](page.md) and [b](https://example.org/x)\n' >"$scratch/page.md"
[ -z "$(dead "$scratch/page.md")" ]
printf 'see [a](gone.md#part)\n' >"$scratch/page.md"
[ -n "$(dead "$scratch/page.md")" ]

if [ -n "$installed" ]; then
    mapfile -t pages < <(find "$installed" -name '*.md')
else
    mapfile -t pages < <(tests/checks/sources.sh '*.md')
fi
found=$(for page in "${pages[@]}"; do dead "$page"; done)
[ -z "$found" ] || printf '%s\n' "$found" >&2
echo "${#pages[@]} pages, $(cat "${pages[@]}" | grep -oE '\]\([^)# ]+' | wc -l) links"
[ -z "$found" ] && [ ${#pages[@]} -gt 0 ]
