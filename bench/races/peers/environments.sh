#!/usr/bin/env bash
# environments.sh - Python environments with the libraries that Stoker is compared with, from pip's index.
#
# usage: bench/races/peers/environments.sh [NAME]    NAME: only that one
#
# Makes $STOKER_PEERS/torch, dali, tf and tokens (default build/peers): 10 GB, once. One for each, since
# their dependencies disagree. What cannot be installed is named, and its place in the comparison says "not installed".
#
# STOKER_PEERS   where they lie (build/peers)
# STOKER_PYTHON  the Python to make them with (python3); the pinned versions were tried with 3.11
#
# Exit status: 0, 77 there is no Python with venv.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

where=${STOKER_PEERS:-build/peers}
python=${STOKER_PYTHON:-python3}
lists=bench/races/peers
only=${1:-}
mkdir -p "$where"
"$python" -c 'import venv, ensurepip' 2>/dev/null || { echo "environments.sh: $python has no venv (Debian: python3-venv)" >&2; exit 77; }

# install NAME LIST OPTION...: pip's last line if it fails. A stamp with the list's contents says that it is done.
install() {
    local name=$1 list=$2 stamp=$where/$1/$2.done
    shift 2
    [ -z "$only" ] || [ "$name" = "$only" ] || return 0
    [ -x "$where/$name/bin/python" ] || "$python" -m venv "$where/$name"
    if cmp -s "$lists/$list.txt" "$stamp"; then return 0; fi
    echo "== $name: pip install -r $lists/$list.txt"
    if "$where/$name/bin/pip" install --quiet "$@" -r "$lists/$list.txt" >"$where/$list.log" 2>&1; then
        cp "$lists/$list.txt" "$stamp"
    else
        echo "   not installed: $(grep -v '^ *$' "$where/$list.log" | grep -iE 'error|could not' | tail -n 1)"
    fi
}

install torch requirements-torch
install torch requirements-ffcv-needs
install torch requirements-ffcv --no-deps
install dali requirements-dali
install tf requirements-tf
install tokens requirements-tokens
