#!/usr/bin/env python3
"""photographs.py - makes JPEG files that are as hard to decode as photographs.

usage: photographs.py FOLDER [--imagenet 1000] [--large 64] [--jobs N]

Writes FOLDER/imagenet/CLASS/NAME.jpg (ImageNet's sizes, most of 500 x 375, 110 kB on average, 10 classes),
FOLDER/large/CLASS/NAME.jpg (3000 x 2250, about 2 MB), and both again as tar files, four each:
FOLDER/imagenet-tar/000.tar with NAME.jpg and NAME.cls. FOLDER/sizes.json has the figures. Files that are
already there for the same numbers are kept: image N depends only on N, the seed and the version of this script.

How long a JPEG takes to decode depends on how many coefficients are not 0, which smooth or synthetic pictures lack.
A picture here is a stack of overlapping discs and polygons whose sizes follow a power law (the "dead leaves" model, which has
the edges and the 1/f spectrum of photographs; Lee, Mumford and Huang, 2001), each with its own color,
texture (noise with a 1/f spectrum) and focus, under uneven light, with the noise of a sensor.
"""
import argparse
import io
import json
import multiprocessing
import os
import sys
import tarfile

VERSION = 1
SEED = 16
CLASSES = 10
TAR_FILES = 4
BANK_SIDE = 2048
LEAVES = 255

# Width, height, and how often ImageNet has it, roughly.
IMAGENET_SIZES = ((500, 375, 46), (375, 500, 12), (500, 333, 18), (333, 500, 5), (500, 500, 5), (400, 300, 5),
                  (640, 480, 4), (250, 188, 3), (800, 600, 1), (1024, 768, 1))
LARGE_SIZE = (3000, 2250)

# Of an 8-bit scale. Noise decides the size of the files: chosen for ImageNet's 110 kB.
TEXTURE = (3.0, 22.0)
NOISE = {"imagenet": (5.5, 13.0), "large": (1.3, 3.4)}


def fractal(numpy, random, side, exponent):
    """Noise with an amplitude spectrum of 1 / f^exponent, mean 0, deviation 1; it repeats without a seam."""
    across = numpy.fft.rfftfreq(side)
    down = numpy.fft.fftfreq(side)[:, None]
    frequency = numpy.sqrt(across ** 2 + down ** 2)
    frequency[0, 0] = 1.0
    spectrum = numpy.fft.rfft2(random.standard_normal((side, side), dtype=numpy.float32))
    spectrum = spectrum / frequency ** exponent
    spectrum[0, 0] = 0
    noise = numpy.fft.irfft2(spectrum, s=(side, side)).astype(numpy.float32)
    return noise / noise.std()


class Bank:
    """Textures, light and sensor noise made once: pictures take rectangles of them."""

    def __init__(self):
        import numpy
        self.numpy = numpy
        random = numpy.random.default_rng(SEED)
        self.textures = [fractal(numpy, random, BANK_SIDE, exponent) for exponent in (0.6, 0.9, 1.2)]
        self.light = fractal(numpy, random, BANK_SIDE, 1.8)
        self.noise = random.standard_normal((BANK_SIDE, BANK_SIDE, 3), dtype=numpy.float32)

    def cut(self, random, plane, height, width):
        """A rectangle of a plane, from a random place, wrapped around."""
        rows = (int(random.integers(BANK_SIDE)) + self.numpy.arange(height)) % BANK_SIDE
        columns = (int(random.integers(BANK_SIDE)) + self.numpy.arange(width)) % BANK_SIDE
        return plane[rows[:, None], columns]


def leaf_shape(random, width, height):
    """The corners of a disc or a polygon, of a size drawn from 1/r^3 between 2.5 % and 60 % of the picture."""
    import math
    low, high = 0.025 * width, 0.6 * width
    radius = 1 / math.sqrt(1 / high ** 2 + random.random() * (1 / low ** 2 - 1 / high ** 2))
    x, y = random.random() * width, random.random() * height
    corners = int(random.choice((3, 4, 5, 24)))
    turn, squeeze = random.random() * math.tau, 0.35 + 0.65 * random.random()
    points = []
    for corner in range(corners):
        angle = math.tau * corner / corners
        across, along = radius * math.cos(angle), squeeze * radius * math.sin(angle)
        points.append((x + across * math.cos(turn) - along * math.sin(turn),
                       y + across * math.sin(turn) + along * math.cos(turn)))
    return points


