"""Which rank this process is: as given, of the launcher, of torch.distributed."""

import sys
import types

import pytest

import stoker
from conftest import ids_of


def test_without_a_launcher_there_is_one_rank(loader):
    assert len(loader()) == 10


@pytest.mark.parametrize("rank, size", [("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
                                        ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")])  # fmt: skip
def test_the_variables_of_a_launcher_divide_the_epoch(monkeypatch, loader, rank, size):
    monkeypatch.setenv(size, "2")
    parts = []
    for place in range(2):
        monkeypatch.setenv(rank, str(place))
        parts.append(ids_of(loader()))
    assert [len(part) for part in parts] == [50, 50]
    assert sorted(parts[0] + parts[1]) == list(range(100))


def test_numbers_given_win_over_the_environment(monkeypatch, loader):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert len(loader(rank=0, world_size=1)) == 10


def test_an_initialised_torch_distributed_wins_over_the_environment(monkeypatch, loader):
    distributed = types.SimpleNamespace(
        is_available=lambda: True, is_initialized=lambda: True, get_rank=lambda: 3, get_world_size=lambda: 5
    )
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(distributed=distributed))
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    from stoker import _ranks

    assert _ranks.resolve("auto", "auto") == (3, 5)
    distributed.is_initialized = lambda: False
    assert _ranks.resolve("auto", "auto") == (0, 2)


@pytest.mark.parametrize("wrong, word", [
    (dict(rank=0), "world_size"), (dict(world_size=2), "rank"), (dict(rank=2, world_size=2), "out of range"),
    (dict(rank="0", world_size=2), "number"), (dict(rank=-1, world_size=2), "-1"), (dict(rank=0, world_size=0), "0"),
])  # fmt: skip
def test_numbers_that_do_not_go_together_are_refused(loader, wrong, word):
    with pytest.raises(stoker.OptionError, match=word):
        loader(**wrong)


def test_variables_that_contradict_each_other_are_refused(monkeypatch, loader):
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(ValueError, match="WORLD_SIZE"):
        loader()
