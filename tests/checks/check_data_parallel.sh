#!/usr/bin/env bash
# check_data_parallel.sh - stoker-mnist and stoker-housing with a rank on each of several devices, as threads: the weights of
# one rank and of ranks of MPI, one voice, clear errors, and Ctrl-C.
#
# usage: check_data_parallel.sh MNIST HOUSING [MPIRUN]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mnist=$(realpath "$1")
housing=$(realpath "$2")
mpirun=${3:-}

. "$here/scratch.sh"
cd "$scratch"
unset STOKER_DATA RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE
data='synth:digits?count=117' # the last update is short: rank 1 has 5 of its 21 samples
common=(--data "$data" --preset pytorch --epochs 2 --threads 1 --workers 1 --deterministic --quiet)
two=(--device cpu,cpu --data-parallel)

# refuses STATUS LINES WORD... -- COMMAND...: exit status STATUS, and LINES lines on standard error that have all the words.
refuses() {
    local want=$1 lines=$2 status=0 words=()
    shift 2
    while [ "$1" != -- ]; do words+=("$1") && shift; done
    shift
    "$@" >out 2>err || status=$?
    [ "$status" -eq "$want" ] || fail "exit status $status, not $want: $*: $(cat err)"
    [ "$(wc -l <err)" -eq "$lines" ] || fail "not $lines lines about: $*: $(cat err)"
    for word in "${words[@]}"; do
        grep -qF -- "$word" err || fail "\"$word\" is not in: $(cat err)"
    done
}

# ---- the weights depend on ranks x passes alone
"$mnist" "${common[@]}" --batch-size 16 --accumulate 2 --save one.safetensors >one
"$mnist" "${common[@]}" --batch-size 16 "${two[@]}" --save two.safetensors --log two.csv >two 2>err || fail "two threads: $(cat err)"
[ ! -s err ] || fail "something on standard error: $(cat err)"
same one.safetensors two.safetensors "2 threads have other weights than 2 passes of one"
[ "$(wc -l <two)" -eq "$(wc -l <one)" ] || fail "two threads print $(wc -l <two) lines: $(cat two)"
[ "$(tail -n 1 two)" = "$(tail -n 1 one)" ] || fail "another result: $(cat one two)"
[ -s two.csv ] || fail "no log"
if [ -n "$mpirun" ]; then
    "$here/../mpi/ranks.sh" "$mpirun" 2 "$mnist" "${common[@]}" --batch-size 16 --save mpi.safetensors >/dev/null ||
        fail "mpirun ended with $?"
    same mpi.safetensors two.safetensors "2 threads have other weights than 2 processes"
else
    echo "SKIPPED: no mpirun to compare with"
fi
"$mnist" "${common[@]}" --batch-size 16 --device cpu --data-parallel --accumulate 2 --save lone.safetensors >/dev/null
same one.safetensors lone.safetensors "a list of one device"
{
    echo 'a,b,price'
    for i in $(seq 61); do echo "$((i % 7)),$((i * i % 11)),$((2 * (i % 7) + i * i % 11))"; done
} >table.csv
table=(--data 'csv:table.csv?label=price' --epochs 3 --threads 1 --deterministic --quiet --global-batch 16)
"$housing" "${table[@]}" --accumulate 2 --save one.safetensors >/dev/null
"$housing" "${table[@]}" "${two[@]}" --save two.safetensors >/dev/null || fail "housing on two threads: $?"
same one.safetensors two.safetensors "housing: 2 threads have other weights than 2 passes of one"
ref=(--data 'csv:table.csv?label=price' --epochs 3 --deterministic --quiet --global-batch 12)
"$housing" "${ref[@]}" --device ref --accumulate 3 --save one.safetensors >/dev/null
"$housing" "${ref[@]}" --device ref,ref,ref --data-parallel --save two.safetensors >/dev/null || fail "ref on three threads: $?"
same one.safetensors two.safetensors "ref: 3 threads have other weights than 3 passes of one"

# ---- --global-batch: what two ranks have begun, one ends, with the same samples in each update
part=(--data "$data" --epochs 3 --threads 1 --quiet --global-batch 48)
"$mnist" "${part[@]}" "${two[@]}" --save part.safetensors >/dev/null
"$mnist" "${part[@]}" --load part.safetensors --summary >shown || fail "one rank does not continue: $?"
grep -qE ' epochs +3 of 3 updates, 9 in all$' shown || fail "another number of updates: $(grep epochs shown)"
"$mnist" "${part[@]}" "${two[@]}" --summary >shown
grep -qE ' epochs +3 of 3 updates, 9 in all$' shown || fail "another number of updates: $(grep epochs shown)"
grep -qE ' batch +24 samples, 2 to an update$' shown || fail "another batch: $(grep batch shown)"
grep -qE ' ranks +2, on cpu,cpu; a batch each$' shown || fail "no ranks: $(cat shown)"
[ "$(grep -c 'fc2' shown)" -eq 1 ] || fail "not one table"
refuses 1 1 '--global-batch 49' '2 ranks' -- "$mnist" "${part[@]}" --global-batch 49 "${two[@]}"
refuses 1 1 '--global-batch 48' 'x --accumulate 5' -- "$mnist" "${part[@]}" --accumulate 5
refuses 1 1 'at most 65536' -- "$mnist" "${part[@]}" --global-batch 131074
refuses 2 1 'leave it out' -- "$mnist" "${part[@]}" --batch-size 24

