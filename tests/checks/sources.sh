#!/usr/bin/env bash
# sources.sh - print the project's files, one a line, those not yet in git included.
#
# usage: sources.sh [PATTERN...]     e.g. sources.sh '*.c' '*.h'
# In an unpacked archive, which has no git, every file outside the build folders counts.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

list() {
    if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git ls-files --cached --others --exclude-standard
    else
        find . -path './build*' -prune -o -path ./data -prune -o -path ./.git -prune -o -type f -print | sed 's|^\./||'
    fi
}

[ $# -gt 0 ] || set -- '*'
list | sort -u | while read -r file; do
    [ -f "$file" ] || continue # deleted, but still known to git
    for pattern in "$@"; do
        # shellcheck disable=SC2053  # a pattern, not a word
        if [[ $file == $pattern ]]; then
            printf '%s\n' "$file"
            break
        fi
    done
done
