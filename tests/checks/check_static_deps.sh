#!/usr/bin/env bash
# check_static_deps.sh - with -DSTOKER_STATIC_DEPS=ON a program needs the C library and no other, nor does anything in
# what `./run gpu pack` makes; and what cannot be linked so is refused when configuring.
#
# usage: check_static_deps.sh CC BUILD_DIR
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

cc=$1
release=$(cd "$2" && pwd)
build=$release/check-static-deps
tree=$release/check-install/pack # whose objects check_install.sh has compiled with the same flags
flags=(-DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="-O0 -DNDEBUG")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$build"

# configure TREE OPTION...
configure() {
    local at=$1
    shift
    cmake -S . -B "$at" -G Ninja -DCMAKE_C_COMPILER="$cc" -DSTOKER_STATIC_DEPS=ON -DSTOKER_WERROR=ON \
        "${flags[@]}" -DSTOKER_NVCC_KERNELS=OFF \
        -DSTOKER_BUILD_TESTS=OFF -DSTOKER_BUILD_BENCH=ON "$@" >"$build/log" 2>&1
}

fail() {
    echo "check_static_deps: $*" >&2
    grep -A 20 -m 1 -E '^FAILED|Error' "$build/log" >&2 || true
    exit 1
}

# needs_none FILE...: libraries beside the C library's are below $scratch.
needs_none() {
    local file strangers
    for file; do
        strangers=$(ldd "$file" | grep -vF "=> $scratch/" | awk '{ print $1 }' |
            grep -vE '^(statically|linux-vdso|linux-gate|libc|libm|libpthread|librt|libdl|/.*/ld-linux.*|ld-linux.*)(\.so.*)?$' || true)
        [ -z "$strangers" ] || fail "$file needs $strangers"
    done
}

# ---- programs
if ! configure "$tree" -DBUILD_SHARED_LIBS=OFF -DSTOKER_DNNL=AUTO; then
    if grep -q 'was not found' "$build/log"; then
        grep 'was not found' "$build/log"
        exit 77
    fi
    fail "it does not configure"
fi
cmake --build "$tree" --target loaderbench stoker-mnist stoker-pack >"$build/log" 2>&1 || fail "it does not build"
needs_none "$tree"/{bench/loaderbench,trainer/stoker-mnist,datasets/pack/stoker-pack}

# Each codec is really in there.
cd "$scratch"
for codec in raw lz4 zstd png jpeg; do
    "$tree/datasets/pack/stoker-pack" --verify --codec $codec 'synth:digits?count=200' "shards:$codec" >out ||
        fail "no $codec: $(cat out)"
done
cd - >/dev/null

# ---- the pack, of the kernels that were compiled here
if [ -e "$release/kernels/train.fatbin" ]; then
    CC=$cc STOKER_PACK_TREES=$release/check-install bench/gpu/pack.sh "$scratch/pack" "${flags[@]}" -DSTOKER_FATBINS_FROM="$release" \
        >"$build/log" 2>&1 || fail "no pack"
    mapfile -t packed < <(find "$scratch/pack"/{build,lib} -type f)
    needs_none "${packed[@]}"
    [ -e "$scratch/pack/build/tests/gpu_trainer" ] || fail "the pack has no test of the trainer"
    if [ ! -e /dev/nvidiactl ]; then
        status=0
        env -i PATH="$PATH" "$scratch/pack/run" >"$build/log" 2>&1 || status=$?
        [ $status -eq 77 ] && ! grep -v '^gpu: no GPU that can be used: ' "$build/log" || fail "the pack's run ends with $status"
    fi
fi

# ---- refused
if configure "$build/refused" -DBUILD_SHARED_LIBS=OFF -DSTOKER_DNNL=ON; then fail "a shared oneDNN was taken"; fi
grep -q 'oneDNN is only a shared library' "$build/log" || fail "what is wrong with oneDNN is not reported"
if ! configure "$build/refused" -DBUILD_SHARED_LIBS=ON -DSTOKER_DNNL=AUTO; then
    tr -s '\n ' ' ' <"$build/log" | grep -q 'add -DBUILD_SHARED_LIBS=OFF' || fail "no remedy is named"
fi
rm -rf "$build/refused"
