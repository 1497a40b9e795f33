#!/usr/bin/env python3
"""peer_ffcv.py - FFCV: its own file, made of the same pixels, as JPEG at quality 90 (photographs) or raw.

usage: peer_ffcv.py jpeg FOLDER   RandomResizedCropRGBImageDecoder, flip, normalize; its own layout (channels last)
       peer_ffcv.py raw FOLDER    images of 256 x 256 x 3 of noise, uint8, copied from its mapped file (FOLDER/raw.beton)
"""
import os
import tempfile
from importlib.metadata import version

import turns

BATCHES_AHEAD = 2
RAW_IMAGES = 2000


class Pictures:
    """What FFCV's writer asks for."""

    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        from PIL import Image
        path, label = self.files[index]
        return Image.open(path).convert("RGB"), label


class Noise:
    """Raw images, whose contents do not matter."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        import numpy
        return numpy.random.default_rng(index).integers(0, 256, (256, 256, 3), numpy.uint8), index % 10


def write(path, field, pictures):
    """A .beton, complete or not at all."""
    from ffcv.fields import IntField
    from ffcv.writer import DatasetWriter
    if not os.path.exists(path):
        with tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as folder:
            part = os.path.join(folder, "part")
            DatasetWriter(part, {"image": field, "label": IntField()}, num_workers=2).from_indexed_dataset(pictures)
            os.rename(part, path)


def written(files):
    """The set as a .beton, made beside the set once."""
    from ffcv.fields import RGBImageField
    path = os.path.dirname(os.path.dirname(files[0][0])) + ".beton"
    write(path, RGBImageField(write_mode="jpg", jpeg_quality=90), Pictures(files))
    return path


def main():
    arguments = turns.arguments_of(__doc__)
    _, numpy, torch, _ = turns.need("ffcv", "numpy", "torch", "ffcv.loader")
    from ffcv.fields import RGBImageField
    from ffcv.fields.basics import IntDecoder
    from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder, SimpleRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, ToTensor, ToTorchImage
    torch.set_num_threads(1)
    raw = arguments.mode == "raw"
    if raw:
        path, count = os.path.join(arguments.folder, "raw.beton"), RAW_IMAGES
        write(path, RGBImageField(write_mode="raw"), Noise(count))
        image = [SimpleRGBImageDecoder(), ToTensor()]
    else:
        files = turns.files_of(arguments.folder)
        path, count = written(files), len(files)
        normalize = NormalizeImage(numpy.array(turns.MEAN_255), numpy.array(turns.STD_255), numpy.float32)
        image = [RandomResizedCropRGBImageDecoder((turns.SIDE, turns.SIDE), scale=turns.AREA, ratio=turns.RATIO),
                 RandomHorizontalFlip(), normalize, ToTensor(), ToTorchImage()]
    epochs = max(1, (400000 if raw else 20000) // count)  # in one, as a short epoch would cost it its start
    loader = Loader(path, batch_size=arguments.batch_size, num_workers=arguments.threads or 2,
                    order=OrderOption.RANDOM, os_cache=True, drop_last=True, batches_ahead=BATCHES_AHEAD,
                    indices=numpy.tile(numpy.arange(count), epochs),
                    pipelines={"image": image, "label": [IntDecoder(), ToTensor()]})

    def batches():
        while True:
            for images, _ in loader:
                yield images

    turns.serve(batches(), arguments.batch_size, f"ffcv {version('ffcv')}, torch {torch.__version__}",
                BATCHES_AHEAD + 2, raw)


if __name__ == "__main__":
    main()
