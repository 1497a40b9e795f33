#!/usr/bin/env bash
# check_frozen_headers.sh - a program that was compiled with these headers runs with a later library whose structs grew,
# and a program of that version runs with this library.
#
# usage: check_frozen_headers.sh CC LIBSTOKER GROWN_LIBSTOKER
# GROWN_LIBSTOKER lies beside its headers, stoker/. No headers are frozen before the first release.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/checks/scratch.sh

cc=$1 library=$2 grown=$3
unset STOKER_READER STOKER_DEVICE STOKER_CUDART RANK WORLD_SIZE

# compile NAME SOURCE INCLUDE...: all warnings on, and not where the library lies: the check says which one runs.
compile() {
    local name=$1 source=$2 flags=()
    shift 2
    for include in "$@"; do
        flags+=(-I "$include")
    done
    "$cc" -std=c11 -O1 -Wall -Wextra -Werror -D_GNU_SOURCE "${flags[@]}" "tests/checks/frozen/$source" \
        -L "$(dirname "$library")" -lstoker -Wl,--unresolved-symbols=ignore-in-shared-libs -o "$scratch/$name" || fail "$name does not compile"
}

# run NAME LIBRARY OUTPUT
run() {
    LD_LIBRARY_PATH=$(dirname "$2") "$scratch/$1" >"$scratch/$3" || fail "$1 fails with $2"
}

compile current program.c loader/include
run current "$library" current.txt
[ "$(wc -l <"$scratch/current.txt")" -ge 12 ] || fail "the program prints too little"

run current "$grown" grown.txt
cmp "$scratch/current.txt" "$scratch/grown.txt" || fail "other batches with a library whose structs grew"
python3 tests/checks/frozen/oldest_sizes.py loader/include trainer/include -- loader datasets trainer || fail "sizes that the library takes"

compile newer newer.c "$(dirname "$grown")"
run newer "$library" newer.txt
if LD_LIBRARY_PATH=$(dirname "$grown") "$scratch/newer" >"$scratch/knows.txt" 2>&1; then
    fail "the grown library knows no more than this one: its structs did not grow"
fi
grep -q "not so" "$scratch/knows.txt" || grep -q "newer.c" "$scratch/knows.txt" || fail "newer does not run with the grown library"
cat "$scratch/current.txt" "$scratch/newer.txt"
verdict
