#!/usr/bin/env python3
"""check_blend_torch.py - our mixup and cutmix beside torchvision's MixUp and CutMix, on float32 batches of random sizes.

usage: check_blend_torch.py WRITE_MIXED

torchvision gets the lambda and the box that we drew. Holds if all bits are equal, and if its own way from a lambda and a
center to a box and to the adjusted lambda never leads elsewhere. If no Python has torchvision, it says so and skips.
"""
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench/races/peers"))
import find_torch  # noqa: E402

ROUNDS = 60


def ours(program, batch, mixup_alpha, cutmix_alpha, position):
    """Lambda, the box (top, left, bottom, right), the batch."""
    import torch
    numbers = list(batch.shape) + [mixup_alpha, cutmix_alpha, position]
    program.stdin.write((" ".join(map(str, numbers)) + "\n").encode())
    program.stdin.write(batch.numpy().tobytes())
    program.stdin.flush()
    words = program.stdout.readline().split()
    mixed = torch.frombuffer(bytearray(program.stdout.read(batch.numel() * 4)), dtype=torch.float32)
    return float.fromhex(words[0].decode()), [int(word) for word in words[1:]], mixed.view(batch.shape)


def theirs(kind, batch, labels, lam, box):
    """torchvision's step from what was drawn."""
    from torchvision.transforms import v2
    step = (v2.MixUp if kind == "mixup" else v2.CutMix)(num_classes=10)
    top, left, bottom, right = box
    params = {"lam": lam, "box": (left, top, right, bottom), "lam_adjusted": lam, "labels": labels,
              "batch_size": len(batch)}
    transform = getattr(step, "transform", None) or step._transform
    return transform(batch, params)


def their_boxes(generator):
    """What make_params() of torchvision's CutMix draws for an image: (height, width, lambda, box)."""
    import torch
    from torchvision.transforms import v2
    height, width = generator.randint(1, 90), generator.randint(1, 90)
    step = v2.CutMix(num_classes=10)
    make = getattr(step, "make_params", None) or step._get_params
    params = make([torch.zeros(4, 1, height, width)])
    left, top, right, bottom = params["box"]
    return height, width, params["lam_adjusted"], (top, left, bottom, right)


def main():
    find_torch.ensure()
    import torch
    import torchvision
    generator = random.Random(5)
    torch.manual_seed(5)
    good = True
    with subprocess.Popen(sys.argv[1:2], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        for kind in ("mixup", "cutmix"):
            total = differing = 0
            for position in range(ROUNDS):
                shape = [generator.randint(2, 9), generator.choice([1, 3]), generator.randint(1, 60),
                         generator.randint(1, 60)]
                batch = torch.randn(shape)
                alpha = generator.choice([0.2, 1.0, 3.0])
                lam, box, mixed = ours(program, batch, alpha if kind == "mixup" else 0,
                                       alpha if kind == "cutmix" else 0, position)
                wanted = theirs(kind, batch, torch.zeros(shape[0], dtype=torch.long), lam, box)
                total += mixed.numel()
                differing += int((mixed != wanted).sum())
                top, left, bottom, right = box
                area = (bottom - top) * (right - left) / (shape[2] * shape[3])
                if kind == "cutmix":
                    good = good and float(torch.tensor(1.0 - area, dtype=torch.float32)) == lam
            print(f"{kind}: {total} elements, {differing} differ")
            good = good and total > 0 and differing == 0
        program.stdin.close()
    for _ in range(ROUNDS):  # the area is what is left of lambda in torchvision, too
        height, width, lam, (top, left, bottom, right) = their_boxes(generator)
        good = good and abs(lam - (1.0 - (bottom - top) * (right - left) / (height * width))) < 1e-12
    print(f"torchvision {torchvision.__version__}, torch {torch.__version__}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
