#!/usr/bin/env bash
# check_torchrun.sh - stoker-mnist on two stand-in GPUs: processes with the variables of torchrun, those of mpirun, and
# threads. All have the weights of one process; a process that is killed ends the other, one that does not come is named.
# torchrun itself is used if it is installed.
#
# usage: check_torchrun.sh STANDIN_MNIST [MPIRUN LIBSTOKER_MPI]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mnist=$(realpath "$1")
mpirun=${2:-}

. "$here/scratch.sh"
cd "$scratch"
unset STOKER_DATA STOKER_PORT TORCHELASTIC_USE_AGENT_STORE RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE
export STANDIN_GPUS=2
port=$((20000 + $$ % 20000))
# 117 = 5 x 2 x 11 + 7: one rank has the 7 samples of the last update, the other none.
common=(--data 'synth:digits?count=117' --preset fast --epochs 1 --batch-size 11 --workers 1 --deterministic --quiet)

# rank R ARGUMENT...: the process that torchrun would start as rank R of 2.
rank() {
    RANK=$1 LOCAL_RANK=$1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
        exec "$mnist" "${common[@]}" "${@:2}"
}

"$mnist" "${common[@]}" --device cuda --accumulate 2 --save one.safetensors >/dev/null || fail "one process ends with $?"

# ---- two processes
(rank 1 --device cuda --save two.safetensors >out.1 2>err.1) &
second=$!
(rank 0 --device cuda --save two.safetensors >out.0 2>err.0) || fail "rank 0 ends with $?: $(cat err.0)"
wait "$second" || fail "rank 1 ends with $?: $(cat err.1)"
same one.safetensors two.safetensors "two processes have other weights than one"
grep -q 'test accuracy' out.0 || fail "rank 0 prints no result"
[ ! -s out.1 ] || fail "rank 1 prints: $(cat out.1)"

# ---- two threads
"$mnist" "${common[@]}" --device cuda:0,cuda:1 --data-parallel --save threads.safetensors >/dev/null ||
    fail "two threads end with $?"
same one.safetensors threads.safetensors "two threads have other weights than one process"

# ---- two processes of mpirun, which talk by MPI
if [ -n "$mpirun" ]; then
    STOKER_MPI=$3 "$here/../mpi/ranks.sh" "$mpirun" 2 "$mnist" "${common[@]}" --device cuda --save mpi.safetensors >out 2>&1 ||
        fail "mpirun ends with $?: $(cat out)"
    same one.safetensors mpi.safetensors "mpirun's processes have other weights than one"
fi

# ---- a process that is killed
port=$((port + 100))
(rank 1 --device cuda --epochs 1000 --save killed.safetensors --save-every 1 >/dev/null 2>&1) &
second=$!
(rank 0 --device cuda --epochs 1000 --save killed.safetensors --save-every 1 --peer-timeout 4 >out.0 2>err.0) &
first=$!
while kill -0 "$first" 2>/dev/null && [ ! -s killed.safetensors ]; do sleep 0.02; done
kill -KILL "$second"
wait "$second" 2>/dev/null || true
status=0
wait "$first" || status=$?
[ "$status" -eq 1 ] || fail "rank 0 ends with $status when rank 1 is killed"
grep -q 'did not end within 4000 ms' err.0 || fail "rank 0 does not miss rank 1: $(cat err.0)"

# ---- a rank that does not come, or is of another run
port=$((port + 100))
(rank 0 --device cuda --peer-timeout 1 >/dev/null 2>err.0) && fail "rank 0 trains alone"
grep -q 'rank 1 of 2 did not come' err.0 || fail "rank 1 is not missed: $(cat err.0)"
port=$((port + 100))
(rank 0 --device cuda --peer-timeout 4 >/dev/null 2>err.0) &
first=$!
(TORCHELASTIC_RUN_ID=other rank 1 --device cuda >/dev/null 2>err.1) && fail "rank 1 of another run joins"
wait "$first" && fail "rank 0 takes a rank of another run"
grep -q 'refuses rank 1 of 2: it is of another run' err.1 || fail "another run: $(cat err.1)"

# ---- a rank without a GPU is named
port=$((port + 100))
(STANDIN_GPUS=0 rank 1 --device cuda >/dev/null 2>err.1) &
second=$!
(rank 0 --device cuda >/dev/null 2>err.0) && fail "rank 0 trains without rank 1's GPU"
wait "$second" && fail "rank 1 trains without a GPU"
grep -q 'rank 1: ' err.0 || fail "the rank without a GPU is not named: $(cat err.0)"

# ---- both on one GPU
port=$((port + 100))
(rank 1 --device cuda:0 >/dev/null 2>err.1) &
second=$!
status=0
(rank 0 --device cuda:0 >/dev/null 2>err.0) || status=$?
[ "$status" -ne 0 ] || fail "two ranks on one GPU are accepted"
wait "$second" && fail "rank 1 accepts the GPU of rank 0"
grep -q 'ranks 0 and 1 have one GPU' err.0 || fail "one GPU for two ranks: $(cat err.0)"

# ---- no sums in host memory: torchrun brings no MPI
(rank 0 --device cpu >/dev/null 2>err.0) && fail "ranks of torchrun sum in host memory"
grep -q 'torchrun does not start it: use mpirun' err.0 || fail "torchrun on CPUs: $(cat err.0)"
(STANDIN_GPUS=0 rank 0 >/dev/null 2>err.0) && fail "ranks of torchrun train without GPUs"
grep -q 'torchrun does not start it: use mpirun' err.0 || fail "torchrun without GPUs: $(cat err.0)"

if command -v torchrun >/dev/null; then
    torchrun --no-python --nproc-per-node 2 "$mnist" "${common[@]}" --device cuda --save torchrun.safetensors >out 2>&1 ||
        fail "torchrun ends with $?: $(cat out)"
    same one.safetensors torchrun.safetensors "torchrun's processes have other weights than one"
fi

verdict
