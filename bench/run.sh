#!/usr/bin/env bash
# run.sh - measure what Stoker promises, and say point by point whether it holds.
#
# usage: bench/run.sh           the points: resident, reading warm and cold, large counts, resume
#        bench/run.sh peers     the same jobs, loading and training, in PyTorch, in turn with ours
#
# STOKER_BUILD   the build folder (build/release)
# STOKER_DATA    the folder that holds mnist/ (data)
# STOKER_REPEATS repeats per cell (25): many short windows, cells and ceilings in turn; cold reads,
#                which are slow, get half as many
# STOKER_ROUNDS  rounds of peers (3)
# STOKER_KEEP    a folder for the rows as JSON Lines (thrown away)
#
# Exit status: 0 measured (holding or not), 1 something failed, 77 a tool is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=${STOKER_BUILD:-build/release}
export STOKER_DATA=${STOKER_DATA:-data}
repeats=${STOKER_REPEATS:-25}
rounds=${STOKER_ROUNDS:-3}
window=0.02
tool=$build/bench/loaderbench

[ -x "$tool" ] || { echo "run.sh: no $tool; build first, or set STOKER_BUILD" >&2; exit 1; }
command -v python3 >/dev/null || { echo "run.sh: python3 is needed for the summary" >&2; exit 77; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
rows=${STOKER_KEEP:-$scratch/rows}
mkdir -p "$rows"

# find_data: set $resident (a spec) and $images (an unpacked IDX file in $scratch).
find_data() {
    local packed=$STOKER_DATA/mnist/train-images-idx3-ubyte
    images=$scratch/images-idx3-ubyte
    if [ -e "$packed.gz" ] || [ -e "$packed" ]; then
        resident=mnist:$STOKER_DATA/mnist
        if [ -e "$packed" ]; then cp "$packed" "$images"; else gzip -dc "$packed.gz" >"$images"; fi
        return
    fi
    resident='synth:digits?count=60000'
    echo "NO MNIST in $STOKER_DATA/mnist: made-up digits of the same size stand in for it"
    python3 - "$images" <<'PYTHON'
import os, struct, sys
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack(">IIII", 2051, 60000, 28, 28) + os.urandom(60000 * 784))
PYTHON
}

# sweep NAME REPEATS OPTION... DATASET: show the table's progress on a terminal, keep the rows.
sweep() {
    local name=$1 turns=$2 status=0
    shift 2
    echo "== $name: loaderbench $*"
    "$tool" --repeats "$turns" --seconds "$window" --format json -o "$rows/$name.json" "$@" || status=$?
    [ "$status" -eq 0 ] || { echo "   some cells failed (exit $status)"; failed=1; }
}

measure_points() {
    failed=0
    find_data
    sweep resident "$repeats" --dtype float32,uint8,float16 --batch-size 64,512 --workers 0,1,2,auto \
        --pin-memory on,off "$resident"
    sweep warm "$repeats" --cache none --dtype as-stored --pin-memory off --batch-size 64,512 \
        --workers 0,1,2,auto "idx:$images"
    sweep cold $(((repeats + 1) / 2)) --cold --dtype as-stored --pin-memory off --batch-size 64,512 \
        --workers 0,1,2,auto "idx:$images"
    # The same work on a small and on a huge count, in turn: what differs is what the count costs.
    local common=(--cache none --reader null --dtype as-stored --pin-memory off --batch-size 64
        "--workers=0,2" --ceilings off)
    local turn
    for turn in $(seq 7); do
        sweep "small-$turn" $(((repeats + 6) / 7)) "${common[@]}" 'synth:bytes?count=100000&shape=28x28'
        sweep "huge-$turn" $(((repeats + 6) / 7)) "${common[@]}" 'synth:bytes?count=1000000000000&shape=28x28'
    done
    python3 bench/summary.py points "$rows"
    return "$failed"
}

measure_peers() {
    local round status
    failed=0
    find_data
    : >"$rows/peers.json"
    for round in $(seq "$rounds"); do
        echo "== round $round of $rounds"
        sweep "ours-$round" "$repeats" --dtype float32,uint8 --batch-size 64,512 --workers 0,1,2,auto \
            --pin-memory off --ceilings off "$resident"
        for peer in bench/peers/torch_*.py; do
            echo "== $peer"
            status=0
            "$peer" >>"$rows/peers.json" || status=$?
            [ "$status" -ne 77 ] || { echo "   left out"; continue; }
            [ "$status" -eq 0 ] || { echo "   failed (exit $status)"; failed=1; }
        done
    done
    python3 bench/summary.py peers "$rows"
    echo
    echo "== the same network trained by both"
    status=0
    STOKER_BUILD=$build bench/peers/train.sh || status=$?
    [ "$status" -eq 0 ] || [ "$status" -eq 77 ] || failed=1
    return "$failed"
}

case ${1:-points} in
points) measure_points ;;
peers) measure_peers ;;
*)
    sed -n '3,7s/^# //p' bench/run.sh >&2
    exit 2
    ;;
esac
