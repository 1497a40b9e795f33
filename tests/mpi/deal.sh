#!/usr/bin/env bash
# deal.sh - 1, 2, 3 and 5 ranks with one global batch of 60 have the same samples in each update, and the same order; so does
# a run that stops in the middle of an epoch and continues on another number of ranks, twice and more.
#
# usage: deal.sh MPIRUN TEST_DEAL
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mpirun=$1
deal=$2
. "$here/../checks/scratch.sh"

# leg NAME RANKS UPDATES
leg() { "$here/ranks.sh" "$mpirun" "$2" "$deal" "$scratch" "$1" "$3" || fail "$1 on $2 ranks ended with $?"; }

"$deal" make "$scratch"
for ranks in 1 2 3 5; do
    leg "all$ranks" "$ranks" 999
done
# 15 updates an epoch: each leg but the last ends in the middle of one, two of them are of 2 epochs
leg parts 1 4
leg parts 2 6
leg parts 3 9
leg parts 5 3
leg parts 4 999

for whole in "$scratch/all1.positions" "$scratch/all1.mix"; do
    [ "$(wc -l <"$whole")" -eq 30 ] || fail "one rank makes $(wc -l <"$whole") updates: $(cat "$whole")"
    [ "$(sort -u "$whole" | wc -l)" -eq 30 ] || fail "two updates are alike: $(cat "$whole")"
    for epoch in 0 1; do
        samples=$(grep "^epoch $epoch," "$whole" | awk '{ n += $3 } END { print n }')
        [ "$samples" -eq 874 ] || fail "epoch $epoch has $samples samples"
    done
done
for run in all1 all2 all3 all5 parts; do
    for how in positions batches; do
        diff "$scratch/all1.positions" "$scratch/$run.$how" || fail "$run.$how: other updates than on one rank"
    done
    diff "$scratch/all1.mix" "$scratch/$run.mix" || fail "$run.mix: other updates than on one rank"
done
verdict
