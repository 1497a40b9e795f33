#!/usr/bin/env python3
"""Make the values that tests/unit/trainer/test_{update,schedule,golden}.c expect.

    make_trainer_golden.py FOLDER        needs PyTorch 1.13 or later (CPU); made with 1.13

Data and first weights come from a formula that both sides compute, so the files hold only
results: C headers, which the tests include.
"""
import os
import sys

import torch
import torch.nn.functional as F
from torch import nn

MASK = (1 << 64) - 1


def mix(x):
    """The finalizer of SplitMix64, as in loader/base/rng.h."""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def value(stream, index):
    """A multiple of 2^-23 in [-1, 1): exact in a float."""
    return (mix((stream << 32) + index) >> 40) / (1 << 23) - 1.0


def values(stream, count, bound=1.0):
    # The product is rounded to float once, as the C side does it.
    return torch.tensor([value(stream, i) for i in range(count)], dtype=torch.float32) * \
        torch.tensor(bound, dtype=torch.float32)


def c_array(kind, name, numbers):
    form = "%.9gF" if kind == "float" else "%.17g"
    texts = []
    for number in numbers:
        text = form % number
        if kind == "float" and "." not in text and "e" not in text:
            text = text.replace("F", ".0F")
        texts.append(text)
    lines = ["    " + ", ".join(texts[i:i + 6]) for i in range(0, len(texts), 6)]
    return "static const %s %s[] = {\n%s\n};\n" % (kind, name, ",\n".join(lines))


HEAD = "/* %s - made by tests/golden/make_trainer_golden.py with PyTorch; do not edit. */\n"

# ---- optimizers: 7 weights, 10 steps -----------------------------------------------

WEIGHTS, STEPS = 7, 10
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "sgd_momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "sgd_dampening": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.5),
    "sgd_nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True,
                                              weight_decay=0.01),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.01),
    "adam_betas": lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.7, 0.9)),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1, lr_decay=0.1, weight_decay=0.01),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, weight_decay=0.01),
    "rmsprop_momentum": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.9),
    "rmsprop_centered": lambda p: torch.optim.RMSprop(p, lr=0.01, centered=True),
    "rmsprop_both": lambda p: torch.optim.RMSprop(p, lr=0.01, centered=True, momentum=0.5),
    "adadelta": lambda p: torch.optim.Adadelta(p, lr=1.0, weight_decay=0.01),
    "adamax": lambda p: torch.optim.Adamax(p, lr=0.01, weight_decay=0.01),
    "asgd": lambda p: torch.optim.ASGD(p, lr=0.1, lambd=0.01, t0=4, weight_decay=0.01),
}


def write_optimizers(folder):
    with open(os.path.join(folder, "optimizers.h"), "w") as out:
        out.write(HEAD % "optimizers.h")
        out.write("/* Weights after each of %d steps, one step after the other. */\n" % STEPS)
        out.write("enum { GOLDEN_WEIGHTS = %d, GOLDEN_STEPS = %d };\n" % (WEIGHTS, STEPS))
        for name, make in OPTIMIZERS.items():
            weights = nn.Parameter(values(1, WEIGHTS))
            optimizer = make([weights])
            rows = []
            for step in range(STEPS):
                weights.grad = values(2 + step, WEIGHTS)
                optimizer.step()
                rows += weights.detach().tolist()
            out.write(c_array("float", "golden_" + name, rows))


# ---- schedules ---------------------------------------------------------------------

def rates(make, count):
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.5)
    schedule = make(optimizer)
    found = []
    for _ in range(count):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if len(found) < count:
            schedule.step()
    return found


def write_schedules(folder):
    lr = torch.optim.lr_scheduler
    with open(os.path.join(folder, "schedules.h"), "w") as out:
        out.write(HEAD % "schedules.h")
        out.write(c_array("double", "golden_step", rates(
            lambda o: lr.StepLR(o, step_size=7, gamma=0.7), 30)))
        out.write(c_array("double", "golden_cosine", rates(
            lambda o: lr.CosineAnnealingLR(o, T_max=29, eta_min=0.05), 30)))
        out.write(c_array("double", "golden_one_cycle", rates(
            lambda o: lr.OneCycleLR(o, max_lr=0.5, total_steps=40), 40)))
        out.write(c_array("double", "golden_one_cycle_odd", rates(
            lambda o: lr.OneCycleLR(o, max_lr=0.5, total_steps=17, pct_start=0.2, div_factor=10),
            17)))


# ---- whole networks: 20 steps ------------------------------------------------------

