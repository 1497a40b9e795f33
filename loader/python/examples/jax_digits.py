"""JAX: digits as float32 arrays without a copy, a small network, a compiled step.

    python jax_digits.py mnist:data/mnist
    python jax_digits.py                                   # drawn digits
"""
import argparse

import jax
import jax.numpy as jnp

import stoker


def forward(weights, images):
    x = images.reshape(len(images), -1)
    for w, b in weights[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = weights[-1]
    return x @ w + b


def loss(weights, images, labels):
    scores = jax.nn.log_softmax(forward(weights, images))
    return -jnp.take_along_axis(scores, labels[:, None], axis=1).mean()


@jax.jit
def step(weights, images, labels):
    gradients = jax.grad(loss)(weights, images, labels)
    return jax.tree.map(lambda w, g: w - 0.2 * g, weights, gradients)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default="synth:digits?count=6000")
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args(arguments)

    # drop_last: every batch has one shape, so step() is compiled once.
    how = dict(dtype="float32", output="jax")
    train = stoker.DataLoader(options.data, batch_size=100, shuffle=True, drop_last=True, split="train", **how)
    test = stoker.DataLoader(options.data, batch_size=1000, split="test", **how)

    sizes, key = (784, 128, 10), jax.random.key(0)
    weights = [(jax.random.normal(k, (n, m)) / n**0.5, jnp.zeros(m))
               for k, n, m in zip(jax.random.split(key, 2), sizes, sizes[1:])]
    accuracy = 0.0
    for epoch in range(options.epochs):
        for images, labels in train:
            weights = step(weights, images, labels)
        right = sum(int((forward(weights, images).argmax(1) == labels).sum()) for images, labels in test)
        accuracy = right / len(test.dataset)
        print(f"epoch {epoch + 1}: accuracy {accuracy:.4f}")
    return accuracy


if __name__ == "__main__":
    main()
