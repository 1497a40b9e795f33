#!/usr/bin/env bash
# train.sh - trains the same network with Stoker and with PyTorch, in turn, and compares them.
#
# usage: bench/races/peers/train.sh
#
# PyTorch takes part in several ways (train_mnist.py): float32 and bfloat16, with an allocator that keeps freed memory, with the
# default one, and compiled. The best one counts.
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
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

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

ways=("" "--no-keep-memory" "--precision bfloat16" "--compile" "--precision bfloat16 --compile")
for round in $(seq "$rounds"); do
    echo "== round $round of $rounds: ours, then PyTorch's"
    ours "$round"
    for way in "${!ways[@]}"; do
        status=0
        # shellcheck disable=SC2086  # a way is several words
        bench/races/peers/train_mnist.py "${same[@]}" --seed "$round" ${ways[$way]} >>"$scratch/peer" 2>"$scratch/said" || status=$?
        [ "$way" -gt 0 ] || [ "$status" -eq 0 ] || { cat "$scratch/said" >&2; exit "$status"; }
        [ "$status" -eq 0 ] || echo "   PyTorch ${ways[$way]}: left out: $(tail -n 1 "$scratch/said")"
    done
done

python3 - "$scratch/ours" "$scratch/peer" "$threads" "$batch" <<'PYTHON'
import json, statistics, sys
ours = [[float(word) for word in line.split()] for line in open(sys.argv[1])]
peers = {}
for row in map(json.loads, open(sys.argv[2])):
    way = row["precision"] + (", compiled" if row["compiled"] else "")
    peers.setdefault(way + ("" if row["keep_memory"] else ", default allocator"), []).append(row)
print("\nours: " + ", ".join(f"{a[0]:.0f}/s" for a in ours)
      + f" (waits for data {statistics.median(a[1] for a in ours):.2f} %, test {statistics.median(a[2] for a in ours):.2f} %)")
print(f"{peers['float32'][0]['peer']:30} {'samples/s':>10} {'test %':>7} {'ratio':>6} {'least':>6}")
found = {}
for way, rows in peers.items():
    ratios = [a[0] / b["samples_per_s"] for a, b in zip(ours, rows)]
    found[way] = statistics.median(ratios)
    print(f"{way:30} {statistics.median(b['samples_per_s'] for b in rows):10.0f} "
          f"{100 * statistics.median(b['accuracy'] for b in rows):7.2f} {found[way]:6.2f} {min(ratios):6.2f}")
best = min(found, key=found.get)
print(f"\nmedian ratio {found[best]:.2f} to its best way ({best}), {sys.argv[3]} threads, batches of {sys.argv[4]}, "
      f"its BLAS at {peers['float32'][0]['gflops']:.0f} GFLOP/s")
PYTHON
