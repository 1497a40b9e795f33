#!/usr/bin/env bash
# train.sh - trains the same network with Stoker and with PyTorch, in turn, and compares them.
#
# usage: bench/peers/train.sh
#
# STOKER_BUILD   the build folder (build/release)
# STOKER_DATA    the folder that holds mnist/ (data)
# STOKER_ROUNDS  rounds, each ours and the peer's (3)
# STOKER_STEPS   updates per run, to keep a round short (300; 0 = whole epochs)
# STOKER_EPOCHS  epochs of a run (3; with STOKER_STEPS they only bound it)
# STOKER_BATCH   samples per update (64)
# STOKER_THREADS threads of either side (the available CPUs)
#
# Exit status: 0 measured, 1 something failed, 77 a tool, MNIST or a fast BLAS is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

build=${STOKER_BUILD:-build/release}
export STOKER_DATA=${STOKER_DATA:-data}
rounds=${STOKER_ROUNDS:-3}
steps=${STOKER_STEPS:-300}
epochs=${STOKER_EPOCHS:-3}
batch=${STOKER_BATCH:-64}
threads=${STOKER_THREADS:-$(nproc)}
tool=$build/trainer/stoker-mnist

[ -x "$tool" ] || { echo "train.sh: no $tool; build first, or set STOKER_BUILD" >&2; exit 1; }
command -v python3 >/dev/null || { echo "train.sh: python3 is needed for the peer" >&2; exit 77; }
if [ ! -e "$STOKER_DATA/mnist/train-images-idx3-ubyte.gz" ] && [ ! -e "$STOKER_DATA/mnist/train-images-idx3-ubyte" ]; then
    echo "train.sh: no MNIST in $STOKER_DATA/mnist" >&2
    exit 77
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
same=(--epochs "$epochs" --batch-size "$batch" --threads "$threads")
[ "$steps" -eq 0 ] || same+=(--steps "$steps")

# ours SEED: one run; appends "samples/s accuracy data-wait" to $scratch/ours.
ours() {
    "$tool" --preset pytorch --data "mnist:$STOKER_DATA/mnist" "${same[@]}" --seed "$1" \
        --eval-every 0 --quiet >"$scratch/shown"
    sed -nE 's/^trained [0-9.]+ s, ([0-9]+) samples\/s, data wait ([0-9.]+) %$/\1 \2/p
             s/^test accuracy: ([0-9.]+) %$/\1/p' "$scratch/shown" | tr '\n' ' ' >>"$scratch/ours"
    echo >>"$scratch/ours"
}

for round in $(seq "$rounds"); do
    echo "== round $round of $rounds: ours, then PyTorch's"
    ours "$round"
    status=0
    bench/peers/train_mnist.py "${same[@]}" --seed "$round" >>"$scratch/peer" || status=$?
    [ "$status" -eq 0 ] || exit "$status"
done

python3 - "$scratch/ours" "$scratch/peer" "$threads" "$batch" <<'PYTHON'
import json, statistics, sys
ours = [[float(word) for word in line.split()] for line in open(sys.argv[1])]
peer = [json.loads(line) for line in open(sys.argv[2])]
print(f"\n{'round':>5} {'ours/s':>8} {'wait %':>7} {'test %':>7}   {'torch/s':>8} {'test %':>7} {'ratio':>6}")
for number, (a, b) in enumerate(zip(ours, peer), 1):
    print(f"{number:5} {a[0]:8.0f} {a[1]:7.2f} {a[2]:7.2f}   {b['samples_per_s']:8.0f} "
          f"{100 * b['accuracy']:7.2f} {a[0] / b['samples_per_s']:6.2f}")
ratios = [a[0] / b["samples_per_s"] for a, b in zip(ours, peer)]
print(f"\nmedian ratio {statistics.median(ratios):.2f} (least {min(ratios):.2f}), {sys.argv[3]} threads, "
      f"batches of {sys.argv[4]}, {peer[0]['peer']}, its BLAS at {peer[0]['gflops']:.0f} GFLOP/s")
PYTHON