BATCH, TRAINING_STEPS, CLASSES, PROBES = 8, 20, 10, 8


class Mnist(nn.Module):
    """The network of PyTorch's MNIST example; dropout is left out, as generators differ."""
    side, channels = 28, 1

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.fc1 = nn.Linear(9216, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv2(F.relu(self.conv1(x)))), 2)
        return self.fc2(F.relu(self.fc1(torch.flatten(x, 1))))


class Residual(nn.Module):
    """BatchNorm and a sum of two branches."""
    side, channels = 8, 3

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(8)
        self.fc = nn.Linear(8 * 4 * 4, 10)

    def forward(self, x):
        a = F.relu(self.bn1(self.conv1(x)))
        b = F.relu(self.bn2(self.conv2(a)) + a)
        return self.fc(torch.flatten(F.avg_pool2d(b, 2), 1))


def set_weights(network):
    """Parameter p: formula stream 100 + p, in PyTorch's order of elements."""
    for p, (name, parameter) in enumerate(network.named_parameters()):
        count = parameter.numel()
        if "bn" in name:
            data = torch.full((count,), 1.0 if name.endswith("weight") else 0.0)
        else:
            fan = parameter[0].numel() if parameter.dim() > 1 else 64
            data = values(100 + p, count, 1.0 / fan ** 0.5)
        parameter.data = data.view_as(parameter).clone()


def batch_of(network, step):
    """Pixels in NHWC order from stream 1000 + step; labels follow from the step."""
    shape = (BATCH, network.side, network.side, network.channels)
    pixels = values(1000 + step, BATCH * network.side ** 2 * network.channels)
    labels = torch.tensor([(3 * step + 7 * i) % CLASSES for i in range(BATCH)])
    # A class shows in its samples, so that there is something to learn.
    images = pixels.view(shape) * 0.5
    for i in range(BATCH):
        images[i, :, int(labels[i]) % network.side, :] += 1.0
    return images.permute(0, 3, 1, 2).contiguous(), labels


def train(network, optimizer):
    set_weights(network)
    network.train()
    optimizer = optimizer(network.parameters())
    losses = []
    for step in range(TRAINING_STEPS):
        images, labels = batch_of(network, step)
        optimizer.zero_grad()
        loss = F.cross_entropy(network(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def write_training(folder):
    torch.set_num_threads(2)
    sgd = lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9)
    adadelta = lambda p: torch.optim.Adadelta(p, lr=1.0)
    runs = [("mnist_sgd", Mnist, sgd), ("mnist_adadelta", Mnist, adadelta),
            ("residual_sgd", Residual, sgd), ("residual_adadelta", Residual, adadelta)]
    with open(os.path.join(folder, "training.h"), "w") as out:
        out.write(HEAD % "training.h")
        out.write("enum { GOLDEN_BATCH = %d, GOLDEN_TRAINING_STEPS = %d, GOLDEN_PROBES = %d };\n"
                  % (BATCH, TRAINING_STEPS, PROBES))
        for name, make, optimizer in runs:
            network = make()
            losses = train(network, optimizer)
            # A network's gradients depend on rounding where a ReLU's input is almost 0, or two
            # values of a pool are almost equal: the same in double shows by how much.
            torch.set_default_dtype(torch.float64)
            exact = make().double()
            double_losses = train_double(exact, optimizer)
            torch.set_default_dtype(torch.float32)
            out.write(c_array("double", "golden_%s_losses" % name, losses))
            out.write(c_array("double", "golden_%s_losses_in_double" % name, double_losses))
            norms, probes = [], []
            for parameter in network.parameters():
                flat = parameter.detach().flatten()
                norms.append(flat.double().norm().item())
                probes += [flat[(k * flat.numel()) // PROBES].item() for k in range(PROBES)]
            out.write(c_array("double", "golden_%s_norms" % name, norms))
            out.write(c_array("float", "golden_%s_probes" % name, probes))
            statistics = []
            for buffer_name, buffer in network.named_buffers():
                if "running" in buffer_name:
                    statistics += buffer.tolist()
            if statistics:
                out.write(c_array("float", "golden_%s_statistics" % name, statistics))


def train_double(network, optimizer):
    set_weights(network)
    network.double()
    network.train()
    optimizer = optimizer(network.parameters())
    losses = []
    for step in range(TRAINING_STEPS):
        images, labels = batch_of(network, step)
        optimizer.zero_grad()
        loss = F.cross_entropy(network(images.double()), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write_optimizers(sys.argv[1])
    write_schedules(sys.argv[1])
    write_training(sys.argv[1])


main()
