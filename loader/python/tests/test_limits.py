"""What a loader does not do is an error at once: pickling, other processes, two threads, Ctrl-C."""

import copy
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import pytest

import stoker
from conftest import Blocked, ids_of


def test_a_loader_cannot_be_pickled_or_copied(loader):
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="state_dict"):
            attempt(loader())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork() here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_process_gets_errors_and_the_parent_continues(loader):
    parents = loader()
    batches = iter(parents)
    next(batches)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            refused = 0
            for use in (lambda: next(batches), lambda: iter(parents), parents.state_dict):
                try:
                    use()
                except stoker.ForkedLoader:
                    refused += 1
            status = 0 if refused == 3 else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(list(batches)) == 9


def test_a_second_thread_is_refused_while_one_waits(loader):
    blocked = Blocked()
    waiting = loader(blocked, batch_size=2)
    batches, seen = iter(waiting), []
    thread = threading.Thread(target=lambda: seen.extend(ids_of(batches)))
    thread.start()
    blocked.asked.wait()
    time.sleep(0.02)
    try:
        with pytest.raises(RuntimeError):
            next(batches)
    finally:
        blocked.held.set()
        thread.join()
    assert seen == [0, 1, 2, 3]


def test_ctrl_c_interrupts_a_wait_and_nothing_is_lost(loader):
    blocked = Blocked()
    waiting = loader(blocked, batch_size=2)
    batches = iter(waiting)
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        next(batches)
    blocked.held.set()
    assert ids_of(batches) == [0, 1, 2, 3]


@pytest.mark.parametrize("ending", ["", "import sys; sys.exit(0)", "raise SystemExit"])
def test_a_program_may_end_with_a_live_loader(ending):
    code = f"""
import stoker
loader = stoker.DataLoader("synth:digits?count=1000", batch_size=10, output="dlpack")
batches = iter(loader)
kept = next(batches)
{ending}
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_loaders_in_several_threads_share_a_data_set(hundred, loader):
    loaders, seen = [loader(shuffle=True, seed=1) for _ in range(3)], [None] * 3

    def consume(number):
        seen[number] = ids_of(loaders[number])

    threads = [threading.Thread(target=consume, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen[0] == seen[1] == seen[2] and sorted(seen[0]) == list(range(100))
