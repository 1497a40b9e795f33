#!/usr/bin/env bash
# run.sh - measures Stoker against its targets, point by point.
#
# usage: bench/run.sh           points, then formats
#        bench/run.sh points    resident, reading warm and cold, large counts, resume
#        bench/run.sh formats   folders of PNG and JPEG files, shards, bombs, a million files
#        bench/run.sh transforms  the cost of crop, flip and resize, and Pillow's resize in turn
#        bench/run.sh peers     all races: mnist, photos, raw, tokens; writes docs/race.md and README.md's table
#        bench/run.sh mnist     MNIST in memory, and training, against PyTorch
#        bench/run.sh fields    samples of 100 arrays of 4 KiB against one of 400 KiB, pinned and not
#        bench/run.sh photos    photographs, against tf.data, DALI, torchvision, Pillow, FFCV, SPDL, webdataset
#        bench/run.sh raw       raw shards out of the page cache, against FFCV; PNG files, against tf.data, DALI, torchvision
#        bench/run.sh remote    an object store on loopback, against curl, s3torchconnector, obstore, MosaicML Streaming, LitData, WebDataset
#        bench/run.sh tokens    windows of tokens, against llm.c's rule, nanoGPT, Megatron, Grain, MosaicML Streaming; then cold
#
# STOKER_BUILD   the build folder (build/release)
# STOKER_DATA    the folder that holds mnist/ (data)
# STOKER_REPEATS repeats per cell (50): many short windows, cells and ceilings in turn, in five processes,
#                since the pages that a process happens to get make it faster or slower throughout;
#                cold reads, which are slow, get a quarter as many
# STOKER_ROUNDS  rounds of a race (3 to 9), STOKER_SECONDS the length of a turn (1 to 1.5); with it, peers writes no page
# STOKER_KEEP    a folder for the rows as JSON Lines (default: they are deleted; of peers: build/race)
# STOKER_MASK_AVX512  1: race as on a CPU without AVX-512, with a build made by -DSTOKER_AVX512=OFF; the page shows both
# STOKER_PEERS   the environments of bench/races/peers/environments.sh (build/peers); made at the first run of photos, 8 GB
# STOKER_PHOTOS  where the photographs are kept, 0.5 GB (build/photos); made at the first run, 2 minutes
# STOKER_TOKENS  where the tokens are kept, 1 GB (build/tokens); made at the first run
# STOKER_REMOTE  where the objects are kept, 1.6 GB (build/remote); made at the first run
# TMPDIR         where data is made, 1.5 GB: must be on a disk, or "cold" means nothing
#
# Exit status: 0 measured (met or not), 1 something failed, 77 a tool is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=${STOKER_BUILD:-build/release}
export STOKER_DATA=${STOKER_DATA:-data}
repeats=${STOKER_REPEATS:-50}
window=0.02
tool=$build/bench/loaderbench
micro=$build/bench/micro
pack=$build/datasets/pack/stoker-pack

[ -x "$tool" ] || { echo "run.sh: no $tool; build first, or set STOKER_BUILD" >&2; exit 1; }
command -v python3 >/dev/null || { echo "run.sh: python3 is needed for the summary" >&2; exit 77; }

scratch=$(mktemp -d)
shared=$scratch
if [ -w /dev/shm ]; then shared=$(mktemp -d /dev/shm/stoker-bench.XXXXXX); fi
trap 'rm -rf "$scratch" "$shared"' EXIT
rows=${STOKER_KEEP:-$scratch/rows}
if [ "${1:-}" = peers ]; then rows=${STOKER_KEEP:-build/race}; fi
# Limit all sides to AVX2. docs/benchmark.md names what this does not reach.
if [ -n "${STOKER_MASK_AVX512:-}" ]; then
    grep -q '^STOKER_AVX512:BOOL=OFF' "$build/CMakeCache.txt" || { echo "run.sh: $build is not built with -DSTOKER_AVX512=OFF" >&2; exit 1; }
    rows+=/masked
    export GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F,-AVX512BW,-AVX512CD,-AVX512DQ,-AVX512VL
    export ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2 OPENCV_CPU_DISABLE=AVX512F,AVX512-SKX
    export TORCHINDUCTOR_CACHE_DIR=$scratch/inductor # torch.compile crashed with a cache shared with runs on AVX-512
    export NUMBA_CPU_NAME=haswell NUMBA_CPU_FEATURES='' NPY_DISABLE_CPU_FEATURES='X86_V4 AVX512F AVX512_SKX AVX512_ICL AVX512_SPR'
