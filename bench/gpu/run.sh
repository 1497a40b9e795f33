#!/usr/bin/env bash
# bench/gpu/run.sh - runs everything that needs a GPU: tests, compute-sanitizer, sweeps, training, PyTorch
# in turn; writes one report.
#
# usage: bench/gpu/run.sh [--build DIR] [--out DIR] [--quick] [STEP...]
#
#   --build DIR   the build folder ($STOKER_GPU_BUILD, else build/gpu, else ./build)
#   --out DIR     the folder of the report (results/gpu-DATE-NAME in bench, or beside a packed build)
#   --quick       a few seconds per step, to check that all of them run
#   STEP          only steps whose names start with STEP: tests sanitize sweep train peers (all)
#
# STOKER_DATA names the folder that holds mnist/ (data). STOKER_CUDART names a CUDA runtime; by default
# it is looked for where the linker and Python's packages have theirs, like cuDNN and cuBLASLt. STOKER_PYTHON
# names the Python that has torch, STOKER_GPU_LIMIT another limit for every step, in seconds. Uses no network and installs nothing.
#
# Each step has a time limit; a failed one is reported, and the next one runs.
# DIR/report.jsonl has a line for the machine and one per step, DIR/report.txt is its table,
# DIR/*.json are the sweeps' rows, DIR/log/ has all output.
# Exit status: 0 all steps passed or had nothing to do, 1 some failed, 77 there is no GPU.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)

build=${STOKER_GPU_BUILD:-}
out=
quick=false
only=()
while [ $# -gt 0 ]; do
    case $1 in
    --build) build=${2:?--build names a folder} && shift 2 ;;
    --out) out=${2:?--out names a folder} && shift 2 ;;
    --quick) quick=true && shift ;;
    -*) echo "gpu: unknown option $1" >&2 && exit 2 ;;
    *) only+=("$1") && shift ;;
    esac
done
for tried in "$top/build/gpu" "$top/build"; do
    if [ -z "$build" ] && [ -x "$tried/bench/loaderbench" ]; then build=$tried; fi
done
[ -n "$build" ] && [ -x "$build/bench/loaderbench" ] ||
    { echo "gpu: no bench/loaderbench in '${build:-build}': build first, or name a folder by --build" >&2; exit 1; }
build=$(cd "$build" && pwd)
tool=$build/bench/loaderbench
trainer=$build/trainer/stoker-mnist

# ---- this machine ---------------------------------------------------------------

python=
for tried in "${STOKER_PYTHON:-}" python3 /usr/bin/python3; do
    if [ -z "$python" ] && [ -n "$tried" ] && command -v "$tried" >/dev/null; then python=$tried; fi
done

# Library folders of Python's packages: nvidia/cu13/lib, nvidia/cudnn/lib, ...
libraries_of_python() {
    [ -n "$python" ] || return 0
    "$python" - <<'PYTHON' 2>/dev/null || true
import glob, os, site, sys
places = site.getsitepackages() + [site.getusersitepackages()] + sys.path
seen = []
for place in places:
    for folder in sorted(glob.glob(os.path.join(place, "nvidia", "*", "lib"))):
        if folder not in seen and glob.glob(os.path.join(folder, "lib*.so*")):
            seen.append(folder)
print(":".join(seen))
PYTHON
}
carried=$(libraries_of_python)
for tried in /usr/local/cuda/lib64 /usr/local/cuda/targets/x86_64-linux/lib; do
    if [ -d "$tried" ]; then carried=$carried${carried:+:}$tried; fi
done
given=${LD_LIBRARY_PATH:-} # PyTorch finds its own by itself
export LD_LIBRARY_PATH=${given:+$given:}$carried

# MNIST, or drawn digits.
for tried in "${STOKER_DATA:-}" "$top/data"; do
    if [ -n "$tried" ] && compgen -G "$tried/mnist/train-images*" >/dev/null; then
        STOKER_DATA=$(cd "$tried" && pwd)
        digits=mnist:$STOKER_DATA/mnist
        break
    fi
done
digits=${digits:-synth:digits?count=60000}
if $quick; then digits='synth:digits?count=2000'; fi
export STOKER_DATA=${STOKER_DATA:-$top/data}

# One line about the GPU, or why there is none.
probe=$(mktemp)
trap 'rm -f "$probe" "$probe".*' EXIT
if ! "$tool" --device cuda --workers 0 --batch-size 8 --pin-memory off --non-blocking on --convert host --repeats 1 \
    --seconds 0.001 --ceilings off --format json 'synth:digits?count=64' >"$probe" 2>"$probe.err"; then
    echo "gpu: no GPU that can be used: $(sed 's/^loaderbench: --device: //' "$probe.err" | head -n 1)"
    grep -oE '"error": "[^"]+"' "$probe" | head -n 1 || true
    exit 77
