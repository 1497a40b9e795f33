#!/usr/bin/env bash
# check_run_test.sh - ./run test says how long it will take, where it is, and how a failed test is run again; the lines of its
# summary stay what they are.
#
# usage: check_run_test.sh
# A copy of ./run is started in a scratch folder with stand-ins for cmake and ctest. Standard error is no terminal.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/checks/scratch.sh
mkdir -p "$scratch/bin"
cp run "$scratch"
printf '#!/bin/sh\nexit 0\n' | tee "$scratch/bin/cmake" >"$scratch/bin/apt-get"
cat >"$scratch/bin/ctest" <<'TXT'
#!/bin/sh
case "$*" in *-N*) exit 0 ;; esac
echo '      Start  1: unit.a'
echo '1/2 Test #1: unit.a ....   Passed    0.10 sec'
sleep "$PAUSE"
echo '2/2 Test #2: unit.b.c ....***Failed    0.10 sec'
echo 'what unit.b.c said'
[ "$FAILED" = 1 ] || { echo '100% tests passed, 0 tests failed out of 2'; exit 0; }
printf '\n50%% tests passed, 1 tests failed out of 2\n\nThe following tests FAILED:\n\t  2 - unit.b.c (Failed)\nErrors while running CTest\n'
exit 8
TXT
chmod +x "$scratch/bin/"*

# tests STATUS: ./run test quick ends with that status.
tests() {
    local status=0
    PATH="$scratch/bin:$PATH" bash "$scratch/run" test quick >"$scratch/out" 2>"$scratch/err" || status=$?
    [ "$status" -eq "$1" ] || fail "exit status $status, not $1: $(cat "$scratch/err")"
}

says() {
    grep -qE -- "$2" "$scratch/$1" || fail "no line \"$2\" in std$1: $(cat "$scratch/$1")"
}

PAUSE=10.5 FAILED=1 tests 1
says err '^test-quick: about [0-9]+ min on [0-9]+ CPUs'
says err '^release test [12] of 2, 1[0-9] s; 0 min in all$'
says err '^what unit\.b\.c said$'
says err "^again: ctest --test-dir build/release -R '\^unit\\\\\.b\\\\\.c\\\$' --output-on-failure$"
says out '^release     1 passed    1 failed    0 skipped   '
says out '^1 passed, 1 failed$'
[ ! -e "$scratch/build/test-quick.seconds" ] || fail "the time of a failed run is kept"

PAUSE=0 FAILED=0 tests 0
says out '^2 passed, 0 failed$'
[ "$(wc -l <"$scratch/err")" -eq 1 ] || fail "noise on success: $(cat "$scratch/err")"
echo 185 >"$scratch/build/test-quick.seconds"
PAUSE=0 FAILED=0 tests 0
says err '^test-quick: about 4 min, as the last time$'
verdict
