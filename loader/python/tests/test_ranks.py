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


def test_an_initialized_torch_distributed_wins_over_the_environment(monkeypatch, loader):
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


@pytest.mark.parametrize("samples, world, options", [
    (101, 2, {}), (101, 3, {}), (103, 4, {"deal": "batches"}), (99, 7, {"shuffle": True}), (5, 4, {}),
])  # fmt: skip
def test_no_rank_gets_an_empty_batch_and_all_get_equal_ones(loader, samples, world, options):
    numpy = pytest.importorskip("numpy")
    dataset = stoker.from_arrays(numpy.arange(samples))
    ranks = [list(loader(dataset, rank=rank, world_size=world, **options)) for rank in range(world)]
    sizes = [[len(batch.ids) for batch in rank] for rank in ranks]
    assert sizes == [sizes[0]] * world and min(sizes[0]) > 0
    padded = sum(batch.padded for rank in ranks for batch in rank)
    assert padded == sum(map(sum, sizes)) - samples and (padded < world or options.get("deal"))
    once = [int(id) for rank in ranks for batch in rank for id in batch.ids[: len(batch.ids) - batch.padded]]
    assert sorted(once) == list(range(samples))


def test_batches_of_a_bounded_number_of_values_are_not_empty_either(loader):
    numpy = pytest.importorskip("numpy")
    offsets = numpy.cumsum([0] + [1 + index % 7 for index in range(50)])
    rows = stoker.from_arrays(tokens=stoker.Ragged(numpy.arange(offsets[-1]), offsets))
    for world in range(2, 6):
        ranks = [list(loader(rows, rank=rank, world_size=world, batch_values_max=20, batch_size=8)) for rank in range(world)]
        assert len({len(rank) for rank in ranks}) == 1
        assert all(len(batch.ids) > 0 for rank in ranks for batch in rank)
        once = [int(id) for rank in ranks for batch in rank for id in batch.ids[: len(batch.ids) - batch.padded]]
        assert sorted(once) == list(range(50))


def test_short_delivers_every_sample_once(loader):
    numpy = pytest.importorskip("numpy")
    ranks = [list(loader(stoker.from_arrays(numpy.arange(101)), rank=rank, world_size=2, last="short")) for rank in range(2)]
    assert [len(rank[-1].ids) for rank in ranks] == [1, 0] and not any(batch.padded for rank in ranks for batch in rank)
