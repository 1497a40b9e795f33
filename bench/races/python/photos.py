"""1,000 JPEG files with RandomResizedCrop(224), flip and normalization: a folder and a tar archive, beside torchvision with
torch's DataLoader and webdataset, in turn.

usage: photos.py [FOLDER] [--rounds N] [--size PIXELS]

FOLDER is kept and filled if it is empty; without it the pictures are made in a temporary one. Nobody's cache of decoded pictures counts:
Stoker runs with cache="none". The files are in the page cache.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

import stoker
import torch
import torchvision
from torchvision.transforms import v2

from turns import in_turns, machine, middle, ratio, spread

CROP, BATCH = 224, 50


def make_pictures(folder, count, size):
    pack = [sys.executable, "-m", "stoker", "pack", "--quiet", "--codec", "jpeg", f"synth:pictures?count={count}&size={size}"]
    if not os.path.exists(f"{folder}/files"):
        subprocess.run(pack + [f"folder:{folder}/files"], check=True)
    if not os.path.exists(f"{folder}/pictures.tar"):
        subprocess.run(pack + [f"tar:{folder}/pictures.tar"], check=True)


def timed(loader, count):
    """A function that returns pictures per second over one epoch."""
    def run():
        start, seen = time.perf_counter(), 0
        for images, labels in loader:
            seen += len(images)
        assert seen == count, (seen, count)
        return seen / (time.perf_counter() - start)
    return run


def of_stoker(spec, workers):
    return stoker.DataLoader(
        spec, BATCH, shuffle=True, num_workers=workers, cache="none", layout="NCHW", output="torch",
        transform=stoker.Transform(random_resized_crop=CROP, flip=True, normalize=(stoker.IMAGENET_MEAN, stoker.IMAGENET_STD)))


def steps():
    return v2.Compose([v2.RandomResizedCrop(CROP), v2.RandomHorizontalFlip(), v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True),
                       v2.Normalize(stoker.IMAGENET_MEAN, stoker.IMAGENET_STD)])


def of_webdataset(path, workers):
    import webdataset

    data = webdataset.WebDataset(path, shardshuffle=False, empty_check=False).shuffle(100).decode("pil").to_tuple("jpg", "cls")
    return torch.utils.data.DataLoader(data.map_tuple(steps(), int), BATCH, num_workers=workers)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--size", type=int, default=500)
    options = parser.parse_args()
    torch.set_num_threads(1)  # as in DataLoader's workers
    print(machine())
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or scratch
        make_pictures(folder, options.count, options.size)
        files, tar = f"{folder}/files", f"{folder}/pictures.tar"
        make = torch.utils.data.DataLoader
        pictures = torchvision.datasets.ImageFolder(files, steps())
        candidates = {
            "stoker, folder": of_stoker(f"folder:{files}", "auto"),
            "stoker, tar": of_stoker(f"tar:{tar}", "auto"),
            "DataLoader, folder, 0 workers": make(pictures, BATCH, shuffle=True),
            "DataLoader, folder, 2 workers": make(pictures, BATCH, shuffle=True, num_workers=2, persistent_workers=True),
        }
        try:
            candidates["webdataset, tar, 0 workers"] = of_webdataset(tar, 0)
            candidates["webdataset, tar, 1 worker"] = of_webdataset(tar, 1)
        except ImportError:
            print("webdataset is not installed: pip install webdataset")
        results = in_turns({name: timed(loader, options.count) for name, loader in candidates.items()}, options.rounds)
        print(f"{options.count} JPEG files of {options.size} x {options.size}, RandomResizedCrop({CROP}), flip, float32, batch {BATCH}")
        for name, values in results.items():
            print(f"{name:30} {middle(values):8.0f} pictures/s, stoker's folder is {ratio(results, 'stoker, folder', name):5.1f} x, "
                  f"spread {spread(values):.0%}")
        for loader in list(candidates.values())[:2]:
            loader.close()


if __name__ == "__main__":
    main()