# ---- BatchNorm over all ranks: the result of one rank with the whole batch, but for rounding; without, another one
norm=(--data 'synth:digits?count=120' --preset batchnorm --steps 5 --threads 1 --quiet --global-batch 24 --optimizer sgd
    --lr 0.05 --schedule constant)
three=(--device cpu,cpu,cpu --data-parallel)
# loss ARGUMENT...: of the test
loss() { "$mnist" "${norm[@]}" "$@" | sed -n 's/^.*test loss: //p'; }
# near A B: they differ by less than 0.001
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(a > 0 && d < 0.001 && d > -0.001) }'; }
one=$(loss)
near "$(loss "${three[@]}" --sync-batch-norm)" "$one" || fail "--sync-batch-norm is not one batch of all ranks"
if near "$(loss "${three[@]}")" "$one"; then fail "--sync-batch-norm does nothing"; fi
if [ -n "$mpirun" ]; then
    synced=$("$here/../mpi/ranks.sh" "$mpirun" 3 "$mnist" "${norm[@]}" --sync-batch-norm --peer-timeout 60 |
        sed -n 's/^.*test loss: //p')
    near "$synced" "$one" || fail "--sync-batch-norm by mpirun: $synced, not $one"
fi
refuses 2 1 'no effect on preset fast' -- "$mnist" --data "$data" "${two[@]}" --sync-batch-norm

# ---- lines that make no sense
refuses 2 1 '--split' -- "$mnist" --data "$data" "${two[@]}" --split 3
refuses 2 1 '--device cuda:0,cuda:1' -- "$mnist" --data "$data" --data-parallel
refuses 2 1 '--data-parallel, or --split' -- "$mnist" --data "$data" --device cpu,cpu
refuses 2 1 'a name is empty' -- "$mnist" --data "$data" --device cpu, --data-parallel
refuses 2 1 'named twice' -- "$mnist" --data "$data" --device cuda,cpu,cuda:0 --data-parallel
refuses 2 1 'more than 64 devices' -- "$mnist" --data "$data" --data-parallel --device "$(printf 'cpu,%.0s' {1..64})cpu"
refuses 2 1 'is no device' -- "$mnist" --data "$data" --data-parallel --device cpu,abacus-of-my-grandmother-in-brass
refuses 2 1 'peer-timeout' -- "$mnist" --data "$data" --peer-timeout 0
refuses 1 1 'Open MPI has started 2 processes' -- env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 \
    OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=2 "$mnist" --data "$data" "${two[@]}"

# ---- an error of one rank is one line, and ends all; what all refuse is said once
refuses 1 1 'rank 1: ' 'abacus' -- "$mnist" --data "$data" --device cpu,abacus,cpu --data-parallel
refuses 1 1 'rank 0: ' '/nowhere/x' -- "$mnist" --data "$data" "${two[@]}" --save /nowhere/x
refuses 1 1 'rank 0: ' '/nowhere/x' -- "$mnist" --data "$data" "${two[@]}" --log /nowhere/x
refuses 1 1 'computes in float32 and bfloat16 only' -- "$mnist" --data "$data" "${two[@]}" --amp fp16
refuses 1 1 'rank 0: training diverged' -- "$housing" "${table[@]}" "${two[@]}" --epochs 300 --optimizer sgd --lr 10

# ---- Ctrl-C ends all ranks after the same update, and the run continues to the same weights
long=("${common[@]}" "${two[@]}" --preset fast --steps 200 --batch-size 3)
"$mnist" "${long[@]}" --save long.safetensors >/dev/null
status=0
for try in 1 2 3 4 5; do
    rm -f part*.safetensors
    "$mnist" "${long[@]}" --save part.safetensors --save-every $((9 + try)) >shown 2>err &
    process=$!
    while [ ! -e part.safetensors ] && kill -0 "$process" 2>/dev/null; do sleep 0.01; done
    kill -INT "$process" 2>/dev/null || true
    status=0
    wait "$process" 2>/dev/null || status=$?
    [ "$status" -eq 0 ] || break
done
[ "$status" -eq 130 ] || fail "Ctrl-C ended with $status: $(cat err)"
[ ! -s err ] || fail "something on standard error: $(cat err)"
[ "$(grep -c 'stopped after' shown)" -eq 1 ] || fail "not one word about the stop: $(cat shown)"
again=$(sed -n 's/^.*continue with: //p' shown)
[ -n "$again" ] || fail "no command to continue is shown"
bash -c "$again" >/dev/null || fail "'$again' ended with $?"
same long.safetensors part.safetensors "stopped by Ctrl-C and resumed: other weights"
verdict