fi
name=$(sed -nE '1s/.*"gpu": "([^"]*)".*/\1/p' "$probe")
slug=$(printf '%s' "${name:-gpu}" | tr '[:upper:] ' '[:lower:]-' | tr -cd 'a-z0-9-')
if [ -z "$out" ]; then
    out=$top/bench/results/gpu-$(date -u +%F)-$slug
    [ -d "$top/bench/results" ] || out=$top/results/gpu-$(date -u +%F)-$slug
fi
mkdir -p "$out/log"
out=$(cd "$out" && pwd)
report=$out/report.jsonl

# Quotes a text for JSON.
quote() { printf '"%s"' "$(printf '%s' "$1" | tr -d '\000-\037' | sed 's/[\\"]/\\&/g')"; }

smi=$(nvidia-smi --query-gpu=name,driver_version,memory.total,pcie.link.gen.current,pcie.link.width.current \
    --format=csv,noheader 2>/dev/null | head -n 1 || true)
torch=$([ -z "$python" ] || "$python" -c 'import torch; print(torch.__version__, torch.version.cuda, torch.cuda.is_available())' 2>/dev/null || true)
machine=$(head -n 1 "$probe")
printf '%s, "date": %s, "nvidia_smi": %s, "torch": %s, "digits": %s, "quick": %s}\n' "${machine%\}}" \
    "$(quote "$(date -u +%FT%TZ)")" "$(quote "$smi")" "$(quote "$torch")" "$(quote "$digits")" $quick >"$report"
echo "gpu: $name${smi:+ ($smi)}; data: $digits; torch: ${torch:-none}"

# ---- steps ----------------------------------------------------------------------

passed=0 failed=0 skipped=0

# note NAME STATUS SECONDS EXIT: a line in the report and one on the terminal.
note() {
    printf '{"kind": "step", "name": %s, "status": "%s", "seconds": %s, "exit": %s}\n' "$(quote "$1")" "$2" "$3" "$4" >>"$report"
    printf '  %-28s %-8s %8s s\n' "$1" "$2" "$3"
    case $2 in passed) passed=$((passed + 1)) ;; skipped) skipped=$((skipped + 1)) ;; *) failed=$((failed + 1)) ;; esac
}

wanted() {
    [ ${#only[@]} -gt 0 ] || return 0
    local prefix
    for prefix in "${only[@]}"; do case $1 in "$prefix"*) return 0 ;; esac done
    return 1
}

# step NAME LIMIT COMMAND...: its output goes to log/NAME.txt. Exit status 77 = nothing to do here.
step() {
    local name=$1 limit=$2 status=0 begin=${EPOCHREALTIME/[.,]/} word=passed
    shift 2
    limit=${STOKER_GPU_LIMIT:-$limit}
    wanted "$name" || return 0
    timeout -k 10 "$limit" "$@" >"$out/log/$name.txt" 2>&1 </dev/null || status=$?
    case $status in 0) ;; 77) word=skipped ;; 124 | 137) word=timeout ;; *) word=failed ;; esac
    note "$name" "$word" "$(printf '%d.%02d' $(((${EPOCHREALTIME/[.,]/} - begin) / 1000000)) $(((${EPOCHREALTIME/[.,]/} - begin) / 10000 % 100)))" $status
    [ "$word" = passed ] || [ "$word" = skipped ] || tail -n 3 "$out/log/$name.txt" | sed 's/^/      /'
}

# sweep NAME LIMIT OPTION...: rows in NAME.json.
sweep() {
    local name=$1 limit=$2
    shift 2
    step "$name" "$limit" "$tool" --device cuda --quiet --format json -o "$out/$name.json" "${pace[@]}" "$@"
}

run_tests() {
    local test
    for test in "$build"/tests/gpu_*; do
        if [ -f "$test" ] && [ -x "$test" ]; then step "tests-$(basename "$test")" 300 "$test"; fi
    done
}

run_sanitizer() {
    local checker="" tried kind
    for tried in compute-sanitizer /usr/local/cuda/bin/compute-sanitizer; do
        if [ -z "$checker" ] && command -v "$tried" >/dev/null; then checker=$tried; fi
    done
    if [ -z "$checker" ]; then
        if wanted sanitize; then note sanitize skipped 0 77; fi
        return
    fi
    # In some containers it starts but does not work.
    if wanted sanitize && timeout -k 10 120 "$checker" --tool memcheck "$build/tests/gpu_transform" 2>&1 | grep -q 'Device not supported'; then
        note sanitize skipped 0 77
        return
    fi
    local test
    for kind in memcheck racecheck initcheck synccheck; do
        for test in transform train_kernels; do
            if [ -x "$build/tests/gpu_$test" ]; then
                step "sanitize-$kind-$test" 600 "$checker" --tool $kind --error-exitcode 9 "$build/tests/gpu_$test"
            fi
        done
    done
    # initcheck does not understand how libraries initialise memory: memcheck only.
    if [ -x "$build/tests/gpu_trainer" ]; then
        step sanitize-memcheck-trainer 900 "$checker" --tool memcheck --error-exitcode 9 "$build/tests/gpu_trainer" quick
    fi
    step sanitize-memcheck-loader 600 "$checker" --tool memcheck --error-exitcode 9 "$build/tests/gpu_loader"
}

