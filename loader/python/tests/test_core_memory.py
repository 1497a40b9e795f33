"""The extension over many batches, and when memory runs out: nothing leaks, nothing crashes."""

import array
import gc
import itertools
import os
import sys

import pytest

from stoker import _core
from stoker._errors import StokerError


def dataset(count=64):
    rows = array.array("f", range(count))
    labels = array.array("q", [i % 4 for i in range(count)])
    names = ["a", "b", "c", "d"]
    return _core.Dataset.arrays(
        [
            ("row", "array", "float32", (), rows.buffer_info()[0], rows),
            ("label", "array", "int64", (), labels.buffer_info()[0], labels, 0, 4, names),
        ],
        count,
    )


class Row(tuple):
    """A tuple with attributes, as the package's batches are."""


class Loop(_core.Batches):
    def _end(self, reason):
        raise StopIteration


def same(value):
    return value


def loop_over(made, take=None, make=None):
    """An iterator of the rest of an epoch."""
    loop = Loop()
    made.run(loop, -1, Row, take, make, None, None, True)
    return loop


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_a_hundred_thousand_batches_leave_nothing():
    made = _core.Loader(dataset(), {"batch_size": 1, "num_workers": 0})

    def consume(batches):
        while batches > 0:
            if batches % 8 == 0:
                loop = loop_over(made, *((), (same,), (None, same))[batches % 3])
                batches -= sum(1 for _ in itertools.islice(loop, 3))
                continue
            batch = made.next()
            if isinstance(batch, int):
                continue
            kind = batches % 5
            if kind == 0:
                batch.capsules()
            elif kind == 1:
                batch.tensor(0).__dlpack__(max_version=(1, 0))
            elif kind == 2:
                batch.capsules(versioned=False)
                batch.release()
            elif kind == 3:
                batch.ids, batch.fields, batch.tensor(1).shape
            else:
                batch.tensor(0).__dlpack__(copy=True)
            batches -= 1

    consume(5000)
    gc.collect()
    blocks, bytes_held, types = sys.getallocatedblocks(), resident_bytes(), references()
    consume(100_000)
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 1000  # CPython's caches; one block a hundred batches would be as much
    if "asan" not in os.environ.get("LD_PRELOAD", ""):  # it keeps what is freed for a while
        assert resident_bytes() - bytes_held < 4 << 20  # 40 bytes a batch would be as much
    assert references() == types
    assert sys.getrefcount(made) == 2


def references():
    """Reference counts of what every call touches. Immortal objects keep theirs."""
    kinds = _core.Loader, _core.Batches, Loop, Row, _core.Batch, _core.Tensor, _core.Dataset, _core
    return [sys.getrefcount(kind) for kind in kinds]


def test_failing_calls_leave_nothing():
    made = dataset()
    bad = [{"batch_size": 0}, {"order": {"kind": "own", "ids": len, "name": 3}}, {"mean": [1, "x"]}, {"row_hook": 1}]

    calls = [lambda options=options: _core.Loader(made, options) for options in bad]
    calls.append(lambda: _core.Dataset.arrays([("x", "array", "float99", (), 0, made)], 1))
    calls.append(lambda: made.read(1000))
    calls.append(lambda: _core.Dataset.files([("x", ["/nowhere/a.png"] * 8, 0, 0, 0)], [], 8))
    calls.append(lambda: _core.Dataset.mix([made, made], array.array("d", [1, 1]), None, [(3, "x")]))
    calls.append(lambda: made.pack(8, fields=["tokens", "x"]))

    def fail():
        failed = 0
        for call in calls:  # not by pytest.raises(), which keeps things itself
            try:
                call()
            except (StokerError, TypeError, ValueError):
                failed += 1
        assert failed == len(calls)

    fail()
    gc.collect()
    count, grown = sys.getrefcount(made), []
    for _ in range(4):
        blocks = sys.getallocatedblocks()
        for _ in range(1000):
            fail()
        gc.collect()
        grown.append(sys.getallocatedblocks() - blocks)
    assert sys.getrefcount(made) == count
    assert min(grown) < 300, grown  # CPython keeps up to 80 freed dictionaries; one block a round would be 1000


# Made once: CPython 3.12 and 3.13 release a function's code twice if they have no memory for the function.
def in_order(epoch, positions):
    return list(positions)


def leave_row(rows, sample, seed):
    return None


def leave_batch(fields, batch, seed):
    return None


def make_sample(index, seed):
    return (array.array("h", [index, 1]), b"text")


