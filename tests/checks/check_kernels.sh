#!/usr/bin/env bash
# check_kernels.sh - what nvcc and ptxas report about the transform kernels: each loops over the samples
# of its batch, and none spills registers or uses local memory on any architecture it is compiled for.
#
# usage: check_kernels.sh NVCC
set -euo pipefail
nvcc=$1
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/checks/scratch.sh
"$nvcc" -std=c++17 -O3 -fmad=false -I. -Iloader/include -gencode arch=compute_80,code=sm_80 \
    -gencode arch=compute_90,code=sm_90 -Xptxas -v -fatbin -o "$scratch/kernels.fatbin" \
    kernels/transform/transform.cu 2>"$scratch/report"
kernels=$(grep -c 'Compiling entry function' "$scratch/report" || true)
clean=$(grep -c ' 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads' "$scratch/report" || true)
echo "$kernels kernels, $clean without spills and local memory"
if [ "$kernels" -ne 48 ] || [ "$clean" -ne "$kernels" ]; then # 24 on each of two architectures
    cat "$scratch/report"
    exit 1
fi

# The loops after macro expansion: a macro parameter once replaced the member `count`, and the kernels
# ran far out of bounds. stk_taps, stk_resize, stk_keep, stk_rows,
# stk_rotate, stk_gray, stk_colour and two of the blur; stk_rectangles and stk_retouch have a thread for each sample, mixing one for each
# element of all samples.
"$nvcc" -std=c++17 -E -I. -Iloader/include kernels/transform/transform.cu >"$scratch/expanded"
loops=$(grep -oE 'for \(uint32_t k = [^;]*; k < [^;]*;' "$scratch/expanded" | sed 's/.*; k < //' | sort | uniq -c)
right=$(grep -oE 'k < \(?launch\.batch\)?\.count;' "$scratch/expanded" | wc -l)
echo "$right loops over the samples of a batch"
if [ "$right" -ne 9 ]; then
    echo "limits of the loops over samples (want 9 over launch.batch.count):" "$loops"
    exit 1
fi
