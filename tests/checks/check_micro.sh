#!/usr/bin/env bash
# check_micro.sh - every block of bench/micro prints its rows, and the summary of bench/formats reads them.
#
# usage: check_micro.sh MICRO STOKER-PACK
set -euo pipefail
micro=$1 pack=$2
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/checks/scratch.sh

# rows COUNT WORD...: that block has COUNT rows of four numbers.
rows() {
    local count=$1
    shift
    "$micro" --windows 1 "$@" >"$scratch/out" || fail "$* ended with $?"
    [ "$(tail -n +2 "$scratch/out" | grep -cE '^[a-z0-9-]+( +[0-9.]+){4}$')" -eq "$count" ] ||
        fail "$* has other rows: $(cat "$scratch/out")"
}

# refuses STATUS WORD...
refuses() {
    local status=0 wanted=$1
    shift
    "$micro" "$@" >/dev/null 2>"$scratch/err" || status=$?
    [ "$status" -eq "$wanted" ] || fail "$* ended with $status: $(cat "$scratch/err")"
}

rows 3 crc32c
rows 22 transform
rows 1 resize
rows 4 fields
"$pack" --quiet 'synth:digits?count=20' "folder:$scratch/png"
rows 2 png "folder:$scratch/png"
cp "$scratch/out" "$scratch/png-mnist.txt"
head -c 200000 /dev/zero >"$scratch/tokens.bin"
rows 2 tokens "$scratch/tokens.bin"
python3 bench/formats/summary.py "$scratch" >"$scratch/summary"
grep -q "^PNG fast path / libpng, 28x28 gray *x" "$scratch/summary" ||
    fail "the summary does not read the rows"

refuses 1 tokens "$scratch/nothing"
grep -q '^micro: reads: ' "$scratch/err" || fail "does not name the row: $(cat "$scratch/err")"
refuses 2 unknown
refuses 2 --windows 0 crc32c
verdict
