"""Batches as NumPy arrays."""

import pytest

import stoker

numpy = pytest.importorskip("numpy", reason="NumPy is not installed")


def test_arrays_have_the_types_shapes_and_values(loader):
    batch = next(iter(loader()))
    assert batch.rows.dtype == numpy.float32 and batch.rows.shape == (10, 2)
    assert (batch.rows[:, 1] == numpy.arange(10) + 0.5).all()
    assert batch.labels.dtype == numpy.int64 and batch.ids.dtype == numpy.uint64


def test_arrays_can_be_written_to(loader):
    batch = next(iter(loader()))
    batch.rows[:] = 3
    assert (batch.rows == 3).all()


@pytest.mark.parametrize("dtype", ["float16", "float32", "uint8"])
def test_types_asked_for(pictures, loader, dtype):
    images = next(iter(loader(str(pictures), dtype=dtype))).images
    assert images.dtype == dtype and images.shape == (10, 8, 8, 1)
    assert images[5].astype("float64") == pytest.approx(50 / (1 if dtype == "uint8" else 255), abs=1e-3)


def test_layout_moves_the_channels(pictures, loader):
    planes = loader(str(pictures), layout="NCHW")
    assert next(iter(planes)).images.shape == (10, 1, 8, 8)
    assert planes.element_spec["images"].shape == (None, 1, 8, 8)


def test_bfloat16_which_numpy_lacks_is_refused(loader):
    with pytest.raises(stoker.OptionError, match="bfloat16"):
        loader(dtype="bfloat16")


def test_a_gpu_is_not_for_numpy():
    from stoker._outputs import output_of

    with pytest.raises(stoker.OptionError, match="cpu"):
        output_of("numpy", "cuda", 0, None)


def test_element_spec_says_what_is_delivered(loader):
    assert loader(dtype="float16", fields={"label": stoker.FieldOptions(dtype="float32")}).element_spec == {
        "rows": stoker.Field("float16", (None, 2)), "labels": stoker.Field("float32", (None,), "array", 10)}  # fmt: skip


def test_dlpack_objects_are_taken_by_from_dlpack(loader):
    batch = next(iter(loader(output="dlpack")))
    rows = numpy.from_dlpack(batch.rows)
    assert (rows == numpy.from_dlpack(batch.rows)).all() and rows[4, 0] == 4
    assert batch.ids.tolist() == list(range(10))
