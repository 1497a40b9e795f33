#!/usr/bin/env bash
# check_window_quality.sh - the table in docs/order.md says how random the window order is.
#
# usage: check_window_quality.sh WINDOW_QUALITY
set -euo pipefail
program=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

. tests/checks/scratch.sh
"$program" | tee "$scratch/found.txt"
grep '^|' "$scratch/found.txt" >"$scratch/rows.txt"
[ "$(wc -l <"$scratch/rows.txt")" -eq 7 ] || fail "the table has 7 rows"
while IFS= read -r row; do
    grep -qxF "$row" docs/order.md || fail "docs/order.md lacks: $row"
done <"$scratch/rows.txt"
verdict
