"""The extension's Dataset: arrays, the user's code, views, and what they refuse."""

import array
import gc
import sys
import weakref

import pytest

from stoker import _core
from stoker._errors import StokerError

COUNT = 20


def field(name, numbers, dtype, *, shape=(), kind="array", rest=()):
    return (name, kind, dtype, shape, numbers.buffer_info()[0], numbers, *rest)


def dataset(count=COUNT):
    rows = array.array("f", [i + part / 10 for i in range(count) for part in range(3)])
    labels = array.array("i", [i % 4 for i in range(count)])
    names = ["north", "east", "south", "west"]
    return _core.Dataset.arrays(
        [field("row", rows, "float32", shape=(3,)), field("label", labels, "int32", rest=(0, 4, names))], count, 7
    )


def row(made, index):
    return memoryview(made.read(index)[0]).cast("f").tolist()


def test_arrays_describe_themselves():
    made = dataset()
    assert (made.count, made.name, made.info["fingerprint"]) == (COUNT, "arrays", 7)
    first, second = made.fields
    assert (first["name"], first["dtype"], first["shape"], first["varies"]) == ("row", "float32", (3,), False)
    assert (second["dtype"], second["class_count"]) == ("int64", 4)
    assert made.class_name(2) == "south" == made.class_name(2, "label")
    assert made.class_name(4) is None
    assert made.info["in_memory"] and made.info["label_dtype"] == "int64"
    with pytest.raises(ValueError, match="there is no 'color'"):
        made.class_name(0, "color")


def test_read_gives_each_field_as_stored():
    values, label = dataset().read(5)
    assert memoryview(values).cast("f").tolist() == pytest.approx([5, 5.1, 5.2])
    assert memoryview(label).cast("q").tolist() == [1]
    with pytest.raises(StokerError):
        dataset().read(COUNT)


def test_arrays_live_as_long_as_a_view_of_them():
    rows = array.array("f", range(COUNT))
    seen = weakref.ref(rows)
    made = _core.Dataset.arrays([field("row", rows, "float32")], COUNT)
    view = made.select(array.array("Q", [3]))
    del rows, made
    gc.collect()
    assert seen() is not None and row(view, 0) == [3]
    del view
    gc.collect()
    assert seen() is None


def test_a_failed_call_keeps_no_array():
    rows = array.array("f", range(COUNT))
    seen = weakref.ref(rows)
    with pytest.raises(StokerError):
        _core.Dataset.arrays([field("no spaces here", rows, "float32")], COUNT)
    with pytest.raises(ValueError):
        _core.Dataset.arrays([field("row", rows, "float31")], COUNT)
    del rows
    gc.collect()
    assert seen() is None


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda made: made.select([1, 2]), TypeError, "memoryview"),
        (lambda made: made.select(b"123"), TypeError, "8 bytes"),
        (lambda made: made.select(array.array("Q", [COUNT])), StokerError, "20"),
        (lambda made: made.split(2.0), StokerError, "test"),
        (lambda made: made.split("half"), TypeError, "test: a number"),
        (lambda made: made.split(0.5, side="left"), ValueError, "train, test"),
        (lambda made: made.split(0.5, stratified=1), TypeError, "True or False"),
        (lambda made: made.read(-1), ValueError, "out of its range"),
        (lambda made: made.read(2**64), ValueError, "out of its range"),
        (lambda made: _core.Dataset.concat([made, None]), TypeError, "a Dataset"),
        (lambda made: _core.Dataset.concat([]), StokerError, "concat"),
        (lambda made: _core.Dataset(), TypeError, "Dataset.open"),
        (lambda made: _core.Dataset.open(b"mnist:x"), TypeError, "a str"),
        (lambda made: _core.Dataset.open("a\0b"), ValueError, "NUL"),
        (lambda made: _core.Dataset.open("x", max_bytes="many"), TypeError, "max_bytes"),
        (lambda made: _core.Dataset.arrays([("x",)], 1), TypeError, "arguments"),
        (lambda made: _core.Dataset.arrays(["x"], 1), TypeError, "a tuple"),
        (lambda made: _core.Dataset.arrays([], 1), StokerError, "array"),
        (lambda made: _core.seek(b"", 0, 0), ValueError, "0 bytes"),
        (lambda made: _core.seek(bytes(64), 0, 0), StokerError, "not a state of a loader"),
    ],
)
def test_refusals(call, kind, text):
    with pytest.raises(kind, match=text):
        call(dataset())


def test_a_path_that_is_not_utf8(tmp_path):
    name = f"{tmp_path}/caf\udce9"
    with pytest.raises(FileNotFoundError):
        _core.Dataset.open(f"folder:{name}")


# ---- samples that Python code makes ----


def made_of(make, fields=(("x", "array", "int16", (2,), False, 0),), count=COUNT):
    return _core.Dataset.python(list(fields), count, make, 5)


def test_python_samples():
    made = made_of(
        lambda index, seed: (array.array("h", [index, -index]), b"ab" * index),
        [("x", "array", "int16", (2,), False, 0), ("text", "bytes", "uint8", (10,), True, 0)],
    )
    assert (made.name, made.fields[1]["varies"]) == ("python", True)
    assert memoryview(made.read(3)[0]).cast("h").tolist() == [3, -3]
    assert [bytes(made.read(i)[1]) for i in (0, 5)] == [b"", b"ababababab"]
    with pytest.raises(StokerError, match="12 bytes"):
        made.read(6)


@pytest.mark.parametrize(
    "returned, text",
    [
        (None, "no len"),
        ((), "0 objects for 1 field"),
        ((b"12345",), "5 bytes"),
        ((b"123",), "3 bytes"),
        ((17,), "bytes-like"),
        ((memoryview(b"12345678")[::2],), "contiguous"),
    ],
)
def test_wrong_python_samples(returned, text):
    with pytest.raises(StokerError) as caught:
        made_of(lambda index, seed: returned).read(0)
    assert caught.value.sample == 0 and text in str(caught.value.__cause__)


def test_what_is_no_exception_passes_through():
    def make(index, seed):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made_of(make).read(0)


def test_make_is_released_with_the_last_view():
    class Maker:
        def __call__(self, index, seed):
            return (b"1234",)

    make = Maker()
    seen = weakref.ref(make)
    made = made_of(make)
    view = _core.Dataset.concat([made, made])
    del make, made
    gc.collect()
    assert seen() is not None and view.read(0) == (bytearray(b"1234"),)
    del view
    gc.collect()
    assert seen() is None


def test_nothing_keeps_what_make_returned():
    seen = []

    def make(index, seed):
        value = array.array("h", [index, index])
        seen.append(weakref.ref(value))
        return [value]

    made = made_of(make)
    for index in range(COUNT):
        made.read(index)
    gc.collect()
    assert len(seen) == COUNT and not any(ref() for ref in seen)


def test_reference_counts_stay():
    made = dataset()
    ids = array.array("Q", [1])
    before = [sys.getrefcount(made), sys.getrefcount(ids)]
    for _ in range(100):
        made.select(ids)
        made.read(1)
        for refuse in (lambda: made.select([1]), lambda: made.read(COUNT)):
            with pytest.raises((TypeError, StokerError)):
                refuse()
    gc.collect()
    assert [sys.getrefcount(made), sys.getrefcount(ids)] == before
