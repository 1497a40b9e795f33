"""The extension in several threads, at exit, after a fork, and when signals arrive: nothing hangs, nothing crashes.

What may end the process runs in a process of its own. A time limit there only ends a test that hangs.
"""

import array
import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

from stoker import _core
from stoker._errors import StokerError

COUNT = 64
PREFIX = """
import array, gc, os, signal, sys, threading, time
from stoker import _core
rows = array.array("f", range(64))
made = _core.Dataset.arrays([("row", "array", "float32", (), rows.buffer_info()[0], rows)], 64)
def loader(made=made, **options):
    return _core.Loader(made, {"batch_size": 4, "num_workers": 2, **options})
"""


def run(code, *, seconds=60):
    """Run code in a process of its own; returns its exit status, output and errors."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", PREFIX + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    return done.returncode, done.stdout, done.stderr


def dataset():
    rows = array.array("f", range(COUNT))
    return _core.Dataset.arrays([("row", "array", "float32", (), rows.buffer_info()[0], rows)], COUNT)


def loader(made=None, **options):
    return _core.Loader(made or dataset(), {"batch_size": 4, "num_workers": 2, **options})


def in_threads(*calls):
    """Run the calls in a thread each; returns what they raised."""
    raised = []

    def guarded(call):
        try:
            call()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def gated():
    """A data set that makes no sample before the event is set."""
    gate = threading.Event()

    def make(index, seed):
        gate.wait()
        return (b"1234",)

    return gate, _core.Dataset.python([("x", "array", "float32", (), False, 0)], COUNT, make)


def test_batches_and_tensors_freed_by_another_thread():
    one = loader(epochs=40)
    kept = []
    ended = threading.Event()

    def free():
        while not ended.is_set() or kept:
            if kept:
                kept.pop()

    def consume():
        while (batch := one.next()) != _core.FINISHED:
            if not isinstance(batch, int):
                kept.append((batch, batch.capsules(), batch.tensor(0).__dlpack__()))
        ended.set()

    assert in_threads(consume, free) == []
    assert one.stats()["batches"] == 40 * COUNT // 4


def test_close_ends_a_call_of_another_thread():
    gate, made = gated()
    one = loader(made)
    entered = threading.Event()
    raised = []

    def consume():
        entered.set()
        try:
            one.next()
        except RuntimeError as error:
            raised.append(str(error))
            gate.set()  # close() waits for the user's code, which waits for this

    thread = threading.Thread(target=consume)
    thread.start()
    entered.wait()
    one.close()
    thread.join()
    assert one.closed and len(raised) == 1 and "closed" in raised[0]


def test_close_in_many_threads_at_once():
    for _ in range(20):
        one = loader()
        batch = one.next()
        assert in_threads(one.close, one.close, batch.release, lambda: one.closed) == []
        assert one.closed and batch.released


def test_close_inside_of_its_own_call():
    held = []

    def log(level, text):
        try:
            if held:
                held[0].close()
        except RuntimeError as error:
            held.append(str(error))

    one = loader(on_log=log, prefetch_batches=2, memory_bytes=4096)
    held.append(one)
    kept = [one.next().capsules() for _ in range(2)]
    with pytest.raises(StokerError):  # no memory for a third: it logs why
        one.next(10)
    del kept
    assert any("inside of a call" in text for text in held[1:])


def test_a_loader_may_wander_between_threads():
    one = loader(epochs=1)
    seen = []
    for _ in range(COUNT // 4):
        assert in_threads(lambda: seen.append(one.next().capsules())) == []
    assert one.next() == _core.EPOCH_END and len(seen) == COUNT // 4


def test_stats_from_other_threads():
    one = loader(epochs=200)
    ended = threading.Event()

    def watch():
        while not ended.is_set():
            one.stats()
            one.snapshot()
            one.bad_sample(0)

    def consume():
        while one.next() != _core.FINISHED:
            pass
        ended.set()

    assert in_threads(consume, watch, watch) == []


# ---- processes of their own ----


@pytest.mark.parametrize(
    "code",
    [
        "one = loader(); batch = one.next(); tensor = batch.tensor(0); capsule = tensor.__dlpack__()",
        "one = loader(row_hook=lambda rows, sample, seed: time.sleep(0.001)); one.next()",
        "one = loader(order={'kind': 'own', 'ids': lambda e, p: list(p)}, on_log=print); one.next()",
        """
        def make(index, seed):
            return (array.array("f", [index]),)
        one = loader(_core.Dataset.python([("x", "array", "float32", (), False, 0)], 64, make))
        keep = [one, one.next()]
        keep.append(keep)
        """,
        """
        one = loader(_core.Dataset.python([("x", "array", "float32", (), False, 0)], 64, lambda i, s: time.sleep(0.01) or (b"1234",)))
        def consume():
            while True:
                one.next()
        threading.Thread(target=consume, daemon=True).start()
        time.sleep(0.05)
        """,
        "sys.modules['kept'] = [loader().next().capsules(), loader()]",
        "import atexit; one = loader(); atexit.register(lambda: print(one.next().count))",
    ],
)
def test_exit_with_a_live_loader(code):
    status, output, errors = run(textwrap.dedent(code) + "\nprint('end')")
    assert (status, "end" in output) == (0, True), errors
    assert "Fatal" not in errors


def test_fork_with_a_live_loader():
    code = """
    one = loader()
    batch = one.next()
    capsules = batch.capsules()
    tensor = batch.tensor(0)
    child = os.fork()
    if child == 0:
        calls = [one.next, one.state, one.stats, one.fileno, one.interrupt, lambda: batch.capsules(), lambda: loader().next()]
        said = []
        for call in calls:
            try:
                call()
                said.append("fine")
            except Exception as error:
                said.append(getattr(error, "code", type(error).__name__))
        batch.release()
        del capsules, tensor, batch
        one.close()
        print(said, flush=True)
        gc.collect()
        sys.exit(7)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print("child", status, "parent", one.next().count)
    """
    status, output, errors = run(code)
    assert status == 0 and "child 7 parent 4" in output, output + errors
    first = output.splitlines()[0]
    assert first.count("STOKER_EFORKED") == 5 and first.endswith("'fine']"), first


def test_fork_while_another_thread_is_in_next():
    code = """
    gate = threading.Event()
    slow = _core.Dataset.python([("x", "array", "float32", (), False, 0)], 64, lambda i, s: gate.wait() and (b"1234",))
    one = loader(slow)
    thread = threading.Thread(target=one.next)
    thread.start()
    time.sleep(0.02)
    child = os.fork()
    if child == 0:
        try:
            one.next()
        except Exception as error:
            print(getattr(error, "code", error), flush=True)
        one.close()
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    gate.set()
    thread.join()
    """
    status, output, errors = run(code)
    assert (status, output) == (0, "STOKER_EFORKED\n0\n"), output + errors


def test_a_signal_handler_may_interrupt():
    made = loader()
    before = signal.signal(signal.SIGALRM, lambda *_: made.interrupt())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        while made.next() != _core.INTERRUPTED:
            pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_no_second_interpreter():
    code = """
    import _xxsubinterpreters as interpreters
    try:
        interpreters.run_string(interpreters.create(), "import stoker._core")
    except BaseException as error:
        print("main interpreter only" in str(error) or "does not support" in str(error))
    """
    if not (3, 9) <= sys.version_info < (3, 13):
        pytest.skip("the module for interpreters has another name")
    status, output, errors = run(code)
    assert "True" in output, output + errors
