#!/usr/bin/env python3
"""check_trainer_torch.py - PyTorch reads our weights and gives the same logits, and the reverse.

    check_trainer_torch.py TRAINER_LOGITS

The lines of trainer/README.md load them. The safetensors module reads and writes the files where it is there; else a
few lines here do. Ends with 77 if no Python has torch.
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench/races/peers"))
import find_torch  # noqa: E402

TOLERANCE = 1e-5
SAMPLES, HEIGHT, WIDTH, CHANNELS, CLASSES = 6, 9, 7, 4, 5


def read_file(path):
    try:
        from safetensors.torch import load_file
        return load_file(path)
    except ImportError:
        import torch
    with open(path, "rb") as file:
        data = file.read()
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    types = {"F32": torch.float32, "I64": torch.int64}
    return {name: torch.frombuffer(bytearray(data[8 + length:][slice(*t["data_offsets"])]),
                                   dtype=types[t["dtype"]]).reshape(t["shape"])
            for name, t in header.items()}


def load_as_documented(net, path, averages):
    """Run the block of trainer/README.md that loads a checkpoint."""
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
    with open(os.path.join(root, "trainer/README.md"), encoding="utf-8") as file:
        block, = [b.split("```")[0] for b in file.read().split("```python\n")[1:] if "load_file" in b]
    if not averages:
        block = block.replace("weights | averages", "weights")
    lines = [line for line in block.splitlines() if not line.startswith("from safetensors")]
    exec("\n".join(lines), {"net": net, "load_file": lambda _: read_file(path)})


def write_file(tensors, path):
    try:
        from safetensors.torch import save_file
        save_file(tensors, path)
        return
    except ImportError:
        pass
    header, blocks, end = {}, [], 0
    for name, tensor in tensors.items():
        block = tensor.contiguous().numpy().tobytes()
        header[name] = {"dtype": {"torch.float32": "F32", "torch.int64": "I64"}[str(tensor.dtype)],
                        "shape": list(tensor.shape), "data_offsets": [end, end + len(block)]}
        blocks.append(block)
        end += len(block)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blocks))


def network():
    from collections import OrderedDict
    from torch import nn
    return nn.Sequential(OrderedDict(
        conv1=nn.Conv2d(CHANNELS, 8, (3, 2), padding=(1, 0), groups=2), bn1=nn.BatchNorm2d(8),
        relu1=nn.ReLU(), pool=nn.MaxPool2d(2), flatten=nn.Flatten(), fc1=nn.Linear(96, CLASSES)))


def samples():
    import torch
    count = SAMPLES * HEIGHT * WIDTH * CHANNELS
    values = [(n * 7919 % 1009) / 504.5 - 1 for n in range(count)]
    return torch.tensor(values).reshape(SAMPLES, HEIGHT, WIDTH, CHANNELS).permute(0, 3, 1, 2)


def ours(program, verb, path):
    import torch
    shown = subprocess.run([program, verb, path], check=True, capture_output=True, text=True).stdout
    return torch.tensor([float(line) for line in shown.split()]).reshape(SAMPLES, CLASSES)


def theirs(net):
    import torch
    net.eval()
    with torch.no_grad():
        return net(samples())


def compare(what, a, b):
    far = float((a - b).abs().max() / b.abs().max())
    print(f"{what}: logits differ by {far:.1e} of the largest")
    return far <= TOLERANCE


def main():
    find_torch.ensure(("torch",))
    import torch
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ours.safetensors")
        mine = ours(program, "WRITE", path)
        net = network()
        load_as_documented(net, path, False)
        good = compare("trained here, read by PyTorch", mine, theirs(net))

        path = os.path.join(folder, "kept.safetensors")
        mine = ours(program, "AVERAGE", path)
        load_as_documented(net, path, True)
        good = compare("averages made here, read by PyTorch", mine, theirs(net)) and good
        load_as_documented(net, path, False)
        assert not compare("the weights that they are averages of", mine, theirs(net))

        torch.manual_seed(1)
        net = network()
        net.train()
        for _ in range(3):
            net(samples())  # so that the running statistics are not those of a new network
        path = os.path.join(folder, "theirs.safetensors")
        write_file(dict(net.state_dict()), path)
        good = compare("made by PyTorch, read here", ours(program, "READ", path), theirs(net)) and good

        # The check must be able to fail: two networks are not the same.
        assert not compare("two different networks", mine, theirs(net))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