fi
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
    echo "NO MNIST in $STOKER_DATA/mnist: using made-up digits of the same size instead"
    python3 - "$images" <<'PYTHON'
import os, struct, sys
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack(">IIII", 2051, 60000, 28, 28) + os.urandom(60000 * 784))
PYTHON
}

# sweep NAME REPEATS OPTION... DATASET: shows progress on a terminal, keeps the rows.
sweep() {
    local name=$1 turns=$2 status=0
    shift 2
    echo "== $name: loaderbench $*"
    "$tool" --repeats "$turns" --seconds "$window" --format json -o "$rows/$name.json" "$@" || status=$?
    [ "$status" -eq 0 ] || { echo "   some cells failed (exit $status)"; failed=1; }
}

# Rows are checked in the first turn only.
once() { [ "$1" -eq 1 ] || echo "--verify off"; }

measure_points() {
    failed=0
    find_data
    local turn each=$(((repeats + 4) / 5))
    local numbers=(--batch-size "64,512" --workers "0,1,2,auto")
    local reads=(--cache none --dtype as-stored --pin-memory off)
    for turn in $(seq 5); do
        sweep "resident-$turn" $each --dtype float32,uint8,float16 "${numbers[@]}" --pin-memory on,off \
            $(once "$turn") "$resident"
        sweep "warm-$turn" $each "${reads[@]}" "${numbers[@]}" $(once "$turn") "idx:$images"
        sweep "cold-$turn" $(((each + 3) / 4)) --cold "${reads[@]}" "${numbers[@]}" "idx:$images"
    done
    # The same work on a small and on a huge count, in turn: the difference is the cost of the count.
    local common=("${reads[@]}" --reader null --batch-size 64 "--workers=0,2" --ceilings off)
    for turn in $(seq 7); do
        sweep "small-$turn" $(((repeats + 13) / 14)) "${common[@]}" 'synth:bytes?count=100000&shape=28x28'
        sweep "huge-$turn" $(((repeats + 13) / 14)) "${common[@]}" 'synth:bytes?count=1000000000000&shape=28x28'
    done
    python3 bench/summary.py "$rows"
    return "$failed"
}

# packed OPTION... SOURCE TARGET
packed() {
    "$pack" --quiet "$@" || { echo "   stoker-pack $* failed (exit $?)"; failed=1; }
}

# make_formats: makes the sets for measure_formats. Each shard set is one file, as the bare loops need.
make_formats() {
    local pictures='synth:pictures?count=1000'
    echo "== making the data in $scratch"
    packed "$resident" "folder:$scratch/mnist-png"
    packed --codec raw "$resident" "shards:$scratch/mnist-raw"
    packed --codec lz4 "$resident" "shards:$scratch/mnist-lz4"
    packed "$pictures" "folder:$scratch/rgb-png"
    packed --codec jpeg "$pictures" "folder:$scratch/rgb-jpeg"
    packed --codec raw --shard-samples 3000 'synth:pictures?count=3000' "shards:$scratch/rgb-raw"
    packed --codec lz4 'synth:digits?count=2000&size=256' "shards:$scratch/large-lz4"
}

# Runs two sides of a ratio in turn that cannot be cells of one sweep.
turns=2

# The speed of gathering depends on the physical pages, which differ from process to process: on a shared host
# the same bare loop gathers 9 M/s in one process and 19 M/s in the next, all on huge pages. The share measured
# in one process is anything from 0.7 to 1.7, so several are run.
processes=5

measure_folders() {
    local turn reader
    local one=(--workers 2 --pin-memory off --cache none)
    for turn in $(seq $turns); do
        for reader in uring pread; do
            sweep "folder-$reader-$turn" 5 "${one[@]}" --batch-size 64,512 --reader $reader $(once "$turn") \
                "folder:$scratch/mnist-png"
        done
    done
    sweep folder-cold 4 --cold --workers 2 --pin-memory off --batch-size 64 "folder:$scratch/mnist-png"
    for set in png jpeg; do
        sweep "rgb-$set" 15 "${one[@]}" --dtype as-stored --batch-size 64 "folder:$scratch/rgb-$set"
    done
}

