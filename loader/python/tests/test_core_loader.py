"""The extension's Loader and Batch: options, stops, tensors, and the user's code in workers."""

import array
import ctypes
import gc
import json
import time
import weakref

import pytest

from stoker import _core
from stoker._errors import StokerError

COUNT = 20


def dataset(count=COUNT):
    rows = array.array("f", range(count))
    labels = array.array("q", [i % 4 for i in range(count)])
    return _core.Dataset.arrays(
        [
            ("row", "array", "float32", (), rows.buffer_info()[0], rows),
            ("label", "array", "int64", (), labels.buffer_info()[0], labels),
        ],
        count,
    )


def ragged():
    entries = array.array("h", range(12))
    offsets = array.array("q", [0, 3, 3, 7, 12])
    at = (entries.buffer_info()[0], (entries, offsets), offsets.buffer_info()[0], 0, None)
    return _core.Dataset.arrays([("x", "array", "int16", (0,), *at)], 4)


def loader(made=None, **options):
    return _core.Loader(made or dataset(), {"batch_size": 5, "num_workers": 1, "epochs": 1, **options})


def numbers(tensor, code):
    """The values of a tensor in host memory, read at its address while it lives."""
    kinds = {"f": ctypes.c_float, "q": ctypes.c_int64, "Q": ctypes.c_uint64, "h": ctypes.c_int16}
    count = 1
    for length in tensor.shape:
        count *= length
    return list((kinds[code] * count).from_address(tensor.address)) if count else []


def epoch(made):
    """All rows of an epoch, batch by batch."""
    rows = []
    while not isinstance(batch := made.next(), int):
        rows.append(numbers(batch.tensor(0), "f"))
    return rows


def test_an_epoch():
    with loader() as made:
        assert (made.batches_per_epoch, made.fields, made.field("label"), made.field("x")) == (4, ("row", "label"), 1, -1)
        first = made.next()
        assert (first.count, first.padded, first.epoch, first.index, first.device) == (5, 0, 0, 0, "cpu")
        assert first.fields == (("row", "float32", (5,), False), ("label", "int64", (5,), False))
        assert array.array("Q", first.ids).tolist() == [0, 1, 2, 3, 4]
        assert numbers(first.tensor(_core.PART_LABELS), "q") == [0, 1, 2, 3, 0] == numbers(first.tensor(1), "q")
        assert numbers(first.tensor(_core.PART_IDS), "Q") == [0, 1, 2, 3, 4]
        assert [row for rows in epoch(made) for row in rows] == list(range(5, 20))
        assert made.next() == _core.FINISHED == made.next()
    assert made.closed
    with pytest.raises(RuntimeError, match="closed"):
        made.next()
    with pytest.raises(RuntimeError, match="closed"):
        first.ids


def test_stops_in_order():
    made = loader(epochs=2, batch_size=20)
    stops = [made.next() for _ in range(4)]
    assert [stop if isinstance(stop, int) else stop.epoch for stop in stops] == [0, _core.EPOCH_END, 1, _core.EPOCH_END]
    assert made.next() == _core.FINISHED


def test_interrupt_and_timeout():
    gate = []

    def make(index, seed):
        while not gate:
            pass
        return (b"1234",)

    slow = _core.Dataset.python([("x", "array", "float32", (), False, 0)], 10, make)
    made = loader(slow)
    with pytest.raises(TimeoutError):
        made.next(0)
    with pytest.raises(TimeoutError):
        made.next(timeout_ms=70)
    made.interrupt()
    assert made.next() == _core.INTERRUPTED
    with pytest.raises(ValueError, match="timeout_ms"):
        made.next(-2)
    with pytest.raises(ValueError, match="there is no 3"):
        _core.Loader(slow, {3: 1})
    gate.append(True)
    assert made.next().count == 5


