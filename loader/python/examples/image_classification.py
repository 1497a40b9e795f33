"""Photographs in folders, one per class: random crops and flips in C, a random split, mixed precision, and a checkpoint from which
the run continues in the middle of an epoch.

    python image_classification.py folder:photos/train          # or tar:'DIR/{000..099}.tar', shards:DIR, ...
    python image_classification.py                               # generated pictures
"""
import argparse
import os

import torch
import torch.nn.functional as F

import stoker


def network(classes):
    def block(channels_in, channels_out):
        return torch.nn.Sequential(torch.nn.Conv2d(channels_in, channels_out, 3, stride=2, padding=1),
                                   torch.nn.BatchNorm2d(channels_out), torch.nn.ReLU())
    return torch.nn.Sequential(block(3, 16), block(16, 32), block(32, 64), torch.nn.AdaptiveAvgPool2d(1),
                               torch.nn.Flatten(), torch.nn.Linear(64, classes))


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default="synth:pictures?count=400&size=96")
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--checkpoint", default="image_classification.pt", help="is continued from if it exists")
    options = parser.parse_args(arguments)

    pictures = stoker.open(options.data)
    train_set, test_set = pictures.split(0.9, seed=0)
    normal = (stoker.IMAGENET_MEAN, stoker.IMAGENET_STD)
    train = stoker.DataLoader(
        train_set, options.batch_size, shuffle=True, seed=1, drop_last=True,
        transform=stoker.Transform(random_resized_crop=options.size, flip=True, jitter=(0.2, 0.2, 0.2), normalize=normal),
        layout="NCHW", output="torch", on_bad_sample="skip", max_bad_samples=100)
    test = stoker.DataLoader(
        test_set, options.batch_size, layout="NCHW", output="torch",
        transform=stoker.Transform(resize=options.size * 8 // 7, center_crop=options.size, normalize=normal))
    print(f"{len(train_set)} pictures to train with, {len(test_set)} to test; classes {pictures.classes[:3]}, ...")

    torch.manual_seed(0)
    model = network(len(pictures.classes))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    epoch = 0
    if os.path.exists(options.checkpoint):
        saved = torch.load(options.checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        train.load_state_dict(saved["data"])  # also with another number of ranks or another batch size
        epoch = saved["epoch"]

    while epoch < options.epochs:
        model.train()
        for number, (images, labels) in enumerate(train):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            if number % 10 == 9:
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "data": train.state_dict(),
                            "epoch": epoch}, options.checkpoint)
        epoch += 1

        model.eval()
        with torch.no_grad():
            right = sum((model(images).argmax(1) == labels).sum().item() for images, labels in test)
        print(f"epoch {epoch}: loss {loss.item():.3f}, accuracy {right / len(test_set):.3f}; {train.stats().verdict}")
    for sample in train.bad_samples():
        print("left out:", sample)


if __name__ == "__main__":
    main()
