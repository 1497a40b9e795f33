#!/usr/bin/env bash
# check_frozen_headers.sh - programs that were compiled with the headers of a released version run with this library, and
# with a later one whose structs grew; and a program of a later version runs with this library.
#
# usage: check_frozen_headers.sh CC LIBSTOKER GROWN_LIBSTOKER
# golden/headers-VERSION has the headers of each released version. GROWN_LIBSTOKER lies beside its headers, stoker/.
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

versions=0
for frozen in tests/golden/headers-*; do
    versions=$((versions + 1))
    name=$(basename "$frozen")
    compile "$name" program.c "$frozen"
    for with in "$library" "$grown"; do
        run "$name" "$with" "$name.txt"
        cmp "$scratch/current.txt" "$scratch/$name.txt" || fail "$name with $with: other batches than with the headers of this version"
    done
    python3 tests/checks/frozen/layout.py "$frozen" loader/include trainer/include -- "$cc" || fail "$name: a compiled program would break"
done
[ "$versions" -ge 1 ] || fail "no headers are frozen"
python3 tests/checks/frozen/oldest_sizes.py tests/golden/headers-1.0 loader datasets trainer || fail "sizes that the library takes"

compile newer newer.c "$(dirname "$grown")"
run newer "$library" newer.txt
if LD_LIBRARY_PATH=$(dirname "$grown") "$scratch/newer" >"$scratch/knows.txt" 2>&1; then
    fail "the grown library knows no more than this one: its structs did not grow"
fi
grep -q "not so" "$scratch/knows.txt" || grep -q "newer.c" "$scratch/knows.txt" || fail "newer does not run with the grown library"
cat "$scratch/current.txt" "$scratch/newer.txt"
verdict
