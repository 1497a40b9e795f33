"""state_dict and load_state_dict: the rest of the epoch, also with other workers, batches and ranks."""

import json
import pickle

import pytest

import stoker
from conftest import ids_of


def take(loader, count):
    batches = iter(loader)
    return ids_of(next(batches) for _ in range(count))


@pytest.mark.parametrize("taken", [0, 1, 5, 9])
@pytest.mark.parametrize("options", [dict(), dict(num_workers=0), dict(batch_size=7), dict(prefetch_factor=8)])
def test_the_rest_of_the_epoch_follows_and_then_the_next(loader, taken, options):
    whole = loader(shuffle=True, seed=1)
    epochs = [ids_of(whole) for _ in range(2)]
    first = loader(shuffle=True, seed=1)
    before = take(first, taken)
    state = first.state_dict()
    second = loader(shuffle=True, seed=1, **options)
    second.load_state_dict(state)
    assert before + ids_of(second) == epochs[0]
    assert ids_of(second) == epochs[1]


def test_ranks_may_differ_after_a_resume(loader):
    """Four ranks stop within an epoch; one, two and three continue: together each sample once."""
    ranks = [loader(shuffle=True, batch_size=5, rank=rank, world_size=4) for rank in range(4)]
    before = [id for each in ranks for id in take(each, 2)]
    states = [each.state_dict() for each in ranks]
    assert states[0] == states[1] == states[2] == states[3]
    for size in (1, 2, 3):
        rest = []
        for rank in range(size):
            other = loader(shuffle=True, batch_size=5, rank=rank, world_size=size)
            other.load_state_dict(states[0])
            rest += ids_of(other)
        assert sorted(before + rest) == list(range(100))


def test_a_state_is_plain_data():
    with stoker.DataLoader("synth:digits?count=20", batch_size=10, output="dlpack", num_workers=1) as loader:
        next(iter(loader))
        state = loader.state_dict()
        assert json.loads(json.dumps(state)) == pickle.loads(pickle.dumps(state)) == state
        assert len(bytes.fromhex(state["state"])) == 64 and state["version"] == 1


def test_taking_a_state_changes_nothing(loader):
    watched, seen = loader(shuffle=True), []
    for batch in watched:
        watched.state_dict()
        seen += batch.ids.tolist()
    assert seen == ids_of(loader(shuffle=True))


def test_a_state_between_epochs_is_the_start_of_the_next(loader):
    epochs = [ids_of(each) for each in [loader(shuffle=True)] for _ in range(2)]
    first, second = loader(shuffle=True), loader(shuffle=True)
    assert ids_of(first) == epochs[0]
    second.load_state_dict(first.state_dict())
    assert ids_of(second) == epochs[1] == ids_of(first)


def test_behind_the_last_batch_the_rest_is_empty_as_with_torchdata(loader):
    epochs = [ids_of(each) for each in [loader(shuffle=True)] for _ in range(2)]
    first, second, third = (loader(shuffle=True) for _ in range(3))
    take(first, 10)
    second.load_state_dict(first.state_dict())
    third.load_state_dict(second.state_dict())
    for each in (second, third):
        assert ids_of(each) == [] and ids_of(each) == epochs[1]


def test_set_epoch_after_a_resume_keeps_the_place_in_that_epoch(loader):
    """As Hugging Face's Trainer does: set_epoch(epoch) before each iter(), also the first one after a resume."""
    epochs = [ids_of(each) for each in [loader(shuffle=True)] for _ in range(3)]
    first = loader(shuffle=True)
    ids_of(first)
    take(first, 4)
    second = loader(shuffle=True)
    second.load_state_dict(first.state_dict())
    second.set_epoch(1)
    assert ids_of(second) == epochs[1][40:]
    second.load_state_dict(first.state_dict())
    second.set_epoch(2)
    assert ids_of(second) == epochs[2]


def test_loading_within_an_epoch_moves_the_loader_and_ends_its_iterator(loader):
    moved, expected = loader(shuffle=True), ids_of(loader(shuffle=True))
    take(moved, 3)
    state = moved.state_dict()
    batches = iter(moved)
    next(batches)
    moved.load_state_dict(state)
    with pytest.raises(stoker.LoaderError):
        next(batches)
    assert ids_of(moved) == expected[30:]


def test_an_empty_state_changes_nothing(loader):
    fresh = loader()
    fresh.load_state_dict({})
    assert ids_of(fresh) == list(range(100))


def test_batch_numbers_continue(loader):
    first, second = loader(), loader()
    take(first, 4)
    second.load_state_dict(first.state_dict())
    assert [(batch.epoch, batch.batch_index) for batch in second] == [(0, index) for index in range(4, 10)]
    assert len(second) == 10


@pytest.mark.parametrize("change", [
    lambda state: {"a": 1}, lambda state: dict(state, version=2), lambda state: dict(state, state="00" * 64),
    lambda state: dict(state, state="zz"), lambda state: dict(state, epoch=-1), lambda state: dict(state, state="00"),
    lambda state: dict(state, ended=3),
])  # fmt: skip
def test_what_is_no_state_is_refused_and_the_loader_stays(loader, change):
    broken = loader(shuffle=True)
    take(broken, 3)
    with pytest.raises((stoker.StateError, ValueError)):
        broken.load_state_dict(change(broken.state_dict()))
    assert len(broken.state_dict()["state"]) == 128
    assert sorted(ids_of(broken)) == list(range(100))


def test_a_state_of_another_data_set_is_refused(hundred, loader):
    first, other = loader(), loader(hundred[:50])
    take(first, 3)
    with pytest.raises(stoker.StateError) as caught:
        other.load_state_dict(first.state_dict())
    assert caught.value.code == "STOKER_ESTATE"
    assert ids_of(other) == list(range(50))
