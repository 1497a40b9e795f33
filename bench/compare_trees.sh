#!/usr/bin/env bash
# compare_trees.sh - the data set in memory, loaded by two builds in turn: did a change of the pipeline cost anything?
#
# usage: bench/compare_trees.sh OLD NEW [OPTION... DATASET]
#
# OLD and NEW are build folders, each with bench/loaderbench. Without options MNIST of $STOKER_DATA: float32 and uint8,
# batches of 64 and 512, 0, 1 and 2 workers. The speed of gathering depends on the pages that a process happens to get, so
# each turn is a new process of either build, and the order changes from turn to turn.
#
# STOKER_DATA    the folder that holds mnist/ (data); without MNIST, digits are made up
# STOKER_ROUNDS  turns (21, at least 10 to judge; about 3 s each)
#
# Exit status: 0 nothing is slower, 1 something failed, 3 a cell is slower beyond its noise.
set -euo pipefail

[ $# -ge 2 ] || { sed -n '4,5s/^# //p' "$0" >&2; exit 2; }
old=$1/bench/loaderbench new=$2/bench/loaderbench
shift 2
for tool in "$old" "$new"; do [ -x "$tool" ] || { echo "compare_trees.sh: no $tool" >&2; exit 1; }; done
data=mnist:${STOKER_DATA:-data}/mnist
[ -e "${data#mnist:}" ] || data='synth:digits?count=60000'
[ $# -gt 0 ] || set -- --dtype float32,uint8 --batch-size 64,512 --workers 0,1,2 --pin-memory off "$data"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# one SIDE TOOL TURN OPTION...
one() {
    local side=$1 tool=$2 turn=$3
    shift 3
    "$tool" --quiet --repeats 3 --seconds 0.03 --verify off --ceilings off --format json \
        -o "$scratch/$side-$turn.json" "$@" || { echo "compare_trees.sh: $tool failed" >&2; exit 1; }
}

for turn in $(seq "${STOKER_ROUNDS:-21}"); do
    if [ $((turn % 2)) -eq 0 ]; then
        one old "$old" "$turn" "$@"
        one new "$new" "$turn" "$@"
    else
        one new "$new" "$turn" "$@"
        one old "$old" "$turn" "$@"
    fi
done

python3 - "$scratch" "${STOKER_ROUNDS:-21}" "$(cd "$(dirname "$0")" && pwd)" <<'PYTHON'
import json, os, statistics, sys
folder, turns = sys.argv[1], int(sys.argv[2])
sys.path.insert(0, sys.argv[3])
from summary import middle, millions
sides = {"old": {}, "new": {}}
for side, cells in sides.items():
    for turn in range(1, turns + 1):
        with open(os.path.join(folder, f"{side}-{turn}.json"), encoding="utf-8") as file:
            for row in map(json.loads, file):
                if row["kind"] == "machine" and turn == 1:
                    print(f"{side}: {row['commit']}, {row['compiler']}, {row['cpu']}")
                if row["kind"] == "cell" and row.get("error") is None:
                    key = (row["dtype"], row["batch_size"], row["workers"], row["pin_memory"])
                    cells.setdefault(key, []).append(row["samples_per_s"])
print(f"\n{'dtype':>9} {'batch':>5} {'workers':>7} {'pin':>4} {'old':>11} {'new':>11} {'new / old':>9}  with 99.9 % between")
slower = 0
for key, rates in sides["new"].items():
    before = sides["old"].get(key, [])
    if len(before) != len(rates):
        continue
    ratio, low, high = middle([new / old for new, old in zip(rates, before)])
    slower += high < 1
    print(f"{key[0]:>9} {key[1]:5} {key[2]:7} {key[3]:>4} {millions(statistics.median(before)):>11} "
          f"{millions(statistics.median(rates)):>11} {ratio:9.3f}  {low:.3f} and {high:.3f}"
          + ("  SLOWER" if high < 1 else ""))
sys.exit(3 if slower else 0)
PYTHON
