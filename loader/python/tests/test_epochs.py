"""Iterating: an epoch per iter(), one iterator at a time, and what ends one."""

import pytest

import stoker
from conftest import ids_of


def test_each_iter_is_an_epoch_in_an_order_of_its_own(loader):
    shuffled = loader(shuffle=True, seed=1)
    epochs = [ids_of(shuffled) for _ in range(3)]
    assert all(sorted(epoch) == list(range(100)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]


def test_length_is_that_of_the_epoch(loader):
    short = loader(batch_size=30)
    assert len(short) == len(iter(short)) == len(list(short)) == 4


def test_an_exhausted_iterator_stays_exhausted(loader):
    again = loader()
    batches = iter(again)
    list(batches)
    iter(again)
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(batches)


@pytest.mark.parametrize("taken", [1, 5, 9, 10])
def test_leaving_early_ends_the_epoch_and_the_next_one_is_complete(loader, taken):
    expected = [ids_of(each) for each in [loader(shuffle=True, seed=1)] for _ in range(3)]
    shuffled = loader(shuffle=True, seed=1)
    batches = iter(shuffled)
    assert ids_of(next(batches) for _ in range(taken)) == expected[0][: 10 * taken]
    assert ids_of(shuffled) == expected[1]
    assert ids_of(shuffled) == expected[2]


@pytest.mark.parametrize("share_cache", [False, True])
def test_what_was_cached_stays_when_the_place_changes(pictures, share_cache):
    options = {"cache": "decoded", "share_cache": share_cache, "num_workers": 1, "output": "numpy"}
    with stoker.DataLoader(f"folder:{pictures}", 4, shuffle=True, prefetch_factor=2, **options) as loader:
        state = loader.state_dict()
        expected = [ids_of(loader) for _ in range(9)]
        assert loader.stats().cache_held_bytes == 12 * 8 * 8
        for epoch in 3, 7, 2:
            for _ in loader:
                break
            loader.set_epoch(epoch)
            assert ids_of(loader) == expected[epoch]
            assert loader.stats().reads == 0
        loader.load_state_dict(state)
        assert ids_of(loader) == expected[0]
        assert loader.stats().reads == 0


def test_an_iterator_that_took_nothing_costs_no_epoch(loader):
    shuffled, expected = loader(shuffle=True), ids_of(loader(shuffle=True))
    iter(shuffled)
    iter(shuffled)
    assert ids_of(shuffled) == expected


def test_a_newer_iterator_ends_the_older_one_with_an_error(loader):
    twice = loader()
    older = iter(twice)
    next(older)
    newer = iter(twice)
    next(newer)
    with pytest.raises(stoker.LoaderError, match="second DataLoader"):
        next(older)
    assert len(list(newer)) == 9


def test_nested_loops_over_one_loader_are_an_error_not_a_hang(loader):
    twice = loader()
    with pytest.raises(stoker.LoaderError):
        for _ in twice:
            for _ in twice:
                break


def test_two_loaders_of_one_data_set_run_side_by_side(hundred, loader):
    for left, right in zip(loader(), loader()):
        assert (left.ids == right.ids).all()


def test_set_epoch_is_needless_but_understood(loader):
    expected = [ids_of(each) for each in [loader(shuffle=True)] for _ in range(4)]
    shuffled = loader(shuffle=True)
    for epoch in (0, 1, 3, 2, 3):
        shuffled.set_epoch(epoch)
        assert ids_of(shuffled) == expected[epoch]
    shuffled.set_epoch(1)
    next(iter(shuffled))
    shuffled.set_epoch(1)
    assert ids_of(shuffled) == expected[1]
    for wrong in (-1, 1.5, None):
        with pytest.raises(stoker.OptionError):
            shuffled.set_epoch(wrong)


def test_kept_batches_never_stop_the_loader_and_keep_their_values(loader):
    kept = [batch for _ in range(3) for batch in loader(prefetch_factor=2)]
    assert len(kept) == 30
    for batch in kept:
        assert (batch.rows[:, 0] == batch.ids).all()


def test_with_closes_and_kept_batches_stay(hundred):
    with stoker.DataLoader(hundred, batch_size=10, output="numpy", num_workers=1) as loader:
        batch = next(iter(loader))
    assert batch.rows[3, 0] == 3 and batch.ids[3] == 3
    loader.close()
    for use in (lambda: iter(loader), loader.state_dict, lambda: loader.load_state_dict({"x": 1})):
        with pytest.raises(stoker.LoaderError, match="closed"):
            use()


def test_a_loader_that_only_its_iterator_holds_lives(hundred):
    assert ids_of(iter(stoker.DataLoader(hundred, batch_size=50, output="numpy"))) == list(range(100))


def test_closing_within_an_epoch_is_an_error_of_the_next_batch(loader):
    closing = loader()
    batches = iter(closing)
    next(batches)
    closing.close()
    with pytest.raises(RuntimeError, match="closed"):
        next(batches)
