#!/usr/bin/env python3
"""table.py - prints what each kernel costs by its machine code, and what share of a GPU's bandwidth that allows.

usage: table.py FATBIN...

Columns: registers; bytes of stack (spills, local memory); instructions in all; operations in double precision in all,
and on the path below.

Bytes and instructions an element are those of one way through the code: of all ways without going back, the one with
the most stores of the kernel's widest form, of those that load anything (behind the first barrier, if there is one)
the shortest: that of a full pack, without tails and special
values. Each loop counts once. "turn" is a turn of the loop with the widest loads that loads the most for its
instructions, for kernels that go over an array in turns: without what comes before and after it. An element has the bytes of the kernel's type; elements are
counted in what the way stores, or loads if it stores nothing.

Model: share = time of the memory / the longest of the times of memory, issue and double precision, for an infinite
array. Memory: bytes / bandwidth. Issue: instructions / (multiprocessors x 4 schedulers x 32 lanes x clock).
Double precision: operations / (multiprocessors x lanes for it x clock). It leaves out latency, caches, conflicts of
banks, half-rate instructions and launches: an upper bound, made for comparing kernels.

Sources: NVIDIA H100 architecture white paper and H200 data sheet (132 multiprocessors, 1.98 GHz boost, 4.8 TB/s);
A100 white paper (108, 1.41 GHz, 2.039 TB/s with 80 GB); Ada white paper (RTX 4090: 128, 2.52 GHz, 1.008 TB/s); CUDA
programming guide, throughput of arithmetic instructions (double precision: 64, 32 and 2 results a clock).
"""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sass  # noqa: E402

sys.setrecursionlimit(10000)  # a way may have as many blocks

# name: (architecture whose code runs, multiprocessors, clock in GHz, TB/s, lanes for double precision)
GPUS = {
    "H200": ("sm_90", 132, 1.98, 4.8, 64),
    "A100": ("sm_80", 108, 1.41, 2.039, 32),
    "4090": ("sm_89", 128, 2.52, 1.008, 2),
}
LANES = 4 * 32
WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
# Kernels with a loop over an array of any length.
LOOPS = ("gradient_norm", "mse", "softmax", "sums", "moments", "bias_gradient", "bias_relu", "dropout", "stk_gray", "mixup",
         "stk_rows")


def element_bytes(name):
    if "_f32" in name:
        return 4
    return 2 if "f16" in name else 1 if name.startswith("stk_") and not name.startswith("stk_train") else 4


def moved(instruction):
    """Bytes that an instruction loads from and stores to global memory."""
    parts = instruction.opcode.split(".")
    if parts[0] not in ("LDG", "STG", "LD", "ST"):
        return 0, 0
    width = next((WIDTHS[part] for part in parts if part in WIDTHS), 4)
    return (width, 0) if parts[0].startswith("LD") else (0, width)


def widest(instructions, side):
    """Bytes of the widest access; side: 0 = loads, 1 = stores."""
    return max((moved(instruction)[side] for instruction in instructions), default=0)


def widest_of(blocks, way):
    return widest([instruction for at in way for instruction in blocks[at].instructions], 0)


def target(instruction):
    """The address that a branch goes to, or None."""
    if instruction.opcode.split(".")[0] not in ("BRA", "JMP"):
        return None
    found = re.search(r"0x([0-9a-f]+)\)?$", instruction.operands.split(",")[-1].strip().strip("`()"))
    return int(found.group(1), 16) if found else None


class Block:
    def __init__(self, instructions):
        self.instructions = instructions
        self.next = []
        self.bytes = [sum(pair) for pair in zip(*(moved(i) for i in instructions))]

    def score(self, side, width):
        """Bytes of the accesses of that width."""
        return sum(size for size in (moved(i)[side] for i in self.instructions) if size == width)

    def loads(self, barrier):
        """Returns true if it loads anything behind the barrier."""
        return any(moved(i)[0] > 0 and i.address >= barrier for i in self.instructions)


