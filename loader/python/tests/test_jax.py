"""Batches as JAX arrays."""

import pytest

import stoker

jax = pytest.importorskip("jax", reason="JAX is not installed")


def test_arrays_have_the_types_shapes_and_values(hundred, loader):
    x, y = next(iter(loader(hundred, output="jax")))
    assert isinstance(x, jax.Array) and x.shape == (10, 2) and x.dtype == "float32" and y.shape == (10,)
    assert (x[:, 0] == jax.numpy.arange(10)).all() and (y == jax.numpy.arange(10) % 10).all()


def test_a_kept_array_keeps_its_values(hundred, loader):
    kept = [batch.rows for _ in range(2) for batch in loader(hundred, output="jax", prefetch_factor=2)]
    assert all((rows[:, 0] == jax.numpy.arange(10) + 10 * (index % 10)).all() for index, rows in enumerate(kept))


def test_jax_arrays_are_data_sets():
    data = stoker.from_arrays(jax.numpy.arange(6.0).reshape(3, 2), jax.numpy.array([0, 1, 1]))
    assert data[2].row.tolist() == [4, 5] and data[2].label == 1


def test_bfloat16(pictures, loader):
    images = next(iter(loader(str(pictures), output="jax", dtype="bfloat16"))).images
    assert images.dtype == jax.numpy.bfloat16
