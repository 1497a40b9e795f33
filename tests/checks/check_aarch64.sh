#!/usr/bin/env bash
# check_aarch64.sh - the conversions of the kernels and CRC-32C for 64-bit ARM, cross-compiled and run under qemu: same bits as the
# reference. It uses what ./run arm has installed and unpacked; that command tests the whole tree.
set -euo pipefail
cd "$(dirname "$0")/../.."
compiler=aarch64-linux-gnu-gcc
sysroot=build/aarch64.sysroot
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64) || qemu=""
if [ -z "$qemu" ] || [ ! -e "$sysroot/complete" ] || ! command -v "$compiler" >/dev/null; then
    echo "check_aarch64: SKIPPED, nothing was tested for ARM: no cross-compiler, qemu or $sysroot; ./run arm brings them" >&2
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

flags=(--sysroot="$sysroot" -std=c17 -D_GNU_SOURCE -O1 -Wall -Wextra -Werror -ffp-contract=off -DSTK_KERNELS_NEON
    -DSTOKER_FAULT_INJECTION=1 -I. -Itests -Iloader/include)

# run_test NAME SOURCE...
run_test() {
    local name=$1
    shift
    "$compiler" "${flags[@]}" "$@" tests/support/forked_criterion.c loader/base/fault.c -o "$work/$name" -lm
    "$qemu" -L "$sysroot" "$work/$name" 2>&1 | sed "s/^/$name: /"
}

run_test crc32c tests/unit/loader/base/test_crc32c.c loader/base/crc32c/crc32c.c
run_test convert tests/unit/kernels/test_convert.c kernels/convert/{baseline,elements,float16,neon,plan,reference}.c