def picture(bank, kind, random, width, height):
    """Pixels: height, width, 3, uint8."""
    from PIL import Image, ImageDraw, ImageFilter
    numpy = bank.numpy
    which = Image.new("L", (width, height))
    draw = ImageDraw.Draw(which)
    for leaf in range(LEAVES):
        draw.polygon(leaf_shape(random, width, height), fill=leaf + 1)
    which = numpy.asarray(which)

    gray = 30 + 190 * random.random((LEAVES + 1, 1))
    colors = numpy.clip(gray + 28 * random.standard_normal((LEAVES + 1, 3)), 8, 247).astype(numpy.float32)
    strength = random.uniform(*TEXTURE, LEAVES + 1).astype(numpy.float32)
    kinds = random.integers(len(bank.textures), size=LEAVES + 1)
    texture = numpy.zeros((height, width), numpy.float32)
    for number, plane in enumerate(bank.textures):
        texture += bank.cut(random, plane, height, width) * numpy.where(kinds == number, strength, 0)[which]
    light = 1 + 0.18 * bank.cut(random, bank.light, height, width)

    scene = (colors[which] + texture[..., None]) * light[..., None]
    blur = 0.3 + (0.5 if kind == "imagenet" else 1.1) * random.random()  # lens and focus
    scene = Image.fromarray(numpy.clip(scene, 0, 255).astype(numpy.uint8)).filter(ImageFilter.GaussianBlur(blur))
    seen = numpy.asarray(scene, numpy.float32)
    noise = bank.cut(random, bank.noise, height, width)
    deviation = random.uniform(*NOISE[kind]) * (0.5 + numpy.sqrt(seen / 255))
    return numpy.clip(seen + noise * deviation, 0, 255).astype(numpy.uint8)


def encoded(bank, kind, number):
    """The bytes of photograph `number` of a set."""
    from PIL import Image
    random = bank.numpy.random.default_rng((SEED, VERSION, sorted(NOISE).index(kind), number))
    if kind == "large":
        width, height = LARGE_SIZE
    else:
        chances = bank.numpy.array([chance for _, _, chance in IMAGENET_SIZES], float)
        width, height, _ = IMAGENET_SIZES[random.choice(len(chances), p=chances / chances.sum())]
    out = io.BytesIO()
    Image.fromarray(picture(bank, kind, random, width, height)).save(
        out, "JPEG", quality=int(random.integers(87, 94)), subsampling=int(random.choice((0, 2, 2, 2))))
    return out.getvalue()


def name_of(folder, kind, number):
    return os.path.join(folder, kind, f"class{number % CLASSES}", f"{number:05}.jpg")


bank_of_process = None


def make(task):
    """Writes one file, unless it is there."""
    global bank_of_process
    folder, kind, number = task
    path = name_of(folder, kind, number)
    if os.path.exists(path):
        return os.path.getsize(path)
    if bank_of_process is None:
        bank_of_process = Bank()
    bytes_of_file = encoded(bank_of_process, kind, number)
    with open(path + ".part", "wb") as file:
        file.write(bytes_of_file)
    os.rename(path + ".part", path)
    return len(bytes_of_file)


def pack(folder, kind, count):
    """The same files in tars, in a mixed order, so that each has all classes."""
    os.makedirs(os.path.join(folder, kind + "-tar"), exist_ok=True)
    for part in range(TAR_FILES):
        with tarfile.open(os.path.join(folder, kind + "-tar", f"{part:03}.tar"), "w") as tar:
            for number in range(part, count, TAR_FILES):
                tar.add(name_of(folder, kind, number), f"{number:05}.jpg")
                label = str(number % CLASSES).encode()
                entry = tarfile.TarInfo(f"{number:05}.cls")
                entry.size = len(label)
                tar.addfile(entry, io.BytesIO(label))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--imagenet", type=int, default=1000)
    parser.add_argument("--large", type=int, default=64)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    try:
        import numpy
        import PIL
    except ImportError as missing:
        print(f"photographs.py: {missing}", file=sys.stderr)
        return 77
    wanted = {"version": VERSION, "seed": SEED, "imagenet": arguments.imagenet, "large": arguments.large,
              "numpy": numpy.__version__, "pillow": PIL.__version__}
    stamp = os.path.join(arguments.folder, "sizes.json")
    if os.path.exists(stamp):
        with open(stamp, encoding="utf-8") as file:
            found = json.load(file)
        if all(found.get(key) == value for key, value in wanted.items()):
            return 0
        print(f"photographs.py: {arguments.folder} holds another set: remove it", file=sys.stderr)
        return 1
    counts = {"imagenet": arguments.imagenet, "large": arguments.large}
    for kind in counts:
        for number in range(CLASSES):
            os.makedirs(os.path.join(arguments.folder, kind, f"class{number}"), exist_ok=True)
    with multiprocessing.Pool(arguments.jobs) as pool:
        for kind, count in counts.items():
            sizes = pool.map(make, [(arguments.folder, kind, number) for number in range(count)], chunksize=4)
            wanted[kind + "_mean_bytes"] = sum(sizes) // max(1, count)
            print(f"{count} {kind}: {sum(sizes) / max(1, count) / 1e3:.1f} kB on average")
            pack(arguments.folder, kind, count)
    with open(stamp, "w", encoding="utf-8") as file:
        json.dump(wanted, file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
