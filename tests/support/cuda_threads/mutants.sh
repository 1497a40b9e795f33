#!/usr/bin/env bash
# mutants.sh SOURCES OUT - copy the kernels to OUT, and write each comparison with a bound as CUDA_LESS(at, end), which a test can
# break at run time. Comparisons with constants remain: what they guard are arrays of a thread's own.
set -euo pipefail
sources=$1 out=$2
mkdir -p "$out/kernels/train" "$out/kernels/transform/gpu"
for file in "$sources"/kernels/train/*.cu "$sources"/kernels/train/device.cuh "$sources/kernels/transform/gpu/transform.cu" \
            "$sources/kernels/transform/gpu/launch_body.h"; do
    copy=$out${file#"$sources"}
    rules=(
        # two conditions, the last of several
        -e 's/([(=&]) ?([a-z][A-Za-z0-9_.]*) < ([a-z][][A-Za-z0-9_.]*) && ([a-z][A-Za-z0-9_.]*) < ([a-z][][A-Za-z0-9_.]*)([);])/\1 CUDA_LESS(\2, \3) \&\& CUDA_LESS(\4, \5)\6/'
        -e 's/if \(h >= w\.in_h\)/if (!CUDA_LESS(h, w.in_h))/'
        -e 's/exists = row < a\.rows/exists = CUDA_LESS(row, a.rows)/'
        # for (...; i < end; ...)
        -e 's/; ([a-z][A-Za-z0-9_]*) < ([a-z(][^;]*);/; CUDA_LESS(\1, \2);/'
        # if (i < end), alone in its line, and the last of several conditions
        -e 's/if \(([a-z][A-Za-z0-9_.]*) < ([a-z(].*)\)( *\\?)$/if (CUDA_LESS(\1, \2))\3/'
        # rows of threads that are added in pairs
        -e 's/row \+ half < count && row < half/CUDA_LESS(row + half, count) \&\& CUDA_LESS(row, half)/'
        # a pack, and the elements of the last one
        -e 's/first \+ STK_TRAIN_PACK <= count/CUDA_LESS(first + STK_TRAIN_PACK, count + 1)/'
        -e 's/first \+ i < count/CUDA_LESS(first + i, count)/'
        -e 's/lane < blockDim\.x \/ 32/CUDA_LESS(lane, blockDim.x \/ 32)/'
    )
    # The first pack beyond the end has no elements, nor has a warp beyond the last sample: to include it changes nothing.
    [[ $file == *elementwise.cu ]] && rules=(-e 's/^//')
    [[ $file == *dropout.cu ]] && rules=(
        -e 's/sample < a\.samples && element < a\.elements/CUDA_LESS(sample, a.samples) \&\& CUDA_LESS(element, a.elements)/'
        -e 's/i < end && i < at \+ STK_TRAIN_PACK/CUDA_LESS(i, end) \&\& CUDA_LESS(i, at + STK_TRAIN_PACK)/')
    # Loops over channels and taps fill arrays of a thread's own, too.
    [[ $file == *launch_body.h ]] && rules=(-e 's/; at < end;/; CUDA_LESS(at, end);/')
    sed -E "${rules[@]}" "$file" >"$copy"
done
grep -ho 'CUDA_LESS(' -r "$out/kernels" | wc -l >"$out/count"
