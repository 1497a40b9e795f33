#!/usr/bin/env bash
# count_instructions.sh [BUILD] - instructions of 64-bit ARM per output element, for each variant of the kernels.
#
# qemu logs every instruction that it runs; the difference between one round and three is that of two rounds. BUILD: the
# cross-build of ./run arm, default build/aarch64. Instructions are no time: they show what a variant saves, not how fast it is.
set -euo pipefail
cd "$(dirname "$0")/../../.."
build=${1:-build/aarch64}
program=$build/tests/arm_count_instructions
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64) ||
    { echo "count_instructions: qemu-aarch64 not found" >&2; exit 77; }
sysroot=$(sed -n 's/^CMAKE_SYSROOT:[A-Z]*=//p;s/^STOKER_AARCH64_SYSROOT:[A-Z]*=//p' "$build/CMakeCache.txt" | tail -n 1)
run=("$qemu" -L "${sysroot:-build/aarch64.sysroot}")

# instructions VARIANT CASE ROUNDS
instructions() {
    "${run[@]}" -singlestep -d exec,nochain -D /dev/stdout "$program" "$@" | grep -c '^Trace '
}

mapfile -t variants < <("${run[@]}" "$program" | sed -n 's/^variant //p' | tac)
printf '%-18s' "# case"
printf ' %12s' "${variants[@]}"
printf ' %8s\n' ratio
"${run[@]}" "$program" | sed -n 's/^case //p' | while read -r name elements; do
    printf '%-18s' "$name"
    first=""
    for variant in "${variants[@]}"; do
        one=$(instructions "$variant" "$name" 1)
        three=$(instructions "$variant" "$name" 3)
        each=$(awk -v all=$((three - one)) -v elements="$elements" 'BEGIN { printf "%.3f", all / 2 / elements }')
        first=${first:-$each}
        printf ' %12s' "$each"
    done
    awk -v first="$first" -v last="$each" 'BEGIN { printf " %8.1f\n", first / last }'
done
