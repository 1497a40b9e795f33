#!/usr/bin/env bash
# check_scaling.sh - the arithmetic of bench/scaling is right, and bench/scaling.md shows what it gives for the measured costs.
#
# usage: check_scaling.sh     skips (77) without Python
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
command -v python3 >/dev/null || { echo "SKIPPED: no python3"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1 # the sources may be read-only
python3 bench/scaling/model.py
python3 bench/scaling/scaling.py --check