@pytest.mark.parametrize(
    "options, kind, text",
    [
        ({"batchsize": 1}, ValueError, "options: there is no 'batchsize'"),
        ({"batch_size": "4"}, TypeError, "batch_size: an int"),
        ({"batch_size": 2**32}, ValueError, "batch_size"),
        ({"batch_size": 0}, StokerError, "batch_size"),
        ({"batch_size": 4.0}, TypeError, "batch_size"),
        ({"shuffle": 1}, TypeError, "shuffle: True or False"),
        ({"last": "keep"}, ValueError, "short, drop, pad"),
        ({"seed": "auto"}, TypeError, "seed"),
        ({"dtype": "float31"}, ValueError, "dtype: 'float31' is none of uint8"),
        ({"on_lent": "busy"}, ValueError, "wait, grow"),
        ({"pin_memory": "maybe"}, ValueError, "auto, on, off"),
        ({"scale": "big"}, TypeError, "scale"),
        ({"transform": {"crop": 1}}, ValueError, "transform: there is no 'crop'"),
        ({"transform": {"resize": (1, 2, 3)}}, ValueError, "resize: 3 values"),
        ({"transform": {"resize": (-1, 2)}}, ValueError, "resize"),
        ({"transform": {"fill": (256,)}}, ValueError, "fill"),
        ({"transform": 5}, TypeError, "transform: a dictionary"),
        ({"blend": {"alpha": 1}}, ValueError, "blend: there is no 'alpha'"),
        ({"mean": [0.5], "std": [1, 2]}, ValueError, "std"),
        ({"mean": [0.5] * 65}, ValueError, "mean: 65 values"),
        ({"mean": ["x"]}, TypeError, "mean: a number"),
        ({"fields": {"label": {"form": "wide"}}}, ValueError, "packed"),
        ({"fields": {"color": {}}}, StokerError, "color"),
        ({"fields": ["label"]}, TypeError, "fields: a dictionary"),
        ({"order": {"kind": "weighted", "weights": b"123"}}, TypeError, "8 bytes"),
        ({"order": {"kind": "weighted", "weights": array.array("d", [1.0])}}, StokerError, "weight"),
        ({"order": {"kind": "own"}}, StokerError, "ids"),
        ({"order": {"kind": "own", "ids": 3}}, TypeError, "callable"),
        ({"row_hook": 3}, TypeError, "row_hook: a callable"),
        ({"batch_hook": "x"}, TypeError, "batch_hook: a callable"),
        ({"on_log": ()}, TypeError, "on_log: a callable"),
        ({"resume": b"short"}, ValueError, "not a state of a loader, or damaged: 5 bytes"),
        ({"resume": "text"}, TypeError, "resume"),
        ({"reader": 1}, ValueError, "there is no 'reader'"),
    ],
)
def test_options_that_are_refused(options, kind, text):
    with pytest.raises(kind, match=text):
        loader(**options)


def test_every_option_has_a_default_and_a_value():
    made = loader(
        **dict.fromkeys(("dtype", "transform", "blend", "mean", "fields", "order", "resume", "row_hook", "on_log"), None),
        shuffle=False, last="pad", seed=2**64 - 1, prefetch_batches="auto", read_depth="auto", cache="auto",
        memory_bytes="auto", share_cache="auto", on_lent="auto", device="cpu", device_index=0,
        pin_memory=False, non_blocking=True, convert_on_device="auto", layout="NHWC", scale="auto", rank=1, world_size=3,
        on_bad_sample="skip", max_bad_samples=None, trace_events=0, deal="batches", local_rank=0, local_world_size=1,
        decode="cpu",
    )  # fmt: skip
    first = made.next()
    assert numbers(first.tensor(0), "f") == [5, 6, 7, 8, 9]
    second = made.next()
    assert (second.count, second.padded) == (5, 5) and made.next() == _core.EPOCH_END


def test_images_are_transformed():
    pixels = array.array("B", [7] * 2 * 4 * 6 * 3)
    images = _core.Dataset.arrays([("image", "image", "uint8", (4, 6, 3), pixels.buffer_info()[0], pixels)], 2)
    options = {"transform": {"resize": (2, 5), "decode_scale": "fast", "fill": (1, 2, 3)}, "dtype": "float32"}
    made = loader(images, batch_size=2, layout="NCHW", scale=2.0, mean=[4.0], std=[5.0], **options)
    image = made.next().tensor(0)
    assert image.shape == (2, 3, 2, 5) and set(numbers(image, "f")) == {2.0}


