"""Semantic segmentation: an image and its mask are two fields of a sample, and crops, flips and rotations move both alike.

    python segmentation.py 'folder:image=DIR,mask=DIR'     # files of two folders, matched by name
    python segmentation.py                                 # discs drawn in memory
"""
import argparse

import numpy as np
import torch
import torch.nn.functional as F

import stoker

NOWHERE = 255  # the mask's value in pixels that a rotation brought in from outside


def discs(count, size=48, seed=0):
    """Noisy pictures of one bright disc each; the mask is 1 inside."""
    draw = np.random.default_rng(seed)
    y, x = np.mgrid[:size, :size]
    centers, radii = draw.uniform(12, size - 12, (count, 2)), draw.uniform(6, 12, count)
    inside = np.stack([(y - cy) ** 2 + (x - cx) ** 2 < r * r for (cy, cx), r in zip(centers, radii)])
    images = draw.integers(0, 90, (count, size, size, 3)) + inside[..., None] * 120
    return stoker.from_arrays(images=images.astype(np.uint8), masks=inside.astype(np.uint8))


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--count", type=int, default=400, help="discs")
    options = parser.parse_args(arguments)

    data = stoker.open(options.data) if options.data else discs(options.count)
    mask = [name for name, field in data.fields.items() if field.kind == "mask"][0]
    train = stoker.DataLoader(
        data, batch_size=20, shuffle=True, seed=1, drop_last=True, layout="NCHW", output="torch",
        transform=stoker.Transform(random_crop=40, flip=True, rotation=20, normalize=(0.5, 0.25)),
        fields={mask: stoker.FieldOptions(fill_value=NOWHERE)})
    print(train.element_spec)

    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 5, padding=2), torch.nn.ReLU(), torch.nn.Conv2d(16, 16, 5, padding=2), torch.nn.ReLU(),
        torch.nn.Conv2d(16, 2, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    share = 0.0
    for epoch in range(options.epochs):
        right = known = 0
        for batch in train:
            images, masks = batch[0], batch[1].long().reshape(-1, 40, 40)
            optimizer.zero_grad()
            scores = model(images)
            F.cross_entropy(scores, masks, ignore_index=NOWHERE).backward()
            optimizer.step()
            inside = masks != NOWHERE
            right += ((scores.argmax(1) == masks) & inside).sum().item()
            known += inside.sum().item()
        share = right / known
        print(f"epoch {epoch + 1}: {share:.4f} of the pixels are right")
    return share


if __name__ == "__main__":
    main()
