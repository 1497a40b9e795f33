"""MNIST in PyTorch: network and hyperparameters of PyTorch's own MNIST example, batches from Stoker.

    python mnist.py                            # drawn digits, or MNIST: python mnist.py mnist:data/mnist
    python mnist.py --loader torch             # the same with torch's DataLoader, from memory, to compare

Everything but the lines marked LOADER is what one writes with torch.utils.data.
"""
import argparse
import time

import torch
import torch.nn.functional as F

import stoker

MEAN, STD = 0.1307, 0.3081  # of MNIST's pixels, as 0..1


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = torch.nn.Conv2d(1, 32, 3), torch.nn.Conv2d(32, 64, 3)
        self.dropout1, self.dropout2 = torch.nn.Dropout(0.25), torch.nn.Dropout(0.5)
        self.fc1, self.fc2 = torch.nn.Linear(9216, 128), torch.nn.Linear(128, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv2(F.relu(self.conv1(x)))), 2)
        x = F.relu(self.fc1(self.dropout1(x).flatten(1)))
        return F.log_softmax(self.fc2(self.dropout2(x)), dim=1)


def stoker_loaders(spec, batch_size, seed):
    # LOADER: uint8 digits become normalized float32 tensors [batch, 1, 28, 28] in C.
    how = dict(transform=stoker.Transform(normalize=(MEAN, STD)), layout="NCHW", output="torch")
    train = stoker.DataLoader(spec, batch_size, shuffle=True, seed=seed, split="train", **how)
    test = stoker.DataLoader(spec, 1000, split="test", **how)
    return train, test


def torch_loaders(spec, batch_size, seed):
    """The fastest that torch offers: all digits in one tensor, converted once."""
    sets = []
    for split in ("train", "test"):
        with stoker.DataLoader(spec, 1000, split=split, dtype="float32", layout="NCHW") as loader:
            images, labels = (torch.cat(parts) for parts in zip(*((x.clone(), y.clone()) for x, y in loader)))
        sets.append(torch.utils.data.TensorDataset((images - MEAN) / STD, labels))
    order = torch.Generator().manual_seed(seed)
    train = torch.utils.data.DataLoader(sets[0], batch_size, shuffle=True, generator=order)
    return train, torch.utils.data.DataLoader(sets[1], 1000)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default="synth:digits?count=6000")
    parser.add_argument("--loader", choices=("stoker", "torch"), default="stoker")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)

    torch.manual_seed(options.seed)
    make = stoker_loaders if options.loader == "stoker" else torch_loaders
    train, test = make(options.data, options.batch_size, options.seed)
    model = Net()
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)

    accuracy = 0.0
    for epoch in range(options.epochs):
        model.train()
        start = before = time.perf_counter()
        loading = 0.0
        for images, labels in train:
            loading += time.perf_counter() - before
            optimizer.zero_grad()
            F.nll_loss(model(images), labels).backward()
            optimizer.step()
            before = time.perf_counter()
        schedule.step()
        seconds = time.perf_counter() - start

        model.eval()
        right = total = 0
        with torch.no_grad():
            for images, labels in test:
                right += (model(images).argmax(1) == labels).sum().item()
                total += len(labels)
        accuracy = right / total
        print(f"epoch {epoch + 1}: accuracy {accuracy:.4f}, {seconds:.2f} s, of which loading {loading:.3f} s")
    return accuracy


if __name__ == "__main__":
    main()