def test_rows_of_different_lengths():
    batch = loader(ragged(), batch_size=4).next()
    assert batch.fields == (("x", "int16", (12,), True),)
    assert numbers(batch.tensor(_core.PART_OFFSETS), "q") == [0, 3, 3, 7, 12]
    (values, offsets), = batch.capsules()
    assert "dltensor_versioned" in repr(values) and "dltensor_versioned" in repr(offsets)
    padded = loader(ragged(), batch_size=4, fields={"x": {"form": "padded", "pad_value": -1}}).next().tensor(0)
    assert padded.shape == (4, 5) and numbers(padded, "h")[:5] == [0, 1, 2, -1, -1]


# ---- tensors ----


def test_several_capsules_of_a_part_share_its_memory():
    batch = loader().next()
    tensor = batch.tensor(0)
    capsules = [batch.capsule(0), batch.capsule(0, versioned=False), tensor.__dlpack__(max_version=(1, 0))]
    capsules += [tensor.__dlpack__(), tensor.__dlpack__(stream=None, dl_device=(1, 0), copy=False), *batch.capsules()]
    assert tensor.__dlpack_device__() == (1, 0)
    assert [repr(one).count('"dltensor"') for one in capsules] == [0, 1, 0, 1, 1, 0, 0]
    batch.release()
    assert batch.released and "dltensor" in repr(tensor.__dlpack__())
    with pytest.raises(RuntimeError, match="released"):
        batch.tensor(0)
    with pytest.raises(RuntimeError, match="released"):
        batch.tensor(1)


@pytest.mark.parametrize(
    "wishes, kind",
    [({"dl_device": (2, 0)}, BufferError), ({"dl_device": 1}, TypeError), ({"max_version": 1}, TypeError),
     ({"max_version": (1,)}, TypeError), ({"stream": "x"}, TypeError), ({"other": 1}, TypeError)],
)  # fmt: skip
def test_wishes_that_are_refused(wishes, kind):
    with pytest.raises(kind):
        loader().next().tensor(0).__dlpack__(**wishes)


def test_parts_that_do_not_exist():
    batch = loader().next()
    for part in (2, 127, _core.PART_OFFSETS, 255, 258, 2**32 - 1):
        with pytest.raises(ValueError, match="no part"):
            batch.tensor(part)
        with pytest.raises(ValueError, match="no part"):
            batch.capsule(part)
    with pytest.raises(TypeError):
        _core.Batch()
    with pytest.raises(TypeError):
        _core.Tensor()


def test_numpy_shares_and_copies():
    numpy = pytest.importorskip("numpy")
    made = loader()
    tensor = made.next().tensor(0)
    shared = numpy.from_dlpack(tensor)
    shared[0] = 77
    assert numbers(tensor, "f")[0] == 77
    copied = numpy.from_dlpack(tensor, copy=True)
    copied[0] = 5
    assert shared[0] == 77
    del tensor, made
    gc.collect()
    assert shared.tolist() == [77, 1, 2, 3, 4]


# ---- a loop ----


class Row(tuple):
    """A tuple with attributes, as the package's batches are."""


class Loop(_core.Batches):
    def _next(self):
        raise LookupError("it does not run")

    def _end(self, reason):
        raise StopIteration(reason)


def run(made, loop, take=None, make=None, change=None):
    made.run(loop, -1, Row, take, make, None, change, True)
    return loop


def test_a_loop_makes_batches():
    made = loader(epochs=2)
    loop = run(made, Loop())
    first = next(loop)
    assert type(first) is Row and numbers(first[0], "f") == [0, 1, 2, 3, 4] and numbers(first[1], "q") == [0, 1, 2, 3, 0]
    assert first._extras == array.array("Q", [0, 0, 0, *range(5)]).tobytes() and made.delivered == 1
    assert ["dltensor_versioned" in repr(capsule) for capsule in next(run(made, loop, take=lambda capsule: capsule))] == [True] * 2
    assert next(run(made, loop, make=lambda capsules: [len(capsules)])) == (2,)
    assert next(run(made, loop, change=len)) == 2
    with pytest.raises(StopIteration) as ended:
        next(loop)
    assert ended.value.value == _core.EPOCH_END and made.delivered == 0
    with pytest.raises(LookupError):
        next(loop)
    assert next(run(made, loop))._extras[:16] == array.array("Q", [1, 0]).tobytes()


