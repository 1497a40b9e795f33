#!/usr/bin/env bash
# check_environment.sh - a program with more rights than its caller loads no library that the caller names.
#
# usage: check_environment.sh OPEN_NAMED_LIBRARY CC     skips (77) unless it is root and set-id files work
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# One function reads the environment for the libraries; what only programs read is theirs.
if grep -rn --include='*.[ch]' -w getenv loader datasets trainer | grep -v '^trainer/programs/\|^datasets/pack/'; then
    echo "use stk_environment() of loader/base/environment.h" >&2
    exit 1
fi

. tests/checks/scratch.sh
chmod 755 "$scratch"
printf '#include <stdio.h>\n__attribute__((constructor)) static void run(void) { puts("FOREIGN CODE"); }\n' |
    "$2" -shared -fPIC -x c - -o "$scratch/foreign.so"
export STOKER_CUDART=$scratch/foreign.so
export ASAN_OPTIONS=detect_leaks=0 # what may not be traced cannot be looked at
plain=$("$1")
[ "$plain" = "$(printf 'FOREIGN CODE\nplain opened')" ] || { echo "unprivileged: $plain" >&2; exit 1; }

cp "$1" "$scratch/privileged"
if ! chown 65534:65534 "$scratch/privileged" 2>/dev/null || ! chmod 6755 "$scratch/privileged"; then
    echo "SKIPPED: not root, so no set-id program was run"
    exit 77
fi
shown=$("$scratch/privileged")
case $shown in
    "privileged refused") echo "a set-id program refuses the library that its environment names" ;;
    plain*) echo "SKIPPED: the set-id bit has no effect in $scratch (nosuid?)"; exit 77 ;;
    *) echo "a set-id program: $shown" >&2; exit 1 ;;
esac
