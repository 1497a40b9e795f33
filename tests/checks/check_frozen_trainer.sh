#!/usr/bin/env bash
# check_frozen_trainer.sh - a program that was compiled with later headers, whose structs grew, trains as one that is compiled
# with those of this version.
#
# usage: check_frozen_trainer.sh CC LIBSTOKER LIBSTOKER_TRAINER
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/checks/scratch.sh

cc=$1 loader=$(dirname "$2") trainer=$(dirname "$3")
unset STOKER_READER STOKER_DEVICE RANK WORLD_SIZE

# train NAME INCLUDE...
train() {
    local name=$1 flags=()
    shift
    for include in "$@"; do
        flags+=(-I "$include")
    done
    "$cc" -std=c11 -O1 -Wall -Wextra -Werror -D_GNU_SOURCE "${flags[@]}" tests/checks/frozen/trainer.c -L "$trainer" \
        -L "$loader" -lstoker_trainer -lstoker -Wl,--unresolved-symbols=ignore-in-shared-libs -o "$scratch/$name" || fail "$name does not compile"
    LD_LIBRARY_PATH=$trainer:$loader "$scratch/$name" >"$scratch/$name.txt" || fail "$name fails"
}

train current loader/include trainer/include
[ "$(wc -l <"$scratch/current.txt")" -ge 20 ] || fail "the program prints too little"
python3 tests/checks/frozen/grow_headers.py loader/include "$scratch/headers" >"$scratch/grown.txt"
python3 tests/checks/frozen/grow_headers.py trainer/include "$scratch/headers" 1 >>"$scratch/grown.txt"
train later "$scratch/headers"
cmp "$scratch/current.txt" "$scratch/later.txt" || fail "other numbers than with the headers of this version"
tail -1 "$scratch/current.txt"
verdict
