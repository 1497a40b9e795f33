#!/usr/bin/env python3
"""check_retouch_torch.py - our colors, rotation and blur beside torchvision's, on uint8 tensors of random sizes.

usage: check_retouch_torch.py WRITE_RETOUCHED

Holds if no byte differs by more than one level where one step is applied, or, with all four color steps one after the
other, if at most one byte in a thousand does: a level that differs is amplified by the steps behind it. Rotation is
compared where all four neighbors lie inside the image. If no Python has torchvision, it says so and skips.
"""
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench/races/peers"))
import find_torch  # noqa: E402

ROUNDS = 40
STEPS = ("brightness", "contrast", "saturation", "hue")
KINDS = STEPS + ("colors", "rotation", "blur")


def job(kind, generator):
    """The options of one image: brightness, contrast, saturation, hue, angle, blur, sigma."""
    options = dict.fromkeys(STEPS + ("angle", "blur", "sigma"), 0)
    for step in STEPS:
        if kind in (step, "colors"):
            options[step] = generator.choice([0.2, 0.5]) if step == "hue" else generator.choice([0.4, 1.0, 3.0])
    if kind == "rotation":
        options["angle"] = generator.choice([-170.0, -33.5, 1.0, 12.25, 45.0, 90.0, 180.0, 300.0])
    if kind == "blur":
        options["blur"] = generator.choice([3, 5, 9, 23])
        options["sigma"] = generator.choice([0.1, 0.5, 1.0, 2.0, 5.0])
    return options


def ours(program, image, sample, options):
    """The drawn order, the drawn amounts, the bytes."""
    channels, height, width = image.shape
    numbers = [channels, height, width, sample] + [options[name] for name in STEPS + ("angle", "blur", "sigma")]
    program.stdin.write((" ".join(map(str, numbers)) + "\n").encode())
    program.stdin.write(bytes(image.permute(1, 2, 0).contiguous().view(-1).tolist()))
    program.stdin.flush()
    words = program.stdout.readline().split()
    return [int(word) for word in words[:4]], [float.fromhex(word.decode()) for word in words[4:]], program.stdout.read(
        channels * height * width)


def theirs(image, options, order, amounts):
    import torchvision.transforms.functional as functional
    adjust = [getattr(functional, "adjust_" + step) for step in STEPS]
    for step in order:
        if options[STEPS[step]] != 0:
            image = adjust[step](image, amounts[step])
    if options["angle"] != 0:
        image = functional.rotate(image, options["angle"], functional.InterpolationMode.BILINEAR)
    if options["blur"] != 0:
        image = functional.gaussian_blur(image, options["blur"], options["sigma"])
    return image


def compared(image, options):
    """True where a byte is compared: with a rotation, where it depends on the image alone."""
    import torch
    import torchvision.transforms.functional as functional
    if options["angle"] == 0:
        return torch.ones_like(image, dtype=torch.bool)
    ones = torch.ones_like(image, dtype=torch.float32)
    return functional.rotate(ones, options["angle"], functional.InterpolationMode.BILINEAR) > 0.99999


def painted(generator, kind):
    import torch
    channels = generator.choice([1, 3])
    least = 24 if kind == "blur" else 1
    height, width = generator.randint(least, 90), generator.randint(least, 90)
    torch.manual_seed(generator.randint(0, 1 << 30))
    image = torch.randint(0, 256, (channels, height, width), dtype=torch.uint8)
    return image if generator.random() < 0.7 else image // 64 * 85  # few levels: equal channels, full saturation


def main():
    find_torch.ensure()
    import torch
    import torchvision
    generator = random.Random(11)
    good = True
    with subprocess.Popen(sys.argv[1:2], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        for kind in KINDS:
            total = differing = beyond = 0
            for sample in range(ROUNDS):
                image, options = painted(generator, kind), job(kind, generator)
                order, amounts, found = ours(program, image, sample, options)
                channels, height, width = image.shape
                mine = torch.tensor(list(found), dtype=torch.int32).view(height, width, channels).permute(2, 0, 1)
                away = (mine - theirs(image, options, order, amounts).int()).abs()[compared(image, options)]
                total += away.numel()
                differing += int((away > 0).sum())
                beyond += int((away > 1).sum())
            print(f"{kind}: {total} bytes, {differing} differ, {beyond} by more than one level")
            good = good and total > 0 and beyond <= (total // 1000 if kind == "colors" else 0)
        program.stdin.close()
    print(f"torchvision {torchvision.__version__}, torch {torch.__version__}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
