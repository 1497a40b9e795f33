#!/usr/bin/env python3
"""check_trainer_files.py - the trainer's files are what other programs take them for, and theirs are read.

    check_trainer_files.py WRITE_TRAINER_FILES

Both formats are parsed here by a few lines of their own. Where the modules safetensors, torch and
tensorboard are there, they read the same files, too; one that is missing is reported as SKIP. Since the
first part always runs, the check as a whole is never skipped.
"""
import csv
import glob
import json
import struct
import subprocess
import sys
import tempfile

WEIGHT = [[r + c / 8 for c in range(6)] for r in range(4)]
HALVES = [1.0, -2.0, 65504.0]
BYTES = [0, 1, 2, 254, 255]
STEP = -1234567890123
EMPTY = 'größe "1"'
LOSS = [(10 * n, 2 / (n + 1)) for n in range(40)]
ACCURACY = [(10 * n, n / 40) for n in range(0, 40, 4)]


def float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def same(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: {found!r}, expected {expected!r}")


# ---- by lines of our own ---------------------------------------------------------

def parse_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    notes = header.pop("__metadata__", {})
    tensors = {name: (t["dtype"], t["shape"], data[8 + length:][slice(*t["data_offsets"])])
               for name, t in header.items()}
    zeroed = data.replace(notes["stoker.crc32c"].encode(), b"00000000", 1)
    same(f"checksum of {path}", notes["stoker.crc32c"], f"{crc32c(zeroed):08x}")
    return tensors, notes


def check_safetensors(directory):
    tensors, notes = parse_safetensors(f"{directory}/model.safetensors")
    flat = [x for row in WEIGHT for x in row]
    same("tensors", tensors, {
        "fc1.weight": ("F32", [4, 6], struct.pack("<24f", *flat)),
        "bytes": ("U8", [5], bytes(BYTES)),
        "halves": ("F16", [3], struct.pack("<3e", *HALVES)),
        EMPTY: ("F32", [0, 7], b""),
        "step": ("I64", [], struct.pack("<q", STEP))})
    same("format", notes["format"], "pt")


def fields(message):
    """Each field of a protobuf message: number, value."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            count = {1: 8, 5: 4}.get(key & 7) or varint()
            yield key >> 3, message[at:at + count]
            at += count


def parse_events(path):
    with open(path, "rb") as file:
        data = file.read()

    def check(part, written):
        crc = crc32c(part)
        same("masked checksum", struct.unpack("<I", written)[0],
             ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    at, events = 0, []
    while at < len(data):
        length, = struct.unpack("<Q", data[at:at + 8])
        check(data[at:at + 8], data[at + 8:at + 12])
        event = data[at + 12:at + 12 + length]
        check(event, data[at + 12 + length:at + 16 + length])
        events.append(dict(fields(event)))
        at += 16 + length
    return events


def check_events(directory):
    path, = glob.glob(f"{directory}/runs/events.out.tfevents.*")
    events = parse_events(path)
    same("first event", events[0][3], b"brain.Event:2")
    found = {"train/loss": [], "test/accuracy": []}
    for event in events[1:]:
        value = dict(fields(dict(fields(event[5]))[1]))
        found[value[1].decode()].append((event.get(2, 0), struct.unpack("<f", value[2])[0]))
    same("losses", found["train/loss"], [(s, float32(v)) for s, v in LOSS])
    same("accuracies", found["test/accuracy"], [(s, float32(v)) for s, v in ACCURACY])


def check_text(directory):
    with open(f"{directory}/log.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    same("steps", [int(row["step"]) for row in rows], [s for s, _ in LOSS])
    for row, (_, value) in zip(rows, LOSS):
        if abs(float(row["train/loss"]) - value) > 1e-8:
            sys.exit(f"loss {row}")
    same("fields", [int(r["step"]) for r in rows if r["test/accuracy"]], [s for s, _ in ACCURACY])


# ---- by modules ------------------------------------------------------------------

def run_read(program, path):
    return subprocess.run([program, "--read", path], check=True, capture_output=True,
                          text=True).stdout.splitlines()


def check_module_safetensors(directory, program):
    import numpy
    import safetensors.numpy
    from safetensors import safe_open
    tensors = safetensors.numpy.load_file(f"{directory}/model.safetensors")
    same("weight", tensors["fc1.weight"].tolist(), WEIGHT)
    same("bytes", tensors["bytes"].tolist(), BYTES)
    same("halves", tensors["halves"].tolist(), HALVES)
    same("empty", tensors[EMPTY].shape, (0, 7))
    with safe_open(f"{directory}/model.safetensors", "numpy") as file:
        same("metadata", file.metadata()["format"], "pt")
    same("step", int(tensors["step"]), STEP)
    theirs = f"{directory}/theirs.safetensors"
    a = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
    b = numpy.arange(3, dtype=numpy.uint8)
    safetensors.numpy.save_file({"b": b, "a.weight": a}, theirs, metadata={"format": "pt", "ü": '"'})
    same("theirs", run_read(program, theirs), [
        f"tensor a.weight F32 2 3 crc32c {crc32c(a.tobytes()):08x}",
        f"tensor b U8 3 crc32c {crc32c(b.tobytes()):08x}", "note format pt", 'note ü "'])


def check_module_torch(directory, program):
    import torch
    from safetensors.torch import load_file, save_file
    layer = torch.nn.Linear(6, 4)
    tensors = load_file(f"{directory}/model.safetensors")
    layer.load_state_dict({"weight": tensors["fc1.weight"], "bias": torch.zeros(4)})
    same("weight", layer.weight.tolist(), WEIGHT)
    theirs = f"{directory}/torch.safetensors"
    save_file({k: v.contiguous() for k, v in layer.state_dict().items()}, theirs)
    data = layer.weight.detach().numpy().tobytes()
    same("theirs", run_read(program, theirs)[-1], f"tensor weight F32 4 6 crc32c {crc32c(data):08x}")


def check_module_tensorboard(directory, _):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    run = EventAccumulator(f"{directory}/runs")
    run.Reload()
    for name, values in (("train/loss", LOSS), ("test/accuracy", ACCURACY)):
        if name in run.Tags()["scalars"]:
            found = [(e.step, e.value) for e in run.Scalars(name)]
        else:  # newer ones turn scalars into tensors while they read
            found = [(e.step, e.tensor_proto.float_val[0]) for e in run.Tensors(name)]
        same(name, found, [(s, float32(v)) for s, v in values])


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([program, directory], check=True)
        check_safetensors(directory)
        check_events(directory)
        check_text(directory)
        print("ok    safetensors, events and CSV by our own lines")
        for check in (check_module_safetensors, check_module_torch, check_module_tensorboard):
            name = check.__name__[len("check_module_"):]
            try:
                check(directory, program)
                print(f"ok    module {name}")
            except ImportError as missing:
                print(f"SKIP  module {name}: {missing}")


if __name__ == "__main__":
    main()