measure_shards() {
    local set turn reader
    local one=(--workers 2 --pin-memory off --batch-size 64 --dtype as-stored)
    for set in mnist-raw mnist-lz4 rgb-raw large-lz4; do
        for turn in $(seq $processes); do
            sweep "shards-cached-$set-$turn" 5 "${one[@]}" --cache auto,encoded $(once "$turn") \
                "shards:$scratch/$set"
        done
        for turn in $(seq $turns); do
            for reader in uring pread; do
                sweep "shards-$reader-$set-$turn" 7 "${one[@]}" --cache none --reader $reader $(once "$turn") \
                    "shards:$scratch/$set"
            done
        done
    done
    sweep shards-cold-pread 3 --cold "${one[@]}" --reader pread "shards:$scratch/rgb-raw"
    for turn in 1 2 3 4 5; do
        sweep "shards-cold-$turn" 1 --cold "${one[@]}" --reader uring "shards:$scratch/rgb-raw"
        read_with_fio "$turn" "$scratch"/rgb-raw/*.stk
    done
}

# read_with_fio TURN FILE: two threads read the blocks of their half once, in random order, with blocks as long
# as a record and the loader's depth. No hint: fio's own for random reads disables the kernel's read-ahead,
# which halves the rate.
read_with_fio() {
    command -v fio >/dev/null || return 0
    local depth
    depth=$(sed -n 's/.*"read_depth": \([0-9]*\).*/\1/p' "$rows/shards-cold-$1.json" | head -n 1)
    fio --name=cold --filename="$2" --readonly --rw=randread --bs=196608 --ioengine=io_uring \
        --iodepth="${depth:-32}" --numjobs=2 --thread --size=50% --offset_increment=50% --direct=0 \
        --fadvise_hint=0 --invalidate=1 --group_reporting --output-format=json \
        >"$rows/fio-$1.json" 2>"$scratch/fio.log" ||
        { rm -f "$rows/fio-$1.json"; echo "   fio failed: $(head -n 1 "$scratch/fio.log")"; }
}

# png NAME SPEC: times libpng and the fast path on the same files in memory.
png() {
    local status=0
    echo "== $1: micro png $2"
    "$micro" png "$2" >"$rows/$1.txt" || status=$?
    [ "$status" -eq 0 ] || rm -f "$rows/$1.txt"
    [ "$status" -eq 0 ] || [ "$status" -eq 77 ] || { echo "   failed (exit $status)"; failed=1; }
}

# Later epochs of decoded samples against a set that lies in memory as it is, and shards whose records are summed on each read
# against the same summed once.
measure_cached() {
    local turn set
    local held=(--workers 2 --pin-memory off --batch-size 64,512 --dtype float32 --ceilings off)
    for turn in $(seq $processes); do
        sweep "held-resident-$turn" 5 "${held[@]}" $(once "$turn") "$in_memory"
        for set in folder:mnist-png shards:mnist-raw shards:mnist-lz4; do
            sweep "held-${set#*:}-$turn" 5 "${held[@]}" --cache decoded $(once "$turn") "${set%%:*}:$scratch/${set#*:}"
        done
    done
    held=(--workers 2 --pin-memory off --batch-size 64 --dtype as-stored --cache none --ceilings off)
    for turn in $(seq $processes); do
        for set in mnist-raw mnist-lz4 rgb-raw large-lz4; do
            sweep "sum-$set-$turn" 7 "${held[@]}" "shards:$scratch/$set"
            sweep "sum-once-$set-$turn" 7 "${held[@]}" "shards:$scratch/$set?verify=once"
        done
    done
}

# many_files: in memory if there is room, since the disk is not measured.
many_files() {
    local room where=$scratch
    room=$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)
    if [ "${room:-0}" -gt 4000000 ]; then where=$shared; fi
    echo "== a million files in $where"
    bench/formats/many_files.py "$where/many"
    "$tool" --open --repeats 5 "folder:$where/many" >"$rows/many.json"
    "$tool" --open --repeats 5 "folder:$where/many?index=$scratch/many.index" >"$rows/many-index.json"
    rm -rf "$where/many"
}

measure_formats() {
    failed=0
    find_data
    in_memory=$resident
    case $resident in mnist:*) ;; *) in_memory=idx:$images ;; esac
    [ -x "$pack" ] || { echo "run.sh: no $pack; build first" >&2; exit 1; }
    make_formats
    if [ -x "$micro" ]; then
        png png-mnist "folder:$scratch/mnist-png"
        png png-rgb "folder:$scratch/rgb-png"
    fi
    measure_cached
    measure_folders
    measure_shards
    echo "== bombs"
    mkdir "$scratch/bombs"
    bench/formats/bombs.py "$scratch/bombs" | while IFS=$'\t' read -r name spec; do
        "$tool" --open --repeats 15 "$spec" >"$rows/bomb-$name.json"
    done
    many_files
    python3 bench/formats/summary.py "$rows"
    return "$failed"
}