run_sweeps() {
    local workers=1,4,auto batches=64,512,4096 pictures='synth:bytes?count=8192&shape=64x64x3'
    if $quick; then workers=1 batches=64,512 pictures='synth:bytes?count=2048&shape=16x16x3'; fi
    sweep sweep-mnist 900 --cache decoded --workers $workers --batch-size 64,512 "$digits"
    sweep sweep-large 900 --cache decoded --workers "$(nproc)" --batch-size 128,512,2048 --dtype as-stored --non-blocking on --convert auto "$pictures"
    sweep sweep-step 300 --cache decoded,device --workers 1,auto --batch-size 512 --step-us 200 --headspace --convert auto "$digits"
    sweep sweep-host 300 --device cuda-host --workers $workers --batch-size 64,512 "$digits"
    if knows "$tool" '--cache LIST.*device'; then
        sweep sweep-resident 300 --workers 0,auto --batch-size $batches --cache device --pin-memory auto --non-blocking on --convert auto "$digits"
    elif wanted sweep-resident; then
        note sweep-resident skipped 0 77
    fi
}

# knows PROGRAM PATTERN: true if --help matches. Not through a pipe: grep -q ends at the first match, and the
# program would fail to write the rest.
knows() { grep -qE -- "$2" <<<"$("$1" --help 2>&1)"; }

# True if the trainer was built with a back end for it.
trainer_knows_cuda() { [ -x "$trainer" ] && knows "$trainer" cuda; }

run_training() {
    if ! trainer_knows_cuda; then
        if wanted train; then note train skipped 0 77; fi
        return
    fi
    local seed seeds=10 short=() mode
    if $quick; then seeds=1 short=(--steps 20); fi
    for seed in $(seq $seeds); do
        step "train-fast-$seed" 120 "$trainer" --preset fast --device cuda --data "$digits" --seed "$seed" --quiet "${short[@]}"
    done
    for mode in "" "--amp bf16" "--amp fp16"; do
        # shellcheck disable=SC2086  # two words
        step "train-pytorch${mode:+-${mode#--amp }}" 300 "$trainer" --preset pytorch --device cuda --data "$digits" --eval-every 0 --quiet $mode "${short[@]}"
    done
}

run_peers() {
    local peers=$top/bench/peers mode short=()
    if $quick; then short=(--quick); fi
    if [ -z "$python" ] || [ ! -d "$peers" ]; then
        if wanted peers; then note peers skipped 0 77; fi
        return
    fi
    local peer=(env LD_LIBRARY_PATH="$given" "$python")
    step peers-pinning 900 "${peer[@]}" "$peers/torch_pinning.py" "${short[@]}" --output "$out/torch-pinning.txt"
    local beside=()
    if [ -s "$out/torch-pinning.txt" ]; then beside=(--beside "$out/torch-pinning.txt"); fi
    step peers-like-pytorch 300 "$tool" --device cuda --like-pytorch "${beside[@]}" -o "$out/pinning.txt" "$digits"
    step peers-loading 900 "${peer[@]}" "$peers/torch_gpu.py" "${short[@]}" --output "$out/torch-loading.jsonl"
    for mode in eager graphs compile; do
        step "peers-train-$mode" 600 "${peer[@]}" "$peers/train_mnist_gpu.py" --mode $mode "${short[@]}" --output "$out/torch-train-$mode.json"
    done
    local library
    library=$(find "$build" -maxdepth 2 -name 'libstoker.so' | head -n 1)
    if [ -n "$library" ]; then
        step peers-dlpack 300 "$python" "$top/tests/checks/check_dlpack.py" "$library"
    elif wanted peers-dlpack; then
        note peers-dlpack skipped 0 77
    fi
}

pace=(--repeats 7)
if $quick; then pace=(--repeats 1 --seconds 0.01); fi
run_tests
run_sanitizer
run_sweeps
run_training
run_peers

if [ -n "$python" ]; then
    "$python" "$here/report.py" "$out" >"$out/report.txt" && cat "$out/report.txt" ||
        { echo "gpu: the table could not be made; the rows are in $report" >&2; failed=$((failed + 1)); }
fi
echo "gpu: $passed passed, $failed failed, $skipped skipped; the report is in $out"
[ "$failed" -eq 0 ]
