"""A table: rows of a CSV file as NumPy arrays, and a linear model by stochastic gradient descent.

    python tabular.py 'csv:BostonHousing.csv?label=medv&test=0.2'
    python tabular.py                                      # a table that it writes first
"""
import argparse
import os
import tempfile

import numpy as np

import stoker


def write_table(path, rows=2000):
    """y = 3 a - 2 b + 5, with noise of deviation 0.1; the column id says nothing."""
    draw = np.random.default_rng(0)
    a, b = draw.normal(10, 4, rows), draw.normal(-2, 0.5, rows)
    y = 3 * a - 2 * b + 5 + draw.normal(0, 0.1, rows)
    np.savetxt(path, np.stack([np.arange(rows), a, b, y], 1), delimiter=",", header="id,a,b,y", comments="")


def fit(spec, epochs):
    train = stoker.DataLoader(spec, batch_size=32, shuffle=True, split="train", output="numpy")
    test = stoker.DataLoader(spec, batch_size=100, split="test", output="numpy")
    columns = train.element_spec["rows"].shape[-1]
    table = np.concatenate([rows.copy() for rows, _ in train])
    mean, deviation = table.mean(0), table.std(0)
    weights, bias, rate = np.zeros(columns), 0.0, 0.05
    for epoch in range(epochs):
        for rows, labels in train:
            rows = (rows - mean) / deviation
            wrong = rows @ weights + bias - labels
            weights -= rate * rows.T @ wrong / len(rows)
            bias -= rate * wrong.mean()
        rate *= 0.7
    squares = [((rows - mean) / deviation @ weights + bias - labels) ** 2 for rows, labels in test]
    error = float(np.sqrt(np.concatenate(squares).mean()))
    print(f"{columns} columns, {len(train.dataset)} rows to train with: root mean square error {error:.3f}")
    return error


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?")
    parser.add_argument("--epochs", type=int, default=10)
    options = parser.parse_args(arguments)
    if options.data:
        return fit(options.data, options.epochs)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "table.csv")
        write_table(path)
        return fit(f"csv:{path}?label=y&test=0.2", options.epochs)


if __name__ == "__main__":
    main()
