#!/usr/bin/env python3
"""check_sass.py - the machine code of the GPU kernels: all are there; no spills, no local memory, double precision only where it
is listed.

usage: check_sass.py NAMES FATBIN...    every kernel, for every architecture that the fatbins have code for; NAMES is a program
                                        that prints the kernels of the tables

A GPU without full double precision does two of these operations a clock in each multiprocessor, against 128 in
single precision: one of them in every thread makes a kernel several times as slow.
"""
import re
import subprocess
import sys

import sass

# Most operations in double precision, of all architectures. A kernel that has none must not be listed.
DOUBLES = {
    # One thread a sample draws the rectangle; rotation, colors and blur.
    "stk_rectangles": 200,
    "stk_retouch": 620,
    # One thread a coordinate computes its weights.
    "stk_taps": 370,
    # Training: factors of a step (one thread), sums over blocks, inverse deviations.
    "stk_train_prepare": 300,
    "stk_train_gradient_norm": 40,
    "stk_train_softmax_cross_entropy": 37,
    "stk_train_mse": 64,
    "stk_train_move_statistics": 120,
    "stk_train_batch_norm": 74,
    "stk_train_batch_norm_moments": 126,
    "stk_train_batch_norm_sums": 6,
    "stk_train_batch_norm_finish": 260,
    "stk_train_batch_norm_backward": 24,
    "stk_train_batch_norm_backward_sums": 8,
}
# Kernels that have this much before their first barrier, in every thread of a block.
BEFORE_BARRIER = {"stk_train_gradient_norm": 12, "stk_train_softmax_cross_entropy": 8,
                  "stk_train_mse": 11, "stk_train_batch_norm": 1}


def family(name):
    """The name without type and layout."""
    return re.sub(r"(_(u8|f16|bf16|f32))?(_(nhwc|nchw))?$", "", name)


def complaints(kernels, doubles=None, before=None):
    doubles = DOUBLES if doubles is None else doubles
    before = BEFORE_BARRIER if before is None else before
    unused = {name for name in doubles if any(family(kernel.name) == name for kernel in kernels)}
    for kernel in sorted(kernels, key=lambda kernel: (kernel.name, kernel.architecture)):
        where, kin = f"{kernel.name}, {kernel.architecture}", family(kernel.name)
        if kernel.registers is None or not kernel.opcodes:
            yield f"{where}: cuobjdump reports no code or no registers"
            continue
        if kernel.doubles > 0:
            unused.discard(kin)
        if kernel.doubles > doubles.get(kin, 0):
            yield f"{where}: {kernel.doubles} operations in double precision, at most {doubles.get(kin, 0)} are allowed"
        early = kernel.doubles_before_barrier
        if early > before.get(kin, 0):
            yield f"{where}: {early} of them before the first barrier, at most {before.get(kin, 0)} are allowed"
        if kernel.local_accesses > 0 or kernel.stack_bytes > 0 or kernel.local_bytes > 0:
            yield (f"{where}: {kernel.local_accesses} accesses to local memory, {kernel.stack_bytes} bytes of stack, "
                   f"{kernel.local_bytes} bytes of local memory")
    for name in sorted(unused):
        yield f"{name} has no double precision any more: remove it from the list"


def differences(names, kernels):
    found = {(kernel.name, kernel.architecture) for kernel in kernels}
    wanted = {(name, architecture) for name in names for _, architecture in found}
    for pair in sorted(found ^ wanted):
        yield "{}, {} is {}".format(*pair, "in no table" if pair in found else "not there")


CODE = """
arch = sm_80
\t\tFunction : k_f32
        /*0000*/                   MOV R1, c[0x0][0x28] ;   /* 0x0 */
        /*0010*/              @!P0 DADD R2, R4, R6 ;
        /*0020*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*0030*/                   F2F.F32.F64 R2, R2 ;
        /*0040*/                   MUFU.RCP64H R3, R5 ;
        /*0050*/                   STL [R1], R2 ;
        /*0060*/                   EXIT ;
"""
USE = "arch = sm_80\n Function k_f32:\n  REG:26 STACK:%d SHARED:0 LOCAL:0 CONSTANT[0]:416\n"


def self_test():
    kernels = sass.parse_code(CODE)
    sass.parse_resources(USE % 8, kernels)
    kernel = kernels["k_f32", "sm_80"]
    assert (len(kernel.opcodes), kernel.doubles, kernel.local_accesses, kernel.registers) == (7, 3, 1, 26)
    assert kernel.doubles_before_barrier == 1
    assert list(differences(["k_f32"], [kernel])) == [] and len(list(differences(["k"], [kernel]))) == 2
    assert len(list(complaints([kernel], {}, {}))) == 3
    kernel.opcodes, kernel.stack_bytes = [name for name in kernel.opcodes if name != "STL"], 0
    assert not list(complaints([kernel], {"k": 3}, {"k": 1}))
    assert len(list(complaints([kernel], {"k": 2}, {"k": 1}))) == 1
    kernel.opcodes = kernel.opcodes[:1]
    assert len(list(complaints([kernel], {"k": 3}, {}))) == 1
    kernel.stack_bytes = 8
    assert len(list(complaints([kernel], {}, {}))) == 1


def main():
    self_test()
    tools = sass.find_tools()
    if tools is None:
        print("SKIPPED: no machine code was read: cuobjdump and nvdisasm are in none of the places of sass.py")
        return 77
    names = subprocess.run([sys.argv[1]], check=True, capture_output=True, text=True).stdout.split()
    kernels = sass.read(tools, sys.argv[2:])
    if not kernels:
        print("SKIPPED: the fatbins hold PTX only")
        return 77
    found = list(differences(names, kernels)) + list(complaints(kernels))
    for line in found:
        print(line, file=sys.stderr)
    architectures = sorted({kernel.architecture for kernel in kernels}, key=lambda name: int(name[3:].rstrip("af")))
    print(f"{len({kernel.name for kernel in kernels})} kernels for {' '.join(architectures)}: {len(found)} complaints")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
