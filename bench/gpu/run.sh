#!/usr/bin/env bash
# bench/gpu/run.sh - runs everything that needs a GPU: tests, compute-sanitizer, sweeps, training, PyTorch
# in turn; writes one report.
#
# usage: bench/gpu/run.sh [--build DIR] [--out DIR] [--quick] [--minutes N] [--stand-in] [STEP...]
#
#   --build DIR   the build folder ($STOKER_GPU_BUILD, else build/gpu, else ./build)
#   --out DIR     the folder of the report (results/gpu-DATE-NAME in bench, or beside a packed build)
#   --quick       a few seconds per step, to check that all of them run
#   --minutes N   end within N minutes, with the report: fewer repeats, and what there is no time for is reported as such. FIRST_RUN.md says what
#                 a first run prints
#   --stand-in    no GPU: the stand-ins of a build with tests, to see that every step runs
#   STEP          only steps whose names start with STEP: libraries tests train several sweep peers sanitize (all)
#
# STOKER_DATA names the folder that holds mnist/ (data). STOKER_CUDART names a CUDA runtime; by default
# it is looked for where the linker and Python's packages have theirs, like cuDNN and cuBLASLt. STOKER_PYTHON
# names the Python that has torch, STOKER_GPU_LIMIT another limit for every step, in seconds. Uses no network and installs nothing.
#
# Each step has a time limit; a failed one is reported, and the next one runs.
# DIR/report.jsonl has a line for the machine and one per step, DIR/report.txt is its table,
# DIR/*.json are the sweeps' rows, DIR/log/ has all output.
# Exit status: 0 all steps passed or had nothing to do, 1 some failed, or there is a GPU that cannot be used; 77 there is no GPU.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)

build=${STOKER_GPU_BUILD:-}
out=
quick=false
standin=false
minutes=
only=()
while [ $# -gt 0 ]; do
    case $1 in
    --build) build=${2:?--build names a folder} && shift 2 ;;
    --out) out=${2:?--out names a folder} && shift 2 ;;
    --quick) quick=true && shift ;;
    --minutes) minutes=${2:?--minutes N} && shift 2 ;;
    --stand-in) standin=true && shift ;;
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
tests=$build/tests
tool=$build/bench/loaderbench
trainer=$build/trainer/stoker-mnist
[[ $minutes =~ ^[0-9]*$ ]] || { echo "gpu: --minutes $minutes: a whole number" >&2; exit 2; }
deadline=${minutes:+$((SECONDS + 60 * minutes))}

probe=$(mktemp -d)
trap 'rm -rf "$probe"' EXIT

# linked NAME PROGRAM: starts a program that is linked with the stand-ins, and must not load another copy of one.
linked() {
    printf '#!/bin/sh\nunset STOKER_CUDART\nexec "%s" "$@"\n' "$2" >"$probe/tests/$1"
    chmod +x "$probe/tests/$1"
}
if $standin; then
    mkdir "$probe/tests"
    for test in loader transform train_kernels; do ln -s "$tests/gpu_$test" "$probe/tests/"; done
    for test in trainer nccl; do linked gpu_$test "$tests/standin_gpu_$test"; done
    linked mnist "$tests/standin_mnist"
    export STOKER_CUDART=$tests/standin_gpu/libcudart.so STOKER_NCCL=$tests/standin_nccl/libnccl.so
    tests=$probe/tests
    trainer=$tests/mnist
    out=${out:-$build/stand-in}
fi

# ---- this machine ---------------------------------------------------------------

python=
for tried in "${STOKER_PYTHON:-}" python3 /usr/bin/python3; do
    if [ -z "$python" ] && [ -n "$tried" ] && command -v "$tried" >/dev/null; then python=$tried; fi
done

# Library folders of Python's packages: nvidia/cu13/lib, nvidia/cudnn/lib, ..., nvidia/nvimgcodec
libraries_of_python() {
    [ -n "$python" ] || return 0
    "$python" - <<'PYTHON' 2>/dev/null || true
import glob, os, site, sys
places = site.getsitepackages() + [site.getusersitepackages()] + sys.path
seen = []
for place in places:
    for folder in sorted(glob.glob(os.path.join(place, "nvidia", "*", "lib")) + glob.glob(os.path.join(place, "nvidia", "nvimgcodec"))):
        if folder not in seen and glob.glob(os.path.join(folder, "lib*.so*")):
            seen.append(folder)
print(":".join(seen))
PYTHON
}
carried=$(libraries_of_python)
for tried in /usr/local/cuda/lib64 "/usr/local/cuda/targets/$(uname -m)-linux/lib" /usr/local/cuda/targets/sbsa-linux/lib; do
    if [ -d "$tried" ]; then carried=$carried${carried:+:}$tried; fi
