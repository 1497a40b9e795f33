#!/usr/bin/env bash
# check_kernels.sh - what nvcc and ptxas report about the transform kernels: each loops over the samples
# of its batch, and none spills registers or uses local memory on any architecture it is compiled for.
#
# usage: check_kernels.sh NVCC REPORT    REPORT: what ptxas printed when the build compiled them
set -euo pipefail
nvcc=$1 report=$2
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/checks/scratch.sh
kernels=$(grep -c 'Compiling entry function' "$report" || true)
clean=$(grep -c ' 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads' "$report" || true)
processors=$(grep -o "Compiling entry function .* for 'sm_[0-9]*'" "$report" | sed "s/.* for '//; s/'//" | sort -u | wc -l || true)
echo "$kernels kernels for $processors processors, $clean without spills and local memory"
if [ "$kernels" -eq 0 ]; then
    echo "SKIPPED: compiled as PTX alone; no report of spills"
    exit 77
fi
if [ "$kernels" -ne $((24 * processors)) ] || [ "$clean" -ne "$kernels" ]; then
    cat "$report"
    exit 1
fi

# The loops after macro expansion: a macro parameter once replaced the member `count`, and the kernels
# ran far out of bounds. stk_taps, stk_resize, stk_keep, stk_rows,
# stk_rotate, stk_gray, stk_color and two of the blur; stk_rectangles and stk_retouch have a thread for each sample, mixing one for each
# element of all samples.
"$nvcc" -std=c++17 -E -I. -Iloader/include kernels/transform/gpu/transform.cu >"$scratch/expanded"
loops=$(grep -oE 'for \(uint32_t k = [^;]*; k < [^;]*;' "$scratch/expanded" | sed 's/.*; k < //' | sort | uniq -c)
right=$(grep -oE 'k < \(?launch\.batch\)?\.count;' "$scratch/expanded" | wc -l)
echo "$right loops over the samples of a batch"
if [ "$right" -ne 9 ]; then
    echo "limits of the loops over samples (want 9 over launch.batch.count):" "$loops"
    exit 1
fi
