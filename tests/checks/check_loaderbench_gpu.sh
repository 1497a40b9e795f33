#!/usr/bin/env bash
# check_loaderbench_gpu.sh - loaderbench on a GPU, which is a stand-in: every way there, checked bytes,
# ceilings, the step on a stream, the pinning experiment.
#
# usage: check_loaderbench_gpu.sh LOADERBENCH STANDIN_LIBCUDART
set -euo pipefail
tool=$(realpath "$1")
STOKER_CUDART=$(realpath "$2")
export STOKER_CUDART
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

command -v python3 >/dev/null || { echo "SKIPPED: no python3 to look at the rows with"; exit 77; }
. tests/checks/scratch.sh
data='synth:digits?count=2000'
fast=(--quiet --workers 1 --batch-size 300 --repeats 1 --seconds 0.02)

# measures NAME OPTION...: one run, as JSON in $scratch/NAME.
measures() {
    local name=$1
    shift
    "$tool" "${fast[@]}" --format json "$@" "$data" >"$scratch/$name" 2>"$scratch/err" ||
        fail "$name ended with $?: $(cat "$scratch/err")"
}

# Every combination on the GPU, and those that have fewer.
measures all --device cuda --cache decoded --dtype float32,as-stored
measures host --device cuda-host
measures cold --device cuda:0 --cache none --non-blocking on,off --convert host --ceilings off
# A step takes 1 ms at least, however busy the machine is: that bounds what 0.6 s or more can have.
measures step --device cuda --convert auto --non-blocking on --pin-memory on --batch-size 100 \
    --step-us 1000 --seconds 0.6 --headspace --ceilings off
measures resident --device cuda --cache device --pin-memory auto --non-blocking on --convert auto

python3 - "$scratch" <<'PYTHON' || fail "the rows are not as promised"
import json, sys
def rows(name, kind):
    return [r for r in map(json.loads, open(f"{sys.argv[1]}/{name}")) if r["kind"] == kind]
cells = rows("all", "cell")
assert len(cells) == 16, len(cells)
ways = {(c["dtype"], c["pin_memory"], c["non_blocking"], c["convert"]) for c in cells}
assert len({w for w in ways if w[0] == "float32"}) == 8, ways
assert {w[3] for w in ways if w[0] == "uint8"} == {"host"}, "as stored there is nothing to convert"
for c in cells:
    assert c["error"] is None and c["verified"] == 2000 and c["device"] == "cuda:0", c
    assert c["pinned"] == (c["pin_memory"] == "on"), c
    assert c["ceiling_share"] > 0 and c["copy_bytes"] > 0 and c["device_bytes"] > 0, c
    way = "pinned to GPU" if c["pinned"] else "pageable to GPU"
    assert way in c["shares"], c
    if c["non_blocking"] == "off":
        assert c["copy_waits"] > 0, c
sizes = {(c["dtype"], c["convert"]): c["copy_bytes"] for c in cells}
assert sizes["float32", "host"] > 3.5 * sizes["float32", "device"], sizes
names = {r["name"]: r for r in rows("all", "ceiling")}
for name in ("pinned to GPU", "pageable to GPU"):
    assert names[name]["samples_per_s"] > 0, names
assert rows("all", "machine")[0]["gpu"], "the GPU has no name"
assert ".device = STOKER_DEVICE_CUDA" in rows("all", "advice")[0]["options"]
for c in rows("host", "cell"):
    assert c["error"] is None and c["device"] == "cuda-host:0" and c["verified"] == 2000, c
    assert c["non_blocking"] is None and c["copy_bytes"] == 0, c
for c in rows("cold", "cell"):
    assert c["error"] is None and c["cache"] == "none" and c["convert"] == "host", c
for c in rows("resident", "cell"):
    assert c["error"] is None and c["cache"] == "device" and c["verified"] == 2000, c
    assert c["ceiling"] is None and c["ceiling_share"] is None, c
step = rows("step", "cell")[0]
queued = 2 * step["slots"]  # steps that may have waited on the GPU when the window began: of slots, and of buffers
assert step["samples_per_s"] <= 100 * (1 / 0.001 + queued / 0.6), step
assert 0 < step["headspace_samples_per_s"] <= 100 / 0.001, step  # the GPU was idle when it began
PYTHON

"$tool" "${fast[@]}" --device cuda --trace "$scratch/trace.json" --ceilings off "$data" >"$scratch/table"
grep -qE '^ +1 +on +off +device +300 ' "$scratch/table" || fail "the table shows no way"
grep -qE '^# cuda:0, [a-z0-9]+, (cache [a-z]+(, read by [a-z]+)?|in memory)$' "$scratch/table" ||
    fail "the table shows no device"
if grep -vE '^(options|train)' "$scratch/table" | grep -E '.{81}'; then
    fail "the table is wider than 80 columns"
fi
grep -q '^# gpu ' "$scratch/table" || fail "the table names no GPU"
grep -q 'non_blocking, converted' "$scratch/trace.json" || fail "the trace shows no way"
for form in csv html; do
    "$tool" "${fast[@]}" --device cuda --non-blocking on --format $form "$data" >"$scratch/$form"
    grep -q 'cuda:0' "$scratch/$form" || fail "$form shows no device"
done
"$tool" --quiet --device cuda --like-pytorch 'synth:digits?count=200' >"$scratch/pytorch" || fail "--like-pytorch ended with $?"
grep -q '^this loader: with pin_memory' "$scratch/pytorch" || fail "no verdict on pinning"

# The only GPU is number 0.
status=0
"$tool" --device cuda:7 "$data" >/dev/null 2>"$scratch/err" || status=$?
[ "$status" -eq 1 ] || fail "cuda:7 ended with $status"
grep -q 'there are 1 GPUs' "$scratch/err" || fail "does not say how many GPUs there are"

verdict
