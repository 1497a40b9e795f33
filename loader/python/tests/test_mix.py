"""mix(): shares after every sample, epochs of the sources, changes of weights, and states that hold them."""

import json

import pytest

import stoker

numpy = pytest.importorskip("numpy")

SIZES = (70, 30, 11)
WEIGHTS = (0.5, 0.3, 0.2)


@pytest.fixture
def sources():
    """Three data sets; row i of source s is [s, i]."""
    return [stoker.from_arrays(rows=numpy.stack([numpy.full(size, s), numpy.arange(size)], 1)) for s, size in enumerate(SIZES)]


@pytest.fixture
def mixed(sources):
    return stoker.mix(zip(WEIGHTS, sources), epoch_samples=90)


def rows_of(loader, epochs=1):
    return [tuple(row) for _ in range(epochs) for batch in loader for row in batch.rows.tolist()]


def check_shares(rows, weights):
    """Each source within one sample of its share after every row."""
    for source, weight in enumerate(weights):
        had = numpy.cumsum([row[0] == source for row in rows])
        share = weight / sum(weights) * numpy.arange(1, len(rows) + 1)
        assert (abs(had - share) < 1 + 1e-9).all()


@pytest.mark.parametrize("weights", [WEIGHTS, (7, 2, 1), (0, 1, 3), (1 / 3, 1 / 3, 1 / 3)])
def test_shares_hold_after_every_sample(sources, loader, weights):
    mixed = stoker.mix(zip(weights, sources), epoch_samples=90)
    rows = rows_of(loader(mixed, shuffle=True, batch_size=7), epochs=3)
    assert len(rows) == 270
    check_shares(rows, weights)


def test_sources_have_epochs_of_their_own(mixed, loader):
    """The smallest one begins again after 11 of its samples; not shuffled, all come in their order."""
    rows = rows_of(loader(mixed), epochs=2)
    shuffled = rows_of(loader(mixed, shuffle=True, seed=3), epochs=2)
    for source, size in enumerate(SIZES):
        own = [sample for each, sample in rows if each == source]
        assert own == [index % size for index in range(len(own))]
        drawn = [sample for each, sample in shuffled if each == source]
        for begin in range(0, len(drawn) - size + 1, size):
            assert sorted(drawn[begin : begin + size]) == list(range(size))
    third = [sample for each, sample in shuffled if each == 2]
    assert third[:11] != third[11:22]


def test_a_mix_knows_where_samples_come_from(mixed, loader):
    assert len(mixed) == sum(SIZES) and len(mixed.sources) == 3 and mixed.format == "mix"
    assert mixed.source_of(0) == (0, 0) and mixed.source_of(69) == (0, 69)
    assert mixed.source_of(70) == (1, 0) and mixed.source_of(110) == stoker._mix.Source(2, 10)
    for wrong in (-1, 111):
        with pytest.raises(IndexError):
            mixed.source_of(wrong)
    batches = loader(mixed, shuffle=True)
    assert len(batches) == 9
    for batch in batches:
        assert [mixed.source_of(id) for id in batch.ids] == [tuple(row) for row in batch.rows.tolist()]
        assert sum(batches.mix_counts()) == 10 * (batch.batch_index + 1)


def test_counts_are_those_of_the_loader_also_far_ahead(mixed, loader):
    batches = loader(mixed)
    rows = rows_of(batches)
    assert mixed.counts(90) == batches.mix_counts() == tuple(sum(row[0] == source for row in rows) for source in range(3))
    assert sum(mixed.counts(10**15)) == 10**15 and abs(mixed.counts(10**15)[1] - 3 * 10**14) <= 1


def test_sources_by_name_and_as_a_dictionary():
    names = ["synth:bytes?count=20&shape=3", "synth:bytes?count=9&shape=3"]
    first = stoker.mix([(0.7, names[0]), (0.3, names[1])])
    opened = [stoker.open(name) for name in names]
    second = stoker.mix({opened[0]: 0.7, opened[1]: 0.3})
    spec = stoker.open(f"mix:0.7*({names[0]})+0.3*({names[1]})")
    assert first.fingerprint == second.fingerprint == spec.fingerprint and len(first) == 29


def test_weights_change_at_positions_known_from_the_start(sources, loader):
    mixed = stoker.mix(zip(WEIGHTS, sources), epoch_samples=90, changes=[(40, [0, 1, 1]), (200, [1, 0, 0])])
    assert mixed.fingerprint == stoker.mix(zip(WEIGHTS, sources), epoch_samples=90, changes={40: [0, 1, 1], 200: (1, 0, 0)}).fingerprint
    rows = rows_of(loader(mixed, shuffle=True), epochs=3)
    for begin, end, weights in ((0, 40, WEIGHTS), (40, 200, (0, 1, 1)), (200, 270, (1, 0, 0))):
        check_shares(rows[begin:end], weights)
    assert mixed.counts(270) == tuple(sum(row[0] == source for row in rows) for source in range(3))


