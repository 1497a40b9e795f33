#!/usr/bin/env bash
# check_fields_page.sh - the functions of docs/fields.md see every sample.
#
# usage: check_fields_page.sh FIELDS_PAGE
set -euo pipefail
program=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

. tests/checks/scratch.sh
command -v python3 >/dev/null || exit 77

python3 tests/checks/make_fields.py "$scratch" 100
cd "$scratch"
"$program" 100
