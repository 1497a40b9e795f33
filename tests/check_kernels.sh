#!/usr/bin/env bash
# check_kernels.sh - what ptxas reports about the GPU's kernels: none may spill registers or use local
# memory, on any architecture they are compiled for.
#
# usage: check_kernels.sh NVCC
set -euo pipefail
nvcc=$1
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$nvcc" -std=c++17 -O3 -fmad=false -I. -Iloader/include -gencode arch=compute_80,code=sm_80 \
    -gencode arch=compute_90,code=sm_90 -Xptxas -v -fatbin -o "$scratch/kernels.fatbin" \
    kernels/transform.cu 2>"$scratch/report"
kernels=$(grep -c 'Compiling entry function' "$scratch/report" || true)
clean=$(grep -c ' 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads' "$scratch/report" || true)
echo "$kernels kernels, $clean without spills and local memory"
if [ "$kernels" -ne 22 ] || [ "$clean" -ne "$kernels" ]; then # 11 on each of two architectures
    cat "$scratch/report"
    exit 1
fi
