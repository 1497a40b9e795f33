"""mnist_idx.py - MNIST as tensors of uint8 and int64, read from the files, for machines with torch but without
torchvision.
"""
import gzip
import os

import mnist_folder


def _bytes_of(name):
    folder = mnist_folder.source()
    plain = os.path.join(folder, name)
    if os.path.exists(plain):
        with open(plain, "rb") as file:
            return file.read()
    with gzip.open(plain + ".gz", "rb") as file:
        return file.read()


def load(torch, train):
    """images [n, 28, 28] uint8, labels [n] int64."""
    part = "train" if train else "t10k"
    images = torch.frombuffer(bytearray(_bytes_of(part + "-images-idx3-ubyte")), dtype=torch.uint8)
    labels = torch.frombuffer(bytearray(_bytes_of(part + "-labels-idx1-ubyte")), dtype=torch.uint8)
    return images[16:].reshape(-1, 28, 28), labels[8:].long()


class Digits:
    """The work of torchvision's MNIST per sample: with its ToTensor and Normalize (an image object for every
    sample) if it is installed, else the arithmetic only, which flatters PyTorch."""

    def __init__(self, torch, images, labels):
        self.images, self.labels = images, labels
        try:
            from PIL import Image
            from torchvision import transforms
            self.transform = transforms.Compose([transforms.ToTensor(),
                                                 transforms.Normalize((0.1307,), (0.3081,))])
            self.image_of = lambda row: Image.fromarray(row.numpy(), mode="L")
            self.how = "torchvision's transforms"
        except ImportError:
            self.transform = lambda row: row.unsqueeze(0).float().div_(255).sub_(0.1307).div_(0.3081)
            self.image_of = lambda row: row
            self.how = "arithmetic alone"

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.transform(self.image_of(self.images[index])), int(self.labels[index])
