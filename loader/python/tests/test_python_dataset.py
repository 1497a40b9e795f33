"""Data sets written in Python: their samples, their errors, their randomness."""

import os
import signal
from collections import namedtuple

import pytest

import stoker
from conftest import ids_of

numpy = pytest.importorskip("numpy", reason="NumPy is not installed")


class Made:
    """A data set of what a function makes."""

    def __init__(self, function, count=10):
        self.function, self.count = function, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.function(index)


Pair = namedtuple("Pair", "left right")


@pytest.mark.parametrize("function, fields", [
    (lambda i: (numpy.full((4, 5, 3), i, "u1"), i), {"images": "uint8", "labels": "int64"}),
    (lambda i: {"x": numpy.float32(i) * numpy.ones(3, "f4"), "flag": i > 4}, {"x": "float32", "flag": "bool"}),
    (lambda i: Pair(float(i), i), {"left": "float64", "right": "int64"}),
    (lambda i: float(i), {"rows": "float64"}),
    (lambda i: [i, i + 1, i + 2], {"rows": "int64", "field1": "int64", "field2": "int64"}),
    (lambda i: {"images": numpy.full((2, 2, 1), i, "u1"), "masks": numpy.full((2, 2), i, "i8")}, {"images": "uint8", "masks": "int64"}),
])  # fmt: skip
@pytest.mark.parametrize("workers", [0, 2])
def test_fields_follow_from_the_first_sample(loader, function, fields, workers):
    batches = list(loader(Made(function), batch_size=4, num_workers=workers))
    assert {name: str(getattr(batches[0], name).dtype) for name in batches[0]._fields} == fields
    for batch in batches:
        for row, id in enumerate(batch.ids.tolist()):
            made = function(id)
            values = made.values() if isinstance(made, dict) else made if isinstance(made, (tuple, list)) else [made]
            for field, value in zip(batch, values):
                assert (field[row] == value).all()


def test_text_is_a_row_of_bytes_that_is_described(loader):
    words = ["a", "sample", "", "of", "wörds"]
    data = stoker.from_python([{"text": word, "label": index} for index, word in enumerate(words)], longest=10,
                              fields={"text": stoker.Field("uint8", (None,), "bytes"), "label": stoker.Field("int64", ())})  # fmt: skip
    assert [sample.text.decode() for sample in data] == words
    text, labels = next(iter(loader(data, batch_size=5)))
    bounds = text.offsets.tolist()
    assert [bytes(text.values[a:b]).decode() for a, b in zip(bounds, bounds[1:])] == words and labels.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(stoker.OptionError, match="from_python"):
        loader(Made(str))


@pytest.mark.parametrize("second", [numpy.zeros(4, "f4"), numpy.zeros(3, "f8"), 3.0, "text", None])
def test_a_sample_unlike_the_first_is_corrupt_and_says_how(loader, second):
    data = Made(lambda index: numpy.zeros(3, "f4") if index != 2 else second)
    with pytest.raises(stoker.CorruptSample) as caught:
        list(loader(data))
    assert caught.value.sample == 2 and isinstance(caught.value.__cause__, Exception)


def test_an_exception_is_the_cause_and_on_bad_sample_decides(loader):
    def fail_at_three(index):
        if index == 3:
            raise KeyError("three")
        return float(index)

    with pytest.raises(stoker.CorruptSample) as caught:
        list(loader(Made(fail_at_three)))
    assert isinstance(caught.value.__cause__, KeyError) and caught.value.sample == 3
    assert ids_of(loader(Made(fail_at_three), on_bad_sample="skip")) == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_make_gets_a_seed_that_repeats_but_differs_by_epoch_and_sample(loader):
    class Noise:
        def __len__(self):
            return 20

        def __getitem__(self, index):
            raise AssertionError("make() is there")

        def make(self, index, seed):
            return float(seed % 2**50)

    def epochs(workers):
        noise = loader(Noise(), num_workers=workers, seed=3)
        return [[float(value) for batch in noise for value in batch.rows] for _ in range(2)]

    first = epochs(1)
    assert first == epochs(2) and len(set(first[0] + first[1])) == 40


@pytest.mark.parametrize("wrong, word", [(iter([1]), "__getitem__"), ([], "no samples"), (Made(lambda i: ()), "empty"), (3, "__getitem__")])
def test_what_is_no_data_set_is_refused(loader, wrong, word):
    with pytest.raises(stoker.OptionError, match=word):
        loader(wrong)


def test_a_description_of_rows_that_differ_needs_the_longest():
    with pytest.raises(stoker.OptionError, match="longest"):
        stoker.from_python([{"x": numpy.zeros(2)}], fields={"x": stoker.Field("float64", (None,))})


def test_views_and_resume_work_as_with_files(loader):
    data = stoker.from_python(Made(float, 30)).select(range(29, -1, -1))
    first = loader(data, shuffle=True)
    batches = iter(first)
    before = ids_of([next(batches)])
    second = loader(data, shuffle=True)
    second.load_state_dict(first.state_dict())
    assert sorted(before + ids_of(second)) == list(range(30))


class Interrupted:
    """20 samples; the first call for sample 13 is interrupted by `stop`."""

    def __init__(self, stop):
        self.stop, self.asked = stop, []

    def __len__(self):
        return 20

    def __getitem__(self, index):
        self.asked.append(index)
        if index == 13 and self.stop is not None:
            stop, self.stop = self.stop, None
            stop()
        return index


def raising(kind):
    def stop():
        raise kind("once")

    return stop


@pytest.mark.parametrize("policy", ["fail", "skip", "substitute"])
@pytest.mark.parametrize("kind, stop", [
    (KeyboardInterrupt, lambda: os.kill(os.getpid(), signal.SIGINT)), (KeyboardInterrupt, raising(KeyboardInterrupt)),
    (SystemExit, raising(SystemExit)), (MemoryError, raising(MemoryError)),
])  # fmt: skip
def test_without_workers_an_interrupt_leaves_next_at_once_and_loses_nothing(loader, policy, kind, stop):
    data = Interrupted(stop)
    made = loader(data, num_workers=0, batch_size=20, on_bad_sample=policy)
    batches = iter(made)
    with pytest.raises(kind):
        next(batches)
    assert data.asked[1:] == list(range(14))  # no other sample after the interrupt; the first call was for the types
    assert ids_of(batches) == list(range(20)) and made.bad_samples() == []
    assert data.asked[15:] == list(range(13, 20))


@pytest.mark.parametrize("policy", ["fail", "skip", "substitute"])
@pytest.mark.parametrize("kind, raised", [(MemoryError, stoker.OutOfMemory), (SystemExit, SystemExit)])
def test_in_a_worker_what_is_no_fault_of_the_sample_ends_the_run(loader, policy, kind, raised):
    with pytest.raises(raised, match="once"):
        list(loader(Interrupted(raising(kind)), num_workers=1, on_bad_sample=policy))


def test_an_interrupt_of_a_single_sample_is_raised(loader):
    data = stoker.from_python(Interrupted(raising(KeyboardInterrupt)))
    with pytest.raises(KeyboardInterrupt):
        data[13]
    assert data[13].row == 13