def test_one_loop_runs_at_a_time():
    made = loader()
    first, second = run(made, Loop()), run(made, Loop())
    with pytest.raises(LookupError):
        next(first)
    assert len(next(second)) == 2
    made.halt()
    for stopped in (first, second, Loop()):
        with pytest.raises(LookupError):
            next(stopped)
    third = run(made, Loop())
    made.close()
    with pytest.raises(LookupError):
        next(third)


def test_a_batch_that_no_array_is_made_of_is_given_back():
    made = loader(prefetch_batches=2, on_lent="wait", batch_size=2)

    def refuse(capsule):
        raise ArithmeticError("no array")

    loop = run(made, Loop(), take=refuse)
    for _ in range(5):  # more than there is memory for
        with pytest.raises(ArithmeticError):
            next(loop)
    assert numbers(next(run(made, loop))[0], "f") == [10, 11]


# ---- the user's code ----


def test_a_row_hook_changes_rows():
    seen = []

    def hook(rows, sample, seed):
        seen.append((sample["id"], sample["epoch"], seed))
        rows[0].cast("f")[0] = 100 + sample["id"]
        rows[1].cast("q")[0] = -1

    for workers in (0, 2):
        made = loader(row_hook=hook, num_workers=workers)
        batch = made.next()
        assert numbers(batch.tensor(0), "f") == [100, 101, 102, 103, 104]
        assert numbers(batch.tensor(1), "q") == [-1] * 5
        made.close()
    assert len({seed for *_, seed in seen}) == len({row for row, *_ in seen})  # a function of the id alone


def test_a_row_hook_sets_lengths():
    def hook(rows, sample, seed):
        return [2]

    batch = loader(ragged(), batch_size=4, row_hook=hook).next()
    assert numbers(batch.tensor(_core.PART_OFFSETS), "q") == [0, 2, 4, 6, 8]
    for wrong in ([2, 2], [99], ["x"], 3):
        with pytest.raises(StokerError):
            loader(ragged(), batch_size=4, row_hook=lambda rows, sample, seed: wrong).next()


def test_a_batch_hook_sees_all_rows():
    def hook(fields, batch, seed):
        (rows, row_bytes, lengths), (labels, _, _) = fields
        assert (row_bytes, lengths, len(rows), batch["rows"]) == (4, None, 20, 5)
        assert batch["ids"].tolist() == list(range(batch["position"], batch["position"] + 5))
        values = rows.cast("f")
        for i in range(5):
            values[i] *= 10
        with pytest.raises(TypeError):
            batch["ids"][0] = 1

    assert epoch(loader(batch_hook=hook))[1] == [50, 60, 70, 80, 90]


@pytest.mark.parametrize("kind", ["row_hook", "batch_hook"])
def test_a_hook_that_raises_is_the_cause(kind):
    def hook(*arguments):
        raise ArithmeticError("the hook's own")

    made = loader(**{kind: hook})
    for _ in range(2):  # the same error on every call
        with pytest.raises(StokerError, match="the hook's own") as caught:
            made.next()
        assert caught.value.stage == "hook"
    first = loader(**{kind: hook})
    with pytest.raises(StokerError) as caught:
        first.next()
    assert isinstance(caught.value.__cause__, ArithmeticError)


@pytest.mark.parametrize("how", ["view", "cast", "slice", "exception"])
def test_a_hook_that_keeps_rows_is_an_error_and_the_memory_stays(how):
    kept = []

    def hook(rows, sample, seed):
        made = {"view": rows[0], "cast": rows[0].cast("f"), "slice": rows[0][:2], "exception": rows[0].cast("f")}[how]
        kept.append(made)
        if how == "exception":
            raise ValueError

    made = loader(row_hook=hook)
    if how == "view":  # it is released with the call, so it points to nothing
        made.next()
        with pytest.raises(ValueError, match="released"):
            bytes(kept[0])
        return
    with pytest.raises(StokerError, match="copy what you keep"):
        made.next()
    made.close()
    del made
    gc.collect()
    assert len(bytes(kept[0])) in (2, 4)  # still memory