measure_transforms() {
    local status=0
    "$micro" transform
    echo
    bench/races/peers/pillow_resize.py "$micro" || status=$?
    [ "$status" -eq 0 ] || [ "$status" -eq 77 ] || return "$status"
}

# prepare_race [ENVIRONMENT]: the environments of the other libraries, without which a race names them; sets $photos.
prepare_race() {
    export STOKER_BUILD=$build STOKER_PEERS=${STOKER_PEERS:-build/peers}
    photos=${STOKER_PHOTOS:-build/photos}
    bench/races/peers/environments.sh "$@" || true
}

# race NAME JOBS ROUNDS SECONDS: settings are tried and turns are short, so that a job takes some minutes.
race() {
    python3 bench/races/photos/race.py "$photos" --jobs "$2" --rounds "${STOKER_ROUNDS:-$3}" --seconds "${STOKER_SECONDS:-$4}" \
        --output "$rows/$1.json"
}

measure_mnist() {
    local status=0
    prepare_race torch
    race mnist mnist,mnist-512 5 1 || status=$?
    race train train 3 1.5 || status=$?
    return "$status"
}

# A job alone: bench/run.sh photos large
measure_photos() {
    local python
    local python
    failed=0
    prepare_race
    python=$STOKER_PEERS/torch/bin/python
    [ -x "$python" ] || python=python3
    "$python" bench/races/photos/photographs.py "$photos" || return $?
    [ -e "$photos/imagenet-shards" ] || packed "folder:$photos/imagenet" "shards:$photos/imagenet-shards"
    race photos "${1:-imagenet,large,imagenet-tar}" 5 1.5
}

# Read files again in order, which gives them large folios in the page cache: those of records that were dropped and read
# at random are small, which slows down reads, but not a mapping.
refresh() {
    local file
    for file in "$@"; do
        [ -e "$file" ] || continue
        dd of="$file" oflag=nocache conv=notrunc,fdatasync count=0 status=none || true
        cat "$file" >/dev/null
    done
}

# Raw shards out of the page cache, and PNG files.
measure_raw() {
    failed=0
    prepare_race
    find_data
    mkdir -p "$photos"
    [ -e "$photos/raw/shard-000000.stk" ] ||
        packed --codec raw --shard-samples 2000 'synth:pictures?count=2000' "shards:$photos/raw"
    [ -e "$photos/png" ] || packed "$resident" "folder:$photos/png"
    refresh "$photos"/raw/*.stk "$photos"/raw/*.beton
    race raw "${1:-raw,png}" 9 1 || return $?
    return "$failed"
}

# Windows of tokens. The data is made once: 100 M tokens, 1 GB with what other libraries write.
measure_tokens() {
    local state
    prepare_race tokens
    for state in "" -cold; do
        python3 bench/races/tokens/race.py "${STOKER_TOKENS:-build/tokens}" ${state:+-$state} --rounds "${STOKER_ROUNDS:-9}" \
            --seconds "${STOKER_SECONDS:-1}" --output "$rows/tokens$state.json" || return $?
    done
}

# Without latency, and with 50 ms for each request. The build has the Python package (-DSTOKER_BUILD_PYTHON=ON).
measure_remote() {
    local latency
    prepare_race tokens
    for latency in 0 50; do
        python3 bench/races/remote/race.py "${STOKER_REMOTE:-build/remote}" --latency-ms $latency --rounds "${STOKER_ROUNDS:-5}" \
            --output "$rows/remote-$latency.json" || return $?
    done
}

measure_peers() {
    local name missed=0
    rm -f "$rows"/{mnist,train,photos,raw,tokens,tokens-cold}.json
    for name in mnist photos raw tokens; do
        "measure_$name" || { echo "   $name: not all measured (exit $?)"; missed=1; }
    done
    [ -n "${STOKER_SECONDS:-}" ] || python3 bench/races/page.py "${rows%/masked}"
    return "$missed"
}

case ${1:-all} in
all)
    status=0
    measure_points || status=$?
    measure_formats || status=$?
    exit "$status"
    ;;
points) measure_points ;;
formats) measure_formats ;;
transforms) measure_transforms ;;
peers) measure_peers ;;
mnist) measure_mnist ;;
fields) "$micro" fields ;;
photos) measure_photos "${2:-}" ;;
raw) measure_raw "${2:-}" ;;
tokens) measure_tokens ;;
remote) measure_remote ;;
*)
    sed -n '4,15s/^# //p' bench/run.sh >&2
    exit 2
    ;;
esac
