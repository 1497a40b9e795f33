"""from_arrays: arrays in memory, without a copy."""

import gc
import weakref

import pytest

import stoker

numpy = pytest.importorskip("numpy", reason="NumPy is not installed")


def test_positional_arrays_are_samples_and_labels():
    data = stoker.from_arrays(numpy.zeros((5, 3), dtype=numpy.float32), numpy.arange(5))
    assert data.fields == {"row": stoker.Field("float32", (3,)), "label": stoker.Field("int64", (), "array", 5)}
    assert data[3].label == 3


@pytest.mark.parametrize("shape, dtype, name, stored", [
    ((4, 8, 9), "uint8", "image", (8, 9, 1)), ((4, 8, 9, 3), "uint8", "image", (8, 9, 3)), ((4, 8, 9), "float32", "row", (8, 9)),
    ((4, 8, 9, 5), "uint8", "row", (8, 9, 5)), ((4,), "int16", "row", ()),
])  # fmt: skip
def test_what_is_an_image_follows_from_type_and_shape(shape, dtype, name, stored):
    data = stoker.from_arrays(numpy.zeros(shape, dtype=dtype))
    assert {field: info.shape for field, info in data.fields.items()} == {name: stored}


def test_arrays_by_name_are_fields_and_attributes(loader):
    data = stoker.from_arrays(
        images=numpy.full((6, 4, 4, 3), 7, dtype=numpy.uint8),
        masks=numpy.ones((6, 4, 4), dtype=numpy.uint8),
        boxes=numpy.arange(24, dtype=numpy.float32).reshape(6, 4),
        labels=numpy.arange(6, dtype=numpy.int32),
        classes=["a", "b", "c", "d", "e", "f"],
    )
    assert [(name, field.kind) for name, field in data.fields.items()] == [
        ("image", "image"), ("masks", "mask"), ("boxes", "array"), ("label", "array")]  # fmt: skip
    assert data.classes == ["a", "b", "c", "d", "e", "f"]
    batch = next(iter(loader(data, batch_size=6)))
    assert batch._fields == ("images", "masks", "boxes", "labels")
    assert batch.boxes[5].tolist() == [20, 21, 22, 23] and batch.labels.dtype == "int64" and batch.masks.shape == (6, 4, 4, 1)


def test_dense_arrays_are_not_copied_and_live_as_long_as_the_data_set():
    array = numpy.zeros((5, 3), dtype=numpy.float32)
    data = stoker.from_arrays(array)
    array[2, 1] = 5  # it must not change while it is used; here it shows that the memory is the array's
    assert data[2].row[1] == 5
    alive = weakref.ref(array)
    del array
    gc.collect()
    assert alive() is not None and data[2].row[1] == 5
    del data
    gc.collect()
    assert alive() is None


def test_strided_and_foreign_arrays_are_made_dense():
    array = numpy.arange(20, dtype=">i4").reshape(10, 2)[::2]
    assert stoker.from_arrays(array)[3].row.tolist() == [12, 13]


def test_lists_are_arrays_too():
    data = stoker.from_arrays([[1.5, 2], [3, 4]], [0, 1])
    assert data[1].row.tolist() == [3, 4] and data[1].label == 1


def test_rows_of_different_lengths(loader):
    tokens = stoker.Ragged(numpy.array([1, 2, 3, 4, 5, 6], dtype=numpy.uint16), [0, 3, 3, 6])
    data = stoker.from_arrays(tokens=tokens)
    assert data.fields == {"tokens": stoker.Field("uint16", (None,))}
    assert [sample.tokens.tolist() for sample in data] == [[1, 2, 3], [], [4, 5, 6]]
    batch = next(iter(loader(data, batch_size=3)))
    assert batch.tokens.values.tolist() == [1, 2, 3, 4, 5, 6] and batch.tokens.offsets.tolist() == [0, 3, 3, 6]
    padded = stoker.FieldOptions(pad=4, pad_value=9)
    batch = next(iter(loader(data, batch_size=3, fields={"tokens": padded})))
    assert batch.tokens.values.tolist() == [[1, 2, 3, 9], [9, 9, 9, 9], [4, 5, 6, 9]]
    assert batch.tokens.lengths.tolist() == [3, 0, 3]


@pytest.mark.parametrize("arrays, named, word", [
    ((), {}, "at least one"), (([1], [1], [1]), {}, "by name"), (([1],), {"masks": [1]}, "by name"),
    (([1, 2], [1]), {}, "differ"), ((["a"],), {}, "numbers"), ((5,), {}, "single number"),
    ((numpy.zeros(3, dtype="M8[s]"),), {}, "numbers"), ((), {"kinds": {"nope": "image"}, "x": [1]}, "nope"),
    ((), {"x": stoker.Ragged([1], 3)}, "offsets"),
])  # fmt: skip
def test_arrays_that_make_no_data_set_are_refused(arrays, named, word):
    with pytest.raises(stoker.OptionError, match=word):
        stoker.from_arrays(*arrays, **named)


def test_kinds_say_what_the_shape_does_not():
    pixels = numpy.zeros((2, 8, 8), dtype=numpy.uint8)
    data = stoker.from_arrays(photo=pixels, classes_of_pixels=pixels, kinds={"photo": "array", "classes_of_pixels": "mask"})
    assert [field.kind for field in data.fields.values()] == ["array", "mask"]
