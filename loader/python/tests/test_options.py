"""Arguments of DataLoader: those of torch's that are accepted, explained or refused, and those of its own."""

import warnings

import pytest

import stoker
from conftest import Blocked, ids_of
from stoker import FieldOptions, _options


@pytest.mark.parametrize("name, instead", [("sampler", "order="), ("batch_sampler", "batch_size"), ("collate_fn", "batch_transform")])
def test_what_makes_no_sense_here_is_refused_with_what_to_use_instead(loader, name, instead):
    with pytest.raises(stoker.OptionError, match=instead):
        loader(**{name: object()})
    loader(**{name: None})


def test_what_always_holds_is_accepted(loader):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loader(persistent_workers=True, multiprocessing_context="spawn", pin_memory_device="cuda", in_order=True, generator=None)


def test_a_function_that_is_never_called_is_worth_a_warning(loader):
    with pytest.warns(UserWarning, match="worker_init_fn is never called"):
        loader(worker_init_fn=print)


def test_pinning_without_a_gpu_is_worth_a_warning_as_in_torch(loader):
    with pytest.warns(UserWarning, match="pin_memory"):
        assert len(list(loader(pin_memory=True))) == 10


def test_an_unknown_argument_is_a_type_error_that_names_it(loader):
    with pytest.raises(TypeError, match="batchsize"):
        loader(batchsize=3)


@pytest.mark.parametrize("wrong, word", [
    (dict(batch_size=0), "batch_size"), (dict(batch_size=101, drop_last=True), "batch"), (dict(batch_size=None), "batch_size"),
    (dict(num_workers=-2), "num_workers"), (dict(timeout=-1), "timeout"), (dict(prefetch_factor=0), "prefetch_factor"),
    (dict(device="tpu"), "device"), (dict(output="tensorflow"), "output"), (dict(ragged="nested"), "torch"),
    (dict(drop_last=True, last="pad"), "contradicts"), (dict(last="never"), "never"), (dict(seed="x"), "seed"),
    (dict(on_bad_sample="ignore"), "ignore"), (dict(layout="CHWN"), "CHWN"), (dict(dtype="int3"), "int3"),
    (dict(length=5), "weights"), (dict(order=[1, 2]), "function"), (dict(weights=[1.0], order=lambda e: [1]), "choose"),
    (dict(order=lambda e: [1], shuffle=True), "shuffle"), (dict(fields={"label": {}}), "FieldOptions"),
    (dict(fields={"nope": FieldOptions(dtype="int32")}), "nope"), (dict(split="train"), "open already"),
    (dict(options={"read_dept": 3}), "read_dept"), (dict(order=lambda e: [-1]), "order"),
    (dict(order="window", length=5), "length"), (dict(order="window", window_blocks=0), "window_blocks 0"),
    (dict(order="uniform", lanes=8), "lanes is for"), (dict(shuffle=True, block_samples=4), "block_samples needs"),
])  # fmt: skip
def test_a_wrong_value_is_a_value_error_that_names_it(loader, wrong, word):
    with pytest.raises(ValueError, match=word):
        loader(**wrong)


def test_seeds_orders_and_lasts(loader):
    plain, shuffled = ids_of(loader()), ids_of(loader(shuffle=True, seed=1))
    assert plain == list(range(100)) and sorted(shuffled) == plain and shuffled != plain
    assert shuffled == ids_of(loader(shuffle=True, seed=1)) != ids_of(loader(shuffle=True, seed=2))
    assert [len(loader(batch_size=30, last=last)) for last in ("short", "drop", "pad")] == [4, 3, 4]


@pytest.mark.parametrize("options, count", [({}, 100), ({"shuffle": True, "num_workers": 0}, 100), ({"order": lambda epoch: [7, 3]}, 2)])
def test_an_epoch_shorter_than_a_batch_is_one_short_batch(loader, options, count):
    short = loader(batch_size=101, **options)
    assert (len(short), short.batch_size) == (1, 101)
    for _ in range(2):
        (batch,) = short
        assert len(batch.ids) == len(set(batch.ids)) == count
    with pytest.raises(stoker.OptionError):
        loader(batch_size=65537)


def test_a_batch_of_too_few_samples_is_short_full_or_refused(loader):
    with pytest.raises(stoker.OptionError, match="101.*100"):
        loader(batch_size=101, drop_last=True)
    (short,) = loader(batch_size=101)
    assert len(short.ids) == 100 and short.padded == 0
    (full,) = loader(batch_size=101, last="pad")
    assert len(full.ids) == 101 and full.padded == 1


def test_a_padded_last_batch_counts_what_was_added(loader):
    batches = list(loader(batch_size=30, last="pad"))
    assert [batch.padded for batch in batches] == [0, 0, 0, 20]
    assert ids_of(batches)[100:] == list(range(20))