done
# What a packed build carries comes last.
if [ -d "$top/lib" ]; then carried=$carried${carried:+:}$top/lib; fi
if $standin; then carried=; fi # its programs bring their own
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
images=$digits # to train on
if $standin; then images='synth:digits?count=64'; fi
export STOKER_DATA=${STOKER_DATA:-$top/data}

# Is there a GPU, whatever can be done with it? Returns true if the driver shows one.
gpu_seen() {
    if command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q '^GPU '; then return 0; fi
    compgen -G '/proc/driver/nvidia/gpus/*' >/dev/null
}

# The path of a library whose name begins so, where it would be found; "" = nowhere. A variable names it, too.
library_at() {
    local named=$1 begins=$2 folder found
    if [ -n "$named" ]; then printf '%s' "$named" && return; fi
    while read -r folder; do
        found=$(compgen -G "$folder/$begins*" | head -n 1) || true
        if [ -n "$found" ]; then printf '%s' "$found" && return; fi
    done < <(tr ':' '\n' <<<"$LD_LIBRARY_PATH")
    ldconfig -p 2>/dev/null | awk -v begins="$begins" 'index($1, begins) == 1 { print $NF; exit }'
}

# One line for each library of CUDA's, and 1 if one is missing without which a step cannot run.
show_libraries() {
    local line named begins for_what found status=0
    while IFS='|' read -r named begins for_what; do
        found=$(library_at "$named" "$begins")
        printf '%-20s %-40s %s\n' "$begins" "$for_what" "${found:-NOT FOUND}"
        if [ -z "$found" ] && [[ $for_what != *"if there"* ]]; then status=1; fi
    done <<LIST
${STOKER_CUDART:-}|libcudart.so.|everything
${STOKER_CUDNN:-}|libcudnn_graph.so.9|training: convolutions
${STOKER_CUBLASLT:-}|libcublasLt.so.|training: products
${STOKER_NCCL:-}|libnccl.so.2|several ranks, if there
${STOKER_NVIMGCODEC:-}|libnvimgcodec.so.0|decoding on the GPU, if there
|libnvjpeg.so.|decoding on the GPU, if there
LIST
    return $status
}

# One line about the GPU, or why there is none.
if ! "$tool" --device cuda --workers 0 --batch-size 8 --pin-memory off --non-blocking on --convert host --repeats 1 \
    --seconds 0.001 --ceilings off --format json 'synth:digits?count=64' >"$probe/out" 2>"$probe/err"; then
    why=$(sed 's/^loaderbench: --device: //' "$probe/err" | head -n 1)
    why=$why$(grep -oE '"error": "[^"]+"' "$probe/out" | head -n 1 | sed 's/^/ /' || true)
    if gpu_seen; then
        echo "gpu: there is a GPU, but it cannot be used: $why" >&2
        [ -e /dev/nvidia-uvm ] || echo "gpu: there is no /dev/nvidia-uvm: a container must be given it, too" >&2
        show_libraries >&2 || true
        exit 1
    fi
    echo "gpu: no GPU that can be used: $why"
    exit 77
fi
name=$(sed -nE '1s/.*"gpu": "([^"]*)".*/\1/p' "$probe/out")
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
machine=$(head -n 1 "$probe/out")
printf '%s, "date": %s, "nvidia_smi": %s, "torch": %s, "digits": %s, "quick": %s}\n' "${machine%\}}" \
    "$(quote "$(date -u +%FT%TZ)")" "$(quote "$smi")" "$(quote "$torch")" "$(quote "$digits")" $quick >"$report"
echo "gpu: $name${smi:+ ($smi)}; data: $digits; torch: ${torch:-none}"

# ---- steps ----------------------------------------------------------------------

passed=0 failed=0 skipped=0 late=0

# note NAME STATUS SECONDS EXIT: a line in the report and one on the terminal, with the GPU's clocks just behind the step.
note() {
    local clocks
    clocks=$(nvidia-smi --query-gpu=clocks.sm,clocks.mem --format=csv,noheader 2>/dev/null | head -n 1 || true)
    printf '{"kind": "step", "name": %s, "status": "%s", "seconds": %s, "exit": %s, "clocks": %s}\n' "$(quote "$1")" "$2" "$3" "$4" \
        "$(quote "$clocks")" >>"$report"
    printf '  %-28s %-8s %8s s   %s\n' "$1" "$2" "$3" "$clocks"
    case $2 in
    passed) passed=$((passed + 1)) ;;
    skipped) skipped=$((skipped + 1)) ;;
    no-time) late=$((late + 1)) ;;
    *) failed=$((failed + 1)) ;;
    esac
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
    if [ -n "$deadline" ]; then
        local left=$((deadline - SECONDS - 10)) # for the kill and the report
        if [ $left -lt 5 ]; then note "$name" no-time 0 0 && return 0; fi
        if [ $left -lt "$limit" ]; then limit=$left; fi
    fi
    timeout -k 5 "$limit" "$@" >"$out/log/$name.txt" 2>&1 </dev/null || status=$?
    case $status in 0) ;; 77) word=skipped ;; 124 | 137) word=timeout ;; *) word=failed ;; esac
    # compute-sanitizer starts in some containers, and does not work there.
    if [ $status -ne 0 ] && grep -q 'Device not supported' "$out/log/$name.txt"; then word=skipped; fi
    note "$name" "$word" "$(printf '%d.%02d' $(((${EPOCHREALTIME/[.,]/} - begin) / 1000000)) $(((${EPOCHREALTIME/[.,]/} - begin) / 10000 % 100)))" $status
    [ "$word" = passed ] || [ "$word" = skipped ] || tail -n 3 "$out/log/$name.txt" | sed 's/^/      /'
}

