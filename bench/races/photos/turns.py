"""turns.py - how a loader takes part in race.py: it says that it is ready, then loads for as long as race.py asks, in turn
with the others.

    race.py                          a loader's program
      ◀── {"ready": ..., "version": ...}   after its first batch, which is checked
      ──▶ SECONDS                          discards what was loaded ahead, then counts whole batches
      ◀── {"samples": n, "seconds": t, "cpu_seconds": c}
      ──▶ end of input                     exit

A loader that is not installed prints {"missing": "why"} and exits with 77.
"""
import argparse
import importlib
import json
import os
import resource
import sys
import time

SKIP = 77
SIDE = 224
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
DIGIT_MEAN, DIGIT_STD = 0.1307, 0.3081  # of the job png
MEAN_255 = tuple(255 * value for value in MEAN)
STD_255 = tuple(255 * value for value in STD)
AREA = (0.08, 1.0)
RATIO = (3 / 4, 4 / 3)


def arguments_of(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("mode")
    parser.add_argument("folder", help="of one set: imagenet, large, imagenet-tar, raw, png")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2, help="threads or worker processes; 0 = the library's choice")
    return parser.parse_args()


def missing(error):
    """Ends the program as one that is not installed."""
    lines = str(error).splitlines() or [""]
    print(json.dumps({"missing": f"{type(error).__name__}: {lines[0]}"[:160]}), flush=True)
    sys.exit(SKIP)


def need(*modules):
    """Imports modules; a package that is there may still fail in many ways."""
    try:
        return [importlib.import_module(module) for module in modules]
    except Exception as error:
        return missing(error)


def files_of(folder):
    """Paths and classes, like ImageFolder: sorted, one class per folder."""
    found = []
    for index, name in enumerate(sorted(os.listdir(folder))):
        for file in sorted(os.listdir(os.path.join(folder, name))):
            found.append((os.path.join(folder, name, file), index))
    return found


def random_box(random, width, height):
    """RandomResizedCrop's rectangle by torchvision's rule: left, top, width, height."""
    import math
    for _ in range(10):
        area = width * height * random.uniform(*AREA)
        ratio = math.exp(random.uniform(math.log(RATIO[0]), math.log(RATIO[1])))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, width - w), random.randint(0, height - h), w, h
    w, h = min(width, round(height * RATIO[1])), min(height, round(width / RATIO[0]))
    return (width - w) // 2, (height - h) // 2, w, h


def wrong_with(batch, batch_size, raw):
    """What is wrong with a batch of normalized images, or of raw pixels; None if nothing."""
    import numpy
    images = numpy.asarray(batch)
    if raw:
        right = images.shape == (batch_size, 256, 256, 3) and images.dtype == numpy.uint8 and images.std() > 1
        return None if right else f"shape {images.shape}, type {images.dtype}"
    if images.shape not in ((batch_size, 3, SIDE, SIDE), (batch_size, SIDE, SIDE, 3), (batch_size, 1, 28, 28),
                            (batch_size, 28, 28, 1)):
        return f"shape {images.shape}"
    if images.dtype != numpy.float32:
        return f"type {images.dtype}"
    low, high = (0 - max(MEAN)) / min(STD) - 0.1, (1 - DIGIT_MEAN) / DIGIT_STD + 0.1
    if not low <= images.min() < images.max() <= high:
        return f"values from {images.min():.2f} to {images.max():.2f}"
    if images.max() - images.min() < 2 or images.std() < 0.2:
        return "no picture in it"
    return None


def cpu_seconds():
    """Of this process, its threads and those of its children that ended; running children by /proc."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    total = own.ru_utime + own.ru_stime
    tick = os.sysconf("SC_CLK_TCK")
    pending = [os.getpid()]
    while pending:
        parent = pending.pop()
        try:
            with open(f"/proc/{parent}/task/{parent}/children", encoding="ascii") as file:
                children = file.read().split()
            for child in children:
                with open(f"/proc/{child}/stat", encoding="ascii") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
                total += (int(fields[11]) + int(fields[12])) / tick
                pending.append(int(child))
        except OSError:
            continue
    return total


def take(batches, seconds, batch_size, touched):
    """Whole batches for at least `seconds`; reads one value of each if `touched`."""
    cpu, begin, samples = cpu_seconds(), time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        images = next(batches)
        if touched:
            samples += len(images)
            float(images[0][0][0][0])
        else:
            samples += batch_size
    spent = time.perf_counter() - begin
    return {"samples": samples, "seconds": spent, "cpu_seconds": cpu_seconds() - cpu}


def serve(batches, batch_size, version, ahead, raw=False, touched=True):
    """Takes part with an endless iterator of images. ahead: batches that the library may have ready while it waits.
    touched: False if reading a value in Python would take a good part of a batch's time."""
    wrong = wrong_with(next(batches), batch_size, raw)
    print(json.dumps({"ready": wrong is None, "wrong": wrong, "version": version}), flush=True)
    for line in sys.stdin:
        for _ in range(ahead):
            next(batches)
        take(batches, 0.25 * float(line), batch_size, touched)  # until the threads are in step again
        print(json.dumps(take(batches, float(line), batch_size, touched)), flush=True)
    os._exit(0)  # no library's threads are waited for