def test_the_seed_of_a_generator_is_taken_unless_seed_is_given():
    class Generator:
        def initial_seed(self):
            return 2**64 + 7

    assert _options.seed_of(None, Generator()) == 7
    assert _options.seed_of(1, Generator()) == 1 and _options.seed_of(None, None) == 0


@pytest.mark.parametrize("device, is_it", [("cpu", ("cpu", 0)), ("cuda:3", ("cuda", 3)), ("auto", ("auto", 0)), ("cuda", ("cuda", 0))])
def test_devices_by_name(monkeypatch, device, is_it):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    assert _options.device_of(device) == is_it


def test_dtypes_of_other_libraries_are_names():
    numpy = pytest.importorskip("numpy")
    assert [_options.dtype_name(x) for x in ("float16", numpy.float16, numpy.dtype("float16"))] == ["float16"] * 3


def test_weights_draw_with_replacement(loader):
    ids = ids_of(loader(weights=[0.0] * 99 + [1.0], length=25))
    assert ids == [99] * 25


def test_windows_of_blocks_use_each_block_in_turn_and_resume(loader):
    make = lambda **options: loader(order="window", window_blocks=1, lanes=1, block_samples=10, seed=3, **options)  # noqa: E731
    ids = ids_of(make())
    assert sorted(ids) == list(range(100)) and all(len({id // 10 for id in ids[at : at + 10]}) == 1 for at in range(0, 100, 10))
    first, second = make(), make()
    before = [next(iter(first))]
    second.load_state_dict(first.state_dict())
    assert ids_of(before) + ids_of(second) == ids
    with pytest.raises(stoker.StokerError, match="window"):
        loader(order="window", window_blocks=2, lanes=1, block_samples=10, seed=3).load_state_dict(first.state_dict())


def test_an_order_of_ones_own_is_asked_once_per_epoch(loader):
    asked = []

    def order(epoch):
        asked.append(epoch)
        return [(7 * epoch + position) % 100 for position in range(30)]

    own = loader(order=order, num_workers=2)
    assert len(own) == 3
    for epoch in range(3):
        assert ids_of(own) == [(7 * epoch + position) % 100 for position in range(30)]
    assert len(asked) == len(set(asked))


def test_an_order_that_changes_its_length_is_an_error(loader):
    own = loader(order=lambda epoch: range(30 + epoch))
    ids_of(own)
    with pytest.raises(stoker.StokerError) as caught:
        ids_of(own)
    assert "one length" in f"{caught.value} {caught.value.__cause__}"


def test_mixup_adds_its_fields(pictures, loader):
    mixed = loader(str(pictures), mixup=0.4, dtype="float32")
    batch = next(iter(mixed))
    assert batch._fields == ("images", "labels", "labels_b", "partner", "lambda_")
    assert batch.partner[0] == 9 and (0 <= batch.lambda_).all() and (batch.lambda_ <= 1).all()
    assert list(mixed.element_spec) == list(batch._fields)


def test_a_batch_transform_gets_the_finished_batch(loader):
    seen = loader(batch_transform=lambda batch: (batch.rows * 2, batch.ids))
    rows, ids = next(iter(seen))
    assert (rows[:, 0] == 2 * ids).all()


def test_messages_go_to_the_logger_stoker_or_to_on_log(loader, pictures, caplog):
    caplog.set_level("INFO", logger="stoker")
    loader()
    assert any(record.name == "stoker" for record in caplog.records)
    heard = []
    (pictures / "cats" / "03.png").write_bytes(b"no image")
    skipping = loader(str(pictures), on_bad_sample="skip", on_log=lambda level, text: heard.append((level, text)))
    assert ids_of(skipping) == [0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11]
    assert any(level == "warning" and "03.png" in text for level, text in heard)
    bad = skipping.bad_samples()
    assert [(error.sample, type(error)) for error in bad] == [(3, stoker.CorruptSample)]


def test_too_many_bad_samples_end_the_run(loader, pictures):
    for name in ("01", "03"):
        (pictures / "cats" / f"{name}.png").write_bytes(b"no image")
    with pytest.raises(stoker.TooManyBadSamples):
        list(loader(str(pictures), on_bad_sample="skip", max_bad_samples=1))


def test_a_timeout_is_a_timeout_error_and_nothing_is_lost(loader):
    blocked = Blocked()
    slow = loader(blocked, batch_size=2, timeout=0.02)
    batches = iter(slow)
    with pytest.raises(TimeoutError) as caught:
        next(batches)
    assert isinstance(caught.value, stoker.BatchTimeout)
    blocked.held.set()
    slow._timeout_ms = -1
    assert ids_of(batches) == [0, 1, 2, 3]