def blocks_of(kernel):
    """The basic blocks by their first addresses, with those that may follow each."""
    code = kernel.instructions
    starts = {code[0].address}
    for number, instruction in enumerate(code):
        ends = instruction.opcode.split(".")[0] in ("BRA", "JMP", "EXIT", "RET", "BRX")
        if ends and number + 1 < len(code):
            starts.add(code[number + 1].address)
        if target(instruction) is not None:
            starts.add(target(instruction))
    blocks, current = {}, []
    for instruction in code + [None]:
        if current and (instruction is None or instruction.address in starts):
            blocks[current[0].address] = Block(current)
            current = []
        if instruction is not None:
            current.append(instruction)
    order = sorted(blocks)
    for at, following in zip(order, order[1:] + [None]):
        last = blocks[at].instructions[-1]
        kind = last.opcode.split(".")[0]
        if target(last) in blocks:
            blocks[at].next.append(target(last))
        always = not last.guard and not re.match(r"!?U?P\d", last.operands)
        if following is not None and not (kind in ("BRA", "JMP", "EXIT", "RET", "BRX") and always):
            blocks[at].next.append(following)
    # A jump by a table may go to every block that nothing else leads to.
    led_to = {order[0]}.union(*(blocks[at].next for at in order))
    for at in order:
        if blocks[at].instructions[-1].opcode.startswith("BRX"):
            blocks[at].next += [other for other in order if other not in led_to]
    return blocks


def back_edges(blocks, start):
    """The edges (from, to) that go back to a block which the way there has passed."""
    found, state = set(), {}
    stack = [(start, iter(blocks[start].next))]
    state[start] = "open"
    while stack:
        at, rest = stack[-1]
        following = next(rest, None)
        if following is None:
            state[at] = "done"
            stack.pop()
        elif state.get(following) == "open":
            found.add((at, following))
        elif following not in state:
            state[following] = "open"
            stack.append((following, iter(blocks[following].next)))
    return found


def loop_blocks(blocks, last, first):
    """The blocks of the loop that goes back from `last` to `first`."""
    inside, todo = {first, last}, [last]
    before = {at: [other for other in blocks if at in blocks[other].next] for at in blocks}
    while todo:
        at = todo.pop()
        if at != first:
            new = [other for other in before[at] if other not in inside]
            inside.update(new)
            todo += new
    return inside


def best_way(blocks, start, allowed, back, side, goal=None, barrier=0):
    """The way from `start` with the most of the widest accesses, of those with a load the fewest instructions; only
    forwards. Returns (bytes of these accesses, loads anything, -instructions, blocks), or None."""
    best = {}
    width = widest([i for at in allowed for i in blocks[at].instructions], side)

    def find(at):
        if at in best:
            return best[at]
        block = blocks[at]
        forwards = [n for n in block.next if n in allowed and (at, n) not in back]
        ways = [way for way in map(find, forwards) if way is not None]
        if at == goal or (goal is None and not forwards):
            ways.append((0, False, 0, ()))
        best[at] = None
        if ways:
            loads = block.loads(barrier)
            most = max(ways, key=lambda way: (way[0], way[1] or loads, way[2]))
            best[at] = (block.score(side, width) + most[0], most[1] or loads, most[2] - len(block.instructions),
                        (at,) + most[3])
        return best[at]

    return find(start)


def hot_way(kernel):
    """(blocks on the way, "turn" or "thread")."""
    blocks = blocks_of(kernel)
    back = back_edges(blocks, min(blocks))
    ways = []
    if any(word in kernel.name for word in LOOPS):
        for last, first in back:
            ways.append(best_way(blocks, first, loop_blocks(blocks, last, first), back, 0, last))
    # Of the loops with the widest loads the one that loads the most for its instructions.
    ways = [way for way in ways if way and way[0] > 0]
    if ways:
        way = max(ways, key=lambda way: (widest_of(blocks, way[3]), way[0] / -way[2], way[0]))
        return [blocks[at] for at in way[3]], "turn"
    barrier = next((i.address for i in kernel.instructions if i.is_barrier), 0)
    way = best_way(blocks, min(blocks), set(blocks), back, 1, None, barrier)
    return [blocks[at] for at in way[3]], "thread"


