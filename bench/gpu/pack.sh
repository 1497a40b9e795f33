#!/usr/bin/env bash
# bench/gpu/pack.sh - packs what `./run gpu` needs into one folder, to be copied to a machine with a GPU that may have no
# compiler and no network.
#
# usage: bench/gpu/pack.sh DIR [CMAKE_OPTION...]    -DSTOKER_CUDA_ARCHITECTURES=90 for one kind of GPU: it is smaller then
#
#   DIR/run            run this there
#   DIR/build/         programs that need only the C library, and libstoker.so for Python
#   DIR/lib/           libcudart, which NVIDIA's license lets programs carry; one that is there is taken before it
#   DIR/bench/         the steps, the report, the peers
#   DIR/data/mnist/    MNIST, if it is in $STOKER_DATA or data
#
# What must be there, because it is too large or belongs to the machine: NVIDIA's driver, R525 or later (R580 if nvcc 13 compiled the
# kernels: `./run setup` installs NVRTC 12.8, which is taken before it); to train, cuDNN 9 and cuBLASLt of a CUDA that the driver
# knows, where the linker finds them or in Python's packages (nvidia-cudnn-cu12, nvidia-cublas-cu12); for its twins, PyTorch; for
# the report, Python 3.
#
# DIR must be new or empty; the result is smaller than 56 MiB. Builds in build/pack and build/pack-shared, or in $STOKER_PACK_TREES.
# Exit status: 0 packed, 1 failed, 77 a static library or CUDA is missing here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

to=${1:?usage: bench/gpu/pack.sh DIR [CMAKE_OPTION...]}
given=("${@:2}")
trees=${STOKER_PACK_TREES:-build}
limit_kib=$((56 * 1024))
jobs=${STOKER_JOBS:-$(nproc)}
[ ! -e "$to" ] || [ -z "$(ls -A "$to")" ] || { echo "pack: $to is not empty" >&2; exit 1; }
mkdir -p "$to" build
to=$(cd "$to" && pwd)

# made NAME TARGET... -- OPTION...
made() {
    local name=$1 targets=()
    shift
    while [ "$1" != -- ]; do targets+=("$1") && shift; done
    shift
    if ! cmake -S . -B "$trees/$name" -G Ninja -DCMAKE_C_COMPILER="${CC:-cc}" -DCMAKE_BUILD_TYPE=Release -DSTOKER_NVCC_KERNELS=ON \
        "${nvcc[@]}" -DSTOKER_CUDA_ARCHITECTURES=all -DSTOKER_FATBINS_FROM= -DSTOKER_CUDA=ON "$@" "${given[@]}" >"$trees/$name.log" 2>&1; then
        grep -qE 'was not found' "$trees/$name.log" && { grep -E 'was not found' "$trees/$name.log"; exit 77; }
        tail -n 20 "$trees/$name.log" >&2
        exit 1
    fi
    cmake --build "$trees/$name" -j "$jobs" --target "${targets[@]}" >"$trees/$name.log" 2>&1 ||
        { tail -n 30 "$trees/$name.log" >&2; exit 1; }
}

nvcc=()
[ ! -e build/cuda-12/complete ] || nvcc=("-DSTOKER_NVCC=$PWD/cmake/nvrtc.py")
programs=(bench/loaderbench trainer/stoker-mnist)
options=(-DSTOKER_STATIC_DEPS=ON -DBUILD_SHARED_LIBS=OFF -DSTOKER_BUILD_TESTS=ON -DSTOKER_BUILD_BENCH=ON)
made pack help -- "${options[@]}"
# The tests that can be built here: the trainer's asks for more than the loader's.
mapfile -t tests < <(sed -nE 's/^(gpu_[a-z_]+): .*/\1/p' "$trees/pack.log")
made pack "${programs[@]##*/}" "${tests[@]}" -- "${options[@]}"
made pack-shared stoker -- -DSTOKER_URING=OFF -DSTOKER_DEFLATE=OFF -DSTOKER_PNG=OFF -DSTOKER_JPEG=OFF \
    -DSTOKER_WEBP=OFF -DSTOKER_LZ4=OFF -DSTOKER_ZSTD=OFF -DSTOKER_DNNL=OFF -DSTOKER_BUILD_TESTS=OFF -DSTOKER_BUILD_BENCH=OFF -DSTOKER_BUILD_TRAINER=OFF

for program in "${programs[@]}" "${tests[@]/#/tests/}"; do
    install -D "$trees/pack/$program" "$to/build/$program"
    strip "$to/build/$program"
done
for module in "$trees"/pack/tests/cuda_threads/lib*.so; do # the kernels' source for tests on the CPU, if there is a C++ compiler
    [ ! -e "$module" ] || install -D "$module" "$to/build/tests/cuda_threads/${module##*/}"
done
install -D "$(realpath "$trees/pack-shared/loader/libstoker.so")" "$to/build/loader/libstoker.so"
strip --strip-unneeded "$to/build/loader/libstoker.so"

# That of CUDA 12 runs with later drivers, too; else the one beside the headers.
include=$(sed -n 's/^STOKER_CUDA_INCLUDE:[A-Z]*=//p' "$trees/pack/CMakeCache.txt")
for runtime in build/cuda-12/nvidia/cuda_runtime/lib/libcudart.so.12 "$include"/../{lib64,lib,lib/*-linux-gnu,targets/*/lib}/libcudart.so.1[0-9]; do
    if [ -e "$runtime" ] && [ ! -d "$to/lib" ]; then install -D -m 644 "$(realpath "$runtime")" "$to/lib/${runtime##*/}"; fi
done
[ -d "$to/lib" ] || echo "pack: no libcudart here: it must be on the machine with the GPU"
mkdir -p "$to/bench/races"
cp -r bench/gpu "$to/bench/"
cp -r bench/races/peers "$to/bench/races/"
install -D tests/checks/check_dlpack.py "$to/tests/checks/check_dlpack.py"
rm -rf "$to"/bench/*/__pycache__ "$to"/bench/races/*/__pycache__
for data in "${STOKER_DATA:-}" data; do
    if [ -n "$data" ] && compgen -G "$data/mnist/train-images*" >/dev/null; then
        mkdir -p "$to/data/mnist"
        for file in "$data"/mnist/{train,t10k}-{images,labels}*; do # packed, they take a fifth of the space
            [ -e "$file.gz" ] || cp -L "$file" "$to/data/mnist/"
        done
        break
    fi
done
git log -1 --format='%H %cI %s' >"$to/version.txt" 2>/dev/null || true
cat >"$to/run" <<'SH'
#!/bin/sh
# On the machine with the GPU: ./run, then copy results/ back. `./run --quick` tries each step briefly.
exec "$(dirname "$0")/bench/gpu/run.sh" "$@"
SH
chmod +x "$to/run"

size_kib=$(du -sk --apparent-size "$to" | cut -f1)
[ "$size_kib" -lt $limit_kib ] || { echo "pack: $to takes $size_kib KiB, more than $limit_kib" >&2; exit 1; }
[ -d "$to/data/mnist" ] || echo "pack: no MNIST in \$STOKER_DATA or data: drawn digits will be used"
echo "pack: $to, $((size_kib / 1024)) MiB; there: ./run"
