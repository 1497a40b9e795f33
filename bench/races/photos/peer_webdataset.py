#!/usr/bin/env python3
"""peer_webdataset.py - webdataset over tar files: Pillow and torchvision's transforms in a DataLoader's processes.

usage: peer_webdataset.py pil|draft FOLDER   draft: Pillow's draft mode, as in peer_torch.py
"""
import glob
import io
import os
import random

import turns


def main():
    arguments = turns.arguments_of(__doc__)
    wds, torch, vision, numpy, pil = turns.need("webdataset", "torch", "torchvision", "numpy", "PIL.Image")
    torch.set_num_threads(1)
    way = vision.transforms.Compose([
        vision.transforms.RandomResizedCrop(turns.SIDE), vision.transforms.RandomHorizontalFlip(),
        vision.transforms.ToTensor(), vision.transforms.Normalize(turns.MEAN, turns.STD)])
    scale = numpy.array([1 / value for value in turns.STD_255], numpy.float32)
    shift = numpy.array([-m / s for m, s in zip(turns.MEAN, turns.STD)], numpy.float32)

    def by_pil(data):
        return way(pil.open(io.BytesIO(data)).convert("RGB"))

    def by_draft(data):
        image = pil.open(io.BytesIO(data))
        width, height = image.size
        left, top, w, h = turns.random_box(random, width, height)
        image.draft("RGB", (int(width * turns.SIDE / w), int(height * turns.SIDE / h)))
        part = image.size[0] / width
        box = (left * part, top * part, min(image.size[0], (left + w) * part), min(image.size[1], (top + h) * part))
        pixels = numpy.asarray(image.convert("RGB").resize((turns.SIDE, turns.SIDE), pil.BILINEAR, box=box))
        if random.random() < 0.5:
            pixels = pixels[:, ::-1]
        return torch.from_numpy(numpy.ascontiguousarray((pixels * scale + shift).transpose(2, 0, 1)))

    tars = sorted(glob.glob(os.path.join(arguments.folder, "*.tar")))
    data = (wds.WebDataset(tars, resampled=True).shuffle(1000)
            .to_tuple("jpg", "cls").map_tuple(by_draft if arguments.mode == "draft" else by_pil, int)
            .batched(arguments.batch_size, partial=False))
    loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=arguments.threads)
    batches = (images for images, _ in loader)
    turns.serve(batches, arguments.batch_size, f"webdataset {wds.__version__}, torch {torch.__version__}",
                2 * arguments.threads + 1)


if __name__ == "__main__":
    main()