def test_an_order_of_ones_own():
    def order(epoch, positions):
        return [COUNT - 1 - position for position in positions]

    expected = [[19, 18, 17, 16, 15], [14, 13, 12, 11, 10], [9, 8, 7, 6, 5], [4, 3, 2, 1, 0]]
    forms = (
        order,
        lambda epoch, positions: array.array("Q", order(epoch, positions)),
        lambda epoch, positions: bytes(array.array("Q", order(epoch, positions))),
        lambda epoch, positions: (COUNT - 1 - position for position in positions),
    )
    for ids in forms:
        assert epoch(loader(order={"kind": "own", "ids": ids, "name": "reverse", "fingerprint": 3})) == expected
    for wrong in (lambda e, p: [0], lambda e, p: b"12345678" * 9, lambda e, p: [-1] * len(p), lambda e, p: [COUNT] * len(p)):
        with pytest.raises(StokerError):
            loader(order={"kind": "own", "ids": wrong}).next()
    state = loader(order={"kind": "own", "ids": order, "name": "reverse"}).state()
    with pytest.raises(StokerError):
        loader(order={"kind": "own", "ids": order, "name": "other"}, resume=state)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_log_and_what_it_raises():
    lines = []
    made = loader(on_log=lambda level, text: lines.append((level, text)))
    made.next()
    assert lines and {level for level, _ in lines} <= {"info", "warning"}

    def fail(level, text):
        raise ValueError("the log fails")

    assert loader(on_log=fail).next().count == 5


def test_bad_samples_are_skipped_and_reported():
    def make(index, seed):
        if index in (2, 7):
            raise ValueError(f"bad sample {index}")
        return (array.array("f", [index]),)

    made = loader(_core.Dataset.python([("x", "array", "float32", (), False, 0)], COUNT, make), on_bad_sample="skip")
    assert epoch(made)[0] == [0, 1, 3, 4]
    reports = [made.bad_sample(i) for i in range(3)]
    assert sorted(report["sample"] for report in reports[:2]) == [2, 7] and reports[2] is None
    assert "bad sample" in reports[0]["message"] and reports[0]["stage"] == "decode"
    assert made.stats()["bad_samples"] == 2


# ---- what it says of itself ----


def test_stats_and_snapshots():
    made = loader()
    before = made.snapshot()
    assert len(epoch(made)) == 4
    stats, between = made.stats(), _core.stats_between(before, made.snapshot())
    assert (stats["batches"], stats["samples"], between["batches"]) == (4, COUNT, 4)
    assert (stats["cache"], stats["device"], type(stats["verdict"])) == ("none", "cpu", str)
    with pytest.raises(StokerError):
        _core.stats_between(made.snapshot(), before)
    with pytest.raises(ValueError):
        _core.stats_between(b"", before)


def test_a_trace_opens_as_json():
    made = loader(trace_events=1024)
    assert len(epoch(made)) == 4
    events, recorded, dropped = made.take_trace()
    assert len(events) == 40 * recorded > 0 == dropped
    text = json.loads(_core.trace_json([("run", events, dropped)]))
    assert any(event.get("name") == "lend" for event in text)
    assert made.take_trace(0) == (b"", recorded, 0)
    with pytest.raises(ValueError):
        _core.trace_json([("run", b"123", 0)])
    with pytest.raises(StokerError, match="trace_events"):
        loader().take_trace()


def test_a_descriptor():
    import select

    made = loader()
    descriptor = made.fileno()
    assert descriptor == made.fileno()
    assert select.select([descriptor], [], [], 60)[0] == [descriptor]
    assert made.next(0).count == 5


# ---- what keeps what ----


def test_a_loader_is_collected_with_a_cycle_through_its_hook():
    class Owner:
        def hook(self, rows, sample, seed):
            pass

    owner = Owner()
    owner.loader = loader(row_hook=owner.hook)
    owner.loader.next()
    seen = weakref.ref(owner), weakref.ref(owner.loader)
    del owner
    for _ in range(1000):
        gc.collect()
        if [one() for one in seen] == [None, None]:
            return
        time.sleep(0.01)  # the worker was in the hook, whose frame refers to the owner
    raise AssertionError(seen)


def test_batches_keep_their_loader_and_tensors_their_memory():
    made = loader()
    seen = weakref.ref(made)
    batch = made.next()
    assert batch.loader is made
    tensor = batch.tensor(0)
    capsule = tensor.__dlpack__()
    del made, batch
    gc.collect()
    assert seen() is not None and numbers(tensor, "f") == [0, 1, 2, 3, 4]
    del tensor
    gc.collect()
    assert seen() is None and "dltensor" in repr(capsule)