class Cost:
    """Of an element: bytes, instructions, operations in double precision."""

    def __init__(self, kernel):
        way, self.unit = hot_way(kernel)
        loaded, stored = (sum(block.bytes[side] for block in way) for side in (0, 1))
        code = [instruction for block in way for instruction in block.instructions]
        self.way_doubles = sum(instruction.is_double for instruction in code)
        self.elements = max(stored, loaded if self.unit == "turn" and stored == 0 else 0) / element_bytes(kernel.name)
        self.of_loads = stored == 0
        if self.elements > 0:
            self.bytes = (loaded + stored) / self.elements
            self.instructions = len(code) / self.elements
            self.doubles = self.way_doubles / self.elements

    def share(self, gpu):
        _, processors, clock, bandwidth, double_lanes = GPUS[gpu]
        memory = self.bytes / (bandwidth * 1e12)
        issue = self.instructions / (processors * LANES * clock * 1e9)
        double = self.doubles / (processors * double_lanes * clock * 1e9)
        return memory / max(memory, issue, double)


SAMPLE = """
arch = sm_80
\t\tFunction : k_f32
        /*0000*/                   S2R R0, SR_TID.X ;
        /*0010*/               @P0 BRA 0x60 ;
        /*0020*/                   LDG.E.128 R4, [R2.64] ;
        /*0030*/                   FADD R4, R4, R5 ;
        /*0040*/                   STG.E.128 [R2.64], R4 ;
        /*0050*/                   BRA 0xa0 ;
        /*0060*/                   LDG.E R4, [R2.64] ;
        /*0070*/                   STG.E [R2.64], R4 ;
        /*0080*/                   DADD R6, R6, R6 ;
        /*0090*/              @!P1 BRA 0x60 ;
        /*00a0*/                   EXIT ;
"""


def self_test():
    kernel = sass.parse_code(SAMPLE)["k_f32", "sm_80"]
    cost = Cost(kernel)
    assert (cost.unit, cost.elements, cost.bytes, cost.instructions, cost.doubles) == ("thread", 4, 8, 7 / 4, 0)
    assert back_edges(blocks_of(kernel), 0) == {(0x60, 0x60)}
    assert cost.share("H200") == 1
    cost.doubles = 64
    assert cost.share("4090") < 0.1


def main():
    self_test()
    tools = sass.find_tools()
    if tools is None:
        sys.exit("cuobjdump and nvdisasm are in none of the places of sass.py")
    kernels = {(kernel.name, kernel.architecture): kernel for kernel in sass.read(tools, sys.argv[1:])}
    names = sorted({name for name, _ in kernels})
    there = {architecture for _, architecture in kernels}
    print("| kernel | sm | registers | stack | instructions | double, way | way | bytes | instructions | "
          + " | ".join(GPUS) + " |")
    print("|---|---|---|---|---|---|---|---|---|" + "---|" * len(GPUS))
    for name in names:
        shown = "sm_90" if (name, "sm_90") in kernels else sorted(there)[-1]
        kernel = kernels[name, shown]
        cost = Cost(kernel)
        shares = []
        for gpu, (architecture, *_) in GPUS.items():
            same = kernels.get((name, architecture if architecture in there else "sm_80"))
            of_gpu = Cost(same) if same else None
            shares.append(f"{of_gpu.share(gpu):.2f}" if of_gpu and of_gpu.elements > 0 else "-")
        figures = (f"{cost.unit} | {cost.bytes:.3g} | {cost.instructions:.3g}" if cost.elements > 0
                   else f"{cost.unit} | - | -")
        print(f"| {name} | {shown[3:]} | {kernel.registers} | {kernel.stack_bytes} | {len(kernel.instructions)} | "
              f"{kernel.doubles}, {cost.way_doubles} | {figures} | " + " | ".join(shares) + " |")


if __name__ == "__main__":
    main()
