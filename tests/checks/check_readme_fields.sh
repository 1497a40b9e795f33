#!/usr/bin/env bash
# check_readme_fields.sh - the functions of README.md's section on fields see every sample.
#
# usage: check_readme_fields.sh READMES_FUNCTIONS
set -euo pipefail
program=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

. tests/checks/scratch.sh
command -v python3 >/dev/null || exit 77

python3 tests/checks/make_fields.py "$scratch" 100
cd "$scratch"
"$program" 100
