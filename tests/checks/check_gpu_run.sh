#!/usr/bin/env bash
# check_gpu_run.sh - the flow of `./run gpu` with a stand-in for the GPU: steps that pass, fail, hang and have
# nothing to do; libraries found in a Python package; the report; and what it says without a GPU.
#
# usage: check_gpu_run.sh BUILD_DIR STANDIN_LIBCUDART
set -euo pipefail
build=$(realpath "$1")
standin=$(realpath "$2")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

command -v python3 >/dev/null || { echo "SKIPPED: no python3 for the report"; exit 77; }
. tests/checks/scratch.sh

# A folder such as one carried to the machine: a few programs, a checker that finds fault with one of them.
mkdir -p "$scratch"/{build/bench,build/tests,bin,site/nvidia/cuda_runtime/lib}
ln -s "$build/bench/loaderbench" "$scratch/build/bench/"
for test in gpu_transform gpu_loader; do ln -s "$build/tests/$test" "$scratch/build/tests/"; done
printf '#!/bin/sh\nexit 1\n' >"$scratch/build/tests/gpu_broken"
cat >"$scratch/bin/compute-sanitizer" <<'SH'
#!/bin/sh
case " $* " in *" racecheck "*) exit 9 ;; *" --report-api-errors no "*) ;; *) exit 1 ;; esac
SH
chmod +x "$scratch/build/tests/gpu_broken" "$scratch/bin/compute-sanitizer"
cp "$standin" "$scratch/site/nvidia/cuda_runtime/lib/$(basename "$standin" | grep -oE 'libcudart\.so\.[0-9]+')"

# The runtime is found where a wheel has it, before the system's.
status=0
env -u STOKER_CUDART -u STOKER_DATA PYTHONPATH="$scratch/site" PATH="$scratch/bin:$PATH" \
    bench/gpu/run.sh --build "$scratch/build" --out "$scratch/out" --quick \
    tests-gpu_transform tests-gpu_broken sanitize sweep-resident train >"$scratch/shown" 2>&1 || status=$?
[ "$status" -eq 1 ] || fail "one step failed, but the status is $status: $(cat "$scratch/shown")"
python3 - "$scratch/out" <<'PYTHON' || fail "the report is not as promised: $(cat "$scratch/shown")"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1] + "/report.jsonl")]
assert lines[0]["kind"] == "machine" and lines[0]["gpu"].startswith("Stand-in"), lines[0]
steps = {line["name"]: line["status"] for line in lines[1:]}
assert steps["tests-gpu_transform"] == "passed" and steps["tests-gpu_broken"] == "failed", steps
assert steps["sanitize-memcheck-transform"] == "passed", steps
assert steps["sanitize-racecheck-transform"] == "failed", steps
assert steps["sweep-resident"] == "passed", steps
assert "peers-pinning" not in steps, "not asked for"
assert "tests-gpu_loader" not in steps and "sweep-mnist" not in steps, "not asked for"
table = open(sys.argv[1] + "/report.txt").read()
assert "QUICK" in table and "sanitize-racecheck-transform" in table, table
assert "GPU-resident MNIST: every row is measured: batch 64:" in table, table
PYTHON

tar -tzf "$scratch/out.tar.gz" >"$scratch/packed"
grep -q '^out/report.txt$' "$scratch/packed" || fail "what is to be copied has no report"

# A GPU that the driver shows, but no runtime: that is a failure.
printf '#!/bin/sh\necho "GPU 0: Stand-in"\n' >"$scratch/bin/nvidia-smi"
chmod +x "$scratch/bin/nvidia-smi"
status=0
STOKER_CUDART=$scratch/nothing.so PATH="$scratch/bin:$PATH" bench/gpu/run.sh --build "$scratch/build" \
    --out "$scratch/none" >"$scratch/shown" 2>&1 || status=$?
[ "$status" -eq 1 ] || fail "a GPU without its runtime gives $status"
grep -q '^gpu: there is a GPU, but it cannot be used: .*nothing.so' "$scratch/shown" || fail "does not say what is missing: $(cat "$scratch/shown")"
rm "$scratch/bin/nvidia-smi"

# What is linked with stand-ins, for as long as there is time: none is left for the second step.
if [ -x "$build/tests/standin_mnist" ]; then
    env -u STOKER_CUDART bench/gpu/run.sh --stand-in --quick --build "$build" --out "$scratch/standin" \
        tests-gpu_nccl train-fast >"$scratch/shown" 2>&1 || fail "on stand-ins: $(cat "$scratch/shown")"
    grep -q '^gpu: 2 passed, 0 failed, 0 skipped; ' "$scratch/shown" || fail "on stand-ins: $(cat "$scratch/shown")"
    grep -q 'mnist --preset fast: .* % (mean of 1, made-up digits)' "$scratch/shown" ||
        fail "training is not in the report: $(cat "$scratch/shown")"
    env -u STOKER_CUDART bench/gpu/run.sh --stand-in --quick --minutes 0 --build "$build" --out "$scratch/late" \
        train-fast >"$scratch/shown" 2>&1 || fail "without time: $(cat "$scratch/shown")"
    grep -q '^gpu: 0 passed, 0 failed, 0 skipped, 1 without time; ' "$scratch/shown" || fail "without time: $(cat "$scratch/shown")"
fi

# No GPU: reported, and 77.
status=0
STOKER_CUDART=$scratch/nothing.so bench/gpu/run.sh --build "$scratch/build" --out "$scratch/none" >"$scratch/shown" 2>&1 || status=$?
[ "$status" -eq 77 ] || fail "without a GPU the status is $status"
grep -q '^gpu: no GPU that can be used: .*nothing.so' "$scratch/shown" || fail "does not say why: $(cat "$scratch/shown")"
[ ! -e "$scratch/none" ] || fail "a report was begun without a GPU"
status=0
bench/gpu/run.sh --build "$scratch/nowhere" >"$scratch/shown" 2>&1 || status=$?
[ "$status" -eq 1 ] || fail "without a build the status is $status"

# What hangs is ended, and said.
printf '#!/bin/sh\nexec sleep 100\n' >"$scratch/build/tests/gpu_broken"
status=0
STOKER_GPU_LIMIT=1 STOKER_CUDART=$standin bench/gpu/run.sh --build "$scratch/build" --out "$scratch/hung" --quick \
    tests-gpu_broken >"$scratch/shown" 2>&1 || status=$?
[ "$status" -eq 1 ] || fail "a step that hangs gives $status"
grep -q '"name": "tests-gpu_broken", "status": "timeout"' "$scratch/hung/report.jsonl" || fail "does not say that it hung"

verdict