def global_order(made, batches, into):
    """The next batches of all ranks at their positions of the mix."""
    for rank, each in enumerate(made):
        steps = iter(each)
        for _ in range(batches):
            first = sum(each.mix_counts())
            batch = next(steps, None)
            if batch is None:
                break
            for row, id in enumerate(batch.ids.tolist()):
                assert into.setdefault(first + row * len(made) + rank, id) == id


def test_a_changed_mix_resumes_on_other_numbers_of_ranks(mixed, loader):
    """1, 2, 3, then 1 rank: the sequence of one that never stopped, with weights that changed while it ran."""

    def ranks(world, state=None, change=False):
        made = [loader(mixed, shuffle=True, batch_size=4, rank=rank, world_size=world, prefetch_factor=2) for rank in range(world)]
        for each in made:
            if state is not None:
                each.load_state_dict(json.loads(json.dumps(state)))
            if change:
                each.change_mix(30, [0, 0, 1])
                each.change_mix(61, [1, 1, 0])
        return made

    whole, found = {}, {}
    global_order(ranks(1, change=True), 30, whole)
    assert sorted(whole) == list(range(90))
    made = ranks(2, change=True)
    global_order(made, 2, found)
    for world in (3, 1):
        states = [each.state_dict() for each in made]
        assert all(state == states[0] for state in states) and len(states[0]["state"]) > 128
        made = ranks(world, states[0])
        global_order(made, 2 if world == 3 else 30, found)
    assert found == whole
    assert [mixed.source_of(whole[at]).source for at in range(30, 61)] == [2] * 31
    assert 2 not in [mixed.source_of(whole[at]).source for at in range(61, 90)]


def test_an_epoch_left_early_keeps_the_changes(mixed, loader):
    changed, whole = (loader(mixed, shuffle=True, prefetch_factor=2) for _ in range(2))
    for each in (changed, whole):
        each.change_mix(100, [0, 0, 1])
    next(iter(changed))
    rows_of(whole)
    second = rows_of(changed)
    assert second == rows_of(whole) and {source for source, _ in second[10:]} == {2}


def test_a_change_that_is_too_late_says_what_is_possible(mixed, loader):
    batches = loader(mixed, prefetch_factor=2)
    next(iter(batches))
    with pytest.raises(stoker.OptionError, match="the earliest is"):
        batches.change_mix(5, WEIGHTS)
    for wrong in ([1, 2], [1, 2, -1], [0, 0, 0], ["a", 0, 0]):
        with pytest.raises(ValueError):
            batches.change_mix(80, wrong)
    batches.change_mix(80, [1, 1, 1])
    assert mixed.counts(90) != batches.mix_counts()


def test_what_is_no_mix_says_so(hundred, loader):
    for call in (lambda: loader().mix_counts(), lambda: loader().change_mix(50, [1, 2])):
        with pytest.raises(stoker.OptionError, match="mix"):
            call()


@pytest.mark.parametrize("wrong", [
    lambda s: stoker.mix([]), lambda s: stoker.mix([(1, s[0]), (-1, s[1])]), lambda s: stoker.mix([(1, s[0]), 3]),
    lambda s: stoker.mix([(0, s[0])]), lambda s: stoker.mix([(1, 7)]), lambda s: stoker.mix([("a", s[0])]),
    lambda s: stoker.mix([(1, s[0])], epoch_samples=0), lambda s: stoker.mix([(1, s[0])], changes=[3]),
    lambda s: stoker.mix([(1, s[0])], changes=[(4, [1, 2])]), lambda s: stoker.mix([(1, s[0])], changes=[(9, [1]), (4, [1])]),
    lambda s: stoker.mix([(1, s[0]), (1, "synth:digits?count=3")]),
    lambda s: stoker.mix([(1, stoker.mix([(1, s[0])]))]),
])  # fmt: skip
def test_wrong_mixes_are_refused(sources, wrong):
    with pytest.raises((stoker.OptionError, stoker.NotSupported)):
        wrong(sources)


def test_a_state_of_other_weights_is_refused(sources, loader):
    first, other = (loader(stoker.mix(zip(weights, sources))) for weights in (WEIGHTS, (1, 1, 1)))
    next(iter(first))
    with pytest.raises(stoker.StateError):
        other.load_state_dict(first.state_dict())
