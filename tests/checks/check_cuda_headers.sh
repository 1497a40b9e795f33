#!/usr/bin/env bash
# check_cuda_headers.sh - what includes CUDA's headers compiles with those of each version, and without any.
#
# usage: check_cuda_headers.sh CC FOLDER
#
# FOLDER, or $STOKER_CUDA_HEADERS, has a folder for each version, with cuda_runtime_api.h somewhere below it: `./run setup test`
# installs wheels there. cublasLt.h, which only large wheels have, counts if it lies there as well.
# Exit status: 0 all compile, 1 some do not, 77 there are no headers, or none in a folder: what pip could not fetch was not checked.
set -euo pipefail
cc=${1:?usage: check_cuda_headers.sh CC FOLDER}
folder=${STOKER_CUDA_HEADERS:-${2:?usage: check_cuda_headers.sh CC FOLDER}}
missing() {
    echo "SKIPPED: no CUDA headers in $folder; ./run setup test installs them"
    exit 77
}
[ -d "$folder" ] || missing
folder=$(cd "$folder" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/checks/scratch.sh

flags=(-std=c17 -D_GNU_SOURCE '-DSTANDIN_KERNELS=""' -Wall -Wextra -Werror -fsyntax-only -I. -Iloader/include -Itrainer/include -Itests)
loader=(loader/base/cuda/*.c loader/device/cuda*.c)
others=(trainer/backend/cuda/{device,graph,ranks}/*.c bench/loaderbench/device/gpu.c tests/support/standin_cuda/*.c)
product=trainer/backend/cuda/cublaslt/product.c

"$cc" "${flags[@]}" "${loader[@]}" || fail "without CUDA"

versions=0
empty=()
for version in "$folder"/*/; do
    header=$(find "$version" -name cuda_runtime_api.h -print -quit)
    if [ -z "$header" ]; then
        empty+=("$(basename "$version")")
        continue
    fi
    versions=$((versions + 1))
    at=$(dirname "$header")
    sources=("${loader[@]}" "${others[@]}")
    if [ -e "$at/cublasLt.h" ]; then sources+=("$product"); fi
    "$cc" "${flags[@]}" -DSTOKER_HAVE_CUDA=1 -isystem "$at" "${sources[@]}" || fail "headers in $at"
    echo "CUDA $(sed -nE 's/^#define CUDART_VERSION +([0-9]+)$/\1/p' "$header"): ${#sources[@]} files"
done
[ "$versions" -gt 0 ] || missing
if [ "$failures" -eq 0 ] && [ ${#empty[@]} -gt 0 ]; then
    echo "SKIPPED: no CUDA headers of version ${empty[*]} in $folder; ./run setup test installs them"
    exit 77
fi
verdict