# sweep NAME LIMIT OPTION...: rows in NAME.json.
sweep() {
    local name=$1 limit=$2
    shift 2
    step "$name" "$limit" "$tool" --device cuda --quiet --format json -o "$out/$name.json" "${pace[@]}" "$@"
}

# First what the others depend on, in FIRST_RUN.md's order.
run_tests() {
    local name test brief=()
    local -A ran=()
    if $quick; then brief=(quick); fi
    for test in "$tests"/gpu_{transform,train_kernels,decode,loader,trainer,nccl} "$tests"/gpu_*; do
        name=$(basename "$test")
        if [ -f "$test" ] && [ -x "$test" ] && [ -z "${ran[$name]:-}" ]; then
            ran[$name]=yes
            step "tests-$name" 300 "$test" "${brief[@]}"
        fi
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
    # Calls that may fail are no errors: the loader and NVIDIA's libraries ask so what can be done.
    local test check=("$checker" --report-api-errors no --error-exitcode 9 --tool)
    for kind in memcheck racecheck initcheck synccheck; do
        for test in transform train_kernels; do
            if [ -x "$tests/gpu_$test" ]; then
                step "sanitize-$kind-$test" 600 "${check[@]}" $kind "$tests/gpu_$test"
            fi
        done
    done
    # initcheck does not understand how libraries initialize memory: memcheck only.
    if [ -x "$tests/gpu_trainer" ]; then
        step sanitize-memcheck-trainer 900 "${check[@]}" memcheck "$tests/gpu_trainer" quick
    fi
    step sanitize-memcheck-loader 600 "${check[@]}" memcheck "$tests/gpu_loader"
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
    if $standin; then short=(--steps 2 --batch-size 16); fi # by plain loops
    for seed in $(seq $seeds); do
        step "train-fast-$seed" 120 "$trainer" --preset fast --device cuda --data "$images" --seed "$seed" --quiet "${short[@]}"
    done
    for mode in off on; do
        step "train-tf32-$mode" 120 "$trainer" --preset fast --benchmark --tf32 $mode --device cuda --data "$images" "${short[@]}"
    done
    for mode in "" "--amp bf16" "--amp fp16"; do
        # shellcheck disable=SC2086  # two words
        step "train-pytorch${mode:+-${mode#--amp }}" 300 "$trainer" --preset pytorch --device cuda --data "$images" --eval-every 0 --quiet $mode "${short[@]}"
    done
}

# Gradients and statistics by NCCL, and layers of one network on two GPUs: peer access, or copies by the host.
run_several() {
    [ "$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ')" -gt 1 ] && trainer_knows_cuda || return 0
    local two=("$trainer" --preset fast --device cuda:0,cuda:1 --data "$images" --quiet)
    if $quick; then two+=(--steps 20); fi
    step several-ranks 300 "${two[@]}" --data-parallel
    step several-split 300 "${two[@]}" --split 4
}

run_peers() {
    local peers=$top/bench/races/peers mode short=()
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
if [ -n "$minutes" ]; then pace=(--repeats 3 --seconds 0.05); fi
if $quick; then pace=(--repeats 1 --seconds 0.01); fi
if ! $standin && wanted libraries; then
    if show_libraries >"$out/log/libraries.txt"; then note libraries passed 0 0; else note libraries failed 0 1; fi
    sed 's/^/      /' "$out/log/libraries.txt"
fi
# The sanitizer is the slowest, and the only one without figures. The table is there if a group is the last that was run.
for group in tests training several sweeps peers sanitizer; do
    run_$group
    if [ -n "$python" ] && ! "$python" "$here/report.py" "$out" >"$out/report.txt"; then
        echo "gpu: the table could not be made; the rows are in $report" >&2
        failed=$((failed + 1)) python=
    fi
done
if [ -n "$python" ]; then cat "$out/report.txt"; fi
tar -C "$(dirname "$out")" -czf "$out.tar.gz" "$(basename "$out")"
echo "gpu: $passed passed, $failed failed, $skipped skipped$([ $late -eq 0 ] || echo ", $late without time"); the report is in $out and, to be copied, $out.tar.gz"
[ "$failed" -eq 0 ]
