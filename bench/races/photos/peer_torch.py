#!/usr/bin/env python3
"""peer_torch.py - PyTorch's DataLoader (processes) over ImageFolder, in three ways; and over MNIST.

usage: peer_torch.py pil|io|draft|digits|digits-io|mnist FOLDER
  pil     torchvision's own: Pillow, RandomResizedCrop, RandomHorizontalFlip, ToTensor, Normalize
  io      torchvision.io.decode_jpeg to a tensor, transforms.v2, normalized a batch at a time
  draft   Pillow's draft mode (libjpeg decodes to 1/2, 1/4, 1/8 if the crop allows it) and resize(box=...)
  digits, digits-io   PNG files of 28 x 28, gray, decoded by Pillow or torchvision.io and normalized
  mnist   torchvision's MNIST of $STOKER_DATA, ToTensor, Normalize
"""
import os
import random
import sys

import turns


def endless(torch, count):
    """Indices: one permutation after the other, so that no epoch ends."""
    class Sampler(torch.utils.data.Sampler):
        def __iter__(self):
            while True:
                yield from torch.randperm(count).tolist()
    return Sampler()


def by_pil(torch, vision, folder):
    way = vision.transforms
    return vision.datasets.ImageFolder(folder, transform=way.Compose([
        way.RandomResizedCrop(turns.SIDE), way.RandomHorizontalFlip(), way.ToTensor(),
        way.Normalize(turns.MEAN, turns.STD)]))


def by_io(torch, vision, folder):
    from torchvision.transforms import v2
    way = v2.Compose([v2.RandomResizedCrop(turns.SIDE, antialias=True), v2.RandomHorizontalFlip()])

    def load(path):
        return vision.io.decode_jpeg(vision.io.read_file(path), mode=vision.io.ImageReadMode.RGB)
    return vision.datasets.ImageFolder(folder, loader=load, transform=way)


def by_draft(torch, vision, folder):
    import numpy
    from PIL import Image
    scale = numpy.array([1 / value for value in turns.STD_255], numpy.float32)
    shift = numpy.array([-m / s for m, s in zip(turns.MEAN, turns.STD)], numpy.float32)

    def load(path):
        image = Image.open(path)
        width, height = image.size
        left, top, w, h = turns.random_box(random, width, height)
        image.draft("RGB", (int(width * turns.SIDE / w), int(height * turns.SIDE / h)))
        part = image.size[0] / width
        box = (left * part, top * part, min(image.size[0], (left + w) * part), min(image.size[1], (top + h) * part))
        image = image.convert("RGB").resize((turns.SIDE, turns.SIDE), Image.BILINEAR, box=box)
        pixels = numpy.asarray(image)
        if random.random() < 0.5:
            pixels = pixels[:, ::-1]
        return torch.from_numpy(numpy.ascontiguousarray((pixels * scale + shift).transpose(2, 0, 1)))
    return vision.datasets.ImageFolder(folder, loader=load)


def digits_by_pil(torch, vision, folder):
    del torch
    from PIL import Image
    way = vision.transforms
    return vision.datasets.ImageFolder(folder, loader=Image.open, transform=way.Compose([
        way.ToTensor(), way.Normalize((turns.DIGIT_MEAN,), (turns.DIGIT_STD,))]))


def digits_by_io(torch, vision, folder):
    del torch
    return vision.datasets.ImageFolder(folder, loader=lambda path: vision.io.decode_image(
        vision.io.read_file(path), mode=vision.io.ImageReadMode.GRAY))


def mnist(torch, vision, folder):
    del vision, folder
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../peers"))
    import mnist_idx
    return mnist_idx.Digits(torch, *mnist_idx.load(torch, True))


def main():
    arguments = turns.arguments_of(__doc__)
    torch, vision, pil = turns.need("torch", "torchvision", "PIL")
    torch.set_num_threads(1)
    data = {"pil": by_pil, "io": by_io, "draft": by_draft, "digits": digits_by_pil,
            "digits-io": digits_by_io, "mnist": mnist}[arguments.mode](torch, vision, arguments.folder)
    loader = torch.utils.data.DataLoader(data, batch_size=arguments.batch_size, sampler=endless(torch, len(data)),
                                         num_workers=arguments.threads, drop_last=True)
    scale = (turns.MEAN_255, turns.STD_255)
    if arguments.mode == "digits-io":
        scale = ((255 * turns.DIGIT_MEAN,), (255 * turns.DIGIT_STD,))
    mean, deviation = (torch.tensor(values).view(1, -1, 1, 1) for values in scale)

    def batches():
        for images, _ in loader:
            yield images.float().sub_(mean).div_(deviation) if arguments.mode.endswith("io") else images

    version = f"torch {torch.__version__}, torchvision {vision.__version__}, Pillow {pil.__version__}"
    turns.serve(batches(), arguments.batch_size, version, 2 * arguments.threads + 1)


if __name__ == "__main__":
    main()