def whole_use():
    """What a program does, from arrays to tensors; every call allocates."""
    made = dataset(8)
    view = _core.Dataset.concat([made.select(array.array("Q", [1, 2, 3])), made.split(0.5), made.balance()])
    view.fields, view.info, view.class_name(1, "label"), view.read(1)
    options = {
        "batch_size": 2,
        "num_workers": 0,
        "epochs": 1,
        "mean": [0.5],
        "std": [2.0],
        "dtype": "float32",
        "fields": {"label": {"dtype": "int64"}},
        "order": {"kind": "own", "ids": in_order, "name": "forward"},
        "row_hook": leave_row,
        "batch_hook": leave_batch,
        "trace_events": 64,
    }
    one = _core.Loader(view, options)
    try:
        batch = one.next()
        batch.capsules(), batch.tensor(1).__dlpack__(max_version=(1, 0)), batch.tensor(0).__dlpack__(copy=True)
        one.stats(), one.snapshot()
        seen = batch.fields, batch.ids, one.fields, one.state(), one.next().capsules() is None
        return *seen, len(_core.trace_json([("run", one.take_trace(64)[0], 0)])) > 100
    finally:
        one.close()


def python_use():
    """The same with the user's code as the data set."""
    made = _core.Dataset.python(
        [("x", "array", "int16", (2,), False, 0), ("t", "bytes", "uint8", (9,), True, 0)],
        4,
        make_sample,
    )
    made.read(1)
    one = _core.Loader(made, {"batch_size": 2, "num_workers": 0})
    try:
        batch = one.next()
        batch.capsules(versioned=False)
        return batch.ids, one.state()
    finally:
        one.close()


def sources_use():
    """Files, packed rows and a mix whose weights change, from its state on."""
    weights, ids = array.array("d", [1, 1]), array.array("q", [0, 1])
    files = [("text", [__file__, __file__], 0, 0, 0)], [("label", "array", "int64", (), ids.buffer_info()[0], ids)]
    _core.Dataset.files(*files, 2).read(1)
    tokens, offsets = array.array("i", range(12)), array.array("q", [0, 5, 9, 12])
    memory = tokens.buffer_info()[0], (tokens, offsets), offsets.buffer_info()[0]
    documents = _core.Dataset.arrays([("tokens", "array", "int32", (0,), *memory)], 3)
    documents.pack(8, long="split", fields=["tokens", "cu_seqlens"], dtype="int64", padding=-1, field="tokens").read(0)
    mix = _core.Dataset.mix([dataset(8), dataset(4)], weights, 12, [(5, weights)])
    one = _core.Loader(mix, {"batch_size": 2, "num_workers": 0, "prefetch_batches": 2})
    try:
        one.change_mix(8, array.array("d", [0, 1]))
        one.next().release()
        state = _core.seek(one.state(), 0, 6)
        counts = one.mix_counts()
    finally:
        one.close()
    with _core.Loader(mix, {"batch_size": 2, "num_workers": 0, "resume": state}) as other:
        return state, counts, mix.mix_counts(7), mix.mix_source(9), other.mix_counts(), other.next().ids


def loop_use():
    """A loop, as the package has it."""
    one = _core.Loader(dataset(8), {"batch_size": 2, "num_workers": 0, "epochs": 1})
    seen = []
    try:
        for take in ((), (same,), (None, same)):
            loop = loop_over(one, *take)
            batch = next(loop)
            seen.append((len(batch), batch._extras))
        return *seen, len(list(itertools.islice(loop, 1))), one.delivered
    finally:
        one.close()


@pytest.mark.parametrize("use", [whole_use, python_use, sources_use, loop_use])
def test_each_allocation_of_python_fails_once(use, capfd):
    testcapi = pytest.importorskip("_testcapi", reason="this Python has no module of its own tests")
    expected = use()  # imports and caches first
    failed = passed = 0
    for nth in range(1, 5000):
        error = result = None
        testcapi.set_nomemory(nth, nth + 1)  # not all from there on: CPython's interpreter may then never return
        try:
            result = use()
        except BaseException as raised:
            error = raised
        finally:
            testcapi.remove_mem_hooks()
        # A StokerError has the cause in it: the user's code ran out of memory in a worker.
        assert error is None or isinstance(error, (MemoryError, StokerError)), (nth, repr(error))
        assert error is not None or result == expected, nth  # no option was lost on the way
        failed += error is not None
        passed = passed + 1 if error is None else 0  # CPython does without some allocations, but not without 50
        if passed == 50:
            break
    assert failed > 50 and passed == 50
    gc.collect()
    assert use() == expected
    assert capfd.readouterr() == ("", "")  # a library prints nothing, and CPython had no error that it could not raise


def test_a_batch_kept_beyond_close_gives_its_memory_back():
    rows = array.array("f", range(400 * 1000))
    fields = [("row", "array", "float32", (1000,), rows.buffer_info()[0], rows)]
    made = _core.Dataset.arrays(fields, 400)

    def resident_bytes():
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def keep():
        loader = _core.Loader(made, {"batch_size": 200, "num_workers": 1, "epochs": 1})
        batch = loader.next()
        loader.close()
        return batch

    for _ in range(10):
        keep()
    before = resident_bytes()
    for _ in range(50):
        keep()
    assert resident_bytes() - before < 20 << 20  # each ring has 1.6 MB and more
