#!/usr/bin/env bash
# check_ranks.sh - stoker-mnist on two ranks of MPI: one voice, one file, the numbers of one process, and clear errors.
#
# usage: check_ranks.sh MPIRUN MNIST
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mpirun=$1
mnist=$(realpath "$2")

. "$here/scratch.sh"
cd "$scratch"
unset STOKER_DATA RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE
common=(--data 'synth:digits?count=640' --epochs 2 --threads 1 --workers 0 --quiet)
two() { "$here/../mpi/ranks.sh" "$mpirun" 2 "$mnist" "${common[@]}" "$@"; }

# refuses WORD... : one line on standard error that has all of them. The command is in `command`.
refuses() {
    local status=0 word
    "${command[@]}" >out 2>err || status=$?
    [ "$status" -eq 1 ] || fail "exit status $status: ${command[*]}"
    for word in "$@"; do
        grep -qF -- "$word" err || fail "\"$word\" is not in: $(cat err)"
    done
}

# One process with the same samples in each update: 64 are 2 ranks' 32. Two decimals: sums are rounded differently.
"$mnist" "${common[@]}" --batch-size 64 --save one.safetensors >one
two --batch-size 32 --save two.safetensors --log two.csv >two
[ "$(wc -l <two)" -eq "$(wc -l <one)" ] || fail "two ranks print $(wc -l <two) lines: $(cat two)"
[ "$(grep -oE 'accuracy: [0-9]+' one)" = "$(grep -oE 'accuracy: [0-9]+' two)" ] || fail "$(cat one two)"
[ -s two.safetensors ] || fail "nothing was saved"
[ -s two.csv ] || fail "no log"

# What two ranks have begun, one process ends, and the other way round.
two --batch-size 32 --epochs 3 --steps 12 --save part.safetensors >/dev/null
"$mnist" "${common[@]}" --batch-size 64 --epochs 3 --load part.safetensors --steps 12 >/dev/null || fail "two, then one"
"$mnist" "${common[@]}" --batch-size 64 --epochs 3 --steps 12 --save part.safetensors >/dev/null
two --batch-size 32 --epochs 3 --load part.safetensors --steps 12 >/dev/null || fail "one, then two"

# torchrun brings no MPI; half a description is refused; so is a library that is not there.
command=(env RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 "$mnist" "${common[@]}")
refuses "torchrun" "use mpirun"
command=(env RANK=0 "$mnist" "${common[@]}")
refuses "RANK=0" "WORLD_SIZE"
command=(env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 STOKER_MPI=/nowhere/libstoker_mpi.so "$mnist" "${common[@]}")
refuses "libstoker_mpi.so" "STOKER_MPI"

# What only a GPU computes, if no rank has one.
command=(env STOKER_CUDART=/nowhere/libcudart.so "$here/../mpi/ranks.sh" "$mpirun" 2 "$mnist" "${common[@]}" --amp fp16)
refuses "precision float16" "not every rank has a GPU"

# One rank cannot write what the other need not: all end, and the cause is named.
command=("$here/../mpi/ranks.sh" "$mpirun" 2 "$mnist" "${common[@]}" --batch-size 32 --save /nowhere/at/all)
refuses "/nowhere"
verdict
