#!/usr/bin/env bash
# lengths.sh - batches of a bounded number of values come in the same sequence on 1 and on 3 ranks, and in a run that stops in
# the middle of an epoch and continues on another number of ranks, four times.
#
# usage: lengths.sh MPIRUN TEST_LENGTHS
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mpirun=$1
lengths=$2
. "$here/../checks/scratch.sh"

# leg NAME RANKS STEPS
leg() { "$here/ranks.sh" "$mpirun" "$2" "$lengths" "$scratch/$1" "$3" || fail "$1 on $2 ranks ended with $?"; }

for ranks in 1 3; do
    leg "all$ranks" "$ranks" 9999
done
leg parts 1 7
leg parts 2 9
leg parts 3 30
leg parts 5 4
leg parts 2 9999

whole=$scratch/all1
for epoch in 0 1; do
    samples=$(grep "^epoch $epoch," "$whole" | awk '{ n += $3 } END { print n }')
    [ "$samples" -eq 700 ] || fail "epoch $epoch has $samples samples"
done
for run in all3 parts; do
    diff "$whole" "$scratch/$run" || fail "$run: other batches than on one rank"
done
verdict
